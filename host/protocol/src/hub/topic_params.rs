//! Parameters of the methods for topics, which [`topics`](crate::topics) defines.

use crate::topics::{DeleteParams, MAX_READ, MAX_WAIT_MS, PublishParams, ReadParams};
use crate::{
    model::{
        error::A2aError,
        operation::{Operation, TopicRequest},
    },
    v03::params::read,
};
use serde_json::Value;

/// Reads the parameters of `hub/topics/publish`.
pub(crate) fn publish(params: Value) -> Result<Operation, A2aError> {
    let request = TopicRequest::try_from(read::<PublishParams>(params)?);
    request.map(Operation::Topic).map_err(|why| A2aError::invalid("text", why))
}

/// Reads the parameters of `hub/topics/read`.
pub(crate) fn read_messages(params: Value) -> Result<Operation, A2aError> {
    let params: ReadParams = read(params)?;
    if params.wait_ms > MAX_WAIT_MS {
        let why = format!("it is at most {MAX_WAIT_MS}; ask again after an empty answer");
        return Err(A2aError::invalid("waitMs", why));
    }
    if params.limit.is_some_and(|limit| !(1..=MAX_READ).contains(&limit)) {
        return Err(A2aError::invalid("limit", format!("it is from 1 to {MAX_READ}")));
    }
    Ok(Operation::Topic(TopicRequest::Read(params)))
}

/// Reads the parameters of `hub/topics/delete`.
pub(crate) fn delete(params: Value) -> Result<Operation, A2aError> {
    let request = TopicRequest::try_from(read::<DeleteParams>(params)?);
    request.map(Operation::Topic).map_err(|why| A2aError::invalid("topic", why))
}
