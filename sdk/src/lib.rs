//! Write an agent for a2a-hub: implement [`Agent`], then [`export!`] it.
//!
//! ```
//! use a2a_hub_sdk::prelude::*;
//!
//! /// Says what day it is, on the machine the hub runs on.
//! struct Today;
//!
//! impl Agent for Today {
//!     fn card() -> Card {
//!         Card::new("today", "Tells the date", "0.1.0")
//!             .skill("date", "Date", "Today's date", &["time"])
//!             .example("What day is it?")
//!     }
//!
//!     fn run(ctx: &Context, _task: &Task) -> Run {
//!         ctx.say("looking at the calendar")?;
//!         let mut date = String::new();
//!         ctx.run_lines(Command::new("date").arg("+%F"), |line| {
//!             date.push_str(line);
//!             Ok(())
//!         })?;
//!         ctx.done(date)
//!     }
//! }
//! export!(Today);
//! # fn main() {
//! # let host = a2a_hub_sdk::testing::ScriptedHost::new();
//! # host.program("date").stdout("2026-01-31\n");
//! # let outcome = host.run::<Today>("what day is it?").unwrap();
//! # assert_eq!(outcome.text(), "2026-01-31");
//! # }
//! ```
//!
//! An agent whose programs, memory or hosts need a grant declares them in a manifest, which is
//! embedded in the component: `export!(Today, manifest = "../manifest.toml")`.
//!
//! An agent reaches everything outside through [`Context`]. On WebAssembly this is the hub;
//! natively it is [`testing::ScriptedHost`], so plain `cargo test` tests an agent.

mod artifact;
#[doc(hidden)]
pub mod bindings;
mod call_options;
mod card;
pub mod cli;
mod context;
mod context_memory;
mod delegate;
mod exchange;
mod files;
mod find;
pub mod foreign;
mod health;
mod host;
mod http;
mod hub;
#[cfg(target_arch = "wasm32")]
mod imports;
mod json;
mod line_buffer;
mod memory;
mod message;
mod outcome;
mod process;
mod question;
mod settings;
mod step;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
mod timer;
mod tools;
mod wait;
#[cfg(any(target_arch = "wasm32", test))]
mod wasi_files;
mod working_memory;

pub use artifact::TextStream;
pub use bindings::a2a::hub::delegate::{Child as ChildTask, MemoryScope, Update};
pub use bindings::a2a::hub::http::{Request, Response};
pub use bindings::a2a::hub::log::Level;
pub use bindings::a2a::hub::process::{Command, ExitStatus, Output};
pub use bindings::a2a::hub::steps::Mode as StepMode;
pub use bindings::a2a::hub::tasks::Need;
pub use bindings::a2a::hub::types::{
    Artifact, ArtifactUpdate, Event, Failure, Message, Outcome, Part, PartContent, Role, Task,
    TaskState, TaskStatus,
};
pub use bindings::exports::a2a::hub::agent::{HealthReport as Health, HealthStatus};
pub use call_options::CallOptions;
pub use card::Card;
pub use context::Context;
pub use context_memory::Memory;
pub use delegate::{
    Call,
    worktree::{Worktree, WorktreeChanges},
};
pub use exchange::{Exchange, ServerEvent};
pub use files::Workspace;
pub use find::{AgentQuery, FoundAgent, FoundAgents, FoundBy};
pub use outcome::Run;
pub use process::{Child, Exit, Line};
pub use question::{OpenQuestion, Permission, WaitEvent};
pub use serde_json;
pub use timer::Timer;
pub use tools::{Tool, ToolResult};
pub use wait::Source;
pub use working_memory::{Decision, MemoryItem, Thought, WorkingMemory};

/// All types that agents name, in one `use`. A name of the agent's own shadows one of these.
pub mod prelude {
    pub use crate::{
        Agent, AgentQuery, Artifact, ArtifactUpdate, Call, CallOptions, Card, Child, Command,
        Context, Event, Exchange, Exit, ExitStatus, Failure, FoundAgent, FoundAgents, Health,
        Level, Line, Memory, MemoryItem, MemoryScope, Message, Need, OpenQuestion, Outcome, Part,
        PartContent, Request, Response, Role, Run, ServerEvent, Source, StepMode, Task, TaskState,
        TaskStatus, TextStream, Timer, Tool, ToolResult, Update, WaitEvent, Workspace, Worktree,
        export, serde_json,
    };
    #[doc(no_inline)]
    pub use serde_json::json;
    #[doc(no_inline)]
    pub use std::time::Duration;
}

/// Agent that the hub can run. Only [`card`](Agent::card) and [`run`](Agent::run) are required.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no agent: it does not implement `Agent`",
    label = "`export!` takes a type that implements `Agent`",
    note = "write `impl Agent for {Self}` with the functions `card` and `run`, and export that type"
)]
pub trait Agent {
    /// Card of the agent. The hub calls this once per load, without any capability.
    fn card() -> Card;

    /// Works on the task to its end. [`Context::live`] is true if a client is subscribed.
    fn run(ctx: &Context, task: &Task) -> Run;

    /// Reports whether work would succeed now. The hub calls this every health interval, with the
    /// agent's capabilities.
    fn health(_ctx: &Context) -> Health {
        Health::healthy()
    }

    /// Cleans up external effects of a cancelled task. Runs in a fresh instance, after the task's
    /// own instance has stopped.
    fn cancel(_ctx: &Context, _task_id: &str) -> Result<(), Failure> {
        Ok(())
    }
}

/// Exports an [`Agent`] from the component.
///
/// `export!(MyAgent, manifest = "../manifest.toml")` also embeds the manifest as the custom section
/// `a2a-hub:manifest`. The path is relative to the source file, as with `include_bytes!`.
#[macro_export]
macro_rules! export {
    ($agent:ty, manifest = $path:literal $(,)?) => {
        $crate::export!($agent);
        #[cfg(target_arch = "wasm32")]
        #[used]
        #[allow(unsafe_code, reason = "naming a custom section cannot break memory")]
        #[unsafe(link_section = "a2a-hub:manifest")]
        static __A2A_HUB_MANIFEST: [u8; include_bytes!($path).len()] = *include_bytes!($path);
        // Natively only the path is checked.
        #[cfg(not(target_arch = "wasm32"))]
        const _: &[u8] = include_bytes!($path);
    };
    ($agent:ty $(,)?) => {
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, reason = "the generated entry points lift and lower by hand")]
        const _: () = {
            struct Export;
            impl $crate::bindings::exports::a2a::hub::agent::Guest for Export {
                fn card() -> String {
                    <$agent as $crate::Agent>::card().to_json()
                }
                fn health() -> $crate::Health {
                    <$agent as $crate::Agent>::health(&$crate::Context::imported(false))
                }
                fn execute(task: $crate::Task) -> $crate::Run {
                    <$agent as $crate::Agent>::run(&$crate::Context::imported(false), &task)
                }
                fn stream(task: $crate::Task) -> $crate::Run {
                    <$agent as $crate::Agent>::run(&$crate::Context::imported(true), &task)
                }
                fn cancel(task_id: String) -> Result<(), $crate::Failure> {
                    <$agent as $crate::Agent>::cancel(&$crate::Context::imported(false), &task_id)
                }
            }
    $crate::bindings::__export!(Export with_types_in $crate::bindings);
        };
        #[cfg(not(target_arch = "wasm32"))]
        const _: fn() -> $crate::Card = <$agent as $crate::Agent>::card;
        // A second `export!` in the same scope fails with this name in its error message.
        #[allow(dead_code, non_camel_case_types, reason = "it is a message to whoever exports twice")]
        #[doc(hidden)]
        enum a_component_exports_one_agent_only {}
    };
    () => {
        ::core::compile_error!(
            "say which agent the component exports: `export!(MyAgent)`, where `MyAgent` is the type that implements `Agent`"
        );
    };
    ($agent:ty, manifest = $($path:tt)+) => {
        ::core::compile_error!(
            "name the manifest by a literal, relative to this source file: `export!(MyAgent, manifest = \"../manifest.toml\")`"
        );
    };
    ($($other:tt)*) => {
        ::core::compile_error!(
            "`export!` takes the type that implements `Agent`, and may take a manifest: `export!(MyAgent)`, or `export!(MyAgent, \
             manifest = \"../manifest.toml\")`"
        );
    };
}
