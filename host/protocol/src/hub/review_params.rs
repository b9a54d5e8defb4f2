//! Parameters of the methods for reviews.

use crate::{
    model::{
        error::A2aError,
        operation::{NewReviewComment, Operation, ReviewRequest},
    },
    v03::params::{read, task_id},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReviewParams {
    /// Id of the task.
    task_id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CommentParams {
    /// Id of the task.
    task_id: String,
    /// Comments to add: all of them, or none. A draft has at most 1,000.
    comments: Vec<NewReviewComment>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RemoveCommentsParams {
    /// Id of the task.
    task_id: String,
    /// Numbers of the comments to remove.
    comments: Vec<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SendReviewParams {
    /// Id of the task.
    task_id: String,
    /// Id of the draft, so that a repeated request sends it once; by default the present draft.
    review_id: Option<String>,
    /// Text before the comments, at most 16 KiB.
    text: Option<String>,
}

/// Reads the parameters of `hub/reviews/get`.
pub(crate) fn show(params: Value) -> Result<Operation, A2aError> {
    let ReviewParams { task_id: id } = read(params)?;
    Ok(Operation::Review(ReviewRequest::Show { task: task_id("taskId", id)? }))
}

/// Reads the parameters of `hub/reviews/comment`.
pub(crate) fn comment(params: Value) -> Result<Operation, A2aError> {
    let CommentParams { task_id: id, comments } = read(params)?;
    if comments.is_empty() {
        return Err(A2aError::invalid("comments", "must name at least one comment"));
    }
    Ok(Operation::Review(ReviewRequest::Comment { task: task_id("taskId", id)?, comments }))
}

/// Reads the parameters of `hub/reviews/remove`.
pub(crate) fn remove(params: Value) -> Result<Operation, A2aError> {
    let RemoveCommentsParams { task_id: id, comments } = read(params)?;
    if comments.is_empty() {
        let why = "must name at least one comment; `hub/reviews/discard` removes the whole draft";
        return Err(A2aError::invalid("comments", why));
    }
    Ok(Operation::Review(ReviewRequest::Remove { task: task_id("taskId", id)?, comments }))
}

/// Reads the parameters of `hub/reviews/discard`.
pub(crate) fn discard(params: Value) -> Result<Operation, A2aError> {
    let ReviewParams { task_id: id } = read(params)?;
    Ok(Operation::Review(ReviewRequest::Discard { task: task_id("taskId", id)? }))
}

/// Reads the parameters of `hub/reviews/send`.
pub(crate) fn send(params: Value) -> Result<Operation, A2aError> {
    let SendReviewParams { task_id: id, review_id: review, text } = read(params)?;
    let text = text.filter(|text| !text.trim().is_empty());
    Ok(Operation::Review(ReviewRequest::Send { task: task_id("taskId", id)?, review, text }))
}
