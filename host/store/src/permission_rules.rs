//! Standing permissions: the rules of every tenant, by their ids.

use crate::StorageError;
use a2a_hub_protocol::{id::TenantId, permission::PermissionRule};
use serde::{Deserialize, Serialize};

/// Rule of a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantRule {
    /// Tenant, whose tasks alone the rule is about.
    pub tenant: TenantId,
    /// The rule.
    pub rule: PermissionRule,
}

/// Number of requests that a rule has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleUse {
    /// Id of the rule.
    pub rule: String,
    /// Number of the requests in stored tasks.
    pub uses: u64,
    /// Time of the latest one (RFC 3339).
    pub last_used_at: String,
}

/// Standing permissions.
#[async_trait::async_trait]
pub trait PermissionRules: Send + Sync {
    /// All rules, by their ids.
    async fn permission_rules(&self) -> Result<Vec<(String, TenantRule)>, StorageError>;

    /// Stores a rule durably, in place of one with the same id.
    async fn set_permission_rule(&self, rule: &TenantRule) -> Result<(), StorageError>;

    /// Deletes a rule, if it exists.
    async fn forget_permission_rule(&self, id: &str) -> Result<(), StorageError>;

    /// Uses of the rules by a tenant's tasks, by the ids of the rules. Derived from the logs.
    async fn permission_rule_uses(&self, tenant: &TenantId) -> Result<Vec<RuleUse>, StorageError>;
}
