//! The agents of a hub: which there are, what each holds, how healthy each is, and the ports that serve them at work.
//!
//! ```text
//! roster   which there are: those inside the program, in the plug-ins folder and elsewhere; their grants, their names, finding them
//!   │
//! agent    one of them: what it holds, how it is, what becomes of its tasks
//!   │
//! port     the hub's side of what it holds: programs, files, memory, HTTP, tools, other agents
//!
//! remote   an agent elsewhere as a `Runtime`         native   a function of the program as a `Runtime`
//! ```
//!
//! What happens to agents is told by the one way out, [`EventSink`], which who builds them hands in. Tasks are not known here.

mod agent;
mod event_sink;
pub mod native;
mod port;
mod remote;
mod roster;
#[cfg(test)]
#[path = "../../../tests/harness/shapes.rs"]
mod shapes;
#[cfg(feature = "testing")]
mod testing;

pub use agent::{Agent, AgentVersion, Late, NotWorking, TaskPorts, Unavailable, lately};
pub use event_sink::EventSink;
pub use port::{Door, Mind, is_kept, sweep_files};
pub use roster::{
    Agents, AgentsSetup, BuiltIn, FindAgent, JoinError, Joined, KeptComponents, KeptCopy,
    PluginEdit, PluginEditError, PluginEditor, PluginFolder, RegistryError, asked, beside,
    plugin_file,
};
