//! A2A 0.3 for servers and clients: its methods and JSON over JSON-RPC, and its ProtoJSON over REST
//! and gRPC. The card that clients of 0.3 get is the hybrid one of `card/v1_and_v03.rs`.

pub mod json;
pub mod methods;
pub(crate) mod names;
pub mod params;
pub mod proto;
pub mod push;

use std::time::Duration;

/// Wait for a client that does not set `blocking`, because the specification defines no default.
/// Some clients expect the end of the task, which most tasks reach within this time; others expect
/// a task that they can poll.
pub const UNSAID_WAIT: Duration = Duration::from_secs(1);
