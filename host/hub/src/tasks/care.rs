//! A child's questions: its parent's client is asked them, and the child hears the answers.

use super::{
    Tasks,
    feed::Subscription,
    port::{GuestRequest, Question},
};
use a2a_hub_agents::Agent;
use a2a_hub_core::{access::Principal, question::handed_on};
use a2a_hub_protocol::{
    error::A2aError,
    event::{StatusUpdate, TaskEvent},
    id::{AgentId, QuestionId, TaskId},
    message::{Message, Role},
    question::{QUESTION, Question as Asked, QuestionKind},
    task::Task,
};
use a2a_hub_runtime::{
    Failure,
    port::tasks::{Answer, Need},
};
use futures::future::BoxFuture;
use std::{future::pending, sync::Arc};
use tokio::sync::{Mutex, mpsc, oneshot};

/// What looks after one child on behalf of its parent's client.
pub(super) struct Care {
    pub(super) tasks: Tasks,
    pub(super) by: Principal,
    pub(super) queue: mpsc::Sender<GuestRequest>,
    pub(super) asking: Arc<Mutex<()>>,
    /// Who called it.
    pub(super) parent: Arc<Agent>,
    pub(super) child: AgentId,
    /// Whether the parent's agent answers what it can.
    pub(super) answers: bool,
}

impl Care {
    /// Has the parent ask what the child asks, and the child hear the answer, until the child is over; `now` is where it stands.
    pub(super) async fn hand_on(&self, now: Option<StatusUpdate>, mut heard: Subscription) {
        let child = heard.task().clone();
        let mut open = now.and_then(|now| self.asked(&child, &now)).map(|asked| self.open(asked));
        // An answer that the child could not take: one that is run again takes it once it asks again.
        let mut kept: Option<(QuestionId, Answer)> = None;
        loop {
            tokio::select! {
                biased;
                event = heard.next() => {
                    let Some(Ok(event)) = event else { return };
                    let TaskEvent::Status(update) = &event.event else { continue };
                    if !update.status.state.is_interrupted()
                        && Asked::of(update.metadata.as_ref()).is_some()
                    {
                        // It tells something beside its question.
                        continue;
                    }
                    let asked = self.asked(&child, update);
                    let is_about = |id: &QuestionId| {
                        asked.as_ref().is_some_and(|(asked, ..)| asked.id == *id)
                    };
                    if kept.as_ref().is_some_and(|(id, _)| is_about(id)) {
                        if let (Some((_, answer)), Some((asked, ..))) = (kept.take(), asked) {
                            self.take_back(&child, &asked, answer).await;
                        }
                    } else if !open.as_ref().is_some_and(|open| is_about(&open.asked.id)) {
                        // It asks no more, or something else: the parent asks that no more either.
                        open = asked.map(|asked| self.open(asked));
                    }
                }
                answer = answered(&mut open) => {
                    if let (Some(open), Ok(answer)) = (open.take(), answer)
                        && !self.take_back(&child, &open.asked, answer.clone()).await
                    {
                        kept = Some((open.asked.id, answer));
                    }
                }
            }
        }
    }

    /// Has the parent ask.
    fn open(&self, (asked, prompt, need): (Asked, Message, Need)) -> OpenQuestion<'_> {
        OpenQuestion { answer: Box::pin(self.ask(need, asked.clone(), prompt)), asked }
    }

    /// What the child asks with this status, as its parent asks it; nothing if the parent's agent answers it.
    fn asked(&self, child: &TaskId, update: &StatusUpdate) -> Option<(Asked, Message, Need)> {
        if !update.status.state.is_interrupted() {
            return None;
        }
        let asked = Asked::of(update.metadata.as_ref())?;
        if self.answers && self.parent.answers(&self.child, &asked) {
            return None;
        }
        let prompt = update.status.message.clone()?;
        let need = if asked.kind == QuestionKind::Auth { Need::Auth } else { Need::Input };
        let (question, prompt) = handed_on(child, &self.child, &asked, prompt);
        Some((question, prompt, need))
    }

    async fn ask(&self, need: Need, asked: Asked, prompt: Message) -> Result<Answer, Failure> {
        let _one_at_a_time = self.asking.lock().await;
        let (answer, answered) = oneshot::channel();
        let (patience, of_child, waits) = (None, Some(asked), false);
        let question = Question { need, prompt, patience, answer, of_child, waits };
        self.queue
            .send(GuestRequest::Ask(Box::new(question)))
            .await
            .map_err(|_| Failure::Cancelled)?;
        answered.await.unwrap_or(Err(Failure::Cancelled))
    }

    /// Hands the client's answer to the child, and tells whether it took it. One that comes too late finds another question there, or
    /// none, and is refused.
    async fn take_back(&self, task: &TaskId, asked: &Asked, answer: Answer) -> bool {
        let Ok(stored) = self.tasks.get(task).await else { return false };
        let Answer { message, client } = answer;
        let message = answer_to(asked, &stored.task, message);
        let taken = self.tasks.answer(task, message, client, None, self.by.clone()).await;
        if let Err(why) = taken {
            let why = A2aError::from(why);
            tracing::info!(%task, %why, "an answer was not taken");
            return false;
        }
        true
    }
}

/// A child's question that stands before the client. Dropping it withdraws it.
struct OpenQuestion<'a> {
    asked: Asked,
    answer: BoxFuture<'a, Result<Answer, Failure>>,
}

/// The answer, if something is asked.
async fn answered(open: &mut Option<OpenQuestion<'_>>) -> Result<Answer, Failure> {
    match open {
        Some(open) => open.answer.as_mut().await,
        None => pending().await,
    }
}

/// The message as an answer to what a task asks.
pub(super) fn answer_to(asked: &Asked, task: &Task, message: Message) -> Message {
    let mut facts = message.metadata.unwrap_or_default();
    facts.insert(QUESTION.to_owned(), asked.id.as_str().into());
    let (task_id, context_id) = (Some(task.id.clone()), Some(task.context_id.clone()));
    Message { role: Role::User, task_id, context_id, metadata: Some(facts), ..message }
}
