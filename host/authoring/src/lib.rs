//! From the template of an agent to its signed component: what `a2a-hub plugin new`, `build`, `dev`, `pack`, `test`, `keygen` and `sign`
//! do, for whoever has them done. It prints nothing, asks nothing and knows no running hub: what happens is returned, or told to
//! an [`Observer`].
//!
//! ```text
//!  templates, SDKs, wit ──► create ──► Project ──► build ──► Component ──► pack · check · sign
//!  (packed into the program)              ▲          │ tools, below a minder      (a sandbox of its own)
//!                                         └─ Watch ◄─┘
//! ```

mod build;
mod component;
mod conformance;
mod create;
mod error;
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
    Step, Subject, check,
    report::{Check, Report, Verdict},
};
pub use create::create;
pub use error::{AuthoringError, Kind};
pub use pack::pack;
pub use project::{MANIFEST, Project};
pub use scaffold::Language;
pub use sign::{KeyFile, NewKey, SigningKey, new_key_must_fit};
pub use sources::Watch;
pub use tool::Workshop;
