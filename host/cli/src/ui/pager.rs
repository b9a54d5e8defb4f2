//! Pagers: programs of the user that show a long page at the terminal.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

/// Shows a page by this program, which reads it on standard input; false if the program could not
/// show it.
#[expect(clippy::disallowed_methods, reason = "the pager is the user's, and needs the terminal")]
pub(crate) fn read_by(program: &str, args: &[&str], page: &str) -> bool {
    let pager = Command::new(program).args(args).stdin(Stdio::piped()).spawn();
    let Ok(mut pager) = pager else { return false };
    if let Some(mut input) = pager.stdin.take() {
        // A user who leaves the pager early closes the pipe.
        let _ = input.write_all(page.as_bytes());
    }
    pager.wait().is_ok_and(|status| status.success())
}
