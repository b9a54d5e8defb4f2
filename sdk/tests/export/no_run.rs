//! An agent without `run`.

use a2a_hub_sdk::prelude::*;

struct MyAgent;

impl Agent for MyAgent {
    fn card() -> Card {
        Card::new("my-agent", "Does nothing", "0.1.0")
    }
}

export!(MyAgent);

fn main() {}
