//! Helper process of hubs, as a separate program for the tests of this crate. In the product,
//! `a2a-hub` itself minds the programs of agents and compiles components.

use std::process::ExitCode;

fn main() -> ExitCode {
    // A process that no hub started has nothing to do.
    a2a_hub::minded().unwrap_or(ExitCode::FAILURE)
}
