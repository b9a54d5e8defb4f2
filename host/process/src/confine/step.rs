//! Steps of confinement, and the report of a failed step from the init to the minder and on to the
//! hub.

use std::{fmt, io, path::Path, str::FromStr};

/// One step of confinement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Any confinement, on a system that has none.
    System,
    /// Creation of the user and PID namespaces.
    User,
    /// Creation of the namespaces for mounts, System V IPC and, if necessary, the network.
    Namespaces,
    /// Setup of the visible files.
    View,
    /// Mount of `/proc` for its own processes.
    Proc,
    /// Start of the loopback interface.
    Loopback,
    /// Resource limits.
    Ceilings,
    /// Drop of capabilities.
    Capabilities,
    /// Landlock rules.
    Landlock,
    /// System call filter.
    Filter,
}

/// Wire name and description of each step.
const STEPS: &[(Step, &str, &str)] = &[
    (Step::System, "system", "confine programs on this system"),
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
        row.map_or(("", ""), |(_, word, description)| (word, description))
    }

    /// Wire name.
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

/// Reason why a program could not be confined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{step}{}{path}: {}", if path.is_empty() { "" } else { ": " }, io::Error::from_raw_os_error(*errno))]
pub struct NotConfined {
    /// Failed step.
    pub step: Step,
    /// The system's error number.
    pub errno: i32,
    /// File concerned; empty if none.
    pub path: String,
}

impl NotConfined {
    pub(super) fn at(step: Step) -> impl Fn(io::Error) -> Self {
        move |why| Self { step, errno: number(&why), path: String::new() }
    }

    pub(super) fn on(step: Step, path: &Path) -> impl Fn(rustix::io::Errno) -> Self + use<> {
        // The report is one line.
        let path = path.display().to_string().replace(char::is_control, "?");
        move |why| Self { step, errno: why.raw_os_error(), path: path.clone() }
    }
}

/// Error number of `why`. An error without one is an invalid argument: a library refused its input.
fn number(why: &io::Error) -> i32 {
    why.raw_os_error().unwrap_or_else(|| rustix::io::Errno::INVAL.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_names_round_trip() {
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
