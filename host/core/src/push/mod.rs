//! Push notifications: retries of a delivery and the addresses that may receive one.

pub mod address_scope;
pub mod delivery;
pub mod receiver_policy;
