//! Operations of the hub's owner: the operator, identified by the kernel
//! ([`Access::Owner`](a2a_hub_core::access_control::Access::Owner)).

use super::{Caller, Hub};
use crate::error::HubError;
use a2a_hub_agents::PluginEdit;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    operation::{Answer, BackedUp, Operation},
};
use std::path::PathBuf;

impl Hub {
    /// Changes a plug-in, or copies the store. [`Hub::handle`] has checked that the caller owns the
    /// hub.
    pub(super) async fn perform_as_owner(
        &self,
        caller: &Caller,
        operation: Operation,
    ) -> Result<Answer, HubError> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the caller hands over no other")]
        let edit = match operation {
            Operation::AddPlugin(add) => PluginEdit::Add(add),
            Operation::GrantPlugin(grant) => PluginEdit::Grant(grant),
            Operation::DenyPlugin { id, capabilities } => PluginEdit::Deny(id, capabilities),
            Operation::RevokePlugin { id } => PluginEdit::Revoke(id),
            Operation::RemovePlugin { id } => PluginEdit::Remove(id),
            Operation::BackUp { file } => return self.back_up(file).await,
            other => {
                let why = format!("`{}` is no operation of the hub's owner", other.name());
                return Err(A2aError::new(ErrorKind::Internal, why).into());
            }
        };
        let by = format!("{}, through the hub", caller.principal.to_log());
        tracing::info!(agent = %edit.agent(), operation = edit.name(), "the operator changes a plug-in");
        let changed = self.plugins.edit(edit, &by).await?;
        Ok(Answer::PluginChanged(Box::new(changed)))
    }

    async fn back_up(&self, file: PathBuf) -> Result<Answer, HubError> {
        let Some(store) = &self.copies else {
            let why = "copy the store: this hub has none that can be copied";
            return Err(A2aError::new(ErrorKind::UnsupportedOperation, why).into());
        };
        let copied = store.back_up(&file).await?;
        let tasks = copied.counts.total;
        tracing::info!(file = %file.display(), tasks, "store backed up");
        Ok(Answer::BackedUp(BackedUp { file, tasks, bytes: copied.bytes }))
    }
}
