//! Servers of the hub: they decode requests to operations and encode replies. The only decision
//! made here is the caller's identity and admission.

mod a2a;
mod acp;
mod agent_form;
mod five_step;
mod hooks;
mod http;
mod hub_methods;
mod join;
mod mcp;
mod monitoring;
mod page;
mod starting;
#[cfg(test)]
mod tests;
mod unix;

pub use crate::{
    http::router::HttpServer,
    starting::StartProgress,
    unix::socket::{Unix, UnixError},
};
pub use a2a_hub_rpc::{
    dispatcher::{Dispatcher, PublicEndpoints},
    lineage::Lineage,
};

/// Maximum size of a request in bytes. Larger input must be passed as a file.
const MAX_REQUEST: usize = 8 << 20;
