//! The doors of a hub that runs inside of a program: what its clients live through on each binding, and what the program does with it
//! itself. No process is started.

mod bindings;
mod contexts;
mod grpc;
mod hub;
mod in_process;
mod log;
mod messages;
mod official;
mod patience;
mod registry;
mod routing;
mod stage;
mod streams;
mod transports;
mod web;
