//! Standing permissions, in memory.

use super::MemoryStorage;
use crate::{
    ClosedQuestionFilter, PermissionRules, RuleUse, StorageError, TaskIndex as _, TenantRule,
};
use a2a_hub_protocol::id::TenantId;
use std::collections::BTreeMap;

#[async_trait::async_trait]
impl PermissionRules for MemoryStorage {
    async fn permission_rules(&self) -> Result<Vec<(String, TenantRule)>, StorageError> {
        Ok(self.lock().permission_rules.clone().into_iter().collect())
    }

    async fn set_permission_rule(&self, rule: &TenantRule) -> Result<(), StorageError> {
        self.to_write()?.permission_rules.insert(rule.rule.id.clone(), rule.clone());
        Ok(())
    }

    async fn forget_permission_rule(&self, id: &str) -> Result<(), StorageError> {
        self.to_write()?.permission_rules.remove(id);
        Ok(())
    }

    async fn permission_rule_uses(&self, tenant: &TenantId) -> Result<Vec<RuleUse>, StorageError> {
        let filter = ClosedQuestionFilter {
            tenant: tenant.clone(),
            id: None,
            before: None,
            limit: usize::MAX,
        };
        let mut uses: BTreeMap<String, RuleUse> = BTreeMap::new();
        for question in self.closed_questions(filter).await? {
            let Some(rule) = question.rule else { continue };
            let first = RuleUse { rule: rule.clone(), uses: 0, last_used_at: String::new() };
            let counted = uses.entry(rule).or_insert(first);
            counted.uses += 1;
            let latest = counted.last_used_at.as_str().max(question.closed_at.as_str()).to_owned();
            counted.last_used_at = latest;
        }
        Ok(uses.into_values().collect())
    }
}
