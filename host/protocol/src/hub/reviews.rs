//! Methods for reviews of the changes of a task.

use crate::{
    hub::{
        method::{HubMethod, PLAIN},
        review_params,
    },
    model::operation::{ReviewReport, SentReview},
};
use schemars::{JsonSchema as _, SchemaGenerator};

/// `hub/reviews/get`.
pub(super) const GET: HubMethod = HubMethod {
    name: "hub/reviews/get",
    summary: "Return the caller's draft of a review of a task's changes, and the review that was \
              sent last, with the comments that are outdated",
    example: r#"{"taskId": "task-456"}"#,
    admin: true,
    params: review_params::ReviewParams::json_schema,
    result: SchemaGenerator::subschema_for::<ReviewReport>,
    read: review_params::show,
    ..PLAIN
};

/// `hub/reviews/comment`.
pub(super) const COMMENT: HubMethod = HubMethod {
    name: "hub/reviews/comment",
    summary: "Add comments on lines of a task's changes to the caller's draft of a review",
    example: r#"{"taskId": "task-456", "comments": [{"file": "src/net.rs", "line": 12, "text": "handle the timeout"}]}"#,
    params: review_params::CommentParams::json_schema,
    read: review_params::comment,
    ..GET
};

/// `hub/reviews/remove`.
pub(super) const REMOVE: HubMethod = HubMethod {
    name: "hub/reviews/remove",
    summary: "Remove comments from the caller's draft of a review",
    example: r#"{"taskId": "task-456", "comments": [2]}"#,
    params: review_params::RemoveCommentsParams::json_schema,
    read: review_params::remove,
    ..GET
};

/// `hub/reviews/discard`.
pub(super) const DISCARD: HubMethod = HubMethod {
    name: "hub/reviews/discard",
    summary: "Remove the caller's draft of a review with all its comments",
    read: review_params::discard,
    ..GET
};

/// `hub/reviews/send`.
pub(super) const SEND: HubMethod = HubMethod {
    name: "hub/reviews/send",
    summary: "Send the caller's draft of a review to the task's agent, once, as one message of the \
              same conversation",
    example: r#"{"taskId": "task-456", "text": "Two points before I take it over."}"#,
    params: review_params::SendReviewParams::json_schema,
    result: SchemaGenerator::subschema_for::<SentReview>,
    read: review_params::send,
    ..GET
};
