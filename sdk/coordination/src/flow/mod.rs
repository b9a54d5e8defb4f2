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
mod definition;
mod event;
mod fakes;
mod file;
mod kinds;
mod limits;
mod mermaid;
mod permission;
mod position;
mod problem;
mod program;
mod progress;
mod row;
mod schema;
mod scope;
mod simulation;
mod state;
mod stream;
mod template;
mod text;
mod toml_words;
mod turn;
mod variables;

pub use definition::{Definition, Needs, RunNeed, TreeBudget, first_text_input};
pub use event::{
    BoardChange, ChildChanges, ChildEnd, ChildWorktree, Finish, FlowAction, FlowEvent, Id,
    Inheritance, Role,
};
pub use problem::Problem;
pub use program::SCRIPT;
pub use simulation::Simulation;
pub use state::FlowState;
