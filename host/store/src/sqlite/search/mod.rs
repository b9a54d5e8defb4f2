//! Full-text search of tasks, and their usage.
//!
//! Both read `search.db`, which one thread derives from the logs after the appends. It needs no
//! durability: whatever is missing, damaged or behind is read from the logs again. The database of
//! the hub decides which tasks exist, so that a deletion counts at once.

pub(in crate::sqlite) mod facets;
pub(in crate::sqlite) mod file;
pub(in crate::sqlite) mod index;
mod indexer;
pub(in crate::sqlite) mod queue;
pub(in crate::sqlite) mod stored;
pub(in crate::sqlite) mod task_reader;
#[cfg(test)]
mod tests;
pub(in crate::sqlite) mod usage_query;
pub(in crate::sqlite) mod usage_totals;
