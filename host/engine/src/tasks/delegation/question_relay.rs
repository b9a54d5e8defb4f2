//! Relays a child task's questions to its parent's client, and the answers back to the child.

use super::child_message::further;
use crate::tasks::{
    Subscription, Tasks,
    guest_port::{GuestQuestion, GuestRequest},
};
use a2a_hub_agents::Agent;
use a2a_hub_clock as clock;
use a2a_hub_core::{
    access_control::Principal,
    grant::delegate::Callee,
    task::{open_questions::answer_metadata, question::handed_on},
};
use a2a_hub_protocol::{
    error::A2aError,
    event::{StatusUpdate, TaskEvent},
    id::{QuestionId, TaskId},
    message::{Message, Role},
    question::{Question as AgentQuestion, QuestionKind},
    task::Task,
};
use a2a_hub_runtime::{
    Failure,
    port::tasks::{ClientAnswer, Need},
};
use futures::future::BoxFuture;
use std::{future::pending, sync::Arc, time::Duration};
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    time::sleep,
};

/// Time within which a child repeats the question that an answer to a queued one interrupted: all
/// of that is one write.
const REPEATED_WITHIN: Duration = Duration::from_millis(100);

/// Relays the questions of one child on behalf of its parent.
pub(in crate::tasks) struct QuestionRelay {
    pub(in crate::tasks) tasks: Tasks,
    pub(in crate::tasks) by: Principal,
    pub(in crate::tasks) queue: mpsc::Sender<GuestRequest>,
    pub(in crate::tasks) asking: Arc<Mutex<()>>,
    /// The calling agent.
    pub(in crate::tasks) parent: Arc<Agent>,
    pub(in crate::tasks) child: Callee,
    /// True if the parent's agent answers the questions that it may answer.
    pub(in crate::tasks) answers: bool,
}

impl QuestionRelay {
    /// Relays questions and answers until the child is over; `now` is the child's current status.
    pub(in crate::tasks) async fn hand_on(
        &self,
        now: Option<StatusUpdate>,
        mut subscription: Subscription,
    ) {
        let child = subscription.task().clone();
        let mut open = now
            .and_then(|now| self.relayed_question(&child, &now))
            .map(|question| self.open(question));
        // The question before, for the time in which the child may ask it again: an answer to a
        // queued question names that one for a moment.
        let mut previous: Option<RelayedQuestion<'_>> = None;
        // An answer that the child could not take: a replayed child takes it once it asks again.
        let mut undelivered: Option<(QuestionId, ClientAnswer)> = None;
        loop {
            tokio::select! {
                biased;
                event = subscription.next() => {
                    let Some(Ok(event)) = event else { return };
                    let TaskEvent::Status(update) = &event.event else { continue };
                    if !update.status.state.is_interrupted()
                        && AgentQuestion::from_metadata(update.metadata.as_ref()).is_some()
                    {
                        // This status accompanies an open question.
                        continue;
                    }
                    let relayed = self.relayed_question(&child, update);
                    let is_about = |id: &QuestionId| {
                        relayed.as_ref().is_some_and(|(relayed, ..)| relayed.id == *id)
                    };
                    if undelivered.as_ref().is_some_and(|(id, _)| is_about(id)) {
                        if let (Some((_, answer)), Some((relayed, ..))) = (undelivered.take(), relayed) {
                            self.take_back(&child, &relayed, answer).await;
                        }
                    } else if !open.as_ref().is_some_and(|open| is_about(&open.question.id)) {
                        // The old question is withdrawn, unless the child asks it again at once;
                        // the new one, if any, replaces it.
                        let again = previous.take().filter(|known| is_about(&known.question.id));
                        let before = open.take();
                        open = again.or_else(|| relayed.map(|relayed| self.open(relayed)));
                        previous = before.filter(|_| open.is_some());
                    }
                }
                () = sleep(REPEATED_WITHIN), if previous.is_some() => previous = None,
                answer = answered(&mut open) => {
                    if let (Some(open), Ok(answer)) = (open.take(), answer)
                        && !self.take_back(&child, &open.question, answer.clone()).await
                    {
                        undelivered = Some((open.question.id, answer));
                    }
                }
            }
        }
    }

    /// Starts asking the parent's client.
    fn open(
        &self,
        (question, prompt, need): (AgentQuestion, Message, Need),
    ) -> RelayedQuestion<'_> {
        RelayedQuestion { answer: Box::pin(self.ask(need, question.clone(), prompt)), question }
    }

    /// Question of the child in this status, in its parent's words; none if the parent's agent
    /// answers it.
    fn relayed_question(
        &self,
        child: &TaskId,
        update: &StatusUpdate,
    ) -> Option<(AgentQuestion, Message, Need)> {
        if !update.status.state.is_interrupted() {
            return None;
        }
        let child_question = AgentQuestion::from_metadata(update.metadata.as_ref())?;
        if self.answers && self.parent.answers(&self.child, &child_question) {
            return None;
        }
        let prompt = update.status.message.clone()?;
        let need = if child_question.kind == QuestionKind::Auth { Need::Auth } else { Need::Input };
        let (question, prompt) = handed_on(child, &self.child.agent, &child_question, prompt);
        Some((question, prompt, need))
    }

    async fn ask(
        &self,
        need: Need,
        child_question: AgentQuestion,
        prompt: Message,
    ) -> Result<ClientAnswer, Failure> {
        let _one_at_a_time = self.asking.lock().await;
        let (answer, answered) = oneshot::channel();
        let (id, opened_at) = (child_question.id.clone(), clock::now());
        let (timeout, of_child, waits) = (None, Some(child_question), false);
        let question = GuestQuestion {
            id,
            opened_at,
            need,
            prompt,
            timeout,
            answer,
            request: None,
            of_child,
            waits,
        };
        self.queue
            .send(GuestRequest::Ask(Box::new(question)))
            .await
            .map_err(|_| Failure::Cancelled)?;
        answered.await.unwrap_or(Err(Failure::Cancelled))
    }

    /// Delivers the client's answer to the child. Returns false if the child refused it, because
    /// another question or none is open by now.
    async fn take_back(
        &self,
        task: &TaskId,
        question: &AgentQuestion,
        answer: ClientAnswer,
    ) -> bool {
        let Ok(stored) = self.tasks.get(task).await else { return false };
        let ClientAnswer { message, client } = answer;
        let message = answer_to(question, &stored.task, message);
        let taken = self.tasks.answer(task, message, client, None, self.by.clone()).await;
        if let Err(why) = taken {
            let why = A2aError::from(why);
            tracing::info!(%task, %why, "cannot deliver the answer to the child task");
            return false;
        }
        true
    }
}

/// A child's question before the parent's client. Dropping it withdraws the question.
struct RelayedQuestion<'a> {
    question: AgentQuestion,
    answer: BoxFuture<'a, Result<ClientAnswer, Failure>>,
}

/// Waits for the answer, if a question is open.
async fn answered(open: &mut Option<RelayedQuestion<'_>>) -> Result<ClientAnswer, Failure> {
    match open {
        Some(open) => open.answer.as_mut().await,
        None => pending().await,
    }
}

/// Builds the message that answers a task's question.
pub(in crate::tasks) fn answer_to(
    question: &AgentQuestion,
    task: &Task,
    message: Message,
) -> Message {
    let message = further(message);
    let mut facts = message.metadata.unwrap_or_default();
    facts.extend(answer_metadata(&question.id));
    let (task_id, context_id) = (Some(task.id.clone()), Some(task.context_id.clone()));
    Message { role: Role::User, task_id, context_id, metadata: Some(facts), ..message }
}
