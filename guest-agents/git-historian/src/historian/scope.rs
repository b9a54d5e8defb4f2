//! Part of the history that a question is about.

use jiff::civil::Date;

use crate::git::Selection;

/// Part of the history that a question is about.
#[derive(Default)]
pub(super) struct Scope {
    pub(super) range: String,
    pub(super) since: Option<Date>,
    pub(super) until: Option<Date>,
    pub(super) path: Option<String>,
    pub(super) is_file: bool,
    /// Label such as ` since 2026-11-14 in src`, or empty.
    pub(super) label: String,
}

impl Scope {
    pub(super) fn selection(&self) -> Selection<'_> {
        let Self { range, since, until, path, .. } = self;
        Selection { range, since: *since, until: *until, path: path.as_deref() }
    }
}
