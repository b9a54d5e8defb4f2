//! Decisions about one task: its state machine, questions, recovery after a restart and its tree's
//! budget.

pub mod fold;
pub mod idempotency;
pub mod lifecycle;
pub mod list_limits;
pub mod metadata;
pub mod notices;
pub mod open_questions;
pub mod prices;
pub mod progress;
pub mod question;
pub mod quota;
pub mod recovery;
pub mod replay;
pub mod span;
pub mod state;
pub mod trace_context;
pub mod tree_budget;
pub mod unattended;
pub mod vendor_session;
