//! The `a2a-hub` program: the command line, or the minder of one program's process tree.

use a2a_hub::{cli, minded};
use std::process::ExitCode;

fn main() -> ExitCode {
    minded().unwrap_or_else(cli::run)
}
