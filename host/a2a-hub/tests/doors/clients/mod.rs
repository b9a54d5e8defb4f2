//! Tests of clients on each binding and protocol.

mod acp;
mod bindings;
mod connections;
mod five_step;
mod generations;
mod grpc;
mod hub_events;
mod mcp;
mod mcp_http;
mod official;
mod pushes;
mod registry;
mod specification;
mod streams;
mod transports;
mod web;
