//! Reads a whole task; a finished one can be passed on as stored.

use super::{ClientContext, Hub};
use crate::error::HubError;
use a2a_hub_core::access_control::Caller;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    operation::Operation,
};
use a2a_hub_store::TaskView;

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
