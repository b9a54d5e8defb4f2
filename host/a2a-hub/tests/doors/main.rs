//! Tests of a hub that runs inside of a program: its clients on each binding, its agents and their
//! permissions, and its API for the program. The only processes are those that agents start.

mod clients;
mod coordination;
mod hub;
mod in_process;
mod languages;
mod lifecycle;
mod log;
mod monitoring;
mod plugin;
mod security;
mod stage;
mod tasks;
