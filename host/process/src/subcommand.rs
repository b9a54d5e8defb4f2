//! Internal subcommands for which a hub starts its own executable.

use super::{
    SUPERVISE,
    confine::{INIT, init},
    minder::supervise,
};
use std::{ffi::OsString, process::ExitCode};

/// Runs an internal subcommand if `args`, those after the program's name, name one: a minder, or
/// the init of a confined program. To be called first in `main`, before a second thread exists.
pub fn subcommand(args: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut args = args.into_iter();
    let first = args.next()?;
    match first.to_str()? {
        SUPERVISE => Some(supervise(args)),
        INIT => Some(init(args)),
        _ => None,
    }
}
