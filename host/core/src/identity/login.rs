//! Logins at vendors, each of which bills a person or a workspace: the choice of the login with
//! which an agent's programs run for a task.

use super::PersonName;
use crate::access_control::Principal;
use std::{
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
};

/// Party on whose behalf programs run: the one that began the tree of tasks. A vendor bills a login
/// of this party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginUser {
    /// The operator, or automation without an owner, which the operator configured.
    Operator,
    /// A person.
    Person(PersonName),
    /// Clients with the token of a tenant.
    Tenant(String),
    /// An unknown party.
    Unknown,
}

impl LoginUser {
    /// Party of the principal that began a tree of tasks; `None` for an unknown one.
    pub fn of(begun_by: Option<&Principal>) -> Self {
        match begun_by {
            Some(
                Principal::Operator
                | Principal::OperatorHttp
                | Principal::OperatorToken
                | Principal::Device { .. }
                | Principal::Automation { .. },
            ) => Self::Operator,
            Some(Principal::Person { name, .. }) => Self::Person(name.clone()),
            Some(Principal::Client(tenant)) => Self::Tenant(tenant.clone()),
            Some(Principal::AgentTask { .. } | Principal::Anonymous) | None => Self::Unknown,
        }
    }
}

impl fmt::Display for LoginUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operator => f.write_str("the operator"),
            Self::Person(name) => write!(f, "{name}"),
            Self::Tenant(name) => write!(f, "tenant {name}"),
            Self::Unknown => f.write_str("an unknown caller"),
        }
    }
}

/// Parties that use a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginScope {
    /// Tasks that this person began.
    Person(PersonName),
    /// Tasks that work in this directory, or below it. The path has no links.
    Workspace(PathBuf),
}

/// Login at the vendor of one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// Name in the configuration.
    pub name: String,
    /// Parties that use it.
    pub scope: LoginScope,
    /// Directory with the vendor's files, such as `CODEX_HOME`.
    pub home: PathBuf,
    /// Program of the agent, with its arguments, by which the party logs in; empty without one.
    pub command: Vec<String>,
}

/// Logins of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentLogins {
    /// Logins of people and workspaces.
    pub logins: Vec<Login>,
    /// Names of people, and `tenant:NAME` for tenants, that use the operator's own login.
    pub default_for: BTreeSet<String>,
}

/// Error for a task whose party has no login of an agent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{user} has no login of `{agent}`")]
pub struct NoLogin {
    /// Agent.
    pub agent: String,
    /// Party.
    pub user: LoginUser,
}

impl AgentLogins {
    /// Login for a task of `user` that works in `directory`, a path without links: the person's,
    /// else that of the innermost workspace. `None` for the operator's own, which others use only
    /// if they are named, or if the agent has no logins.
    ///
    /// # Errors
    ///
    /// If the party has none.
    pub fn choose(
        &self,
        agent: &str,
        user: &LoginUser,
        directory: &Path,
    ) -> Result<Option<&Login>, NoLogin> {
        let persons = self.logins.iter().find(
            |login| matches!((&login.scope, user), (LoginScope::Person(of), LoginUser::Person(name)) if of == name),
        );
        let depth = |login: &&Login| match &login.scope {
            LoginScope::Workspace(path) => path.components().count(),
            LoginScope::Person(_) => 0,
        };
        let of_workspace = self.logins.iter().filter(
            |login| matches!(&login.scope, LoginScope::Workspace(path) if directory.starts_with(path)),
        );
        if let Some(login) = persons.or_else(|| of_workspace.max_by_key(depth)) {
            return Ok(Some(login));
        }
        let is_allowed = match user {
            LoginUser::Operator => true,
            LoginUser::Person(name) => self.default_for.contains(name.as_str()),
            LoginUser::Tenant(name) => self.default_for.contains(&format!("tenant:{name}")),
            LoginUser::Unknown => false,
        };
        if is_allowed || self.logins.is_empty() {
            return Ok(None);
        }
        Err(NoLogin { agent: agent.to_owned(), user: user.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::id::{AgentId, TaskId};

    fn person(name: &str) -> LoginUser {
        LoginUser::Person(PersonName::parse(name).unwrap())
    }

    fn login(name: &str, scope: LoginScope) -> Login {
        Login {
            name: name.to_owned(),
            scope,
            home: PathBuf::from("/logins").join(name),
            command: Vec::new(),
        }
    }

    fn logins() -> AgentLogins {
        let ada = LoginScope::Person(PersonName::parse("ada").unwrap());
        AgentLogins {
            logins: vec![
                login("ada", ada),
                login("team", LoginScope::Workspace("/srv/team".into())),
                login("secret", LoginScope::Workspace("/srv/team/secret".into())),
            ],
            default_for: ["bob", "tenant:acme"].map(str::to_owned).into(),
        }
    }

    #[test]
    fn person_precedes_workspace_and_default() {
        let logins = logins();
        let tenant = |name: &str| LoginUser::Tenant(name.to_owned());
        for (user, directory, expected) in [
            (person("ada"), "/home", Ok(Some("ada"))),
            (person("ada"), "/srv/team", Ok(Some("ada"))),
            (person("bob"), "/srv/team/x", Ok(Some("team"))),
            (person("bob"), "/srv/team/secret/x", Ok(Some("secret"))),
            (person("bob"), "/srv/teams", Ok(None)),
            (person("eve"), "/srv/team", Ok(Some("team"))),
            (person("eve"), "/home", Err("eve has no login of `codex`")),
            (LoginUser::Operator, "/home", Ok(None)),
            (LoginUser::Operator, "/srv/team", Ok(Some("team"))),
            (tenant("acme"), "/home", Ok(None)),
            (tenant("ada"), "/home", Err("tenant ada has no login of `codex`")),
            (tenant("bob"), "/home", Err("tenant bob has no login of `codex`")),
            (LoginUser::Unknown, "/home", Err("an unknown caller has no login of `codex`")),
        ] {
            let chosen = logins.choose("codex", &user, Path::new(directory));
            let chosen = chosen.map(|login| login.map(|login| login.name.as_str()));
            let chosen = chosen.map_err(|why| why.to_string());
            assert_eq!(chosen, expected.map_err(str::to_owned), "{user} {directory}");
        }
    }

    #[test]
    fn agent_without_logins_is_shared() {
        for user in [person("eve"), LoginUser::Operator, LoginUser::Unknown] {
            assert_eq!(AgentLogins::default().choose("codex", &user, Path::new("/")), Ok(None));
        }
    }

    #[test]
    fn only_operators_principals_are_operator() {
        let ada = PersonName::parse("ada").unwrap();
        let agent = AgentId::parse("echo").unwrap();
        for (principal, expected) in [
            (Principal::OperatorToken, LoginUser::Operator),
            (Principal::Automation { name: "nightly".to_owned() }, LoginUser::Operator),
            (Principal::owned_automation(ada, "nightly"), person("ada")),
            (Principal::Client("acme".to_owned()), LoginUser::Tenant("acme".to_owned())),
            (Principal::AgentTask { agent, task: TaskId::new("t") }, LoginUser::Unknown),
            (Principal::Anonymous, LoginUser::Unknown),
        ] {
            assert_eq!(LoginUser::of(Some(&principal)), expected, "{principal}");
        }
        assert_eq!(LoginUser::of(None), LoginUser::Unknown);
    }
}
