//! Budget of a task: limits on its descendant tasks that a caller sets below the operator's limits.

use crate::model::{error::A2aError, message::Metadata};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Metadata member with which a client or an agent limits the descendants of a task.
pub const BUDGET: &str = "budget";

/// Limits on the depth, number, tokens and cost of a task's descendants. An absent member sets no
/// limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Budget {
    /// Maximum number of levels below the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Maximum number of descendant tasks, finished ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u32>,
    /// Maximum number of tokens that descendants may use, input and output together, as their
    /// agents report them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Maximum cost of descendants in dollars, as their agents report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl Budget {
    /// Reads the budget from a message's metadata. Without one, the budget sets no limit.
    pub fn from_metadata(metadata: Option<&Metadata>) -> Result<Self, A2aError> {
        match metadata.and_then(|metadata| metadata.get(BUDGET)) {
            None | Some(Value::Null) => Ok(Self::default()),
            Some(named) => Self::read(named, "message.metadata.budget"),
        }
    }

    /// Reads a budget; `at` is the path of the value, for the error.
    pub fn read(named: &Value, at: &str) -> Result<Self, A2aError> {
        let rule = "must be an object of `depth`, `tasks`, `tokens` and `costUsd`, each left out or a number from 0 on";
        // serde would read a JSON array as a struct, by position.
        if !named.is_object() {
            return Err(A2aError::invalid(at, rule));
        }
        let read = Self::deserialize(named);
        let read = read.map_err(|why| A2aError::invalid(at, format!("{rule}: {why}")))?;
        if read.cost_usd.is_some_and(|dollars| dollars.is_nan() || dollars < 0.0) {
            return Err(A2aError::invalid(at, format!("{rule}: `costUsd` is below 0")));
        }
        Ok(read)
    }

    /// True if the budget sets no limit.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
