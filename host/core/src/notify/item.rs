//! Items that a notifier reports: open questions and unread notices.

use a2a_hub_protocol::{
    id::{AgentId, QuestionId, TaskId},
    operation::{Notice, NoticeKind, OpenQuestion},
    question::QuestionKind,
};
use serde::{Deserialize, Serialize};

/// Kind of item that a notifier reports, as in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotifyKind {
    /// An open question is close to its deadline.
    Expiring,
    /// A request for permission.
    Permission,
    /// A question that needs a text.
    Input,
    /// A question that needs a login.
    Login,
    /// A question that the hub asks in place of an agent that was ended.
    Interrupted,
    /// A task failed.
    Failed,
    /// A task failed because a quota is used up.
    Quota,
    /// Changes of two tasks conflict.
    Conflict,
    /// A task of a schedule or trigger has completed.
    Finished,
}

impl NotifyKind {
    /// All kinds, the most urgent first.
    pub const ALL: [Self; 9] = [
        Self::Expiring,
        Self::Permission,
        Self::Input,
        Self::Login,
        Self::Interrupted,
        Self::Failed,
        Self::Quota,
        Self::Conflict,
        Self::Finished,
    ];

    /// Name in the configuration and in messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Expiring => "expiring",
            Self::Permission => "permission",
            Self::Input => "input",
            Self::Login => "login",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Quota => "quota",
            Self::Conflict => "conflict",
            Self::Finished => "finished",
        }
    }

    fn of_question(question: &OpenQuestion) -> Self {
        match question.kind {
            _ if question.interrupted => Self::Interrupted,
            QuestionKind::Permission => Self::Permission,
            QuestionKind::Input => Self::Input,
            QuestionKind::Auth => Self::Login,
        }
    }

    fn of_notice(kind: NoticeKind) -> Self {
        match kind {
            NoticeKind::Failed => Self::Failed,
            NoticeKind::Quota => Self::Quota,
            NoticeKind::Finished => Self::Finished,
            NoticeKind::Conflict => Self::Conflict,
        }
    }
}

/// Id of an item.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AttentionId {
    /// An open question.
    Question(QuestionId),
    /// An unread notice, by its number.
    Notice(u64),
}

/// An open question or an unread notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttentionItem {
    /// Id.
    pub id: AttentionId,
    /// Kind; an expiring question has that of the question.
    pub kind: NotifyKind,
    /// Agent that asks, or of the notice's task.
    pub agent: AgentId,
    /// Agents from the root task's to `agent`; empty for a notice.
    pub path: Vec<AgentId>,
    /// Task.
    pub task: TaskId,
    /// Request that the task works on, in one line; not yet cleaned.
    pub title: String,
    /// Text of the question, or reason or result of the notice; not yet cleaned.
    pub text: String,
    /// Time at which it was asked or happened, in milliseconds since 1970.
    pub at_ms: i64,
    /// True for a question close to its deadline.
    pub is_expiring: bool,
    /// True for a question that a person set aside for now.
    pub is_set_aside: bool,
}

impl AttentionItem {
    /// Item of an open question that was asked at `at_ms`.
    pub fn of_question(question: OpenQuestion, at_ms: i64) -> Self {
        Self {
            kind: NotifyKind::of_question(&question),
            id: AttentionId::Question(question.id),
            agent: question.agent_id,
            path: question.path,
            task: question.task_id,
            title: question.request,
            text: question.text,
            at_ms,
            is_expiring: question.expiring,
            is_set_aside: question.set_aside,
        }
    }

    /// Item of an unread notice of the time `at_ms`.
    pub fn of_notice(notice: Notice, at_ms: i64) -> Self {
        Self {
            kind: NotifyKind::of_notice(notice.kind),
            id: AttentionId::Notice(notice.id),
            agent: notice.agent_id,
            path: Vec::new(),
            task: notice.task_id,
            title: notice.title,
            text: notice.text,
            at_ms,
            is_expiring: false,
            is_set_aside: false,
        }
    }

    /// Key of the item in the state.
    pub(super) fn key(&self) -> String {
        match &self.id {
            AttentionId::Question(id) => format!("q:{}", id.as_str()),
            AttentionId::Notice(number) => format!("n:{number}"),
        }
    }

    /// Key of the warning before the question's deadline.
    pub(super) fn expiring_key(&self) -> Option<String> {
        match &self.id {
            AttentionId::Question(id) if self.is_expiring => Some(format!("e:{}", id.as_str())),
            AttentionId::Question(_) | AttentionId::Notice(_) => None,
        }
    }
}

/// An item that a message is due for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueItem<'i> {
    /// Kind in the message.
    pub kind: NotifyKind,
    /// The item.
    pub item: &'i AttentionItem,
    /// Keys in the state of what the message says about it.
    pub(super) keys: Vec<String>,
    /// Time from which on it is due, in milliseconds since 1970.
    pub(super) due_ms: i64,
}
