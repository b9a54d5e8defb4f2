//! The program's own record of a conversation, as it is kept between tasks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The program's own record of a conversation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Session {
    /// Its name; empty before the first run.
    pub id: String,
    /// What it used up so far. Programs tell the sum over all runs, a client wants to know about this one.
    #[serde(default)]
    pub totals: BTreeMap<String, f64>,
}

impl Session {
    /// A session that has used up nothing.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), totals: BTreeMap::new() }
    }

    /// Takes the new sum of a counter, and returns by how much it grew.
    pub fn grown(&mut self, counter: &str, total: f64) -> f64 {
        let before = self.totals.insert(counter.to_owned(), total).unwrap_or_default();
        (total - before).max(0.0)
    }
}
