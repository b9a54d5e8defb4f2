//! The budget of a task: what may follow from it, where whoever gives the task allows less than the operator does.

use crate::model::{error::A2aError, message::Metadata};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The member of a message's metadata by which a client, or an agent, narrows what may follow from it.
pub const BUDGET: &str = "budget";

/// How deep and how many the tasks below a task may be, and what they may use up, as whoever gave the task says; what is left out narrows
/// nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Budget {
    /// How many levels of tasks there may be below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// How many tasks there may be below it, those that are over among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u32>,
    /// Tokens that the tasks below it may use, input and output together, as their agents report them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Dollars that the tasks below it may cost, as their agents report them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl Budget {
    /// The budget that a message's metadata names; without one, it narrows nothing.
    pub fn of(said: Option<&Metadata>) -> Result<Self, A2aError> {
        match said.and_then(|said| said.get(BUDGET)) {
            None | Some(Value::Null) => Ok(Self::default()),
            Some(named) => Self::read(named, "message.metadata.budget"),
        }
    }

    /// Reads a budget; `at` is its place, for the error.
    pub fn read(named: &Value, at: &str) -> Result<Self, A2aError> {
        let how = "must be an object of `depth`, `tasks`, `tokens` and `costUsd`, each left out or a number from 0 on";
        // A list would be read by position.
        if !named.is_object() {
            return Err(A2aError::invalid(at, how));
        }
        let read = Self::deserialize(named);
        let read = read.map_err(|why| A2aError::invalid(at, format!("{how}: {why}")))?;
        if read.cost_usd.is_some_and(|dollars| dollars.is_nan() || dollars < 0.0) {
            return Err(A2aError::invalid(at, format!("{how}: `costUsd` is below 0")));
        }
        Ok(read)
    }

    /// Whether it narrows nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
