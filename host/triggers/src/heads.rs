//! Commits of branches, and the events that a change of them is.

use crate::trigger_event::{CommitEvent, TriggerEvent};
use std::collections::{BTreeMap, BTreeSet};

/// Commits of branches, by the branches' names.
pub type Heads = BTreeMap<String, String>;

/// Branches with another commit than before. A new branch at a commit that another branch already
/// had holds no new commit.
pub fn changes(before: &Heads, after: &Heads) -> Vec<TriggerEvent> {
    let known: BTreeSet<_> = before.values().collect();
    let changed = after.iter().filter(|(branch, commit)| match before.get(*branch) {
        Some(old) => old != *commit,
        None => !known.contains(commit),
    });
    let event = |(branch, commit): (&String, &String)| {
        TriggerEvent::Commit(CommitEvent {
            branch: branch.clone(),
            before: before.get(branch).cloned(),
            after: commit.clone(),
        })
    };
    changed.map(event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    fn heads(pairs: &[(&str, &str)]) -> Heads {
        pairs.iter().map(|(branch, commit)| ((*branch).to_owned(), (*commit).to_owned())).collect()
    }

    #[test]
    fn new_commits_are_changes() {
        let before = heads(&[("main", ONE), ("gone", ONE)]);
        for (after, changed) in [
            (heads(&[("main", ONE), ("gone", ONE)]), &[][..]),
            (heads(&[("main", ONE)]), &[]),
            (heads(&[("main", TWO)]), &[("main", Some(ONE), TWO)]),
            (heads(&[("main", ONE), ("copy", ONE)]), &[]),
            (heads(&[("main", ONE), ("new", TWO)]), &[("new", None, TWO)]),
        ] {
            let expected: Vec<_> = changed
                .iter()
                .map(|(branch, before, after): &(&str, Option<&str>, &str)| {
                    let before = before.map(str::to_owned);
                    let (branch, after) = ((*branch).to_owned(), (*after).to_owned());
                    TriggerEvent::Commit(CommitEvent { branch, before, after })
                })
                .collect();
            assert_eq!(changes(&before, &after), expected, "{after:?}");
        }
    }
}
