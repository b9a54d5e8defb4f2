//! Helper processes: a hub starts its own program again as the minder of another program, as the
//! init of a confined one, or as a compiler of components.

use a2a_hub_config::is_posix_only;
use a2a_hub_process::{self as process, System};
use a2a_hub_sandbox::{COMPILE, compile_in_worker};
use std::{
    env,
    ffi::OsString,
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
};

/// True once this program has called [`minded`]: only then can the hub start it as a helper.
static ASKS: AtomicBool = AtomicBool::new(false);

/// Runs the helper role if a hub started this process as one: minding an agent's program, so that
/// none of its processes survives a killed hub; confining it; or compiling a component, so that
/// endless compilation can be ended. A program that embeds a hub calls this first in `main` and
/// exits with the exit code, if any.
pub fn minded() -> Option<ExitCode> {
    ASKS.store(true, Ordering::Relaxed);
    let args = || env::args_os().skip(2);
    match HelperRole::from_args(env::args_os())? {
        HelperRole::Supervise => process::subcommand(env::args_os().skip(1)),
        HelperRole::Compile => Some(process::work(args(), compile_in_worker)),
    }
}

/// Operating system interface of the hub's process trees.
pub(crate) fn system() -> System {
    System::of_switch(is_posix_only())
}

/// True if this process was started as a helper.
pub(crate) fn is_helper() -> bool {
    HelperRole::from_args(env::args_os()).is_some()
}

/// True if this program can be started as a helper.
pub(crate) fn is_ready_to_help() -> bool {
    ASKS.load(Ordering::Relaxed)
}

/// Role of a helper process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HelperRole {
    /// Minds a program, or is the init of a confined one.
    Supervise,
    /// Compiles a component.
    Compile,
}

impl HelperRole {
    fn from_args(mut args: impl Iterator<Item = OsString>) -> Option<Self> {
        let first = args.nth(1)?;
        if first == process::SUPERVISE || first == process::confine::INIT {
            return Some(Self::Supervise);
        }
        (first == COMPILE).then_some(Self::Compile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helper_role_needs_first_argument() {
        let told = |args: &[&str]| HelperRole::from_args(args.iter().map(OsString::from));
        assert_eq!(told(&["a2a-hub", process::SUPERVISE, "x"]), Some(HelperRole::Supervise));
        assert_eq!(told(&["a2a-hub", process::confine::INIT, "x"]), Some(HelperRole::Supervise));
        assert_eq!(told(&["a2a-hub", COMPILE, "1", "2"]), Some(HelperRole::Compile));
        assert_eq!(told(&["a2a-hub"]), None);
        assert_eq!(told(&["a2a-hub", "send", process::SUPERVISE]), None);
        assert_eq!(told(&["a2a-hub", "send", COMPILE]), None);
    }
}
