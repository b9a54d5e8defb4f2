//! Snapshot of the configuration's keys: files of operators must keep working.

use crate::{
    Config,
    names::{EntryKind, entry_kind},
};
use std::fmt::Write as _;

#[test]
fn configuration_keys_match_snapshot() {
    let mut out = String::new();
    let mut pending = vec![Vec::new()];
    let mut found = Vec::new();
    while let Some(path) = pending.pop() {
        let below = |name: &str| [&path[..], &[name.to_owned()]].concat();
        match entry_kind::<Config>(&path) {
            EntryKind::Section(names) => pending.extend(names.iter().map(|name| below(name))),
            // The key stands for an operator's name; real nesting is never deeper than this.
            EntryKind::Names if path.len() < 6 => pending.push(below("x")),
            EntryKind::Names | EntryKind::Value => found.push(path.join(".")),
        }
    }
    found.sort();
    for key in found {
        writeln!(out, "{key}").unwrap();
    }
    insta::assert_snapshot!("keys", out);
}
