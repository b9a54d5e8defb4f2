//! An agent at work on a task, with its open and queued questions.

use crate::tasks::guest_port::{GuestQuestion, GuestRequest};
use a2a_hub_runtime::{Failure, Run, port::tasks::ClientAnswer};
use std::collections::VecDeque;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

/// An agent at work on the task.
pub(in crate::tasks) struct RunningTask {
    pub(in crate::tasks) run: Box<dyn Run>,
    pub(in crate::tasks) requests: mpsc::Receiver<GuestRequest>,
    /// Further questions, asked one by one once the current one is answered.
    pub(in crate::tasks) questions: VecDeque<Box<GuestQuestion>>,
    /// Time at which the current question was posed (RFC 3339).
    pub(in crate::tasks) opened_at: Option<String>,
    /// True if the agent was sent the answer to a queued question, and has not reacted yet.
    pub(in crate::tasks) has_new_answer: bool,
    /// True if the current question is a child's.
    pub(in crate::tasks) asks_for_child: bool,
    /// True if this run is no agent and only relays for the children of an earlier run.
    pub(in crate::tasks) tends: bool,
    /// Channel for the answer, while a question is open.
    pub(in crate::tasks) answer_tx: Option<oneshot::Sender<Result<ClientAnswer, Failure>>>,
    /// The answer, held until the task has a run permit again.
    pub(in crate::tasks) answer: Option<ClientAnswer>,
    /// Receiver of the next message, while the agent waits for one.
    pub(in crate::tasks) reads: Option<oneshot::Sender<Result<ClientAnswer, Failure>>>,
    /// Start of the run, until its first output.
    pub(in crate::tasks) begun: Option<Instant>,
}

impl RunningTask {
    pub(in crate::tasks) fn new(run: Box<dyn Run>, requests: mpsc::Receiver<GuestRequest>) -> Self {
        let (questions, begun) = (VecDeque::new(), Some(Instant::now()));
        let (opened_at, has_new_answer, asks_for_child, tends) = Default::default();
        let (answer_tx, answer, reads) = Default::default();
        Self {
            run,
            requests,
            questions,
            opened_at,
            has_new_answer,
            asks_for_child,
            tends,
            answer_tx,
            answer,
            reads,
            begun,
        }
    }

    /// Run that relays for the children of an agent whose own run is gone.
    pub(in crate::tasks) fn tending(
        run: Box<dyn Run>,
        requests: mpsc::Receiver<GuestRequest>,
    ) -> Self {
        Self { tends: true, begun: None, ..Self::new(run, requests) }
    }
}
