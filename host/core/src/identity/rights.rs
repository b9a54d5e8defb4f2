//! Rights of a person with a key.

use super::{
    person_name::PersonName,
    role::PersonRole,
    scope::{KeyScope, KeyScopes},
    scope_target::{ScopeTarget, TaskFacts},
};
use a2a_hub_protocol::id::{AgentId, TenantId};
use std::collections::BTreeSet;

/// Part of the access table that is about people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersonRule {
    /// No person may perform the operation.
    Never,
    /// Each person may, with any key.
    Always,
    /// A person with this scope may.
    May(KeyScope),
    /// A person with this scope may, if the task is the person's own.
    Initiator(KeyScope),
}

/// Rights of a person with one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonRights {
    /// The person.
    pub name: PersonName,
    /// Tenant.
    pub tenant: TenantId,
    /// Role in the tenant.
    pub role: PersonRole,
    /// Scopes of the key.
    pub scopes: KeyScopes,
    /// Time at which the key expires: RFC 3339 in UTC; `None` if it does not.
    pub expires_at: Option<String>,
}

/// Reason why a person may not perform an operation. The text says what is missing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RightsDenied {
    /// The operation is the operator's.
    #[error("{0} may not do this: it is for the operator, such as by the command `a2a-hub`")]
    Never(PersonName),
    /// The role lacks the scope.
    #[error("{name} is a {} here, who may not {}", role.name(), deed(*scope))]
    PersonRole {
        /// The person.
        name: PersonName,
        /// Role of the person.
        role: PersonRole,
        /// Scope that is missing.
        scope: KeyScope,
    },
    /// The key lacks the scope.
    #[error("this key of {name} may not {}: it lacks the scope `{}`", deed(*scope), scope.name())]
    Key {
        /// The person.
        name: PersonName,
        /// Scope that is missing.
        scope: KeyScope,
    },
    /// The key is for other agents or skills.
    #[error(
        "this key of {name} sends messages to {agents} only: name that agent{}",
        and_skill(agents)
    )]
    Agent {
        /// The person.
        name: PersonName,
        /// Agents of the key.
        agents: String,
    },
    /// The key has the scope for other tasks.
    #[error("this key of {name} may {}, and only for {targets}", deed(*scope))]
    Task {
        /// The person.
        name: PersonName,
        /// The scope.
        scope: KeyScope,
        /// Narrowings of the scope.
        targets: String,
    },
    /// The operation is about all of the tenant, and the key reads parts of it.
    #[error(
        "this key of {0} reads some tasks only, and this is about all tasks of the tenant: it needs the scope `read` without `:`"
    )]
    Everything(PersonName),
    /// A person would get more rights than the one who gives them.
    #[error(
        "{0} may give away what the own key has, and no more: name scopes that this key has (`a2a-hub person me`); the own \
         tasks of another person are no part of them, and the operator alone gives `admin:grant`"
    )]
    WiderKey(PersonName),
    /// Automation has none of the limits of the key.
    #[error(
        "runs of schedules and triggers call all agents that their agent may call, and this key of {0} leaves these out \
         (`send:AGENT:alone`): accept it by another key"
    )]
    Unlimited(PersonName),
    /// Agents serve all tenants.
    #[error(
        "{0} belongs to a tenant, and grants count for agents of all tenants: they are for the operator"
    )]
    Tenants(PersonName),
    /// The task is somebody else's.
    #[error("the task is not one that {0} began; owners of the tenant may change it")]
    NotInitiator(PersonName),
}

/// Operations of a scope, for a refusal.
fn deed(scope: KeyScope) -> &'static str {
    match scope {
        KeyScope::Read => "read",
        KeyScope::Send => "send messages that begin tasks",
        KeyScope::Answer => "answer questions of tasks",
        KeyScope::Approve => "answer requests for permission",
        KeyScope::Cancel => "cancel tasks",
        KeyScope::Push => "change webhooks",
        KeyScope::Apply => "take over changes of tasks",
        KeyScope::Admin => "change people and keys of the tenant",
        KeyScope::AdminGrant => "change grants of agents",
    }
}

/// End of a refusal if a key is for skills.
fn and_skill(agents: &str) -> &'static str {
    if agents.contains('/') { ", and the skill as `targetSkill`" } else { "" }
}

/// Narrowings as a list in words.
fn in_words(targets: &BTreeSet<ScopeTarget>) -> String {
    let words = targets.iter().map(|target| match target {
        ScopeTarget::Initiated => "own tasks".to_owned(),
        ScopeTarget::Agent { .. } => format!("`{target}`"),
    });
    words.collect::<Vec<_>>().join(", ")
}

impl PersonRights {
    /// Checks that the person has a scope, by role and key.
    ///
    /// # Errors
    ///
    /// The reason why not.
    pub fn require(&self, scope: KeyScope) -> Result<(), RightsDenied> {
        let (name, role) = (self.name.clone(), self.role);
        let lacks = match role {
            PersonRole::Viewer => scope != KeyScope::Read,
            PersonRole::Member => matches!(scope, KeyScope::Admin | KeyScope::AdminGrant),
            PersonRole::Owner => false,
        };
        if lacks {
            return Err(RightsDenied::PersonRole { name, role, scope });
        }
        if self.scopes.contains(scope) { Ok(()) } else { Err(RightsDenied::Key { name, scope }) }
    }

    /// Checks that the person may perform operations of this rule, on tasks that the person may
    /// change.
    ///
    /// # Errors
    ///
    /// The reason why not.
    pub fn may(&self, rule: PersonRule) -> Result<(), RightsDenied> {
        match rule {
            PersonRule::Never => Err(RightsDenied::Never(self.name.clone())),
            PersonRule::Always => Ok(()),
            PersonRule::May(scope) | PersonRule::Initiator(scope) => self.require(scope),
        }
    }

    /// Checks that the person has a scope for a task of the tenant.
    ///
    /// # Errors
    ///
    /// If the role or the key lacks the scope, or the key has it for other tasks.
    pub fn require_for(&self, scope: KeyScope, task: &TaskFacts) -> Result<(), RightsDenied> {
        self.require(scope)?;
        match self.scopes.targets(scope) {
            Some(targets) if !self.scopes.covers(scope, task) => {
                let (name, targets) = (self.name.clone(), in_words(targets));
                Err(RightsDenied::Task { name, scope, targets })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Checks that the person may change a task of the tenant, by role.
    ///
    /// # Errors
    ///
    /// If it is somebody else's task.
    pub fn may_change(&self, task: &TaskFacts) -> Result<(), RightsDenied> {
        if task.is_initiator || self.role == PersonRole::Owner {
            return Ok(());
        }
        Err(RightsDenied::NotInitiator(self.name.clone()))
    }

    /// True if the person may see a task of the tenant. A task that the person may not see is
    /// reported as not found. A key without `read` knows the tasks that the person may change.
    pub fn sees(&self, task: &TaskFacts) -> bool {
        match self.scopes.contains(KeyScope::Read) {
            true => self.scopes.covers(KeyScope::Read, task),
            false => self.may_change(task).is_ok(),
        }
    }

    /// True if the person sees all tasks of the tenant.
    pub fn sees_all(&self) -> bool {
        match self.scopes.contains(KeyScope::Read) {
            true => self.scopes.targets(KeyScope::Read).is_none(),
            false => self.role == PersonRole::Owner,
        }
    }

    /// Checks that the person sees all tasks of the tenant, for operations on what has no task.
    ///
    /// # Errors
    ///
    /// If the key reads some tasks only.
    pub fn require_all(&self) -> Result<(), RightsDenied> {
        if self.sees_all() { Ok(()) } else { Err(RightsDenied::Everything(self.name.clone())) }
    }

    /// Checks that the person may accept automation that sends to this agent. Its runs have none of
    /// the limits of the key.
    ///
    /// # Errors
    ///
    /// If the key is for other agents, or limits the agents below that one.
    pub fn may_accept_automation(&self, agent: Option<&AgentId>) -> Result<(), RightsDenied> {
        self.may_send_to(agent, None)?;
        match agent.and_then(|agent| self.scopes.reach(agent, None)) {
            Some(_) => Err(RightsDenied::Unlimited(self.name.clone())),
            None => Ok(()),
        }
    }

    /// Checks that a message may begin a task at this agent for this skill; `None` for an agent
    /// that the hub chooses.
    ///
    /// # Errors
    ///
    /// If the key is for other agents or skills.
    pub fn may_send_to(
        &self,
        agent: Option<&AgentId>,
        skill: Option<&str>,
    ) -> Result<(), RightsDenied> {
        let Some(targets) = self.scopes.targets(KeyScope::Send) else { return Ok(()) };
        if self.scopes.covers_message(agent, skill) {
            return Ok(());
        }
        let mut named: Vec<_> = targets
            .iter()
            .map(|target| {
                let text = target.to_string();
                format!("`{}`", text.trim_end_matches(":alone"))
            })
            .collect();
        named.dedup();
        Err(RightsDenied::Agent { name: self.name.clone(), agents: named.join(", ") })
    }

    /// Checks that the person may give these scopes to a key or an invitation of `person`.
    ///
    /// # Errors
    ///
    /// If the own key lacks some of them.
    pub fn may_give(&self, scopes: &KeyScopes, person: &PersonName) -> Result<(), RightsDenied> {
        match self.scopes.include(scopes, *person == self.name) {
            true => Ok(()),
            false => Err(RightsDenied::WiderKey(self.name.clone())),
        }
    }

    /// Checks that the person may change grants: agents serve all tenants, so that a person of one
    /// tenant must not.
    ///
    /// # Errors
    ///
    /// If the person belongs to a tenant.
    pub fn may_grant(&self) -> Result<(), RightsDenied> {
        match self.tenant.is_default() {
            true => Ok(()),
            false => Err(RightsDenied::Tenants(self.name.clone())),
        }
    }
}

/// Identity of a person over all keys.
pub(crate) fn person_identity(name: &PersonName) -> String {
    format!("person:{name}")
}

#[cfg(test)]
mod tests {
    use super::super::scope_target::TaskAgent;
    use super::*;

    fn rights(role: PersonRole, scopes: &[&str]) -> PersonRights {
        PersonRights {
            name: PersonName::parse("ada").unwrap(),
            tenant: TenantId::default(),
            role,
            scopes: KeyScopes::parse(scopes.iter().copied()).unwrap(),
            expires_at: None,
        }
    }

    /// Row for each role and key: the scopes that remain.
    #[test]
    fn key_only_narrows_role() {
        let row = |role, scopes: &[&str]| {
            let rights = rights(role, scopes);
            let has = KeyScope::ALL.into_iter().filter(|scope| rights.require(*scope).is_ok());
            has.map(KeyScope::name).collect::<Vec<_>>().join(" ")
        };
        let all = "read send answer approve cancel push";
        let explicit = ["apply", "admin", "admin:grant"];
        assert_eq!(row(PersonRole::Owner, &[]), all);
        assert_eq!(row(PersonRole::Member, &[]), all);
        assert_eq!(row(PersonRole::Viewer, &[]), "read");
        assert_eq!(row(PersonRole::Member, &["read", "answer"]), "read answer");
        assert_eq!(row(PersonRole::Member, &["send:echo"]), "send");
        assert_eq!(row(PersonRole::Viewer, &["send", "approve"]), "", "a key widens nothing");
        assert_eq!(row(PersonRole::Viewer, &explicit), "");
        assert_eq!(row(PersonRole::Member, &explicit), "apply");
        assert_eq!(row(PersonRole::Owner, &explicit), "apply admin admin:grant");
        for role in PersonRole::ALL {
            assert!(rights(role, &[]).may(PersonRule::Never).is_err());
            assert!(rights(role, &[]).may(PersonRule::May(KeyScope::Read)).is_ok());
        }
    }

    fn task(is_initiator: bool, agent: &str) -> TaskFacts {
        let agent = TaskAgent { agent: AgentId::parse(agent).unwrap(), skill: None };
        TaskFacts { is_initiator, agents: vec![agent] }
    }

    #[test]
    fn members_change_own_tasks_only() {
        for (role, is_initiator, may) in [
            (PersonRole::Member, true, true),
            (PersonRole::Member, false, false),
            (PersonRole::Owner, false, true),
        ] {
            let checked = rights(role, &[]).may_change(&task(is_initiator, "echo"));
            assert_eq!(checked.is_ok(), may, "{role:?} {is_initiator}");
        }
    }

    #[test]
    fn narrowed_key_sees_its_tasks_only() {
        let (own, other) = (task(true, "echo"), task(false, "codex"));
        for (role, scopes, sees_own, sees_other) in [
            (PersonRole::Viewer, &[][..], true, true),
            (PersonRole::Owner, &["read:own"], true, false),
            (PersonRole::Owner, &["read:codex"], false, true),
            (PersonRole::Member, &["send"], true, false),
            (PersonRole::Owner, &["cancel"], true, true),
        ] {
            let rights = rights(role, scopes);
            assert_eq!((rights.sees(&own), rights.sees(&other)), (sees_own, sees_other));
            assert_eq!(rights.sees_all(), sees_own && sees_other, "{scopes:?}");
            assert_eq!(rights.require_all().is_ok(), rights.sees_all());
        }
        let refused = rights(PersonRole::Owner, &["cancel:own", "cancel:echo"]);
        let refused = refused.require_for(KeyScope::Cancel, &other).unwrap_err().to_string();
        assert_eq!(refused, "this key of ada may cancel tasks, and only for own tasks, `echo`");
    }

    #[test]
    fn narrowed_key_names_its_agent() {
        let (echo, codex) = (AgentId::parse("echo").unwrap(), AgentId::parse("codex").unwrap());
        let narrow = rights(PersonRole::Owner, &["read", "send:echo"]);
        assert!(narrow.may_send_to(Some(&echo), None).is_ok());
        assert!(narrow.may_send_to(Some(&codex), None).is_err());
        let refused = narrow.may_send_to(None, None).unwrap_err().to_string();
        assert_eq!(refused, "this key of ada sends messages to `echo` only: name that agent");
        assert!(rights(PersonRole::Member, &[]).may_send_to(None, None).is_ok());
        let skill = rights(PersonRole::Member, &["send:echo/sum:alone"]);
        assert!(skill.may_send_to(Some(&echo), Some("sum")).is_ok());
        let refused = skill.may_send_to(Some(&echo), Some("other")).unwrap_err().to_string();
        assert!(refused.contains("`echo/sum` only: name that agent, and the skill"), "{refused}");
    }

    /// Rows: scopes of a key, and whether it accepts automation that sends to `flow`.
    #[test]
    fn limited_key_accepts_no_unlimited_runs() {
        let flow = AgentId::parse("flow").unwrap();
        for (scopes, may) in [
            (&[][..], true),
            (&["send:flow"], true),
            (&["send:flow:alone"], false),
            (&["send:flow:alone", "send:codex"], false),
            (&["send:flow:alone", "send:flow"], true),
            (&["send:echo"], false),
        ] {
            let rights = rights(PersonRole::Member, scopes);
            assert_eq!(rights.may_accept_automation(Some(&flow)).is_ok(), may, "{scopes:?}");
        }
    }

    #[test]
    fn grants_are_for_nobody_of_a_tenant() {
        let mut rights = rights(PersonRole::Owner, &["admin:grant"]);
        assert!(rights.may_grant().is_ok());
        rights.tenant = TenantId::parse("acme").unwrap();
        assert!(rights.may_grant().is_err());
    }

    #[test]
    fn refusal_says_what_is_missing() {
        let viewer = rights(PersonRole::Viewer, &[]).require(KeyScope::Approve).unwrap_err();
        assert_eq!(
            viewer.to_string(),
            "ada is a viewer here, who may not answer requests for permission"
        );
        let key = rights(PersonRole::Member, &["read"]).require(KeyScope::Send).unwrap_err();
        assert_eq!(
            key.to_string(),
            "this key of ada may not send messages that begin tasks: it lacks the scope `send`"
        );
    }
}
