//! Parameters of the methods for triggers.

use crate::{
    model::{
        error::A2aError,
        operation::{Operation, TriggerRequest},
    },
    v03::params::read,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct OneTrigger {
    /// Name of the trigger in the configuration.
    name: String,
}

/// Reads the parameters of `hub/triggers/run`.
pub(crate) fn run(params: Value) -> Result<Operation, A2aError> {
    read(params).map(|OneTrigger { name }| Operation::Trigger(TriggerRequest::Run(name)))
}

/// Reads the parameters of `hub/triggers/pause`.
pub(crate) fn pause(params: Value) -> Result<Operation, A2aError> {
    read(params).map(|OneTrigger { name }| Operation::Trigger(TriggerRequest::Pause(name)))
}

/// Reads the parameters of `hub/triggers/resume`.
pub(crate) fn resume(params: Value) -> Result<Operation, A2aError> {
    read(params).map(|OneTrigger { name }| Operation::Trigger(TriggerRequest::Resume(name)))
}

/// Reads the parameters of `hub/triggers/accept`.
pub(crate) fn accept(params: Value) -> Result<Operation, A2aError> {
    read(params).map(|OneTrigger { name }| Operation::Trigger(TriggerRequest::Accept(name)))
}
