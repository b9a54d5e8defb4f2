//! Logins at vendors, with which an agent's programs run for the party that began their task.

use a2a_hub_config::Config;
use a2a_hub_core::{
    identity::{AgentLogins, Login, LoginScope, LoginUser, NoLogin},
    text::redact::is_secret,
};
use a2a_hub_protocol::id::AgentId;
use a2a_hub_runtime::Failure;
use a2a_hub_worktrees::WorktreeAccess;
use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Reads the configuration that is in force; `None` once the hub is gone.
type CurrentConfig = Arc<dyn Fn() -> Option<Arc<Config>> + Send + Sync>;

/// Logins of one agent, as the configuration has them now.
#[derive(Clone)]
pub(crate) struct Logins {
    agent: AgentId,
    config: CurrentConfig,
}

/// Login of a program to be started: the vendor's directory, and the variables that name it.
pub(super) struct ProgramLogin {
    /// Directory with the vendor's files, without links.
    pub(super) home: PathBuf,
    /// Variables that name it.
    pub(super) env: Vec<(String, String)>,
}

impl Logins {
    pub(crate) fn new(agent: AgentId, config: CurrentConfig) -> Self {
        Self { agent, config }
    }

    /// No logins, for an agent without a hub.
    pub(crate) fn none(agent: AgentId) -> Self {
        Self::new(agent, Arc::new(|| None))
    }

    /// True if any agent of the hub has logins of people or workspaces.
    pub(crate) fn any(&self) -> bool {
        (self.config)().is_some_and(|config| !config.login.is_empty())
    }

    /// Directories with vendors' files, which only programs with that login see. Missing ones are
    /// made, so that no program with another login can make them. Blocks on the disk.
    pub(crate) fn hidden(&self) -> Vec<PathBuf> {
        let Some(config) = (self.config)() else { return Vec::new() };
        if config.login.is_empty() {
            return Vec::new();
        }
        let homes = config.login.keys().filter_map(|name| config.login_home(name));
        homes.chain(config.logins_dir()).filter_map(|path| make_home(&path).ok()).collect()
    }

    /// Login for a task of `user` in `directory`; none for the operator's own. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// If the party has none.
    pub(crate) fn choose(
        &self,
        user: &LoginUser,
        directory: &Path,
    ) -> Result<Option<Login>, NoLogin> {
        let Some(config) = (self.config)() else { return Ok(None) };
        let AgentLogins { mut logins, default_for } = config.logins_of(&self.agent);
        for login in &mut logins {
            if let LoginScope::Workspace(path) = &mut login.scope
                && let Ok(real) = fs::canonicalize(&*path)
            {
                *path = real;
            }
        }
        let logins = AgentLogins { logins, default_for };
        logins.choose(self.agent.as_str(), user, directory).map(|login| login.cloned())
    }

    /// Login of a program that works in `directory` for a task of `user`; none for the operator's
    /// own. `keeps` are the words of its manifest. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// The party has no login, or the program is not confined: all programs run as one user of the
    /// machine, and an unconfined one could read each login.
    pub(super) fn of_program(
        &self,
        user: &LoginUser,
        directory: &Path,
        keeps: Option<&BTreeSet<String>>,
        is_confined: bool,
    ) -> Result<Option<ProgramLogin>, Failure> {
        if !self.any() {
            return Ok(None);
        }
        let chosen = self.choose(user, directory);
        let chosen = chosen.map_err(|why| Failure::Denied(remedied(&why, &self.agent)))?;
        match chosen {
            Some(login) => self.open(&login, keeps, is_confined).map(Some),
            None if is_confined || *user == LoginUser::Operator => Ok(None),
            None => {
                Err(self
                    .unconfined(&format!("a task of {user}, while the hub has logins of people")))
            }
        }
    }

    /// Opens a login for a program. `keeps` are the words of its manifest. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// The program is not confined, or its files cannot be moved.
    pub(super) fn open(
        &self,
        Login { name, home, .. }: &Login,
        keeps: Option<&BTreeSet<String>>,
        is_confined: bool,
    ) -> Result<ProgramLogin, Failure> {
        if !is_confined {
            return Err(self.unconfined(&format!("the login `{name}`")));
        }
        let agent = &self.agent;
        let variables = keeps.into_iter().flatten().filter_map(|word| word.strip_prefix('$'));
        let variables: Vec<_> = variables.map(str::to_owned).collect();
        if variables.is_empty() {
            return Err(Failure::Denied(format!(
                "run a program of `{agent}` with the login `{name}`: its manifest and the catalogue name no variable that \
                 moves its files, so it has one login for all; remove `login.{name}`"
            )));
        }
        let home = make_home(home).map_err(|why| {
            Failure::Unavailable(format!("open the home of the login `{name}`: {why}"))
        })?;
        let text = home.display().to_string();
        let env = variables.into_iter().map(|variable| (variable, text.clone())).collect();
        Ok(ProgramLogin { home, env })
    }

    /// Refusal of a program that is not confined, with this login or for this task.
    fn unconfined(&self, with: &str) -> Failure {
        let agent = &self.agent;
        Failure::Denied(format!(
            "run a program of `{agent}` with {with}: it is not confined, and could read the logins of others; \
             set `agents.{agent}.confine = true`"
        ))
    }
}

/// Text of the error, with the ways out.
pub(crate) fn remedied(why: &NoLogin, agent: &AgentId) -> String {
    let ask = match &why.user {
        LoginUser::Person(name) => format!(
            "the operator adds `[login.NAME]` with `agent = \"{agent}\"` and `person = \"{name}\"` to the configuration, or shares \
             the own login with `agents.{agent}.default_login = [\"{name}\"]`, and calls `a2a-hub reload`"
        ),
        LoginUser::Tenant(name) => {
            format!(
                "the operator shares the own one with `agents.{agent}.default_login = [\"tenant:{name}\"]`"
            )
        }
        LoginUser::Operator | LoginUser::Unknown => {
            "begin the task anew, as the operator or as a person with a login".to_owned()
        }
    };
    format!("{why}: {ask}")
}

/// Variables that a program with a login is passed: none of the operator's secrets.
pub(super) fn without_secrets(passed: Vec<(String, String)>) -> Vec<(String, String)> {
    passed.into_iter().filter(|(name, _)| !is_secret(name)).collect()
}

/// Directory that decides about the login: for a worktree, the user's checkout. Blocks on the disk.
pub(super) fn login_directory(directory: &Path, worktree: Option<&WorktreeAccess>) -> PathBuf {
    let origin = worktree.map(|worktree| worktree.origin.as_path());
    let directory = origin.unwrap_or(directory);
    fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned())
}

/// Creates a login's home, and resolves its links. Blocks on the disk.
fn make_home(home: &Path) -> io::Result<PathBuf> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(home)?;
    home.canonicalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_config::LoginSettings;
    use a2a_hub_core::identity::PersonName;

    fn person(name: &str) -> LoginUser {
        LoginUser::Person(PersonName::parse(name).unwrap())
    }

    fn logins(root: &Path) -> Logins {
        let agent = AgentId::parse("codex").unwrap();
        let mut config = Config { data_dir: Some(root.join("hub")), ..Config::default() };
        let ada = LoginSettings {
            agent: Some(agent.clone()),
            person: Some(PersonName::parse("ada").unwrap()),
            ..LoginSettings::default()
        };
        config.login.insert("ada".to_owned(), ada);
        let config = Arc::new(config);
        Logins::new(agent, Arc::new(move || Some(Arc::clone(&config))))
    }

    #[test]
    fn login_needs_confinement_and_variable() {
        let root = tempfile::tempdir().unwrap();
        let logins = logins(&root.path().canonicalize().unwrap());
        let keeps = BTreeSet::from(["$CODEX_HOME".to_owned(), ".codex/".to_owned()]);
        let of = |user: &LoginUser, keeps: &BTreeSet<String>, is_confined: bool| {
            let login = logins.of_program(user, Path::new("/"), Some(keeps), is_confined);
            login.map(|login| login.map(|it| (it.home, it.env))).map_err(|why| why.to_string())
        };
        let home = root.path().canonicalize().unwrap().join("hub-logins/ada");
        let env = vec![("CODEX_HOME".to_owned(), home.display().to_string())];
        assert_eq!(of(&person("ada"), &keeps, true), Ok(Some((home.clone(), env))));
        assert!(logins.hidden().contains(&home), "{:?}", logins.hidden());
        assert_eq!(of(&LoginUser::Operator, &keeps, false), Ok(None));
        for (user, keeps, is_confined, why) in [
            (person("ada"), &keeps, false, "`agents.codex.confine = true`"),
            (person("ada"), &BTreeSet::new(), true, "name no variable"),
            (person("bob"), &keeps, true, "bob has no login of `codex`"),
            (LoginUser::Unknown, &keeps, true, "has no login"),
        ] {
            let refused = of(&user, keeps, is_confined).unwrap_err();
            assert!(refused.contains(why), "{user}: {refused}");
        }
    }

    /// Otherwise a program of another person could put its own files there first.
    #[test]
    fn unused_login_is_hidden_too() {
        let root = tempfile::tempdir().unwrap();
        let logins = logins(root.path());
        let home = root.path().join("hub-logins/ada");
        assert!(!home.exists());
        assert!(logins.hidden().contains(&home.canonicalize().unwrap_or(home)));
    }

    #[test]
    fn unconfined_program_of_others_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let of_codex = logins(root.path());
        let vibe = Logins { agent: AgentId::parse("vibe").unwrap(), ..of_codex };
        let run = |user: &LoginUser, is_confined: bool| {
            vibe.of_program(user, Path::new("/"), None, is_confined).is_ok_and(|it| it.is_none())
        };
        assert!(run(&LoginUser::Operator, false) && run(&person("bob"), true));
        assert!(!run(&person("bob"), false), "it could read the login of ada");
    }

    #[test]
    fn operators_secrets_are_not_passed() {
        let passed = ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "LANG", "ANTHROPIC_BASE_URL"]
            .map(|name| (name.to_owned(), "x".to_owned()));
        let names: Vec<_> =
            without_secrets(passed.to_vec()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["LANG", "ANTHROPIC_BASE_URL"]);
    }
}
