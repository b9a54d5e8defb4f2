//! State of a program between two turns.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Session;

/// State of a program that has answered a turn and is idle.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Idle {
    /// Session of the program, and its usage so far.
    pub session: Session,
    /// Further state for the driver of the next turn.
    #[serde(default)]
    pub state: Value,
}
