//! Lists, makes, removes and tests standing permissions.

use super::{
    past_answers::suggested,
    scope::{CheckoutPaths, checkout_of, scope_of_task},
};
use crate::{error::HubError, tasks::Tasks};
use a2a_hub_agents::Agent;
use a2a_hub_clock as clock;
use a2a_hub_core::{
    access_control::{Access, Caller, Principal},
    permission::{
        rules::{self, RequestScope, RuleVerdict},
        tested,
    },
};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::{AgentId, QuestionId, TenantId},
    operation::{
        AlwaysAnswer, ListedRule, NewRule, RemovedRules, RuleList, RuleReport, RuleRequest,
        RuleTest, TestedRequest,
    },
    permission::{DEFAULT_RULE_MS, PermissionRequest, PermissionRule, RuleEffect},
    task::Task,
};
use a2a_hub_store::StorageError;
use a2a_hub_worktrees::is_sensitive_path;
use std::{sync::Arc, time::Duration};

/// Length of a rule's id.
const ID_LENGTH: usize = 8;

/// Standing permissions of a hub, for its operations.
pub(crate) struct PermissionOperations<'a>(pub(crate) &'a Tasks);

impl PermissionOperations<'_> {
    /// Carries out a request for the rules of the caller's tenant.
    pub(crate) async fn perform(
        &self,
        caller: &Caller,
        request: RuleRequest,
    ) -> Result<RuleReport, HubError> {
        Ok(match request {
            RuleRequest::List => RuleReport::List(self.list(&caller.tenant).await?),
            RuleRequest::Add(new) => RuleReport::Added(Box::new(self.add(caller, *new).await?)),
            RuleRequest::Remove { ids } => {
                let mut removed = Vec::new();
                for id in ids {
                    if self.0.permissions.remove(&caller.tenant, &id).await? {
                        tracing::info!(%id, by = %caller.principal, "standing permission removed");
                        removed.push(id);
                    }
                }
                RuleReport::Removed(RemovedRules { removed })
            }
            RuleRequest::Test(typed) => {
                RuleReport::Tested(Box::new(self.test(caller, *typed).await?))
            }
            RuleRequest::Suggest => RuleReport::Suggested(suggested(self.0, &caller.tenant).await?),
        })
    }

    async fn list(&self, tenant: &TenantId) -> Result<RuleList, HubError> {
        let uses = self.0.storage.permission_rule_uses(tenant).await?;
        let rules = self.0.permissions.rules(tenant).await?;
        let rules = rules.iter().rev().map(|rule| {
            let used = uses.iter().find(|used| used.rule == rule.id);
            ListedRule {
                uses: used.map_or(0, |used| used.uses),
                last_used_at: used.map(|used| used.last_used_at.clone()),
                ..fresh(rule.clone())
            }
        });
        Ok(RuleList { rules: rules.collect() })
    }

    async fn add(&self, caller: &Caller, new: NewRule) -> Result<ListedRule, HubError> {
        let agent = new.agent.as_ref().map(|id| self.agent(id)).transpose()?;
        let agent = agent.as_deref();
        let repository = match new.directory {
            Some(directory) => Some(checkout_of(self.0, directory).await.repository),
            None => None,
        };
        let is_allow = new.effect == RuleEffect::Allow;
        let vendor = new.vendor.or_else(|| agent.filter(|_| is_allow).map(Agent::vendor));
        let principal = new.principal.or_else(|| is_allow.then(|| caller.principal.person()));
        let rule = PermissionRule {
            id: fresh_id(),
            effect: new.effect,
            pattern: new.pattern,
            text: new.text,
            agent: new.agent,
            through: new.through,
            vendor,
            outside_sandbox: new.outside_sandbox,
            repository,
            principal,
            trusts_workspace: new.trusts_workspace,
            created_at: clock::now(),
            created_by: caller.principal.to_log(),
            expires_at: expiry(new.for_ms),
            from_question: None,
        };
        let confined = agent.is_some_and(Agent::confines_programs);
        rules::check(&rule, confined, &is_sensitive_path)
            .map_err(|why| A2aError::invalid("rule", why))?;
        self.store(&caller.tenant, rule.clone(), &caller.principal).await?;
        Ok(fresh(rule))
    }

    async fn test(&self, caller: &Caller, typed: TestedRequest) -> Result<RuleTest, HubError> {
        let agent = self.agent(&typed.agent)?;
        let TestedRequest { through, vendor, directory, action, .. } = typed;
        let vendor = vendor.unwrap_or_else(|| agent.vendor());
        let CheckoutPaths { root, repository } = checkout_of(self.0, directory.clone()).await;
        let request = tested::request(&vendor, &action, &directory);
        let scope = RequestScope {
            agent: agent.id.clone(),
            through,
            root,
            repository,
            principal: Some(caller.principal.person()),
            confined: agent.confines_programs(),
        };
        let (rules, now) = (self.0.permissions.rules(&caller.tenant).await?, clock::now());
        let subject = scope.subject(&request, &is_sensitive_path, &now);
        let mut test = RuleTest::unanswered(request.clone());
        match rules::decide(&rules, &subject) {
            Some(RuleVerdict::Allowed(rules)) => {
                test.verdict = RuleEffect::Allow.name().to_owned();
                test.rules = rules.iter().map(|rule| rule.id.clone()).collect();
            }
            Some(RuleVerdict::Denied(rule)) => {
                test.verdict = rule.effect.name().to_owned();
                test.rules = vec![rule.id.clone()];
            }
            None => {}
        }
        match rules::patterns(&subject) {
            Ok(patterns) => {
                test.warning = patterns.iter().find_map(rules::warning);
                test.patterns = patterns;
            }
            Err(why) => test.reason = Some(why),
        }
        Ok(test)
    }

    /// Makes the rules that allow exactly the request of a question, and returns their ids.
    pub(in crate::tasks) async fn allow_always(
        &self,
        caller: &Caller,
        (task, agent): (&Task, &Agent),
        (question, request): (&QuestionId, &PermissionRequest),
        terms: AlwaysAnswer,
    ) -> Result<Vec<String>, HubError> {
        let is_wide = terms.trusts_workspace
            || terms.for_ms.is_some_and(|ms| ms == 0 || ms > DEFAULT_RULE_MS);
        if is_wide && let Err(denied) = caller.principal.may(Access::Operate) {
            let why = format!(
                "{denied}: a standing permission for a program that runs code of the workspace, or \
                 for more than 30 days, needs the operator"
            );
            return Err(A2aError::new(ErrorKind::PermissionDenied, why).into());
        }
        let scope = scope_of_task(self.0, task, agent).await?;
        let (tenant, by) = (task.context_id.tenant(), caller.principal.to_log());
        let created = rules_of(&scope, (question, request), terms, &by)
            .map_err(|why| A2aError::new(ErrorKind::UnsupportedOperation, why))?;
        let mut ids = Vec::with_capacity(created.len());
        for rule in created {
            ids.push(rule.id.clone());
            if let Err(why) = self.store(tenant, rule, &caller.principal).await {
                self.take_back(tenant, &ids).await;
                return Err(why);
            }
        }
        Ok(ids)
    }

    /// True if these rules alone allow the request of a task.
    pub(in crate::tasks) async fn is_allowed(
        &self,
        (task, agent): (&Task, &Agent),
        request: &PermissionRequest,
        ids: &[String],
    ) -> Result<bool, StorageError> {
        let scope = scope_of_task(self.0, task, agent).await?;
        let (rules, now) =
            (self.0.permissions.rules(task.context_id.tenant()).await?, clock::now());
        let verdict = rules::decide(&rules, &scope.subject(request, &is_sensitive_path, &now));
        let Some(RuleVerdict::Allowed(rules)) = verdict else { return Ok(false) };
        Ok(rules.iter().all(|rule| ids.contains(&rule.id)))
    }

    /// Removes rules of a question whose answer did not count.
    pub(in crate::tasks) async fn take_back(&self, tenant: &TenantId, ids: &[String]) {
        for id in ids {
            if let Err(why) = self.0.permissions.remove(tenant, id).await {
                tracing::error!(%id, %why, "cannot remove a standing permission that was not to be made; remove it by hand");
            }
        }
    }

    fn agent(&self, id: &AgentId) -> Result<Arc<Agent>, HubError> {
        let found = self.0.directory.agent(id);
        found.ok_or_else(|| unknown_agent(id.as_str()).into())
    }

    async fn store(
        &self,
        tenant: &TenantId,
        rule: PermissionRule,
        by: &Principal,
    ) -> Result<(), HubError> {
        let (id, effect) = (rule.id.clone(), rule.effect.name());
        self.0.permissions.add(tenant, rule).await?;
        tracing::info!(%id, effect, %by, "standing permission made");
        Ok(())
    }
}

/// Rules that allow exactly the request of a question, in this scope.
fn rules_of(
    scope: &RequestScope,
    (question, request): (&QuestionId, &PermissionRequest),
    terms: AlwaysAnswer,
    by: &str,
) -> Result<Vec<PermissionRule>, String> {
    let now = clock::now();
    let patterns = rules::patterns(&scope.subject(request, &is_sensitive_path, &now))?;
    let rule = |pattern| PermissionRule {
        id: fresh_id(),
        trusts_workspace: terms.trusts_workspace,
        created_by: by.to_owned(),
        expires_at: expiry(terms.for_ms.unwrap_or(DEFAULT_RULE_MS)),
        from_question: Some(question.clone()),
        ..scope.rule(request, pattern, &now)
    };
    let created: Vec<_> = patterns.into_iter().map(rule).collect();
    created.iter().try_for_each(|rule| rules::check(rule, scope.confined, &is_sensitive_path))?;
    Ok(created)
}

/// Rule without any use.
fn fresh(rule: PermissionRule) -> ListedRule {
    let warning =
        if rule.effect == RuleEffect::Allow { rules::warning(&rule.pattern) } else { None };
    ListedRule { rule, uses: 0, last_used_at: None, warning }
}

/// Time at which a rule expires; none for 0.
fn expiry(for_ms: u64) -> Option<String> {
    (for_ms > 0).then(|| clock::after(Duration::from_millis(for_ms)))
}

/// Id that people can type.
fn fresh_id() -> String {
    let id = QuestionId::fresh().to_string();
    let letters = id.chars().rev().filter(char::is_ascii_alphanumeric);
    letters.take(ID_LENGTH).collect()
}

fn unknown_agent(id: &str) -> A2aError {
    let why = format!("no agent is called `{id}` here; `a2a-hub agents` lists them");
    A2aError::new(ErrorKind::UnsupportedOperation, why)
}
