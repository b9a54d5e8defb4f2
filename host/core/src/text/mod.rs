//! Text for people: durations, one-line excerpts, file names, media types, numbers, redacted
//! secrets, words of a shell and safe terminal output.

pub mod duration;
pub mod file_name;
pub mod media_type;
pub mod number;
pub mod one_line;
pub mod plain_text;
pub mod redact;
pub mod shell;
pub mod terminal;
