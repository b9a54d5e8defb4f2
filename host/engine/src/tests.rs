//! Support of the unit tests of several modules.

pub(crate) mod scripted_agent;
