//! Settings of logins, with which an agent's programs work for one person or in one workspace.

use crate::{automation::Section, confined::is_the_systems, error::ConfigError};
use a2a_hub_core::identity::{LoginScope, PersonName};
use a2a_hub_protocol::id::AgentId;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// `[login.<id>]`: a login at the vendor of an agent, which bills one person or one workspace.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoginSettings {
    /// Agent whose programs use it.
    pub agent: Option<AgentId>,
    /// Person whose tasks use it.
    pub person: Option<PersonName>,
    /// Directory whose tasks use it, with those below it.
    pub workspace: Option<PathBuf>,
    /// Directory with the vendor's files; by default one of this name beside the data directory.
    pub home: Option<PathBuf>,
    /// Program of the agent, with its arguments, by which the party logs in: its output, such as an
    /// address and a code, is shown in the task. By default the one that is known of the agent.
    pub command: Option<Vec<String>>,
}

/// Login commands of bundled agents that need no terminal: each prints an address and a code.
const DEVICE_LOGINS: &[(&str, &[&str])] = &[("codex", &["codex", "login", "--device-auth"])];

impl LoginSettings {
    /// Login command; empty if none is known.
    pub(crate) fn command(&self) -> Vec<String> {
        let agent = self.agent.as_ref().map(AgentId::as_str);
        let known = || DEVICE_LOGINS.iter().find(|(known, _)| agent == Some(known));
        let default =
            || known().map(|(_, words)| words.iter().map(|it| (*it).to_owned()).collect());
        self.command.clone().or_else(default).unwrap_or_default()
    }

    /// Agent and scope.
    ///
    /// # Errors
    ///
    /// A setting is missing or invalid; the error says how to write it.
    pub(crate) fn parts(&self, name: &str) -> Result<(&AgentId, LoginScope), ConfigError> {
        let section = Section { kind: "login", name };
        section.check_name()?;
        let Some(agent) = &self.agent else {
            return Err(section.missing("agent", "name the agent whose programs use the login"));
        };
        let scope = match (&self.person, &self.workspace) {
            (Some(person), None) => LoginScope::Person(person.clone()),
            (None, Some(workspace)) => LoginScope::Workspace(workspace.clone()),
            (None, None) => {
                let why =
                    "set `person` or `workspace`, which says for whose tasks the login counts";
                return Err(section.missing("person", why));
            }
            (Some(_), Some(_)) => {
                let why =
                    "it is beside `person`; a login is for one of them, so make a second login";
                return Err(section.refuse("workspace", why));
            }
        };
        for (key, path) in [("workspace", &self.workspace), ("home", &self.home)] {
            let Some(path) = path else { continue };
            let shown = path.display();
            if !path.is_absolute() {
                return Err(section.refuse(key, format!("give `{shown}` as an absolute path")));
            }
            if is_the_systems(path) {
                return Err(section.refuse(key, format!("`{shown}` is the system's")));
            }
        }
        Ok((agent, scope))
    }
}
