//! Name of the type as a string literal.

use a2a_hub_sdk::prelude::*;

struct MyAgent;

impl Agent for MyAgent {
    fn card() -> Card {
        Card::new("my-agent", "Does nothing", "0.1.0")
    }

    fn run(ctx: &Context, _task: &Task) -> Run {
        ctx.done("done")
    }
}

export!("MyAgent");

fn main() {}
