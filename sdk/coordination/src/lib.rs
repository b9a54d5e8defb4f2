//! Rules by which agents work together, as state machines without I/O, clock or randomness.
//!
//! [`flow`] is the engine of flow files: agents that work in steps. The component `flow` of this
//! repository drives it; the host does not link this crate.

pub mod flow;
