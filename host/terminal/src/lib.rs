//! Text for terminals: styled pieces, tables, Markdown, dialogues, the hub's JSON as text, and the
//! width of characters. Nothing in this crate reads or writes anything.

pub mod dialogue;
pub mod duration;
pub mod log_line;
pub mod markdown;
pub mod render;
pub mod table;
pub mod text;
pub mod width;
