//! Settings of worktrees: files that are copied into new ones, programs that set them up, and the
//! time for which they are kept.

use crate::{confined::is_the_systems, error::ConfigError};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

/// Most files to copy, most programs, and most ports of one worktree.
const MAX_FILES: usize = 64;
const MAX_PROGRAMS: usize = 16;
const MAX_PORTS: u16 = 100;

/// Longest time limit of the programs.
const MAX_TIME: Duration = Duration::from_hours(6);

/// Most worktrees of a hub.
const MAX_WORKTREES: u32 = 256;

/// Largest limit of their disk use, in MiB: a pebibyte.
const MAX_MB: u64 = 1 << 30;

/// Value of `keep` for worktrees that are never removed by age.
const ALWAYS: &str = "always";

/// Ports of the web, which programs with a network reach.
const WEB: [u16; 2] = [80, 443];

/// `[worktrees]`: preparation and retention of worktrees.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorktreeSettings {
    /// Files of the checkout that are copied into a new worktree, as paths from its top directory.
    pub copy: Vec<String>,
    /// Programs, with their arguments, that run in a new worktree before the agent begins.
    pub setup: Vec<Vec<String>>,
    /// True if these programs may reach the web.
    pub setup_network: bool,
    /// Time limit of all these programs together.
    pub setup_timeout: String,
    /// Files and directories that these programs may read, beside their installations and the
    /// worktree.
    pub setup_read: Vec<PathBuf>,
    /// Variables of these programs.
    pub setup_env: BTreeMap<String, String>,
    /// Number of TCP ports that are reserved for a worktree.
    pub ports: u16,
    /// Time since the last task of the conversation after which a worktree is removed, or `always`.
    pub keep: String,
    /// Number of worktrees above which those that rest for the longest time are removed.
    pub keep_most: u32,
    /// Disk use of all worktrees, in MiB, above which those that rest for the longest time are
    /// removed; 0 for no limit.
    pub keep_mb: u64,
    /// `[worktrees.repository."PATH"]`: other settings for single repositories, by the path of
    /// their checkouts.
    pub repository: BTreeMap<PathBuf, RepositorySettings>,
}

/// `[worktrees.repository."PATH"]`: settings that replace those of `[worktrees]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct RepositorySettings {
    /// Files of the checkout that are copied into a new worktree, as paths from its top directory.
    pub copy: Option<Vec<String>>,
    /// Programs, with their arguments, that run in a new worktree before the agent begins.
    pub setup: Option<Vec<Vec<String>>>,
    /// True if these programs may reach the web.
    pub setup_network: Option<bool>,
    /// Time limit of all these programs together.
    pub setup_timeout: Option<String>,
    /// Files and directories that these programs may read, beside their installations and the
    /// worktree.
    pub setup_read: Option<Vec<PathBuf>>,
    /// Variables of these programs.
    pub setup_env: Option<BTreeMap<String, String>>,
    /// Number of TCP ports that are reserved for a worktree.
    pub ports: Option<u16>,
}

impl Default for WorktreeSettings {
    /// Two weeks, 64 worktrees and 32 GiB: the changes stay in the repositories.
    fn default() -> Self {
        Self {
            copy: Vec::new(),
            setup: Vec::new(),
            setup_network: false,
            setup_timeout: "10m".to_owned(),
            setup_read: Vec::new(),
            setup_env: BTreeMap::new(),
            ports: 0,
            keep: "14d".to_owned(),
            keep_most: 64,
            keep_mb: 32 << 10,
            repository: BTreeMap::new(),
        }
    }
}

impl WorktreeSettings {
    /// Settings of one repository: its own ones, and the general ones for what it leaves out.
    #[must_use]
    pub fn for_repository(&self, overrides: &RepositorySettings) -> Self {
        let RepositorySettings {
            copy,
            setup,
            setup_network,
            setup_timeout,
            setup_read,
            setup_env,
            ports,
        } = overrides.clone();
        let general = self.clone();
        Self {
            copy: copy.unwrap_or(general.copy),
            setup: setup.unwrap_or(general.setup),
            setup_network: setup_network.unwrap_or(general.setup_network),
            setup_timeout: setup_timeout.unwrap_or(general.setup_timeout),
            setup_read: setup_read.unwrap_or(general.setup_read),
            setup_env: setup_env.unwrap_or(general.setup_env),
            ports: ports.unwrap_or(general.ports),
            keep: general.keep,
            keep_most: general.keep_most,
            keep_mb: general.keep_mb,
            repository: BTreeMap::new(),
        }
    }

    /// Time limit of the programs.
    pub fn time_limit(&self) -> Duration {
        duration(&self.setup_timeout).unwrap_or(MAX_TIME)
    }

    /// Time after which a worktree is removed; none if age removes none.
    pub fn keeps_for(&self) -> Option<Duration> {
        if self.keep == ALWAYS { None } else { duration(&self.keep) }
    }

    /// Disk use above which worktrees are removed, in bytes; none if it removes none.
    pub fn keeps_bytes(&self) -> Option<u64> {
        (self.keep_mb > 0).then(|| self.keep_mb.saturating_mul(1 << 20))
    }

    /// Replaces `~` in paths.
    pub(crate) fn expand(&mut self, at_home: impl Fn(PathBuf) -> PathBuf) {
        let words = |setup: &mut Vec<Vec<String>>| {
            for name in setup.iter_mut().filter_map(|words| words.first_mut()) {
                if let Ok(path) = at_home(PathBuf::from(&*name)).into_os_string().into_string() {
                    *name = path;
                }
            }
        };
        let paths = |paths: &mut Vec<PathBuf>| {
            paths.iter_mut().for_each(|path| *path = at_home(std::mem::take(path)));
        };
        words(&mut self.setup);
        paths(&mut self.setup_read);
        let repositories = std::mem::take(&mut self.repository);
        self.repository = repositories
            .into_iter()
            .map(|(path, mut overrides)| {
                overrides.setup.iter_mut().for_each(words);
                overrides.setup_read.iter_mut().for_each(paths);
                (at_home(path), overrides)
            })
            .collect();
    }

    /// Checks the settings; the hub itself listens on `hub_port`.
    pub(crate) fn check(&self, hub_port: u16) -> Result<(), ConfigError> {
        let refuse = |section: &str, (key, why): (&str, String)| {
            Err(ConfigError::Worktrees { key: format!("{section}{key}"), why })
        };
        if self.keep != ALWAYS && duration(&self.keep).is_none() {
            let why = format!(
                "`{}` is no time; write one such as \"14d\" or \"12h\", or \"{ALWAYS}\"",
                self.keep
            );
            return refuse("", ("keep", why));
        }
        if !(1..=MAX_WORKTREES).contains(&self.keep_most) {
            let why = format!("it must be from 1 to {MAX_WORKTREES}");
            return refuse("", ("keep_most", why));
        }
        if self.keep_mb > MAX_MB {
            return refuse("", ("keep_mb", format!("it must be from 0 (no limit) to {MAX_MB}")));
        }
        self.check_preparation(hub_port).or_else(|wrong| refuse("", wrong))?;
        for (path, overrides) in &self.repository {
            let section = format!("repository.\"{}\".", path.display());
            if !path.is_absolute() {
                let why = "name the repository by the absolute path of its checkout".to_owned();
                return refuse(section.trim_end_matches('.'), ("", why));
            }
            let merged = self.for_repository(overrides);
            merged.check_preparation(hub_port).or_else(|wrong| refuse(&section, wrong))?;
        }
        Ok(())
    }

    /// Name of a wrong setting, with the reason.
    pub(super) fn check_preparation(&self, hub_port: u16) -> Result<(), (&'static str, String)> {
        let at_most = |key, count: usize, max: usize| {
            if count <= max { Ok(()) } else { Err((key, format!("it may have {max} at most"))) }
        };
        at_most("copy", self.copy.len(), MAX_FILES)?;
        at_most("setup", self.setup.len(), MAX_PROGRAMS)?;
        at_most("ports", self.ports.into(), MAX_PORTS.into())?;
        if let Some(name) = self.copy.iter().find(|name| !is_in_repository(name)) {
            let why = format!(
                "`{name}` is no file of a repository; name files by their paths from its top directory, such as \".env\" or \
                 \"config/local.toml\""
            );
            return Err(("copy", why));
        }
        for words in &self.setup {
            let name = words.first().map_or("", String::as_str);
            if name.is_empty() || (name.contains('/') && !name.starts_with('/')) {
                let why = format!(
                    "`{name}` is no program; name one of the PATH or an absolute path, such as [[\"npm\", \"ci\"]] or [[\"sh\", \
                     \"setup.sh\"]]"
                );
                return Err(("setup", why));
            }
            if words.iter().any(|word| word.contains('\0')) {
                return Err((
                    "setup",
                    "an argument has a NUL, which no program can get".to_owned(),
                ));
            }
        }
        if self.setup_network && WEB.contains(&hub_port) {
            let why = format!(
                "programs with a network reach {hub_port}, which is the hub's own port (`http.port`), and must not"
            );
            return Err(("setup_network", why));
        }
        let limit = duration(&self.setup_timeout);
        if !limit.is_some_and(|limit| !limit.is_zero() && limit <= MAX_TIME) {
            let why = format!(
                "`{}` is no time limit; write one from 1s to 6h, such as \"10m\"",
                self.setup_timeout
            );
            return Err(("setup_timeout", why));
        }
        let unreadable = |path: &&PathBuf| !path.is_absolute() || is_the_systems(path);
        if let Some(path) = self.setup_read.iter().find(unreadable) {
            let why =
                format!("name `{}` by an absolute path, and not a whole system", path.display());
            return Err(("setup_read", why));
        }
        let is_ours = |name: &str| name.starts_with("A2A_HUB_");
        let is_wrong = |name: &str| name.is_empty() || name.contains(['=', '\0']) || is_ours(name);
        if let Some(name) = self.setup_env.keys().find(|name| is_wrong(name)) {
            let why = format!("`{name}` is no name of a variable that you can set");
            return Err(("setup_env", why));
        }
        Ok(())
    }
}

/// True for a path that cannot leave the directory it starts from, outside of `.git`.
fn is_in_repository(name: &str) -> bool {
    let is_plain = |part: &str| {
        !matches!(part, "" | "." | "..")
            && !part.eq_ignore_ascii_case(".git")
            && !part.contains(char::is_control)
    };
    !name.is_empty() && Path::new(name).is_relative() && name.split('/').all(is_plain)
}

/// Parses a number of seconds, minutes, hours or days, such as `90s` or `14d`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        _ => return None,
    };
    let number = text.strip_suffix(unit)?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let count: u64 = if is_number { number.parse().ok()? } else { return None };
    Some(Duration::from_secs(count.checked_mul(seconds)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::read_checked;

    fn read(text: &str) -> Result<WorktreeSettings, String> {
        read_checked(text).map(|config| config.worktrees)
    }

    #[test]
    fn repository_settings_replace_general_ones() {
        let settings = read(
            "[worktrees]\ncopy = ['.env']\nsetup = [['npm', 'ci']]\nkeep = '2d'\nports = 10\n\
             [worktrees.repository.'/src/shop']\nsetup = []\nsetup_network = true",
        )
        .unwrap();
        let shop = settings.for_repository(&settings.repository[Path::new("/src/shop")]);
        assert_eq!((shop.copy, shop.setup.len(), shop.ports), (vec![".env".to_owned()], 0, 10));
        assert!(shop.setup_network && !settings.setup_network);
        assert_eq!(settings.keeps_for(), Some(Duration::from_hours(48)));
        assert_eq!(settings.time_limit(), Duration::from_mins(10));
        assert_eq!(read("worktrees.keep = 'always'").unwrap().keeps_for(), None);
        assert_eq!(settings.keeps_bytes(), Some(32 << 30));
        assert_eq!(read("worktrees.keep_mb = 3").unwrap().keeps_bytes(), Some(3 << 20));
        assert_eq!(read("worktrees.keep_mb = 0").unwrap().keeps_bytes(), None);
    }

    #[test]
    fn tilde_stands_for_home() {
        let mut settings = read("[worktrees]\nsetup = [['/bin/true']]").unwrap();
        let own = RepositorySettings {
            setup: Some(vec![vec!["~/bin/x".to_owned(), "~/y".to_owned()]]),
            setup_read: Some(vec!["~/.rustup".into()]),
            ..RepositorySettings::default()
        };
        settings.repository.insert("~/shop".into(), own);
        settings.expand(|path| match path.strip_prefix("~") {
            Ok(below) => Path::new("/home/me").join(below),
            Err(_) => path,
        });
        let own = &settings.repository[Path::new("/home/me/shop")];
        assert_eq!(own.setup, Some(vec![vec!["/home/me/bin/x".to_owned(), "~/y".to_owned()]]));
        assert_eq!(own.setup_read, Some(vec!["/home/me/.rustup".into()]));
        assert_eq!(settings.setup, [["/bin/true"]]);
    }

    #[test]
    fn wrong_settings_name_rule_and_way_out() {
        for (text, why) in [
            (
                "copy = ['../.ssh/id']",
                "set `worktrees.copy`: `../.ssh/id` is no file of a repository",
            ),
            ("copy = ['/etc/passwd']", "is no file of a repository"),
            ("copy = ['a/./b']", "is no file of a repository"),
            ("copy = ['.Git/config']", "is no file of a repository"),
            ("copy = ['']", "is no file of a repository"),
            ("setup = [[]]", "set `worktrees.setup`: `` is no program"),
            ("setup = [['./setup.sh']]", "`./setup.sh` is no program"),
            ("setup = [['sh', \"a\\u0000\"]]", "has a NUL"),
            ("setup_timeout = '0s'", "set `worktrees.setup_timeout`: `0s` is no time limit"),
            ("setup_timeout = '7h'", "from 1s to 6h"),
            ("setup_timeout = '-1m'", "from 1s to 6h"),
            ("setup_read = ['/']", "set `worktrees.setup_read`"),
            ("setup_read = ['.rustup']", "by an absolute path"),
            ("setup_env = { A2A_HUB_OWNER = 'x' }", "set `worktrees.setup_env`: `A2A_HUB_OWNER`"),
            ("setup_env = { 'A=B' = 'x' }", "no name of a variable"),
            ("ports = 101", "set `worktrees.ports`: it may have 100 at most"),
            ("keep = 'soon'", "set `worktrees.keep`: `soon` is no time"),
            ("keep = 'd'", "is no time"),
            ("keep = '99999999999999999999d'", "is no time"),
            ("keep_most = 0", "set `worktrees.keep_most`: it must be from 1 to 256"),
            ("keep_most = 257", "it must be from 1 to 256"),
            ("keep_mb = 1073741825", "set `worktrees.keep_mb`: it must be from 0 (no limit) to"),
            ("keep_mb = -1", "keep_mb"),
            ("repository.'/shop'.keep_mb = 1", "unknown field `keep_mb`"),
            ("teardown = []", "unknown field `teardown`"),
            ("repository.'shop'.ports = 1", "name the repository by the absolute path"),
            (
                "repository.'/shop'.copy = ['..']",
                "set `worktrees.repository.\"/shop\".copy`: `..` is no file",
            ),
            ("repository.'/shop'.keep = '1d'", "unknown field `keep`"),
        ] {
            let refused = read(&format!("[worktrees]\n{text}")).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
        let reached = read("http.port = 443\nworktrees.setup_network = true").unwrap_err();
        assert!(reached.contains("`http.port`"), "{reached}");
        assert!(read(&format!("worktrees.copy = {:?}", vec!["x"; 65])).is_err());
    }
}
