//! Questions of all tasks: the requests for them, and their answers.

use crate::model::{
    id::{AgentId, ContextId, QuestionId, TaskId},
    permission::PermissionRequest,
    question::QuestionKind,
};
use schemars::JsonSchema;
use serde::Serialize;

/// Request for the questions of all tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionRequest {
    /// Lists open questions, the most urgent first.
    List(QuestionQuery),
    /// Lists answered and closed questions, the latest first.
    History {
        /// Maximum number of questions.
        limit: usize,
        /// Only questions asked before the one with this number; all, if `None`.
        before: Option<u64>,
    },
    /// Answers questions, each with the same text.
    Answer {
        /// Questions to answer.
        ids: Vec<QuestionId>,
        /// The answer: `allow` or `deny` for a permission; another text denies it, with the text
        /// as the reason.
        answer: String,
        /// Rules to make of each permission before it is allowed; none to allow it once.
        always: Option<AlwaysAnswer>,
    },
    /// Sets a question aside: it is listed last, and its deadline is moved.
    Postpone {
        /// Question to set aside.
        id: QuestionId,
        /// New time until the deadline, in milliseconds from now.
        for_ms: u64,
    },
}

/// Terms of the rules that are made of an allowed permission: exactly the request, of this agent, in
/// this repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlwaysAnswer {
    /// True to accept that the program may run code from the repository.
    pub trusts_workspace: bool,
    /// Time until the rules expire, in milliseconds; 30 days if absent, 0 for never.
    pub for_ms: Option<u64>,
}

/// Filter of open questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionQuery {
    /// Only questions of this kind.
    pub kind: Option<QuestionKind>,
    /// Only questions that this agent asks itself.
    pub agent: Option<AgentId>,
    /// Maximum number of questions.
    pub limit: usize,
    /// Number of matching questions to skip.
    pub offset: usize,
}

impl QuestionRequest {
    /// Name of the operation, for metrics.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::List(_) => "list_questions",
            Self::History { .. } => "list_question_history",
            Self::Answer { .. } => "answer_questions",
            Self::Postpone { .. } => "postpone_question",
        }
    }
}

/// Answer to a [`QuestionRequest`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum QuestionAnswer {
    /// Open questions.
    List(OpenQuestions),
    /// Earlier questions.
    History(QuestionHistory),
    /// Result for each question that was to be answered.
    Answered(Vec<QuestionResult>),
    /// Question that was set aside.
    Postponed(Box<OpenQuestion>),
}

/// Open questions: the answer to `hub/questions/list`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenQuestions {
    /// The questions, the most urgent first: by deadline, then by kind (permissions first), then
    /// by age. Those that were set aside come last.
    pub questions: Vec<OpenQuestion>,
    /// Number of matching questions in total.
    pub total: usize,
}

/// Open question of a task.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenQuestion {
    /// Id of the question, with which an answer refers to it.
    #[schemars(with = "String")]
    pub id: QuestionId,
    /// Kind of answer that is required: `input`, `permission` or `auth`.
    #[schemars(with = "String")]
    pub kind: QuestionKind,
    /// Task that asks.
    pub task_id: TaskId,
    /// Task at the root of its tree, which a client sent.
    pub root_task_id: TaskId,
    /// Agent that asks.
    pub agent_id: AgentId,
    /// Agents from the one of the root task to the one that asks: `["reviewer", "codex"]`.
    pub path: Vec<AgentId>,
    /// Conversation of the asking task.
    pub context_id: ContextId,
    /// Request that the asking task works on, in one line that may be shortened.
    pub request: String,
    /// Text of the question; a long one is shortened.
    pub text: String,
    /// Request of the agent's program, of a permission: what rules are made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<PermissionRequest>,
    /// Tool that a permission is about, as the agent names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Choices that the agent offers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// Directory of the asking task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// True if the hub asks in place of an agent that was ended, by a restart or to make room for
    /// other tasks: an answer starts the agent again, and allows nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// True if the task asks another question first. It may be answered already.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub queued: bool,
    /// Time at which it was asked: RFC 3339 in UTC.
    pub opened_at: String,
    /// Deadline, at which it counts as denied: RFC 3339 in UTC. Absent for a queued question, and
    /// if the task does not run in this hub now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// True if its deadline is near: from the event `question-expiring` on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub expiring: bool,
    /// True if a person set it aside, until a time that is not over.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub set_aside: bool,
}

/// Result of an answer to one of several questions: an element of the answer to
/// `hub/questions/answer`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionResult {
    /// The question.
    #[schemars(with = "String")]
    pub id: QuestionId,
    /// True if this answer counts.
    pub answered: bool,
    /// Ids of the rules that were made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// Other open questions that these rules have answered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub also_allowed: Vec<QuestionId>,
    /// Reason why it does not count: the question is unknown, closed, or was answered before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The question as it was answered or closed before, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Box<PastQuestion>>,
}

/// Questions that are not open any more: the answer to `hub/questions/history`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionHistory {
    /// The questions, the latest first.
    pub questions: Vec<PastQuestion>,
    /// Value of `before` for the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// Question that was answered or closed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PastQuestion {
    /// Number of the question in the order of asking.
    pub number: u64,
    /// Id of the question.
    #[schemars(with = "String")]
    pub id: QuestionId,
    /// Kind of answer that was required: `input`, `permission` or `auth`.
    #[schemars(with = "String")]
    pub kind: QuestionKind,
    /// Task that asked.
    pub task_id: TaskId,
    /// Agent that asked.
    pub agent_id: AgentId,
    /// Text of the question; a long one is shortened.
    pub text: String,
    /// Time at which it was asked: RFC 3339 in UTC.
    pub opened_at: String,
    /// Text of the answer; absent if nobody answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Principal that answered, such as `operator`; absent if nobody answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// Time of the answer, or of the end without one: RFC 3339 in UTC.
    pub closed_at: String,
    /// Outcome: `answered`, `expired` (withdrawn by its agent, or not answered in time), `replaced`
    /// (by another question of the task, such as the one after a restart), or the final state of
    /// its task, such as `canceled`. Of a request that a rule has answered, so that nobody was
    /// asked: `allowed-by-rule` or `denied-by-rule`.
    pub outcome: String,
    /// Id of the rule that has answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}
