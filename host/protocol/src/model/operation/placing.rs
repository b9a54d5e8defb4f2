//! Restriction of an operation to a tenant.

use super::Operation;
use crate::model::id::{ContextId, TenantId};

impl Operation {
    /// Restricts the operation to a tenant: moves the conversations that it names into the tenant,
    /// and adds the tenant to its filters.
    pub fn restrict_to_tenant(&mut self, of: &TenantId) {
        let restrict = |context: &mut Option<ContextId>| {
            *context = context.take().map(|context| context.of_tenant(of));
        };
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "all others name no conversation, and list none"
        )]
        match self {
            Self::SendMessage(send) | Self::StreamMessage(send) => {
                restrict(&mut send.message.context_id);
            }
            Self::ListTasks(query) => {
                restrict(&mut query.context);
                query.tenant = Some(of.clone());
            }
            Self::PageTasks(query) => {
                restrict(&mut query.context);
                query.tenant = Some(of.clone());
            }
            Self::ListContexts(query) => query.tenant = Some(of.clone()),
            Self::GetContext { id, .. } | Self::DeleteContext { id } => {
                *id = id.clone().of_tenant(of);
            }
            _ => {}
        }
    }
}
