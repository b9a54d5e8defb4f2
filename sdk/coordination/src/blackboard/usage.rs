//! Items and bytes of a board by author, so that none of several agents takes it from the others.

use std::collections::BTreeMap;

use super::{board::ChangeRefusal, refusal::ContributionRefusal};

/// Part of something of a board for one of several agents: half, and at least one.
pub fn share_of_agent(total: usize) -> usize {
    (total / 2).max(1)
}

/// Items and bytes of a board.
#[derive(Clone, Debug, Default)]
pub(super) struct BoardUsage {
    all: Used,
    /// Items by their authors, and results by those that finished the items.
    by: BTreeMap<String, Used>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Used {
    items: usize,
    bytes: usize,
}

impl BoardUsage {
    /// Checks that an author may add these items and bytes. One of several agents of the board has
    /// a share of it; a single agent, and those who post before the board begins, have all.
    ///
    /// # Errors
    ///
    /// If the board is full, or the share of the author.
    pub(super) fn require_share(
        &self,
        agents: &[String],
        (max_items, max_bytes): (usize, usize),
        author: &str,
        (items, bytes): (usize, usize),
    ) -> Result<(), ContributionRefusal> {
        if self.all.is_beyond((items, max_items), (bytes, max_bytes)) {
            return Err(ContributionRefusal::Rule(ChangeRefusal::Full));
        }
        if agents.len() < 2 || !agents.iter().any(|agent| agent == author) {
            return Ok(());
        }
        let [max_items, max_bytes] = [max_items, max_bytes].map(share_of_agent);
        let used = self.by.get(author).copied().unwrap_or_default();
        if used.is_beyond((items, max_items), (bytes, max_bytes)) {
            return Err(ContributionRefusal::ShareReached);
        }
        Ok(())
    }

    pub(super) fn count(&mut self, author: &str, items: usize, bytes: usize) {
        for used in [&mut self.all, self.by.entry(author.to_owned()).or_default()] {
            used.items += items;
            used.bytes += bytes;
        }
    }
}

impl Used {
    /// True if a limit would be exceeded, each given with what is added.
    fn is_beyond(
        self,
        (items, max_items): (usize, usize),
        (bytes, max_bytes): (usize, usize),
    ) -> bool {
        self.items + items > max_items || self.bytes.saturating_add(bytes) > max_bytes
    }
}
