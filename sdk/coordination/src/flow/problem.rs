//! Problem of a flow file.

use std::fmt;

/// Problem of a flow file, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// The rule and the way out.
    pub text: String,
    /// True if the flow can run nevertheless.
    pub is_warning: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, text, .. } = self;
        write!(f, "line {line}, column {column}: {text}")
    }
}
