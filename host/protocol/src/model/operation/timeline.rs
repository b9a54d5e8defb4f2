//! Timeline of a task: the query, and its entries.

use crate::model::{
    id::{AgentId, QuestionId, TaskId},
    task::TaskState,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// Query for a page of a task's timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineQuery {
    /// Task.
    pub id: TaskId,
    /// Position after which the page begins; the beginning if `None`.
    pub after: Option<TimelineCursor>,
    /// Maximum number of events that the page covers.
    pub limit: usize,
}

/// Position in a timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimelineCursor {
    /// Number of the last event before the position.
    pub seq: u64,
    /// Time of that event (RFC 3339).
    pub at: String,
    /// Question that is open then.
    pub question: Option<QuestionId>,
}

impl TimelineCursor {
    /// Separator between number, time and question.
    const AT: char = '@';

    /// Reads the text of a cursor. A time or a question of another form is refused.
    pub fn parse(text: &str) -> Option<Self> {
        let (seq, rest) = text.split_once(Self::AT)?;
        let (at, question) = match rest.split_once(Self::AT) {
            Some((at, question)) if is_plain_id(question) => (at, Some(QuestionId::new(question))),
            Some(_) => return None,
            None => (rest, None),
        };
        let is_time = at.len() <= 32 && at.bytes().all(|byte| b"0123456789-:.TZ".contains(&byte));
        is_time.then_some(())?;
        Some(Self { seq: seq.parse().ok()?, at: at.to_owned(), question })
    }
}

/// True for an id of a form that a cursor may contain; the hub's own questions have such ids.
fn is_plain_id(id: &str) -> bool {
    (1..=64).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

impl fmt::Display for TimelineCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.seq, Self::AT, self.at)?;
        match self.question.as_ref().filter(|question| is_plain_id(question.as_str())) {
            Some(question) => write!(f, "{}{question}", Self::AT),
            None => Ok(()),
        }
    }
}

/// Page of a task's timeline: the answer to `hub/tasks/timeline`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimelinePage {
    /// The entries, oldest first.
    pub entries: Vec<TimelineEntry>,
    /// Value of `cursor` for the next page; absent at the end of the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimelineKind {
    /// The task was created, with the client's request.
    Created,
    /// The task changed its state, or its agent reported about the state.
    State,
    /// A message, of the client or the agent.
    Message,
    /// The agent's program used a tool.
    Tool,
    /// The agent wrote an artifact, or a part of one.
    Artifact,
    /// The task asked a question.
    Question,
    /// The client answered the open question.
    Answer,
    /// A standing permission answered a request for permission.
    Rule,
    /// The agent reported its usage so far.
    Usage,
    /// The agent gave work to another agent.
    Child,
}

/// Entry of a timeline, for one event of the log; for several, if they are parts of one artifact.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimelineEntry {
    /// Number of the event in the log, of the last one if it has several; absent for a child.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Number of events; absent for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// Time of the event, or of the latest status before one without a time: RFC 3339 in UTC.
    pub at: String,
    /// Kind.
    pub kind: TimelineKind,
    /// State of the task after a status.
    #[serde(serialize_with = "state_name", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub state: Option<TaskState>,
    /// Description in one plain line.
    pub text: String,
    /// Principal that requested the event, such as `operator` or `person:ada/laptop`; absent for
    /// what an agent, a clock or the hub caused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Question that was asked or answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub question_id: Option<QuestionId>,
    /// Standing permission that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Child task, or the descendant that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Agent of that task; of this one for its creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
}

impl TimelineEntry {
    /// Creates an entry of that kind, without details.
    pub fn new(kind: TimelineKind, at: String, text: String) -> Self {
        Self {
            seq: None,
            events: None,
            at,
            kind,
            state: None,
            text,
            by: None,
            question_id: None,
            rule: None,
            task_id: None,
            agent_id: None,
        }
    }
}

/// Serializes the name of a state, if one is there.
#[expect(clippy::ref_option, reason = "serde calls it so")]
fn state_name<S: serde::Serializer>(state: &Option<TaskState>, to: S) -> Result<S::Ok, S::Error> {
    match state {
        Some(state) => to.serialize_str(state.name()),
        None => to.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_round_trips_and_else_is_refused() {
        let at = "2026-01-31T11:58:00.000Z".to_owned();
        let asks =
            TimelineCursor { seq: 8, at: at.clone(), question: Some(QuestionId::new("q-1")) };
        let odd = TimelineCursor { question: Some(QuestionId::new("a@b")), ..asks.clone() };
        assert_eq!(TimelineCursor::parse(&odd.to_string()).map(|it| it.question), Some(None));
        for cursor in
            [asks, TimelineCursor { seq: 7, at, question: None }, TimelineCursor::default()]
        {
            assert_eq!(TimelineCursor::parse(&cursor.to_string()), Some(cursor));
        }
        for wrong in [
            "",
            "7",
            "@",
            "-1@",
            "x@2026",
            "7@now",
            "7@\u{1b}",
            "18446744073709551616@",
            "7@@",
            "7@@a@b",
        ] {
            assert_eq!(TimelineCursor::parse(wrong), None, "{wrong:?}");
        }
    }
}
