//! A program between two turns, as its last turn left it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Session;

/// What a program is like that has answered a turn, and has nothing left to do.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Idle {
    /// Its session, and what that used up so far.
    pub session: Session,
    /// What else the driver of its next turn has to know.
    #[serde(default)]
    pub state: Value,
}
