//! A type that implements no `Agent`.

use a2a_hub_sdk::prelude::*;

struct MyAgent;

export!(MyAgent);

fn main() {}
