//! Flow files: a [`Definition`] is parsed and checked once; a [`FlowState`] is one run of it.
//!
//! ```text
//!             text ── Definition::parse ──► Definition | problems with line and column
//!
//!   Begun, Ended, Answered, Rang, Wrote, Took
//!                              ──► State::step ──► Call, Send, Ask, Wait, Cancel, Say, Finish
//!
//!   a step:   waiting ──► running ──► done | failed | dropped
//!                ▲                      │
//!                └───────── goto ───────┘   (the target, and all steps that depend on it)
//! ```
//!
//! The same events in the same order give the same actions. So a run that is replayed after a
//! restart continues at its old point.

mod answer;
mod check;
mod definition;
mod event;
mod fakes;
mod inherit;
mod interaction;
mod mermaid;
mod parse;
mod pick;
mod position;
mod repetition;
mod row;
mod schema;
mod script;
mod simulation;
mod state;
mod stream;
mod template;
mod toml_words;
mod undo;
mod vote_step;
mod worktree;

pub use definition::{Definition, Needs, Problem, RunNeed, TreeBudget, first_text_input};
pub use event::{
    BoardChange, ChildChanges, ChildEnd, ChildWorktree, Finish, FlowAction, FlowEvent, Id,
    Inheritance, Role,
};
pub use script::SCRIPT;
pub use simulation::Simulation;
pub use state::FlowState;
