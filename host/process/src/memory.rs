//! Memory limit of a whole confined tree. The kernel bounds the private memory of each process
//! (`RLIMIT_DATA`), but neither the sum, nor shared memory or memory files (`MAP_SHARED`,
//! `memfd_create(2)`). A control group would, but only the superuser and its delegates can create
//! one. So the minder measures, as often as the tree could have become full.

use super::proc::{self, Process, family, now};
use rustix::process::getpid;
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// Upper bound of the bytes that all processors of a machine write into new pages in a second.
const FASTEST: u64 = 8 << 30;

/// Shortest and longest pause between two measurements: the longest with much capacity left, the
/// shortest with none.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Ratio of a pause to the duration of the measurement before it, which bounds the CPU cost for
/// large trees.
const REST: u32 = 2;

/// Bytes that a tree may use beyond its limit: its init, and a margin within which a single process
/// meets the kernel's limit first, which does not kill it.
const SLACK: u64 = 32 << 20;

/// Measures the memory below this process.
pub(super) struct MemoryWatch {
    /// Limit in bytes, with the slack.
    limit: u64,
    /// Time of the next measurement.
    at: Instant,
    /// Memory files at the last measurement that could inspect the whole tree.
    last: FileBytes,
}

/// Bytes of memory files.
#[derive(Clone, Copy)]
struct FileBytes {
    of_tree: u64,
    of_machine: u64,
}

impl MemoryWatch {
    pub(super) fn new(limit: u64) -> Self {
        let last = FileBytes { of_tree: 0, of_machine: proc::files_in_memory() };
        Self { limit: limit.saturating_add(SLACK), at: now(), last }
    }

    /// Time until the next measurement.
    pub(super) fn due(&self) -> Duration {
        self.at.saturating_duration_since(now())
    }

    /// Bytes that the tree uses, if they exceed the limit. Measures only when it is due.
    pub(super) fn exceeded(&mut self) -> Option<u64> {
        let began = now();
        if began < self.at {
            return None;
        }
        let taken = self.taken(&family(getpid()));
        let ended = now();
        self.at = ended + pause(self.limit.saturating_sub(taken), ended - began);
        (taken > self.limit).then_some(taken)
    }

    /// Bytes that these processes use. A process that hides its descriptors (`PR_SET_DUMPABLE`, or
    /// a program that it may not read) is charged for all growth of memory files on the machine
    /// since.
    fn taken(&mut self, family: &[Process]) -> u64 {
        let (files, of_machine) = (memory_file_bytes(family), proc::files_in_memory());
        let taken = taken(family, files, self.limit);
        // The init, the minder's only child, is not the program's; it hides its descriptors from
        // everybody.
        let minder = getpid();
        let mut programs = family.iter().filter(|process| !process.is_child_of(minder));
        if !programs.any(Process::hides_descriptors) {
            self.last = FileBytes { of_tree: files, of_machine };
            return taken;
        }
        let hidden = of_machine.saturating_sub(self.last.of_machine);
        let private = family.iter().map(Process::private_memory).fold(0, u64::saturating_add);
        taken.max(private.saturating_add(self.last.of_tree).saturating_add(hidden))
    }
}

/// Pause after a measurement that took `elapsed`, with `free_bytes` bytes of capacity left.
fn pause(free_bytes: u64, elapsed: Duration) -> Duration {
    let full = Duration::from_millis(free_bytes.saturating_mul(1000) / FASTEST);
    full.clamp(PAUSES.0, PAUSES.1).max(elapsed.saturating_mul(REST))
}

/// Bytes of the memory files that these processes hold open; each file counts once.
fn memory_file_bytes(family: &[Process]) -> u64 {
    let files: HashMap<_, _> = family.iter().flat_map(Process::memory_files).collect();
    files.into_values().fold(0, u64::saturating_add)
}

/// Bytes that only the end of these processes frees, with those of their memory files. Counting
/// shared memory once is slow, so it is done only if the simple sum exceeds `limit`.
fn taken(family: &[Process], files: u64, limit: u64) -> u64 {
    let sum =
        |bytes: fn(&Process) -> u64| family.iter().map(bytes).fold(files, u64::saturating_add);
    let upper_bound = sum(Process::memory);
    if upper_bound > limit { sum(Process::share_of_memory) } else { upper_bound }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_shrinks_with_remaining_capacity() {
        let quick = Duration::from_micros(100);
        for (room, expected) in [(0, 50), (64 << 20, 50), (4 << 30, 500), (1 << 40, 2000)] {
            assert_eq!(pause(room, quick), Duration::from_millis(expected), "{room}");
        }
        assert_eq!(pause(0, Duration::from_secs(1)), Duration::from_secs(2));
    }

    #[test]
    fn mapped_and_open_memory_are_counted() {
        let us = || Process::read(getpid()).unwrap();
        let before = (us().memory(), us().share_of_memory());
        let block = vec![1_u8; 32 << 20];
        let (memory, share) = (us().memory() - before.0, us().share_of_memory() - before.1);
        let about = (28 << 20)..(64 << 20);
        assert!(about.contains(&memory) && about.contains(&share), "{memory} {share}");
        drop(block);

        let name = "held";
        let file = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let mut file = std::fs::File::from(file);
        std::io::Write::write_all(&mut file, &[1; 3 << 20]).unwrap();
        let twice = file.try_clone().unwrap();
        assert_eq!(us().memory_files().iter().filter(|(_, bytes)| *bytes == 3 << 20).count(), 2);
        assert!((3 << 20..512 << 20).contains(&taken(&[us()], memory_file_bytes(&[us()]), 0)));
        drop(twice);
    }
}
