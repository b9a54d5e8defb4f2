//! The Local Hub's dialect: its methods, the events of the whole hub, and their description as OpenRPC.

pub mod event;
pub mod methods;
pub mod openrpc;
