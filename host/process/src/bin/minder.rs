//! The minder by itself, for the tests of this crate: in the product it is `a2a-hub`, called as `a2a-hub __mind`.

use a2a_hub_process::{MIND, mind};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).peekable();
    if args.next_if(|first| first == MIND).is_none() {
        return ExitCode::from(2);
    }
    mind(args)
}
