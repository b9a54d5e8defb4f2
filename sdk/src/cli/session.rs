//! The program's own record of a conversation, as stored between tasks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The program's own record of a conversation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Session {
    /// Id; empty before the first run.
    pub id: String,
    /// Usage so far. Programs report the total over all runs; clients want that of this run.
    #[serde(default)]
    pub totals: BTreeMap<String, f64>,
}

impl Session {
    /// Creates a session without usage.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), totals: BTreeMap::new() }
    }

    /// Stores the new total of a counter and returns its growth. A smaller total means that the
    /// counter restarted: programs write it as they exit, and a killed one did not.
    pub fn grown(&mut self, counter: &str, total: f64) -> f64 {
        let before = self.totals.insert(counter.to_owned(), total).unwrap_or_default();
        if total < before { total } else { total - before }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_total_restarts_counter() {
        let mut session = Session::new("s");
        let grown = [3.0, 5.0, 5.0, 1.0, 4.0].map(|total| session.grown("tokens", total));
        assert_eq!(grown.map(f64::to_bits), [3.0, 2.0, 0.0, 1.0, 3.0].map(f64::to_bits));
    }
}
