//! Output for people at terminals: styled pieces, tables, Markdown, dialogues, the hub's JSON as
//! text, and the width of characters. [`console`] prints it; [`interactive`] draws progress and
//! prompts; nothing else in this crate reads or writes anything. Their calls of the system are in
//! `system`, once for Unix and once for other systems.

pub mod console;
pub mod dialogue;
pub mod difference;
pub mod duration;
pub mod exit;
pub mod grant_effect;
pub mod interactive;
pub mod log_line;
pub mod markdown;
pub mod markdown_stream;
pub mod pager;
pub mod render;
mod system;
pub mod table;
pub mod task_snapshot;
pub mod text;
pub mod tool_calls;
pub mod width;

pub use system::Interrupts;
