//! Type that does not implement `Agent`.

use a2a_hub_sdk::prelude::*;

struct MyAgent;

export!(MyAgent);

fn main() {}
