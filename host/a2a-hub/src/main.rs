//! The `a2a-hub` program: the command line, or the minder of one program's process tree.

use a2a_hub::cli;
use a2a_hub_process as process;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).peekable();
    if args.next_if(|first| first == process::MIND).is_some() {
        return process::mind(args);
    }
    cli::run()
}
