//! What a user lives through, end to end: the real hub, real components, real programs.

mod claude;
mod command_line;
mod crash;
mod guests;
mod messages;
mod plugins;
mod specification;
mod stage;
mod streams;
mod transports;
mod web;
