//! Interface between the hub and an agent's run, independent of the agent's kind: input, ports,
//! output and end.
//!
//! [`Runtime`] is the seam: components (`a2a-hub-sandbox`), remote agents and Rust values implement
//! it, and the hub knows nothing else of them. In the other direction, the hub implements the
//! [`port`]s, and a runtime calls them. This crate contains no WebAssembly, and no HTTP.

pub mod directories;
mod ended;
pub mod failure;
mod health_report;
pub mod limits;
pub mod port;
pub mod run;
mod run_after;
mod run_facts;
mod run_then;
mod runtime;

pub use ended::Ended;
pub use failure::{Crash, Failure};
pub use health_report::HealthReport;
pub use limits::{Limits, RunCapacity};
pub use run::{Call, Work};
pub use run_after::{RunAfter, StartAgent};
pub use run_facts::RunFacts;
pub use run_then::{RunThen, WrapRun};
pub use runtime::{HubWork, Run, Runtime};
