//! A2A 0.3 as its official clients speak it, from both ends: its methods over JSON-RPC and its own JSON, and the ProtoJSON that
//! it has on REST and gRPC.

pub mod json;
pub mod methods;
pub(crate) mod names;
pub mod params;
pub mod proto;
pub mod push;

use std::time::Duration;

/// How long a client waits for the end of a task that does not say whether it wants to. The specification leaves it open:
/// some expect the end, which most tasks reach in that time, and some a task that they can look after.
pub const UNSAID_WAIT: Duration = Duration::from_secs(1);
