//! For which tenant an operation is carried out, and that it is about nothing of another's.

use super::{Caller, Hub, official::task_of};
use crate::error::HubError;
use a2a_hub_core::{access::Principal, nearest::nearest};
use a2a_hub_protocol::{
    error::A2aError,
    id::{TaskId, TenantId},
    operation::Operation,
};

impl Hub {
    /// Whether tenants share the hub beside the default one.
    pub fn has_tenants(&self) -> bool {
        !self.tenants.is_empty()
    }

    /// Whether a tenant is called so.
    pub fn is_tenant(&self, tenant: &TenantId) -> bool {
        self.tenants.contains(tenant)
    }

    /// The caller with the tenant for which the operation is carried out, and the operation about nothing of other tenants. A task of
    /// another tenant's is not found.
    pub(super) async fn place(
        &self,
        caller: Caller,
        operation: &mut Operation,
    ) -> Result<Caller, HubError> {
        let of_task = match &caller.principal {
            Principal::AgentTask { task, .. } => self.tenant_of(task).await?,
            Principal::Operator
            | Principal::OperatorToken
            | Principal::Client(_)
            | Principal::Anonymous => TenantId::default(),
        };
        let tenant = caller.tenant_among(|named| self.is_tenant(named), &of_task);
        let tenant = tenant.map_err(|why| {
            A2aError::invalid("tenant", format!("{why}{}", self.way_out(&caller)))
        })?;
        operation.place(&tenant);
        if let Some(task) = task_of(operation)
            && self.tenant_of(task).await? != tenant
        {
            return Err(A2aError::no_task(task).into());
        }
        Ok(Caller { tenant, ..caller })
    }

    /// Whose task it is: nobody knows of one that is not there.
    async fn tenant_of(&self, task: &TaskId) -> Result<TenantId, HubError> {
        if !self.tasks.may_have_tenants() {
            return Ok(TenantId::default());
        }
        Ok(self.tasks.whose(task).await?.1.tenant().clone())
    }

    /// What an operator is told who named a tenant that there is not.
    fn way_out(&self, caller: &Caller) -> String {
        let Caller { principal: Principal::Operator | Principal::OperatorToken, tenant } = caller
        else {
            return String::new();
        };
        match nearest(tenant.as_str(), self.tenants.iter().map(TenantId::as_str)) {
            Some(near) => format!("; did you mean `{near}`?"),
            None => format!("; `[tenants.{tenant}]` in the configuration makes one"),
        }
    }
}
