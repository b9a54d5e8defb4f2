//! Manifest path in a constant.

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

const MANIFEST: &str = "../manifest.toml";
export!(MyAgent, manifest = MANIFEST);

fn main() {}
