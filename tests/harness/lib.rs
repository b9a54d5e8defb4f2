//! Test harness: a hub on a free port, its clients, and the models that its agents use.

mod browser_key;
mod client;
mod compiled;
pub mod delegation;
mod endpoints;
pub mod finding;
pub mod five_step;
pub mod flow_runs;
mod front;
pub mod grants;
mod grpc;
mod hub;
pub mod kept;
pub mod knock;
pub mod mcp;
pub mod minds;
mod numbers;
mod processes;
pub mod pushes;
pub mod questions;
pub mod queue;
mod receiver;
pub mod remotes;
mod repositories;
mod site;
pub mod stage;
pub mod tenants;
pub mod tools;
mod web_server;

pub use a2a_hub_model_server::{CannedAnswer, Dialogue, ModelServer, ReceivedRequest};
pub use browser_key::BrowserKey;
pub use client::{Client, RpcError, Updates, message_to};
pub use compiled::Compiled;
pub use endpoints::Endpoints;
pub use front::Front;
pub use grpc::GrpcClient;
pub use hub::{
    HubBuilder, TestHub, durable_guest, example_agent, faulty_guest, hub_binary, kit_guest,
    picky_guest, test_guests,
};
pub use numbers::Numbers;
pub use processes::{
    descendants, processes_of_task, processes_with_marker, proportional_bytes, resident_bytes, runs,
};
pub use receiver::{Notification, Receiver, Told};
pub use repositories::{commit_all, git, make_repository};
pub use site::{Site, TemporarySite};
pub use web_server::{Asked, WebServer};
