//! What a user lives through, end to end: the real hub, real components, real programs.

mod adapters;
mod bindings;
mod command_line;
mod contexts;
mod crash;
mod elsewhere;
mod fake_clis;
mod faults;
mod grpc;
mod guests;
mod messages;
mod official;
mod patience;
mod plugins;
mod pushes;
mod queue;
mod readme;
mod registry;
mod remotes;
mod sdks;
mod soak;
mod specification;
mod stage;
mod streams;
mod transports;
mod web;
