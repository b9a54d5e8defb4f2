//! The budget of a task: what may follow from it, where whoever gives the task allows less than the operator does.

use crate::model::{error::A2aError, message::Metadata};
use serde::{Deserialize, Serialize};

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
        let Some(named) = said.and_then(|said| said.get(BUDGET)) else {
            return Ok(Self::default());
        };
        Self::deserialize(named).map_err(|why| {
            let how = "must be an object of `depth`, `tasks`, `tokens` and `costUsd`, each left out or a number";
            A2aError::invalid("message.metadata.budget", format!("{how}: {why}"))
        })
    }

    /// Whether it narrows nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
