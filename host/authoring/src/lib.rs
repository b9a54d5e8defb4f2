//! From an agent's template to its signed component: implements `a2a-hub plugin new`, `docs`,
//! `build`, `dev`, `pack`, `test`, `keygen` and `sign`. The crate prints nothing, prompts for
//! nothing and needs no running hub: it returns results and reports progress to an [`Observer`].
//!
//! ```text
//!  templates, SDKs, wit ──► create ──► Project ──► build ──► Component ──► pack · check · sign
//!  (packed into the program)              ▲          │ tools, below a minder      (sandboxed)
//!                                         └─ Watch ◄─┘
//! ```

pub mod best_flows;
mod build;
mod compiled_deps;
mod component;
mod conformance;
mod create;
pub mod decision_flow;
mod error;
pub mod flow_template;
mod guide;
mod language;
mod pack;
mod packed;
mod project;
mod scaffold;
mod sign;
mod sources;
mod tool;
mod vendored;

pub use build::{Built, Observer, build};
pub use component::{Component, MAX_BYTES, read_at_most};
pub use conformance::{
    ConformancePhase, Subject, check,
    report::{Check, Report, Verdict},
};
pub use create::create;
pub use error::{AuthoringError, FailureKind};
pub use guide::guide;
pub use language::Language;
pub use pack::pack;
pub use project::{MANIFEST, Project};
pub use sign::{KeyFile, NewKey, SigningKey, new_key_must_fit};
pub use sources::Watch;
pub use tool::Workshop;
