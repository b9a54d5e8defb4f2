//! The SQLite database: schema, one writer, readers, checkpoints and errors.

pub(super) mod checkpointer;
pub(super) mod dirty_bit;
pub(super) mod error;
pub(super) mod failure;
pub(super) mod files;
pub(super) mod losses;
pub(super) mod migrations;
pub(super) mod per_runtime;
pub(super) mod readers;
pub(super) mod schema;
pub(super) mod wal;
pub(super) mod write_queue;
pub(super) mod writer;
