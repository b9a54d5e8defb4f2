//! Reads tasks, conversations, questions, notices and deliveries, as far as the caller sees them.
//! A whole finished task can be passed on as stored.

use super::{ClientContext, Hub, timestamp::moment};
use crate::{
    error::HubError,
    observability::hub_event_stream::{EventFilter, HubEventStream, ResumeFailure},
    tasks::{Notices, Questions, TaskHistory, VisibleTasks},
};
use a2a_hub_core::access_control::Caller;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    hub::event::HubEvent,
    operation::{Answer, EventWatch, Operation},
};
use a2a_hub_store::TaskView;
use std::sync::Arc;

impl Hub {
    /// Carries out an [`Operation::GetTask`] for the whole task, under the rules of
    /// [`handle`](Self::handle), and returns the stored view.
    ///
    /// # Errors
    ///
    /// Those of `handle`.
    pub async fn view_task(
        &self,
        caller: impl Into<Caller>,
        client_context: Option<&ClientContext>,
        mut operation: Operation,
    ) -> Result<TaskView, A2aError> {
        let (_, admitted) = self.pass_gate(caller.into(), &mut operation).await?;
        admitted.finish(self.stored_view(client_context, operation).await)
    }

    /// Carries out an operation on tasks that the caller sees, and on what belongs to them.
    pub(super) async fn perform_on_visible(
        &self,
        caller: &Caller,
        operation: Operation,
    ) -> Result<Answer, HubError> {
        let rights = self.rights_of(&caller.principal)?;
        if let Operation::Question(request) = operation {
            let questions = Questions(&self.tasks, rights);
            let answer = Box::pin(questions.perform(caller, request)).await?;
            return Ok(Answer::Question(answer));
        }
        let visible = VisibleTasks::of(&self.tasks, rights);
        #[expect(clippy::wildcard_enum_match_arm, reason = "the caller hands over no other")]
        Ok(match operation {
            Operation::ListTasks(mut query) => {
                let artifacts = query.include_artifacts && !query.is_summary;
                query.since = moment("since", query.since)?;
                let tasks = self.tasks.list(query, visible.as_ref()).await?;
                Answer::Tasks { tasks, artifacts }
            }
            Operation::PageTasks(query) => {
                let (artifacts, size) = (query.include_artifacts, query.size);
                let (tasks, total, next) = self.tasks.page(query, visible.as_ref()).await?;
                Answer::TaskPage { tasks, artifacts, size, total, next }
            }
            Operation::ListContexts(query) => Answer::Contexts(match visible {
                Some(visible) => visible.contexts(&self.contexts, query).await?,
                None => self.contexts.list(query).await?,
            }),
            Operation::GetContext { id, history_length } => {
                let found = self.contexts.get(&id, history_length).await?;
                let is_visible = match &visible {
                    Some(visible) => visible.sees_context(&id).await?,
                    None => true,
                };
                let found = found.filter(|_| is_visible);
                let (info, messages) = found.ok_or_else(|| A2aError::no_context(&id))?;
                Answer::Context(info, messages)
            }
            Operation::ListDeliveries { dead_only, limit } => Answer::Deliveries(match visible {
                Some(visible) => {
                    let all = self.pushes.deliveries(&caller.tenant, dead_only, usize::MAX).await?;
                    let mut found = visible.retain(all, |delivery| &delivery.task_id).await?;
                    found.truncate(limit);
                    found
                }
                None => self.pushes.deliveries(&caller.tenant, dead_only, limit).await?,
            }),
            Operation::Notice(request) => {
                Answer::Notice(Notices(&self.tasks, visible).perform(caller, request).await?)
            }
            other => {
                let why = format!("`{}` reads no tasks", other.name());
                return Err(A2aError::new(ErrorKind::Internal, why).into());
            }
        })
    }

    /// Subscribes to the events of the hub, as far as the caller sees their tasks.
    pub(super) async fn watch(
        &self,
        caller: &Caller,
        watch: EventWatch,
    ) -> Result<HubEventStream, HubError> {
        // Before the latest cursor is read: the stream hears of each later change.
        let listener = self.events.subscribe(&caller.tenant);
        let visible = VisibleTasks::of(&self.tasks, self.rights_of(&caller.principal)?);
        let stream = HubEventStream::live(listener, visible.map(filter_of));
        match watch {
            EventWatch::Live => Ok(stream),
            EventWatch::Resumable { after } => {
                let log = TaskHistory(&self.tasks).changes();
                let resumed = stream.resumable(log, caller.tenant.clone(), after.as_deref()).await;
                resumed.map_err(|why| match why {
                    ResumeFailure::Storage(why) => why.into(),
                    ResumeFailure::Refused(why) => why.into(),
                })
            }
        }
    }

    async fn stored_view(
        &self,
        client_context: Option<&ClientContext>,
        operation: Operation,
    ) -> Result<TaskView, HubError> {
        let Operation::GetTask { id, history_length: None } = operation else {
            return Err(A2aError::new(ErrorKind::Internal, "only a whole task is looked at").into());
        };
        let view = self.tasks.view(&id).await?;
        let endpoint = client_context.and_then(|client_context| client_context.agent.as_ref());
        if endpoint.is_some_and(|endpoint| !self.is_at(endpoint, view.agent())) {
            return Err(A2aError::no_task(&id).into());
        }
        Ok(view)
    }
}

/// Filter for the events of tasks that a person sees.
fn filter_of(visible: VisibleTasks) -> EventFilter {
    Arc::new(move |event: Arc<HubEvent>| {
        let visible = visible.clone();
        Box::pin(async move {
            for task in event.what.tasks() {
                match visible.sees(task).await {
                    Ok(true) => {}
                    Ok(false) => return false,
                    Err(why) => {
                        tracing::warn!(%task, %why, "cannot read task, leaving its event out");
                        return false;
                    }
                }
            }
            true
        })
    })
}
