//! Number of open questions whose deadlines are near.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Counter of open questions whose deadlines are near. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ExpiringQuestions(Arc<AtomicU64>);

/// One counted question. Dropping it ends that.
#[derive(Debug)]
pub struct ExpiringQuestion(Arc<AtomicU64>);

impl ExpiringQuestions {
    /// Counts one more question.
    pub fn add(&self) -> ExpiringQuestion {
        self.0.fetch_add(1, Ordering::Relaxed);
        ExpiringQuestion(Arc::clone(&self.0))
    }

    /// Number of these questions.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for ExpiringQuestion {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
