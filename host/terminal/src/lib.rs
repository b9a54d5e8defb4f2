//! Text for terminals: styled pieces, tables, Markdown, and the width of characters. Nothing in
//! this crate reads or writes anything.

pub mod markdown;
pub mod table;
pub mod text;
pub mod width;
