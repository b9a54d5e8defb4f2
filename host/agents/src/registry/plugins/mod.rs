//! The plugins folder: its files are watched, checked, loaded, and held back until their grants are
//! given.

pub(super) mod admission;
pub(super) mod admitted;
pub(super) mod compile_progress;
pub(super) mod component_store;
pub(super) mod file_error;
pub(super) mod folder_watcher;
pub(super) mod grants_ledger;
pub(super) mod list;
pub(super) mod manifest_summary;
pub(super) mod pending_approval_error;
pub(super) mod provenance;
pub(super) mod trusted_file;
pub(super) mod versions;
