//! Events that a run receives, and actions that it asks for.

use std::fmt;

use serde_json::{Map, Value};

/// Purpose of a child, question or timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The work of a step.
    Work,
    /// A pause before the next attempt.
    Backoff,
    /// The time limit of a step, or of the flow.
    Timeout,
    /// The call that undoes a step.
    Compensation,
    /// The question whether a program that a restart cut off runs again.
    Restart,
    /// A part of the working time of the flow.
    Minutes,
    /// The time limit of answers to one call for bids, proposals or estimates, or of a leader's
    /// work.
    Answers,
    /// A pause in which the text of a step with `stream` is collected for a reader.
    Piece,
}

/// Name of a child, question or timer: the same in each replay, whatever ends first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// Index of the step.
    pub step: usize,
    /// Round of the step, counted from 1.
    pub round: u32,
    /// Index of the item in a `for_each`.
    pub item: usize,
    /// Number of the attempt, counted from 1.
    pub attempt: u32,
    /// Purpose.
    pub role: Role,
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, round, item, attempt, role } = self;
        let role = match role {
            Role::Work => "work",
            Role::Backoff => "backoff",
            Role::Timeout => "timeout",
            Role::Compensation => "undo",
            Role::Restart => "restart",
            Role::Minutes => "minutes",
            Role::Answers => "answers",
            Role::Piece => "piece",
        };
        write!(f, "{step}.{round}.{item}.{attempt}.{role}")
    }
}

/// End of a child task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChildEnd {
    /// True if the child completed its task.
    pub completed: bool,
    /// Text of the last message.
    pub text: String,
    /// Data of the last message or artifact.
    pub data: Option<Value>,
    /// Texts of the artifacts, by id.
    pub artifacts: Map<String, Value>,
    /// Failure reason, such as `limit_exceeded`.
    pub reason: String,
    /// Changes in the child's worktree, if it changed something there.
    pub worktree: Option<ChildChanges>,
    /// Dollars that the child's agent reported.
    pub cost_usd: Option<f64>,
}

/// Changes in the worktree of a child.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildChanges {
    /// Number of changed files.
    pub files: u64,
    /// Number of added lines.
    pub insertions: u64,
    /// Number of removed lines.
    pub deletions: u64,
    /// The changes as a patch, or a table of files if the patch is large.
    pub diff: String,
}

/// Event of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum FlowEvent {
    /// The run begins.
    Begun,
    /// A child task ended.
    Ended(Id, ChildEnd),
    /// The client answered a question.
    Answered(Id, String),
    /// A timer is due.
    Rang(Id),
    /// A child task waits for a person.
    Paused(Id),
    /// A child task goes on with its work.
    Resumed(Id),
    /// A child task has written a part of its text.
    Wrote(Id, String),
    /// A child task has read the messages that were sent to it.
    Took(Id),
    /// A message could not be sent to a child task.
    Unsent(Id),
    /// A child task changes the blackboard of its step while it works.
    Changed(Id, BoardChange),
}

/// Change of a blackboard by a child that has a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct BoardChange {
    /// Id, under which the answer is reported.
    pub id: String,
    /// Contribution, as in the answer of a turn: `do`, `id`, `version`, `kind`, `text` and `needs`.
    pub contribution: Value,
}

/// Memory that a child gets before it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inheritance {
    /// Child whose agent's memory is passed on; without one, the memory that the flow's caller
    /// passed on.
    pub from: Option<Id>,
    /// Part of the memory: `full`, `minimal` or `summary`.
    pub scope: String,
}

/// Worktree in which a child works, in place of the directory of the flow's task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildWorktree {
    /// A new one, from the last commit.
    New,
    /// The worktree of this child.
    Of(Id),
}

/// Action of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum FlowAction {
    /// Give a task to another agent.
    Call {
        /// Name of the child.
        id: Id,
        /// Agent or flow.
        agent: String,
        /// Text of the message.
        text: String,
        /// Data of the message.
        data: Option<Value>,
        /// Most that the child may do unasked.
        permissions: Option<String>,
        /// Memory that the child gets before it begins.
        inherit: Option<Inheritance>,
        /// Worktree in which it works.
        worktree: Option<ChildWorktree>,
        /// Member `stream` of the message's metadata, if further messages follow.
        stream: Option<Value>,
    },
    /// Send a child at work a further message.
    Send {
        /// Name of the child.
        id: Id,
        /// Text of the message.
        text: String,
        /// Member `stream` of the message's metadata.
        facts: Value,
    },
    /// Ask the client.
    Ask {
        /// Name of the question.
        id: Id,
        /// Text of the question.
        text: String,
    },
    /// Start a timer.
    Wait {
        /// Name of the timer.
        id: Id,
        /// Time until it is due, in milliseconds.
        ms: u64,
    },
    /// Cancel a child, withdraw a question, or stop a timer.
    Cancel(Id),
    /// Report progress.
    Say(String),
    /// End the run.
    Finish(Finish),
}

/// End of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finish {
    /// True if the flow completed.
    pub completed: bool,
    /// Text for the client.
    pub text: String,
    /// Structured output of the last step.
    pub output: Option<Value>,
    /// Failure reason; empty if the flow completed.
    pub reason: String,
    /// Child whose worktree has the result of the flow.
    pub worktree: Option<Id>,
}
