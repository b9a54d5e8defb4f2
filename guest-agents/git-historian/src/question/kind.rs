//! Kinds of questions.

use crate::span::Span;

/// Supported question. Paths and revisions are as the user wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HistoryQuestion {
    /// Changes in a span and path, by all people or one.
    Changes { span: Span, path: Option<String>, author: Option<String> },
    /// A number of commits, files or releases.
    Count { counted: Counted, span: Span, path: Option<String>, author: Option<String> },
    /// Changes of a release: this one, or the latest.
    Release { version: Option<String> },
    /// People who work on a path, or know it best.
    People { span: Span, path: Option<String> },
    /// Commits that added or removed this text.
    Origin { text: String, path: Option<String> },
    /// Reason for a line.
    Line { path: String, line: u32 },
    /// History of a file or folder from its beginning.
    History { path: String },
    /// Most changed files.
    HotSpots { span: Span, path: Option<String> },
    /// Changes of one commit.
    Commit { rev: Rev },
    /// Request for help.
    Help,
    /// Sentence that was not understood.
    Unknown,
}

/// Revision of a question about one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rev {
    Named(String),
    Oldest,
}

/// Subject of a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    Commits,
    Files,
    Releases,
}
