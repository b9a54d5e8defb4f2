//! Private files of the data directory: who may write them, and the grants, secrets, tokens and
//! trusted flows in them.

pub(super) mod devices_file;
pub(super) mod grants_file;
pub(super) mod joined_hubs;
pub mod ownership;
pub mod private_file;
pub(super) mod secret_name;
pub(super) mod secrets;
pub mod token;
pub(super) mod trusted_flows;
pub(super) mod trusted_worktrees;
