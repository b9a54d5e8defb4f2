//! A helper of hubs by itself, for the tests of this crate: in the product it is `a2a-hub`, which minds the programs of agents and compiles
//! components.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Started by anybody but a hub, it has nothing to do.
    a2a_hub::minded().unwrap_or(ExitCode::FAILURE)
}
