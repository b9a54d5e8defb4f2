//! TCP ports that are reserved for a worktree, so that servers of different worktrees do not meet.

use crate::{PortRange, Worktree, WorktreeError};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, TcpListener},
};

/// First port that is reserved: above those of common services.
const FIRST: u16 = 20_000;

/// End of the ports: the kernel gives out those from here on by itself.
const END: u16 = 32_768;

/// Ranges that are reserved by worktrees, and by those that are being made.
#[derive(Debug, Default)]
pub(crate) struct Reservations(Mutex<BTreeMap<String, PortRange>>);

impl Reservations {
    /// Reserves `count` ports for a task, beside those of the `known` worktrees. Blocks: it tries
    /// whether other programs listen on them.
    pub(crate) fn reserve(
        &self,
        task: &str,
        count: u16,
        known: &[Worktree],
    ) -> Result<PortRange, WorktreeError> {
        let mut reserved = self.0.lock();
        for worktree in known {
            if let Some(ports) = worktree.ports {
                reserved.insert(worktree.task.clone(), ports);
            }
        }
        let taken: Vec<_> = reserved.values().copied().collect();
        let found = free_range(count, &taken, |port| {
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
        });
        let found = found.ok_or_else(|| {
            WorktreeError::Refused(format!(
                "no {count} free ports from {FIRST} to {} are left for this worktree; remove some: `a2a-hub worktrees prune`, or \
                 lower `worktrees.ports`",
                END - 1
            ))
        })?;
        reserved.insert(task.to_owned(), found);
        Ok(found)
    }

    pub(crate) fn release(&self, task: &str) {
        self.0.lock().remove(task);
    }
}

/// The first range of `count` ports that overlaps none of `taken` and in which all are free.
fn free_range(count: u16, taken: &[PortRange], is_free: impl Fn(u16) -> bool) -> Option<PortRange> {
    let mut first = FIRST;
    loop {
        let range = PortRange { first, count };
        if range.end() > END {
            return None;
        }
        let overlaps = |other: &&PortRange| other.first < range.end() && first < other.end();
        if let Some(other) = taken.iter().find(overlaps) {
            first = other.end();
        } else if let Some(port) = (first..range.end()).rev().find(|port| !is_free(*port)) {
            first = port + 1;
        } else {
            return Some(range);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(count: u16, taken: &[(u16, u16)], used: &[u16]) -> Option<u16> {
        let taken: Vec<_> =
            taken.iter().map(|&(first, count)| PortRange { first, count }).collect();
        free_range(count, &taken, |port| !used.contains(&port)).map(|range| range.first)
    }

    #[test]
    fn first_free_range_is_found() {
        assert_eq!(found(10, &[], &[]), Some(20_000));
        assert_eq!(found(10, &[(20_000, 10)], &[]), Some(20_010));
        assert_eq!(found(10, &[(20_005, 10), (20_015, 5)], &[]), Some(20_020));
        assert_eq!(found(5, &[(20_005, 10)], &[]), Some(20_000));
        assert_eq!(found(10, &[(20_000, 10)], &[20_012, 20_015]), Some(20_016));
        assert_eq!(found(100, &[(20_050, 12_700)], &[]), None);
        assert_eq!(found(18, &[(20_000, 12_750)], &[]), Some(32_750));
    }

    #[test]
    fn reserved_ports_are_given_once() {
        let reservations = Reservations::default();
        let reserve = |task: &str| reservations.reserve(task, 3, &[]).unwrap();
        let (one, two) = (reserve("one"), reserve("two"));
        assert!(one.end() <= two.first, "{one:?} {two:?}");
        reservations.release("one");
        let again = reserve("three");
        assert!(again.end() <= two.first || two.end() <= again.first, "{again:?} {two:?}");
    }
}
