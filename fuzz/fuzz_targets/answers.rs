//! Fuzzes reading responses of remote agents: `cargo fuzz run answers`. Covers cards, tasks, events
//! and refusals, in each version and on each binding.
#![no_main]

use a2a_hub_protocol::{
    card::{AgentCard, Endpoints, read_interfaces, signed},
    dialect::Wire,
    error::A2aError,
    interface::{Binding, Version},
};
use serde_json::Value;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return };
    for version in Version::ALL {
        for binding in Binding::ALL {
            let wire = Wire { version, binding };
            let _ = wire.read_task(value.clone());
            let _ = wire.read_stream_response(value.clone());
        }
    }
    let _ = (A2aError::read_official(&value), A2aError::read_rest(400, &value));
    let _ = (read_interfaces(&value), signed::signatures(&value), signed::signed_cards(&value));
    if let Ok(card) = AgentCard::parse(text) {
        let endpoints = Endpoints {
            base: "http://hub".to_owned(),
            root: "http://hub".to_owned(),
            grpc: None,
            socket: None,
            tenant: None,
            needs_token: true,
        };
        for mut written in [card.v1(&endpoints), card.hybrid(&endpoints), card.published(None)] {
            card.add_local_hub(&mut written);
        }
    }
});
