//! Context memories in SQLite.

pub(super) mod key;
pub(super) mod table;
