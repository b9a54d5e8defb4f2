//! Standing permissions: the rules of every tenant, with which the hub answers requests of agents'
//! programs in place of a person. [`rules`](a2a_hub_core::permission::rules) decides.

mod change;
mod past_answers;
mod scope;
mod task_rules;

pub(crate) use change::PermissionOperations;
pub(super) use task_rules::TaskRules;

use crate::error::HubError;
use a2a_hub_clock as clock;
use a2a_hub_core::permission::rules::has_expired;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::TenantId,
    permission::{PermissionRule, RuleEffect},
};
use a2a_hub_store::{StorageError, TaskStore, TenantRule};
use parking_lot::RwLock;
use std::{collections::HashMap, sync::Arc};
use tokio::sync::{Mutex, OnceCell};

/// Maximum number of a tenant's rules: each request is compared with all of them.
const MAX_RULES: usize = 1_000;

/// Rules by tenant.
type RulesOfTenants = HashMap<TenantId, Arc<Vec<PermissionRule>>>;

/// Rules of every tenant: in the store, and a copy in memory that answers requests.
pub(crate) struct RuleBook {
    storage: Arc<dyn TaskStore>,
    known: OnceCell<RwLock<RulesOfTenants>>,
    /// Held during a change, so that the copy has the order of the store.
    changing: Mutex<()>,
}

impl RuleBook {
    pub(super) fn new(storage: Arc<dyn TaskStore>) -> Self {
        Self { storage, known: OnceCell::new(), changing: Mutex::default() }
    }

    /// Rules of a tenant.
    pub(super) async fn rules(
        &self,
        tenant: &TenantId,
    ) -> Result<Arc<Vec<PermissionRule>>, StorageError> {
        let known = self.known().await?.read();
        Ok(known.get(tenant).cloned().unwrap_or_default())
    }

    /// Adds a rule to those of a tenant. It is stored when this returns. Expired rules are deleted.
    async fn add(&self, tenant: &TenantId, rule: PermissionRule) -> Result<(), HubError> {
        let _changing = self.changing.lock().await;
        let (before, now) = (self.rules(tenant).await?, clock::now());
        let (expired, mut rules): (Vec<_>, Vec<_>) =
            before.iter().cloned().partition(|rule| has_expired(rule, &now));
        if rules.len() >= MAX_RULES {
            let why = format!(
                "the tenant has {MAX_RULES} standing permissions, which is the most; remove some \
                 (`a2a-hub permissions remove ID`)"
            );
            return Err(A2aError::new(ErrorKind::UnsupportedOperation, why).into());
        }
        let stored = TenantRule { tenant: tenant.clone(), rule };
        let denies = stored.rule.effect != RuleEffect::Allow;
        rules.push(stored.rule.clone());
        // A denial holds before it is stored, and a permission after that.
        if denies {
            self.replace(tenant, rules.clone()).await?;
        }
        if let Err(why) = self.storage.set_permission_rule(&stored).await {
            self.replace(tenant, Vec::clone(&before)).await?;
            return Err(why.into());
        }
        self.replace(tenant, rules).await?;
        for rule in expired {
            self.storage.forget_permission_rule(&rule.id).await?;
        }
        Ok(())
    }

    /// Removes a rule; false if the tenant has none with this id. It answers nothing any more when
    /// this returns.
    async fn remove(&self, tenant: &TenantId, id: &str) -> Result<bool, StorageError> {
        let _changing = self.changing.lock().await;
        let before = self.rules(tenant).await?;
        let rules: Vec<_> = before.iter().filter(|rule| rule.id != id).cloned().collect();
        if rules.len() == before.len() {
            return Ok(false);
        }
        let allows = before.iter().any(|rule| rule.id == id && rule.effect == RuleEffect::Allow);
        // A permission ends before that is stored, and a denial after it.
        if allows {
            self.replace(tenant, rules.clone()).await?;
        }
        if let Err(why) = self.storage.forget_permission_rule(id).await {
            self.replace(tenant, Vec::clone(&before)).await?;
            return Err(why);
        }
        self.replace(tenant, rules).await?;
        Ok(true)
    }

    async fn replace(
        &self,
        tenant: &TenantId,
        rules: Vec<PermissionRule>,
    ) -> Result<(), StorageError> {
        let mut known = self.known().await?.write();
        known.insert(tenant.clone(), Arc::new(rules));
        Ok(())
    }

    async fn known(&self) -> Result<&RwLock<RulesOfTenants>, StorageError> {
        let read = async || {
            let mut rules: HashMap<TenantId, Vec<PermissionRule>> = HashMap::new();
            for (_, TenantRule { tenant, rule }) in self.storage.permission_rules().await? {
                rules.entry(tenant).or_default().push(rule);
            }
            let rules = rules.into_iter().map(|(tenant, mut rules)| {
                rules.sort_by(|one, other| one.created_at.cmp(&other.created_at));
                (tenant, Arc::new(rules))
            });
            Ok(RwLock::new(rules.collect()))
        };
        self.known.get_or_try_init(read).await
    }
}
