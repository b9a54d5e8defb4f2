//! End-to-end tests of what a user does: the program `a2a-hub`, its command line, its shutdown, and
//! the real programs of vendors.

use a2a_hub_tests::stage;

mod acp;
mod adapters;
mod command_line;
mod commands;
mod coordination;
mod drivers;
mod five_step;
mod kept;
mod languages;
mod lifecycle;
mod mcp;
mod notify;
mod package;
mod plugin;
mod projects;
mod pushes;
mod sdks;
mod security;
mod tools;
mod web_page;
