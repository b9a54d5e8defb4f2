//! The program as a helper of a hub, which starts it once more for that: as the minder of another program, as the init of one that is
//! confined, or to compile a component.

use a2a_hub_process as process;
use a2a_hub_sandbox::{COMPILE, compile_in_worker};
use std::{
    env,
    ffi::OsString,
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
};

/// Whether this program has asked [`minded`]: then it can be started again as a helper.
static ASKS: AtomicBool = AtomicBool::new(false);

/// Does what a hub starts its own program for, if that is what this process is: minding the processes of an agent's program, so
/// that none is left when the hub is killed; confining them; or compiling a component, so that one that takes for ever can be ended.
/// Whoever embeds a hub calls this first of all in `main` and, given an exit code, ends with it.
pub fn minded() -> Option<ExitCode> {
    ASKS.store(true, Ordering::Relaxed);
    let args = || env::args_os().skip(2);
    match Help::asked_of(env::args_os())? {
        Help::Mind => process::errand(env::args_os().skip(1)),
        Help::Compile => Some(process::work(args(), compile_in_worker)),
    }
}

/// Whether this process was started to help.
pub(crate) fn is_helper() -> bool {
    Help::asked_of(env::args_os()).is_some()
}

/// Whether this program helps when it is started for that.
pub(crate) fn is_ready_to_help() -> bool {
    ASKS.load(Ordering::Relaxed)
}

/// What a hub starts its own program for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Help {
    /// Mind a program, or be the init of one that is confined.
    Mind,
    /// Compile a component.
    Compile,
}

impl Help {
    fn asked_of(mut args: impl Iterator<Item = OsString>) -> Option<Self> {
        let first = args.nth(1)?;
        if first == process::MIND || first == process::confine::INIT {
            return Some(Self::Mind);
        }
        (first == COMPILE).then_some(Self::Compile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_argument_makes_a_helper() {
        let told = |args: &[&str]| Help::asked_of(args.iter().map(OsString::from));
        assert_eq!(told(&["a2a-hub", process::MIND, "x"]), Some(Help::Mind));
        assert_eq!(told(&["a2a-hub", process::confine::INIT, "x"]), Some(Help::Mind));
        assert_eq!(told(&["a2a-hub", COMPILE, "1", "2"]), Some(Help::Compile));
        assert_eq!(told(&["a2a-hub"]), None);
        assert_eq!(told(&["a2a-hub", "send", process::MIND]), None);
        assert_eq!(told(&["a2a-hub", "send", COMPILE]), None);
    }
}
