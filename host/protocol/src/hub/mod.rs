//! The Local Hub's dialect: its methods, the events of the whole hub, and their description as OpenRPC. Its nouns, and
//! the methods about messages and tasks, are those of A2A 0.3.

pub mod answer;
pub mod event;
mod grant_params;
pub mod methods;
pub mod openrpc;
mod params;
pub mod registry;
mod schemas;

pub use params::agent_query;
