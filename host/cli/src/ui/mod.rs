//! Errors and exit status of the command line; the rest of its output is the crate
//! `a2a-hub-terminal`.

pub(super) mod exit;
pub(super) mod failure;

pub(super) use a2a_hub_terminal::{
    console, dialogue, difference, interactive, markdown, pager, render, table, text, width,
};
