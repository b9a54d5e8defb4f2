//! Starts a task from a message, at the agent that it names or at one that is chosen, and waits for
//! its result or question.

use super::{Hub, reviews::SubmitMessage};
use crate::conversations::{handoff, repeats::Claim};
use crate::{
    error::HubError,
    tasks::{NewTask, ResponseMode, Subscription, TaskRefused},
};
use a2a_hub_agents::Agent;
use a2a_hub_core::{
    access_control::{Caller, Principal},
    routing::{Routing, Wanted},
    scheduling::shares::Holder,
    task::{
        fold::TaskFold,
        idempotency::{self, RequestText},
        metadata::REACHABLE_AGENTS,
    },
};
use a2a_hub_protocol::{
    budget::Budget,
    error::{A2aError, ErrorKind},
    event::TaskEvent,
    message::Metadata,
    operation::{Answer, Operation, SendMessage},
    task::TaskState,
};
use serde_json::json;
use std::sync::Arc;

/// Addressee of a message.
enum Addressee {
    /// One agent.
    One(Arc<Agent>),
    /// Any agent that routing chooses.
    Any(Wanted),
}

/// A message on its way to its agent.
#[derive(Clone)]
struct MessageDelivery {
    send: Box<SendMessage>,
    by: Caller,
    request: Option<String>,
    response: ResponseMode,
    budget: Budget,
}

impl Hub {
    pub(super) async fn start_anew(
        &self,
        caller: &Caller,
        mut send: Box<SendMessage>,
        response: ResponseMode,
    ) -> Result<Subscription, HubError> {
        let addressee = self.addressee(&send)?;
        // Without idempotency the request is not serialized.
        let request = self.repeats.are_remembered().then(|| match &addressee {
            Addressee::One(agent) => idempotency::request(caller, &agent.id, &send),
            Addressee::Any(wanted) => {
                idempotency::request(caller, &(wanted.route(), wanted.allow_older), &send)
            }
        });
        self.limit_tree(&caller.principal, &mut send)?;
        let push = self.receiver(send.push.take()).await?;
        let budget = Budget::from_metadata(send.message.metadata.as_ref())?;
        let (hub, by, after) = (self.clone(), caller.clone(), send.after.unwrap_or(0));
        // Boxed: this future is as large as all futures that it awaits.
        let submitted = Box::pin(async move {
            let claim = hub.claim(&by.principal, request.as_ref()).await;
            if let Some(task) = claim.as_ref().and_then(Claim::task) {
                // The task may have been deleted; then a new one begins.
                if let Some(stored) = hub.tasks.stored(task).await? {
                    let subscription = hub.tasks.repeat(task, after).await?;
                    // All events of a final task are in the log, so a stream finds its direct
                    // message without waiting.
                    let agent = hub.agents.find(&stored.agent);
                    let may_be_message = stored.task.status.state.is_final()
                        && agent.is_some_and(|agent| agent.may_reply_directly());
                    return Ok(subscription.with_direct_message(may_be_message));
                }
            }
            hub.require_open()?;
            let request = claim.as_ref().map(|claim| claim.fingerprint.clone());
            let beginning = MessageDelivery { send, by, request, response, budget };
            let subscription = match addressee {
                Addressee::One(agent) => {
                    hub.submit(&agent, beginning, None).await.map_err(|refused| match refused {
                        TaskRefused::ByAgent(_, why) => why.into(),
                        TaskRefused::ByHub(why) => why,
                    })?
                }
                Addressee::Any(wanted) => hub.submit_to_any(wanted, beginning).await?,
            };
            if let Some(claim) = claim {
                claim.begun(subscription.task().clone());
            }
            Ok(subscription)
        });
        self.begin(push, submitted).await
    }

    /// Sends messages for an operation of the caller, with the rights that the caller has for them.
    pub(super) fn submit_as(&self, caller: &Caller) -> SubmitMessage {
        let (hub, caller) = (self.clone(), caller.clone());
        Box::new(move |send| {
            let (hub, caller) = (hub.clone(), caller.clone());
            Box::pin(async move {
                let operation = Operation::SendMessage(send);
                hub.may(&caller.principal, &operation)?;
                hub.require_within(&caller.principal, &operation).await?;
                if let Operation::SendMessage(send) = operation {
                    hub.send(&caller, send).await?;
                }
                Ok(())
            })
        })
    }

    /// Stores the limits of the caller's key with a new task: which agents its tree may reach, and
    /// the scopes of cards. They count as long as the task, whatever becomes of the key.
    fn limit_tree(&self, caller: &Principal, send: &mut SendMessage) -> Result<(), HubError> {
        let rights = self.rights_of(caller)?;
        let mut limits = Metadata::from_iter(caller.card_scopes(rights.as_ref()).to_fact());
        if let Some(rights) = rights {
            let skill = send.requirements.skill.as_deref();
            let reach = send.agent.as_ref().and_then(|agent| rights.scopes.reach(agent, skill));
            limits.extend(reach.map(|reach| (REACHABLE_AGENTS.to_owned(), json!(reach))));
        }
        if !limits.is_empty() {
            send.task_metadata.get_or_insert_default().extend(limits);
        }
        Ok(())
    }

    /// Claims a request; none if requests are not remembered.
    pub(super) async fn claim(
        &self,
        by: &Principal,
        request: Option<&RequestText>,
    ) -> Option<Claim> {
        let (request, holder) = (request?, Holder::of_identity(&by.identity()));
        self.repeats.claim(holder, request.as_str(), request.of_older_hub()).await
    }

    /// Agent of a message; none if routing chooses one.
    pub(super) fn sole_addressee(
        &self,
        send: &SendMessage,
    ) -> Result<Option<Arc<Agent>>, HubError> {
        Ok(match self.addressee(send)? {
            Addressee::One(agent) => Some(agent),
            Addressee::Any(_) => None,
        })
    }

    fn addressee(&self, send: &SendMessage) -> Result<Addressee, HubError> {
        let named = send.agent.clone().or_else(|| {
            // A skill is searched among all agents.
            self.default_agent().filter(|_| send.requirements.skill.is_none())
        });
        Ok(match self.routes.wanted(named.as_ref(), &send.requirements)? {
            Some(wanted) => {
                if let Some(named) = named.filter(|named| self.routes.group(named).is_none()) {
                    self.agent(Some(named))?;
                }
                Addressee::Any(wanted)
            }
            None => Addressee::One(self.agent(named)?),
        })
    }

    /// Submits the message to an agent, unless that is unhealthy, has an open circuit breaker or
    /// has too much to do.
    async fn submit(
        &self,
        agent: &Arc<Agent>,
        beginning: MessageDelivery,
        routing: Option<Box<Routing>>,
    ) -> Result<Subscription, TaskRefused> {
        let MessageDelivery { send, by, request, response, budget } = beginning;
        let new = NewTask::from_message(agent, *send, by, budget);
        self.tasks.offer(Box::new(NewTask { response, request, routing, ..*new })).await
    }

    /// Submits the message to the first agent that takes it. Once one has begun, no other gets it.
    async fn submit_to_any(
        &self,
        wanted: Wanted,
        beginning: MessageDelivery,
    ) -> Result<Subscription, HubError> {
        let message = &beginning.send.message;
        let mut route = self.tasks.choose(&self.routes, wanted, message, &|_| true).await?;
        while let Some(agent) = route.agent() {
            match self.submit(&agent, beginning.clone(), route.routing_facts()).await {
                Ok(subscription) => {
                    let rejection =
                        match route.has_another() && beginning.send.new_task_id.is_none() {
                            true => self.tasks.rejection(&subscription).await,
                            // The client receives the rejection itself.
                            false => None,
                        };
                    match rejection {
                        Some(text) => route.pass_rejected(subscription.task().clone(), &text),
                        None => return Ok(subscription),
                    }
                }
                Err(TaskRefused::ByAgent(reason, why)) => route.pass(reason, why),
                Err(TaskRefused::ByHub(why)) => return Err(why),
            }
        }
        Err(route.refusal())
    }

    /// Waits until the task is over, or waits for its client.
    pub(super) async fn wait_until_settled(
        &self,
        subscription: &mut Subscription,
    ) -> Result<Answer, HubError> {
        // Folds the task from the events, if the stream starts with the first one: that saves
        // reading the log again.
        let mut fold: Option<TaskFold> = None;
        while let Some(recorded) = subscription.next().await {
            match &recorded?.event {
                TaskEvent::Reply(message) => return Ok(Answer::Message(message.clone())),
                TaskEvent::Created(created) => {
                    fold = Some(TaskFold::new(created.task.clone()));
                }
                event @ (TaskEvent::Status(_) | TaskEvent::Artifact(_) | TaskEvent::Input(_)) => {
                    fold = fold.and_then(|mut task| task.apply(event).is_ok().then_some(task));
                }
            }
        }
        let task = match fold {
            Some(task) => task.into_task(),
            None => self.tasks.get(subscription.task()).await?.task,
        };
        if task.status.state == TaskState::Submitted || task.status.state == TaskState::Working {
            let why = "the hub stopped, or its store failed, before the task ended; `tasks/get` tells what became of it";
            return Err(A2aError::new(ErrorKind::Internal, why)
                .with(json!({ "taskId": task.id }))
                .into());
        }
        let task = match handoff::successor(&task) {
            None => task,
            Some(_) => Box::pin(self.latest_of(task)).await?,
        };
        Ok(Answer::Task(Box::new(task)))
    }
}
