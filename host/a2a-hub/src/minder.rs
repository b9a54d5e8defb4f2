//! The program as the minder of another one, which a hub starts it for.

use a2a_hub_process as process;
use std::{env, ffi::OsString, process::ExitCode};

/// Does what a hub starts its own program for, if that is what this process is: minding the processes of an agent's program, so
/// that none is left when the hub is killed. Whoever embeds a hub whose agents start programs calls this first of all in `main`
/// and, given an exit code, ends with it.
pub fn minded() -> Option<ExitCode> {
    is_minder().then(|| process::mind(env::args_os().skip(2)))
}

/// Whether this process was started to mind a program.
pub(crate) fn is_minder() -> bool {
    is_told_to_mind(env::args_os())
}

fn is_told_to_mind(mut args: impl Iterator<Item = OsString>) -> bool {
    args.nth(1).is_some_and(|first| first == process::MIND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_argument_makes_a_minder() {
        let told = |args: &[&str]| is_told_to_mind(args.iter().map(OsString::from));
        assert!(told(&["a2a-hub", process::MIND, "x"]));
        assert!(!told(&["a2a-hub"]) && !told(&["a2a-hub", "send", process::MIND]));
    }
}
