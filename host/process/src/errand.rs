//! What a hub starts its own executable for, beside being a hub.

use super::{
    MIND,
    confine::{INIT, init},
    minder::mind,
};
use std::{ffi::OsString, process::ExitCode};

/// Does what a hub starts its own executable for, if `args`, those after the program's name, say so: minding a program, or being
/// the init of one that is confined. Call it first thing in `main`, before there is a second thread.
pub fn errand(args: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut args = args.into_iter();
    let first = args.next()?;
    match first.to_str()? {
        MIND => Some(mind(args)),
        INIT => Some(init(args)),
        _ => None,
    }
}
