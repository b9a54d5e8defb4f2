//! Logins of a configuration: their homes, those of one agent, and checks over all of them.

use crate::{automation::Section, error::ConfigError, settings::Config};
use a2a_hub_core::identity::{AgentLogins, Login, LoginScope, PersonName};
use a2a_hub_protocol::id::AgentId;
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// Suffix that makes the name of the logins' directory from that of the data directory.
const FOLDER_SUFFIX: &str = "-logins";

impl Config {
    /// Directory with the homes of logins, outside the data directory; none without one.
    pub fn logins_dir(&self) -> Option<PathBuf> {
        let data_dir = self.data_dir.as_deref()?;
        let mut name = OsString::from(data_dir.file_name()?);
        name.push(FOLDER_SUFFIX);
        Some(data_dir.with_file_name(name))
    }

    /// Directory with the vendor's files of a login.
    pub fn login_home(&self, name: &str) -> Option<PathBuf> {
        let named = self.login.get(name).and_then(|login| login.home.clone());
        named.or_else(|| Some(self.logins_dir()?.join(name)))
    }

    /// Logins of one agent.
    pub fn logins_of(&self, agent: &AgentId) -> AgentLogins {
        let logins = self.login.iter().filter_map(|(name, settings)| {
            let (of, scope) = settings.parts(name).ok()?;
            let home = self.login_home(name).filter(|_| of == agent)?;
            Some(Login { name: name.clone(), scope, home, command: settings.command() })
        });
        let default_for = self.agents.get(agent).map(|agent| agent.default_login.clone());
        AgentLogins { logins: logins.collect(), default_for: default_for.unwrap_or_default() }
    }

    /// Checks the logins: no two of an agent have the same scope, and no two have the same home.
    pub(crate) fn check_logins(&self) -> Result<(), ConfigError> {
        let mut known: Vec<(&AgentId, LoginScope, PathBuf, &str)> = Vec::new();
        for (name, settings) in &self.login {
            let (agent, scope) = settings.parts(name)?;
            let home = self.login_home(name).unwrap_or_default();
            let section = Section { kind: "login", name };
            for (other_agent, other_scope, other_home, other) in &known {
                if *other_agent == agent && *other_scope == scope {
                    let why = format!("`login.{other}` is for the same tasks of `{agent}`");
                    return Err(section.refuse("agent", why));
                }
                if home.starts_with(other_home) || other_home.starts_with(&home) {
                    let why = format!(
                        "it is also that of `login.{other}`, or one contains the other; name another directory"
                    );
                    return Err(section.refuse("home", why));
                }
            }
            let is_outside = |outer: &Path| !home.starts_with(outer) && !outer.starts_with(&home);
            if self.data_dir.as_deref().is_some_and(|data_dir| !is_outside(data_dir)) {
                return Err(section.refuse("home", "name a directory outside the data directory"));
            }
            known.push((agent, scope, home, name));
        }
        for (agent, config) in &self.agents {
            let is_name = |it: &String| {
                let name = it.strip_prefix("tenant:").unwrap_or(it);
                PersonName::parse(name).is_ok()
            };
            if let Some(word) = config.default_login.iter().find(|it| !is_name(it)) {
                let section = Section { kind: "agents", name: agent.as_str() };
                let why = format!("`{word}` is no name of a person, and no `tenant:NAME`");
                return Err(section.refuse("default_login", why));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::read_checked;

    fn refused(text: &str) -> String {
        read_checked(&format!("data_dir = '/var/hub'\n{text}")).err().unwrap_or_default()
    }

    #[test]
    fn homes_lie_beside_data_directory() {
        let config = read_checked(
            "data_dir = '/var/hub'\n[agents.codex]\ndefault_login = ['bob']\n\
             [login.ada]\nagent = 'codex'\nperson = 'ada'\n\
             [login.team]\nagent = 'codex'\nworkspace = '/srv/team'\nhome = '/srv/logins/team'\n\
             [login.other]\nagent = 'vibe'\nperson = 'ada'",
        )
        .unwrap();
        let AgentLogins { logins, default_for } =
            config.logins_of(&AgentId::parse("codex").unwrap());
        let homes: Vec<_> =
            logins.iter().map(|it| (it.name.as_str(), it.home.to_str().unwrap())).collect();
        assert_eq!(homes, [("ada", "/var/hub-logins/ada"), ("team", "/srv/logins/team")]);
        assert!(default_for.contains("bob"));
    }

    #[test]
    fn ambiguous_logins_are_refused() {
        let ada = "[login.ada]\nagent = 'codex'\nperson = 'ada'\n";
        for (text, why) in [
            ("[login.x]\nperson = 'ada'", "set `login.x.agent`: it is missing"),
            ("[login.x]\nagent = 'codex'", "set `login.x.person`: it is missing"),
            ("[login.X]\nagent = 'codex'\nperson = 'ada'", "X"),
            ("[login.x]\nagent = 'codex'\nperson = 'ada'\nworkspace = '/a'", "beside `person`"),
            ("[login.x]\nagent = 'codex'\nperson = 'ada'", "same tasks of `codex`"),
            ("[login.x]\nagent = 'vibe'\nperson = 'ada'\nhome = '/var/hub-logins/ada/x'", "also"),
            ("[login.x]\nagent = 'vibe'\nperson = 'ada'\nhome = '/var/hub/x'", "outside the data"),
            ("[login.x]\nagent = 'vibe'\nperson = 'ada'\nhome = '/var'", "or one contains"),
            ("[login.x]\nagent = 'vibe'\nperson = 'ada'\nhome = 'x'", "absolute path"),
            ("[login.x]\nagent = 'vibe'\nworkspace = '/etc'", "is the system's"),
            ("[agents.vibe]\ndefault_login = ['*']", "no name of a person"),
        ] {
            let refused = refused(&format!("{ada}{text}"));
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
