//! Stand-alone minder for the tests of this crate. In the product it is `a2a-hub __mind`.

use a2a_hub_process::subcommand;
use std::process::ExitCode;

fn main() -> ExitCode {
    subcommand(std::env::args_os().skip(1)).unwrap_or(ExitCode::from(2))
}
