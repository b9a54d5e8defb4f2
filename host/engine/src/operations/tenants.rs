//! Tenant isolation: determines an operation's tenant, and hides what belongs to others.

use super::{Caller, Hub};
use crate::error::HubError;
use a2a_hub_core::{access_control::Principal, discovery::did_you_mean};
use a2a_hub_protocol::{
    error::A2aError,
    id::{TaskId, TenantId},
    operation::Operation,
};

impl Hub {
    /// True if the hub has tenants other than the default one.
    pub fn has_tenants(&self) -> bool {
        !self.tenants.is_empty()
    }

    /// True if the tenant exists.
    pub fn is_tenant(&self, tenant: &TenantId) -> bool {
        self.tenants.contains(tenant)
    }

    /// Sets the tenant of the caller and of the operation. A task of another tenant is reported as
    /// not found.
    pub(super) async fn set_tenant(
        &self,
        caller: Caller,
        operation: &mut Operation,
    ) -> Result<Caller, HubError> {
        let of_task = match &caller.principal {
            Principal::AgentTask { task, .. } => self.tenant_of(task).await?,
            Principal::Operator
            | Principal::OperatorHttp
            | Principal::OperatorToken
            | Principal::Device { .. }
            | Principal::Automation { .. }
            | Principal::Client(_)
            | Principal::Person { .. }
            | Principal::Anonymous => TenantId::default(),
        };
        let tenant = self.require_tenant(&caller, &of_task)?;
        operation.restrict_to_tenant(&tenant);
        // A worktree may outlive its task; its operations find out whose it is.
        if let Some(task) = operation.task()
            && !matches!(operation, Operation::Worktree(_))
            && self.tenant_of(task).await? != tenant
        {
            return Err(A2aError::no_task(task).into());
        }
        Ok(Caller { tenant, ..caller })
    }

    /// Tenant that a caller acts for; `of_task` is that of an agent's task. A name of no tenant is
    /// an error, which tells an operator how to declare it.
    pub fn require_tenant(
        &self,
        caller: &Caller,
        of_task: &TenantId,
    ) -> Result<TenantId, A2aError> {
        let of_person = self.rights_of(&caller.principal)?.map(|rights| rights.tenant);
        let assigned = of_person.as_ref().unwrap_or(of_task);
        let tenant = caller.tenant_among(|named| self.is_tenant(named), assigned);
        tenant.map_err(|why| A2aError::invalid("tenant", format!("{why}{}", self.way_out(caller))))
    }

    /// Tenant of a task. An unknown task is an error.
    async fn tenant_of(&self, task: &TaskId) -> Result<TenantId, HubError> {
        Ok(self.tasks.tenant_of(task).await?.ok_or_else(|| A2aError::no_task(task))?)
    }

    /// Hint for an operator that named an unknown tenant.
    fn way_out(&self, caller: &Caller) -> String {
        let Caller { principal, tenant } = caller;
        if !principal.is_operator() {
            return String::new();
        }
        match did_you_mean::hint(tenant.as_str(), self.tenants.iter().map(TenantId::as_str)) {
            Some(hint) => format!("; {hint}"),
            None => format!(
                "; declare it by `[tenants.{tenant}]` in the configuration and restart the hub, or name none to act for the \
                 default tenant"
            ),
        }
    }
}
