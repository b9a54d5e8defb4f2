//! Rules by which agents work together, as state machines without I/O, clock or randomness.
//!
//! [`flow`] is the engine of flow files: agents that work in steps. The component `flow` of this
//! repository drives it; the host does not link this crate.
//!
//! [`record`] measures how often agents were right, for the weights of votes.
//!
//! The other modules are rule books of deciding together. Each has a state that takes an event at
//! a time in milliseconds and returns actions. The same events at the same times give the
//! same actions. Agents are named by text, and an event of an unknown agent changes nothing.

mod amount;
pub mod auction;
pub mod blackboard;
pub mod contract_net;
pub mod delphi;
pub mod election;
pub mod flow;
pub mod negotiation;
pub mod record;
pub mod vote;
