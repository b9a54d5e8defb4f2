//! Rights of a person with a key.

use super::{
    person_name::PersonName,
    role::PersonRole,
    scope::{KeyScope, KeyScopes},
};
use a2a_hub_protocol::id::{AgentId, TenantId};

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
    /// The key is for other agents.
    #[error("this key of {name} sends messages to {agents} only: name that agent")]
    Agent {
        /// The person.
        name: PersonName,
        /// Agents of the key.
        agents: String,
    },
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
    }
}

impl PersonRights {
    /// Checks that the person has a scope, by role and key.
    ///
    /// # Errors
    ///
    /// The reason why not.
    pub fn require(&self, scope: KeyScope) -> Result<(), RightsDenied> {
        let (name, role) = (self.name.clone(), self.role);
        if role == PersonRole::Viewer && scope != KeyScope::Read {
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

    /// Checks that the person may change a task of the tenant that `initiator` began, given as
    /// [`Principal::identity`](crate::access_control::Principal::identity).
    ///
    /// # Errors
    ///
    /// If it is somebody else's task.
    pub fn may_change(&self, initiator: Option<&str>) -> Result<(), RightsDenied> {
        let is_initiator = initiator.is_some_and(|by| by == person_identity(&self.name));
        if is_initiator || self.role == PersonRole::Owner {
            return Ok(());
        }
        Err(RightsDenied::NotInitiator(self.name.clone()))
    }

    /// Checks that a message may begin a task at this agent; `None` for one that the hub chooses.
    ///
    /// # Errors
    ///
    /// If the key is for other agents.
    pub fn may_send_to(&self, agent: Option<&AgentId>) -> Result<(), RightsDenied> {
        let Some(agents) = self.scopes.agents() else { return Ok(()) };
        if agent.is_some_and(|agent| agents.contains(agent)) {
            return Ok(());
        }
        let agents: Vec<_> = agents.iter().map(|agent| format!("`{agent}`")).collect();
        Err(RightsDenied::Agent { name: self.name.clone(), agents: agents.join(", ") })
    }
}

/// Identity of a person over all keys.
pub(crate) fn person_identity(name: &PersonName) -> String {
    format!("person:{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(role: PersonRole, scopes: &[&str]) -> PersonRights {
        PersonRights {
            name: PersonName::parse("ada").unwrap(),
            tenant: TenantId::default(),
            role,
            scopes: KeyScopes::parse(scopes.iter().copied()).unwrap(),
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
        assert_eq!(row(PersonRole::Owner, &[]), all);
        assert_eq!(row(PersonRole::Member, &[]), all);
        assert_eq!(row(PersonRole::Viewer, &[]), "read");
        assert_eq!(row(PersonRole::Member, &["read", "answer"]), "read answer");
        assert_eq!(row(PersonRole::Member, &["send:echo"]), "send");
        assert_eq!(row(PersonRole::Viewer, &["send", "approve"]), "", "a key widens nothing");
        for role in PersonRole::ALL {
            assert!(rights(role, &[]).may(PersonRule::Never).is_err());
            assert!(rights(role, &[]).may(PersonRule::May(KeyScope::Read)).is_ok());
        }
    }

    #[test]
    fn members_change_own_tasks_only() {
        let (own, other) = (Some("person:ada"), Some("person:adam"));
        for (role, initiator, may) in [
            (PersonRole::Member, own, true),
            (PersonRole::Member, other, false),
            (PersonRole::Member, Some("operator"), false),
            (PersonRole::Member, Some("client:ada"), false),
            (PersonRole::Member, None, false),
            (PersonRole::Owner, other, true),
            (PersonRole::Owner, None, true),
        ] {
            let checked = rights(role, &[]).may_change(initiator);
            assert_eq!(checked.is_ok(), may, "{role:?} {initiator:?}");
        }
    }

    #[test]
    fn narrowed_key_names_its_agent() {
        let (echo, codex) = (AgentId::parse("echo").unwrap(), AgentId::parse("codex").unwrap());
        let narrow = rights(PersonRole::Owner, &["read", "send:echo"]);
        assert!(narrow.may_send_to(Some(&echo)).is_ok());
        assert!(narrow.may_send_to(Some(&codex)).is_err());
        let refused = narrow.may_send_to(None).unwrap_err().to_string();
        assert_eq!(refused, "this key of ada sends messages to `echo` only: name that agent");
        assert!(rights(PersonRole::Member, &[]).may_send_to(None).is_ok());
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
