//! The steps of confinement, and where it failed: told by the init to the minder, and by the minder to the hub.

use std::{fmt, io, path::Path, str::FromStr};

/// One step of confinement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A user namespace and a PID namespace.
    User,
    /// Namespaces for mounts, System V IPC and, if need be, the network.
    Namespaces,
    /// The files that it sees.
    View,
    /// `/proc` of its own processes.
    Proc,
    /// Its own loopback interface.
    Loopback,
    /// Resource limits.
    Ceilings,
    /// Giving up capabilities.
    Capabilities,
    /// Landlock's rules.
    Landlock,
    /// The system call filter.
    Filter,
}

/// Each step as it is written on the wire, and as people are told it.
const STEPS: &[(Step, &str, &str)] = &[
    (Step::User, "user", "make a user and a PID namespace"),
    (Step::Namespaces, "namespaces", "make a mount, IPC and network namespace"),
    (Step::View, "view", "make its view of the files"),
    (Step::Proc, "proc", "mount its own /proc"),
    (Step::Loopback, "loopback", "bring up its own loopback interface"),
    (Step::Ceilings, "ceilings", "limit its processes and files"),
    (Step::Capabilities, "capabilities", "give up capabilities"),
    (Step::Landlock, "landlock", "restrict it by Landlock"),
    (Step::Filter, "filter", "filter its system calls"),
];

impl Step {
    fn row(self) -> (&'static str, &'static str) {
        let row = STEPS.iter().find(|(step, ..)| *step == self);
        row.map_or(("", ""), |(_, word, told)| (word, told))
    }

    /// As it is written on the wire.
    pub(crate) fn word(self) -> &'static str {
        self.row().0
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().1)
    }
}

impl FromStr for Step {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        STEPS.iter().find(|(_, known, _)| *known == word).map(|(step, ..)| *step).ok_or(())
    }
}

/// Why a program could not be confined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{step}{}{path}: {}", if path.is_empty() { "" } else { ": " }, io::Error::from_raw_os_error(*errno))]
pub struct NotConfined {
    /// What failed.
    pub step: Step,
    /// The system's error number.
    pub errno: i32,
    /// The file that it was about; empty if none.
    pub path: String,
}

impl NotConfined {
    pub(super) fn at(step: Step) -> impl Fn(io::Error) -> Self {
        move |why| Self { step, errno: number(&why), path: String::new() }
    }

    pub(super) fn on(step: Step, path: &Path) -> impl Fn(rustix::io::Errno) -> Self + use<> {
        // Its report is a line.
        let path = path.display().to_string().replace(char::is_control, "?");
        move |why| Self { step, errno: why.raw_os_error(), path: path.clone() }
    }
}

/// An error of no number is an invalid argument: a library refused what it was given.
fn number(why: &io::Error) -> i32 {
    why.raw_os_error().unwrap_or_else(|| rustix::io::Errno::INVAL.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_has_a_word_and_a_sentence_of_its_own() {
        for (step, word, _) in STEPS {
            assert_eq!(word.parse(), Ok(*step));
            assert_eq!(step.word(), *word);
        }
        assert_eq!("".parse::<Step>(), Err(()));
        let why = NotConfined { step: Step::View, errno: 2, path: "/a b".to_owned() };
        assert_eq!(
            why.to_string(),
            "make its view of the files: /a b: No such file or directory (os error 2)"
        );
    }
}
