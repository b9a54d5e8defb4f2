//! A worker by itself, for the tests of this crate: in the product it is `a2a-hub`, which is given components to compile.

use a2a_hub_process::work;
use std::process::ExitCode;

/// What one worker may be asked for at most.
const MANY: usize = 1 << 40;

fn main() -> ExitCode {
    work(std::env::args_os().skip(2), |arguments, input| match arguments {
        [job] if job == "upper" => Ok(input.to_ascii_uppercase()),
        [job] if job == "refuse" => Err("it is not to my taste".to_owned()),
        [job] if job == "flood" => Ok(vec![b'x'; 2 << 20]),
        [job] if job == "eat" => Ok(vec![1; MANY]),
        [job] if job == "spin" => loop {
            std::hint::black_box(input);
        },
        _ => panic!("there is no such work"),
    })
}
