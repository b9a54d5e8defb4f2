//! Local Hub dialect: its methods, hub events, and OpenRPC description. Objects and the methods for
//! messages and tasks are those of A2A 0.3.

pub mod answer;
mod device_params;
mod devices;
pub mod event;
mod grant_params;
mod handoff_params;
mod method;
pub mod methods;
mod notice_params;
mod notices;
mod notifiers;
pub mod openrpc;
mod params;
mod people;
mod people_params;
mod permission_params;
mod permissions;
mod question_params;
mod questions;
pub mod registry;
mod review_params;
mod reviews;
mod schemas;
mod search;
mod timeline;
mod topic_params;
mod trigger_params;
mod usage;
mod watch;
mod worktree_params;

pub use device_params::present as presented_key;
pub use params::agent_query;
pub use people_params::join;
