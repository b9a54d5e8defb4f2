//! What guests may do and what they may not: one bad guest for each promise of the sandbox.

mod capabilities;
mod limits;
mod loading;
mod stage;
