//! Output for people at a terminal: tables, Markdown, colours, widths and errors.

pub(super) mod console;
pub(super) mod exit;
pub(super) mod failure;
pub(super) mod markdown;
pub(super) mod render;
pub(super) mod table;
pub(super) mod terminal;
pub(super) mod text;
pub(super) mod width;
