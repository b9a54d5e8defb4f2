//! Rights of people: what their keys allow, and whose tasks they may change.

use super::Hub;
use crate::error::HubError;
use a2a_hub_core::{
    access_control::{self, Principal},
    identity::{PersonRule, Rights, RightsDenied, Scope},
};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    operation::Operation,
    question::{self, Question, QuestionKind},
};

impl Hub {
    /// Checks that a caller may perform an operation at all. The error is the reason.
    pub(super) fn may(&self, caller: &Principal, operation: &Operation) -> Result<(), String> {
        match self.rights_of(caller).map_err(|why| why.to_string())? {
            Some(rights) => {
                let rule = access_control::rule_for_people(operation);
                rights.may(rule).map_err(|why| why.to_string())
            }
            None => {
                let needed = access_control::needed(operation);
                caller.may(needed).map_err(|why| why.to_string())
            }
        }
    }

    /// Rights of a person; `None` for other callers.
    ///
    /// # Errors
    ///
    /// If the key of the person was revoked, or has expired.
    pub(super) fn rights_of(&self, caller: &Principal) -> Result<Option<Rights>, A2aError> {
        let Principal::Person { name, key } = caller else { return Ok(None) };
        let rights = self.people.rights(name, key);
        rights.map(Some).ok_or_else(|| {
            let why = format!("the key `{key}` of {name} was revoked, or has expired");
            A2aError::new(ErrorKind::Authentication, why)
        })
    }

    /// Refuses operations on tasks that a person may not change, and messages to agents that the
    /// key is not for. [`Hub::may`] has checked the operation itself.
    pub(super) async fn require_persons_rights(
        &self,
        caller: &Principal,
        operation: &Operation,
    ) -> Result<(), HubError> {
        let Some(rights) = self.rights_of(caller)? else { return Ok(()) };
        let refused = |why: RightsDenied| {
            HubError::from(A2aError::new(ErrorKind::Authentication, why.to_string()))
        };
        if let Operation::SendMessage(send) | Operation::StreamMessage(send) = operation {
            if send.push.is_some() {
                rights.require(Scope::Push).map_err(refused)?;
            }
            if send.message.task_id.is_none() {
                rights.may_send_to(send.agent.as_ref()).map_err(refused)?;
            }
        }
        let PersonRule::OwnTask(_) = access_control::rule_for_people(operation) else {
            return Ok(());
        };
        let Some(task) = operation.task() else { return Ok(()) };
        let initiator = self.tasks.initiator(task).await?.map(|by| by.identity());
        rights.may_change(initiator.as_deref()).map_err(refused)?;
        if let Operation::SendMessage(send) | Operation::StreamMessage(send) = operation
            && let Err(why) = rights.require(Scope::Approve)
        {
            // A message that names no question answers the one that is open when it arrives.
            let named = question::answered(&send.message)?;
            let stored = self.tasks.get(task).await?.task;
            let open = Question::from_metadata(stored.metadata.as_ref());
            let is_harmless = |open: &Question| {
                named.as_ref() == Some(&open.id) && open.kind != QuestionKind::Permission
            };
            if !open.as_ref().is_some_and(is_harmless) {
                let why = format!(
                    "{why}; it answers other questions by their ids, such as by `hub/questions/answer`"
                );
                return Err(A2aError::new(ErrorKind::Authentication, why).into());
            }
        }
        Ok(())
    }
}
