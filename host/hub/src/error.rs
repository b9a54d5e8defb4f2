//! Our errors as the protocol tells them: the one place that maps them.

use crate::{
    contexts::ForgetError,
    storage::StorageError,
    tasks::{self, SubmitError},
};
use a2a_hub_protocol::error::{A2aError, ErrorKind};
use serde_json::json;

/// What a client is told of a store that failed. The details are for the operator, and go to the log.
pub fn from_storage(why: &StorageError) -> A2aError {
    tracing::error!(%why, "the store failed");
    A2aError::new(
        ErrorKind::Internal,
        "the hub cannot use its store; its log says why (`a2a-hub status` tells where that is)",
    )
}

/// What a client is told whose task was not taken.
pub fn from_submit(why: &SubmitError) -> A2aError {
    match why {
        SubmitError::Busy { agent, why } => tasks::busy(agent, *why),
        SubmitError::Storage(why) => from_storage(why),
    }
}

/// What a client is told whose conversation was not forgotten.
pub fn from_forget(why: &ForgetError) -> A2aError {
    match why {
        ForgetError::Unknown(context) => A2aError::no_context(context),
        ForgetError::Live(_, task) => {
            let refusal = A2aError::new(ErrorKind::UnsupportedOperation, why.to_string());
            refusal.with(json!({ "taskId": task }))
        }
        ForgetError::Storage(why) => from_storage(why),
    }
}
