//! Output for people at a terminal: tables, Markdown, colours, widths and errors.

pub(super) mod console;
pub(super) mod exit;
pub(super) mod failure;
pub(super) mod pager;
pub(super) mod terminal;

pub(super) use a2a_hub_terminal::{markdown, render, table, text, width};
