//! Reads a whole task; a finished one can be passed on as stored.

use super::{ClientContext, Hub};
use crate::error::HubError;
use a2a_hub_core::access_control::Caller;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    operation::Operation,
};
use a2a_hub_store::Looked;

impl Hub {
    /// Carries out an [`Operation::GetTask`] for the whole task, under the rules of
    /// [`handle`](Self::handle), and returns the stored view.
    ///
    /// # Errors
    ///
    /// Those of `handle`.
    pub async fn look(
        &self,
        caller: impl Into<Caller>,
        visit: Option<&ClientContext>,
        mut operation: Operation,
    ) -> Result<Looked, A2aError> {
        let (_, admitted) = self.pass_gate(caller.into(), &mut operation).await?;
        admitted.came_to(self.look_up(visit, operation).await)
    }

    async fn look_up(
        &self,
        visit: Option<&ClientContext>,
        operation: Operation,
    ) -> Result<Looked, HubError> {
        let Operation::GetTask { id, history_length: None } = operation else {
            return Err(A2aError::new(ErrorKind::Internal, "only a whole task is looked at").into());
        };
        let looked = self.tasks.look(&id).await?;
        let endpoint = visit.and_then(|visit| visit.agent.as_ref());
        if endpoint.is_some_and(|endpoint| !self.is_at(endpoint, looked.agent())) {
            return Err(A2aError::no_task(&id).into());
        }
        Ok(looked)
    }
}
