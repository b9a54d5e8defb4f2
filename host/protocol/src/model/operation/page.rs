//! Paging of lists by limit and offset.

/// Section of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Maximum number of items.
    pub limit: usize,
    /// Number of items to skip.
    pub offset: usize,
}
