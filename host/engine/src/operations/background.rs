//! Work that continues after its connection is closed, or for as long as the hub runs.

use super::{Hub, automation::OwnedRuns};
use crate::{
    conversations::handoff::{self, MAX_HANDOFFS},
    error::HubError,
};
use a2a_hub_core::{
    access_control::{Caller, Principal},
    identity::OwnedAutomation,
};
use a2a_hub_protocol::{
    error::A2aError,
    id::TaskId,
    operation::{Answer, Operation, PeopleReport, PeopleRequest},
};

impl Hub {
    /// Runs the notifiers, for as long as the hub runs.
    pub async fn keep_notifiers(self) {
        if let Some(notifiers) = self.notifiers.clone() {
            notifiers.run(&self.events).await;
        }
    }

    /// Runs `work` to completion even if this future is dropped; the result is dropped then.
    pub async fn see_through<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, A2aError>> + Send + 'static,
    ) -> Result<T, A2aError> {
        self.tasks.see_through(async { Ok(work.await?) }).await.map_err(Into::into)
    }

    /// Carries out a request for people. It completes even if the caller is dropped.
    pub(super) async fn perform_on_people(
        &self,
        caller: &Caller,
        request: PeopleRequest,
    ) -> Result<Answer, HubError> {
        let (hub, by) = (self.clone(), caller.clone());
        let change = async move {
            let owned_runs = OwnedRuns(&hub);
            let automation = match &request {
                PeopleRequest::Add { .. }
                | PeopleRequest::SetRole { .. }
                | PeopleRequest::Remove { .. } => owned_runs.owned_automation(),
                PeopleRequest::List
                | PeopleRequest::NewKey(_)
                | PeopleRequest::RevokeKey { .. }
                | PeopleRequest::Invite(_)
                | PeopleRequest::Join { .. }
                | PeopleRequest::Me => Vec::new(),
            };
            let owned: Vec<_> = automation
                .iter()
                .map(|(kind, name, owner)| OwnedAutomation { kind: *kind, name, owner })
                .collect();
            let mut report = hub.people.perform(&by, request, &owned).await?;
            if let PeopleReport::Removed(removed) = &mut report {
                removed.tasks = owned_runs.tasks_of_person(&removed.person).await;
            }
            Ok(report)
        };
        Ok(Answer::People(self.tasks.see_through(change).await?))
    }

    /// Cancels a task on behalf of `caller`, or the one to which the hub handed it over. Nobody
    /// waits for the result.
    pub fn cancel_in_background(&self, caller: Principal, task: TaskId) {
        let hub = self.clone();
        self.tasks.run_in_background(async move {
            let mut next = Some(task);
            for _ in 0..MAX_HANDOFFS {
                let Some(task) = next.take() else { return };
                let cancel = Operation::CancelTask { id: task.clone() };
                if let Err(why) = hub.handle(caller.clone(), None, cancel).await {
                    // Mostly the task has ended in the meantime.
                    tracing::debug!(%task, %why, "cannot cancel the task of a closed connection");
                    let over = hub.tasks.stored(&task).await.ok().flatten();
                    next = over.and_then(|over| handoff::successor_by_hub(&over.task));
                }
            }
        });
    }
}
