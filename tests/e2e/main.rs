//! What a user lives through, end to end: the real hub, real components, real programs.

mod adapters;
mod claude;
mod command_line;
mod contexts;
mod crash;
mod faults;
mod guests;
mod messages;
mod plugins;
mod queue;
mod registry;
mod soak;
mod specification;
mod stage;
mod streams;
mod transports;
mod web;
