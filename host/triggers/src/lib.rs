//! Triggers: the observed events of a trigger, and the step that is due after them.
//!
//! ```text
//! commits, files, tasks, webhooks ──► observed ──► pending ──► step: start, skip, stop
//!     refs, files, webhook           trigger_event state       plan (debounce, overlap, limit)
//! ```
//!
//! [`refs`] and [`files`] read the disk; they start no program, follow no link, and are bounded.
//! Both need Linux, and the feature `disk`. Everything else decides from what it is given, and
//! reads no clock.

#[cfg(feature = "disk")]
pub mod files;
pub mod glob;
pub mod heads;
pub mod plan;
#[cfg(feature = "disk")]
mod read_bounded;
#[cfg(feature = "disk")]
pub mod refs;
pub mod trigger_event;
pub mod webhook;
