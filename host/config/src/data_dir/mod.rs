//! Private files of the data directory: who may write them, and the grants, secrets, tokens and
//! trusted flows in them. A client of remote hubs needs `joined_hubs` only, which works on each
//! system.

#[cfg(all(unix, not(feature = "without-unix")))]
pub(super) mod devices_file;
#[cfg(all(unix, not(feature = "without-unix")))]
pub(super) mod grants_file;
pub(super) mod joined_hubs;
#[cfg(all(unix, not(feature = "without-unix")))]
pub mod ownership;
pub mod private_file;
pub(super) mod secret_name;
#[cfg(all(unix, not(feature = "without-unix")))]
pub(super) mod secrets;
#[cfg(all(unix, not(feature = "without-unix")))]
pub mod token;
#[cfg(all(unix, not(feature = "without-unix")))]
pub(super) mod trusted_flows;
#[cfg(all(unix, not(feature = "without-unix")))]
pub(super) mod trusted_worktrees;
