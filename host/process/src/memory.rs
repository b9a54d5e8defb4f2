//! The memory that a confined tree takes as a whole. The kernel bounds what each process has of its own (`RLIMIT_DATA`), and neither
//! what all have together, nor what they share or only hold open (`MAP_SHARED`, `memfd_create(2)`). A control group would, which only
//! the superuser and its delegates can make. So the minder looks: as often as the tree could have become full.

use super::proc::{self, Process, family, now};
use rustix::process::getpid;
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// Bytes that all processors of a machine write into new pages in a second, at most.
const FASTEST: u64 = 8 << 30;

/// The pauses between two looks: the longest where there is much room, the shortest where there is none.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// How many times longer a pause is than the look before it took, so that large trees cost no processor of their own.
const REST: u32 = 2;

/// What a tree may take beyond its limit: its init, and so much that a process alone meets the kernel's wall first, which lets it go on.
const SLACK: u64 = 32 << 20;

/// Looks after the memory of what is below this process.
pub(super) struct MemoryWatch {
    /// Bytes that it may take, with the slack.
    limit: u64,
    /// When it is to be looked again.
    at: Instant,
    /// What files in memory took when all of the tree could be looked into last.
    seen: Seen,
}

/// Bytes that files in memory take.
#[derive(Clone, Copy)]
struct Seen {
    of_tree: u64,
    of_machine: u64,
}

impl MemoryWatch {
    pub(super) fn new(limit: u64) -> Self {
        let seen = Seen { of_tree: 0, of_machine: proc::files_in_memory() };
        Self { limit: limit.saturating_add(SLACK), at: now(), seen }
    }

    /// How long until the next look.
    pub(super) fn due(&self) -> Duration {
        self.at.saturating_duration_since(now())
    }

    /// The bytes that the tree takes, if those are more than it may. Looks only when it is time to.
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

    /// The bytes that these processes take. Who has others not look at what it holds open (`PR_SET_DUMPABLE`, or a program that it may not
    /// read) answers for all that files in memory have taken on the machine since.
    fn taken(&mut self, family: &[Process]) -> u64 {
        let (files, of_machine) = (held(family), proc::files_in_memory());
        let taken = taken(family, files, self.limit);
        // The init, which is the minder's only child, is none of the program's: nobody is to look into it.
        let minder = getpid();
        let mut programs = family.iter().filter(|process| !process.is_child_of(minder));
        if !programs.any(Process::hides_descriptors) {
            self.seen = Seen { of_tree: files, of_machine };
            return taken;
        }
        let hidden = of_machine.saturating_sub(self.seen.of_machine);
        let own = family.iter().map(Process::own_memory).fold(0, u64::saturating_add);
        taken.max(own.saturating_add(self.seen.of_tree).saturating_add(hidden))
    }
}

/// How long a tree with so many bytes of room is left alone after a look that took so long.
fn pause(room: u64, look: Duration) -> Duration {
    let full = Duration::from_millis(room.saturating_mul(1000) / FASTEST);
    full.clamp(PAUSES.0, PAUSES.1).max(look.saturating_mul(REST))
}

/// Bytes of the files in memory that these processes hold by descriptors, of which any number may be for one file.
fn held(family: &[Process]) -> u64 {
    let files: HashMap<_, _> = family.iter().flat_map(Process::memory_files).collect();
    files.into_values().fold(0, u64::saturating_add)
}

/// Bytes of memory that nothing but the end of these processes gives back, with those of the files that they hold. What several of them
/// share counts once, which takes long to find out and is done only where it matters: where it would be more than `limit` otherwise.
fn taken(family: &[Process], files: u64, limit: u64) -> u64 {
    let sum =
        |bytes: fn(&Process) -> u64| family.iter().map(bytes).fold(files, u64::saturating_add);
    let most = sum(Process::memory);
    if most > limit { sum(Process::share_of_memory) } else { most }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_look_is_before_the_tree_could_be_full() {
        let quick = Duration::from_micros(100);
        for (room, expected) in [(0, 50), (64 << 20, 50), (4 << 30, 500), (1 << 40, 2000)] {
            assert_eq!(pause(room, quick), Duration::from_millis(expected), "{room}");
        }
        assert_eq!(pause(0, Duration::from_secs(1)), Duration::from_secs(2));
    }

    #[test]
    fn what_is_mapped_and_what_is_only_held_open_is_found() {
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
        assert!((3 << 20..512 << 20).contains(&taken(&[us()], held(&[us()]), 0)));
        drop(twice);
    }
}
