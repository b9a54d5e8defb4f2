//! The agents of a hub: their registry, their grants, their health, and the ports that serve them
//! at work.
//!
//! ```text
//! roster   the registry: built-in, plug-in and remote agents; their grants, names and discovery
//!   │
//! agent    one agent: its grant, its health, the results of its tasks
//!   │
//! port     the hub's side of its capabilities: programs, files, memory, HTTP, tools, other agents
//!
//! finder   the search for agents on other servers
//!
//! remote   a remote agent as a `Runtime`         native   a function of the program as a `Runtime`
//! ```
//!
//! Events about agents leave through [`EventSink`], which the embedder provides. This crate knows
//! no tasks.

mod agent;
mod event_sink;
mod finder;
pub mod native;
mod port;
mod registry;
mod remote;
#[cfg(test)]
#[path = "../../../tests/harness/shapes.rs"]
mod shapes;
#[cfg(feature = "testing")]
mod testing;

pub use crate::registry::{
    Agents, AgentsSetup, BuiltIn, ComponentStore, FindAgent, JoinError, Joined, PluginEdit,
    PluginEditError, PluginEditor, PluginFolder, RegistryError, StoredCopy, card_of, card_of_group,
    card_of_hub, missing_capabilities, plugin_file, requested_capabilities, signature_path,
};
pub use agent::{Agent, AgentVersion, Late, NotWorking, TaskPorts, Unavailable, lately};
pub use event_sink::EventSink;
pub use port::{GrantedMemory, HubAccess, is_idle_owner, sweep_files};
