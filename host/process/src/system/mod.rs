//! Operating system interface of process trees: the part that a port implements.
//!
//! | need | [`Linux`] | [`Posix`] |
//! | --- | --- | --- |
//! | list of the processes below a minder | `/proc` | none |
//! | end of a program | `pidfd` | `waitid` in a thread |
//! | end of a tree by its minder | all below the minder, a subreaper | process group |
//! | end of a tree without its minder | marker or session in `/proc` | process group |
//! | end of what a killed hub left | marker in `/proc` | by its minders only |
//! | tree of a caller | parents in `/proc` | session |
//! | confinement | namespaces, Landlock, seccomp | refused |

mod interface;
mod linux;
mod posix;

pub(crate) use interface::{LostTree, OperatingSystem};

use linux::Linux;
use posix::Posix;

/// Operating system interface that a supervisor and its minders use.
///
/// [`System::Posix`] is the base of a port (`docs/decisions/0015-a-port-to-macos.md`). On Linux it
/// serves for tests: programs that leave their process group outlive their owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum System {
    /// Linux: process handles, subreapers, `/proc`, and confinement.
    #[default]
    Linux,
    /// Only sessions, process groups, `kill` and `waitid`. It confines no program, sees no process
    /// outside the program's group, and knows callers by their session only.
    Posix,
}

/// Each system and its word in a minder's arguments.
const SYSTEMS: [(System, &str); 2] = [(System::Linux, "linux"), (System::Posix, "posix")];

impl System {
    /// System that a switch selects.
    pub fn of_switch(is_posix_only: bool) -> Self {
        if is_posix_only { Self::Posix } else { Self::Linux }
    }

    /// Implementation of the interface.
    pub(crate) fn calls(self) -> &'static dyn OperatingSystem {
        match self {
            Self::Linux => &Linux,
            Self::Posix => &Posix,
        }
    }

    /// Word in a minder's arguments.
    pub(crate) fn word(self) -> &'static str {
        SYSTEMS.iter().find(|(system, _)| *system == self).map_or("", |(_, word)| word)
    }

    /// System with this word; none if no system has it.
    pub(crate) fn named(word: &str) -> Option<Self> {
        SYSTEMS.iter().find(|(_, known)| *known == word).map(|(system, _)| *system)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_words_round_trip() {
        for (system, _) in SYSTEMS {
            assert_eq!(System::named(system.word()), Some(system));
        }
        assert_eq!(System::named(""), None);
    }
}
