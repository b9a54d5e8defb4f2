//! Methods for the questions of all tasks.

use crate::{
    hub::{
        method::{HubMethod, PLAIN},
        question_params,
    },
    model::operation::{OpenQuestion, OpenQuestions, QuestionHistory, QuestionResult},
};
use schemars::{JsonSchema as _, SchemaGenerator};

/// `hub/questions/list`.
pub(super) const LIST: HubMethod = HubMethod {
    name: "hub/questions/list",
    summary: "List the open questions of all tasks, the most urgent first",
    example: r#"{"kind": "permission", "limit": 20}"#,
    params: question_params::ListParams::json_schema,
    result: SchemaGenerator::subschema_for::<OpenQuestions>,
    read: question_params::list,
    ..PLAIN
};

/// `hub/questions/answer`.
pub(super) const ANSWER: HubMethod = HubMethod {
    name: "hub/questions/answer",
    summary: "Answer questions, each by its id: `allow` or `deny` a permission, or send a text",
    example: r#"{"ids": ["5f0c"], "answer": "allow"}"#,
    params: question_params::AnswerParams::json_schema,
    result: SchemaGenerator::subschema_for::<Vec<QuestionResult>>,
    read: question_params::answer,
    ..PLAIN
};

/// `hub/questions/later`.
pub(super) const LATER: HubMethod = HubMethod {
    name: "hub/questions/later",
    summary: "Set a question aside: it is listed last, and its deadline is moved",
    example: r#"{"id": "5f0c", "forMs": 7200000}"#,
    params: question_params::LaterParams::json_schema,
    result: SchemaGenerator::subschema_for::<OpenQuestion>,
    read: question_params::later,
    ..PLAIN
};

/// `hub/questions/history`.
pub(super) const HISTORY: HubMethod = HubMethod {
    name: "hub/questions/history",
    summary: "List the questions that were answered or closed, the latest first, with who \
                  answered them",
    example: r#"{"limit": 20}"#,
    params: question_params::HistoryParams::json_schema,
    result: SchemaGenerator::subschema_for::<QuestionHistory>,
    read: question_params::history,
    ..PLAIN
};
