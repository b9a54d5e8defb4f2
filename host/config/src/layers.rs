//! Layers of the configuration, later ones overriding: defaults, file, environment, command line.

use crate::{
    error::{ConfigError, Origin},
    names::{self, EntryKind},
    settings::Config,
    text_file::{MAX_CONFIG, read_text, toml_problem},
};
use a2a_hub_core::discovery::did_you_mean;
use serde::Deserialize as _;
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf, absolute},
};
use toml::{Table, Value};

/// Prefix of environment variables that set something.
const PREFIX: &str = "A2A_HUB_";

/// Flag and variable that name the configuration file.
const CONFIG_FLAG: &str = "--config";
const CONFIG_VARIABLE: &str = "A2A_HUB_CONFIG";

/// Variables with the prefix that are not settings: the path of the file, the marks on programs
/// that a hub starts, the ports of their worktree, and variables for building and testing.
const NO_SETTINGS: &[&str] =
    &["CONFIG", "OWNER", "TREE", "DATA", "PORT_BASE", "COMPONENTS", "BIN", "CI"];

/// Setting on the command line.
#[derive(Clone, Debug)]
pub struct Flag {
    /// Flag as it is typed.
    pub name: &'static str,
    /// Path of the setting, such as `["http", "port"]`.
    pub key: &'static [&'static str],
    /// Value of the setting.
    pub value: Value,
}

/// Configuration with the origin of each value.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Effective configuration: all layers merged.
    pub config: Config,
    /// File that was read, if any.
    pub file: Option<PathBuf>,
    origins: BTreeMap<Vec<String>, Origin>,
}

/// Merged values with their origins; later layers override earlier ones.
#[derive(Default)]
struct Layers {
    values: Table,
    origins: BTreeMap<Vec<String>, Origin>,
}

impl Settings {
    /// Reads `file`, or the default file if it exists, and layers the `environment` and the `flags`
    /// on top.
    pub(super) fn read(
        file: Option<PathBuf>,
        environment: &BTreeMap<String, String>,
        home: Option<&Path>,
        flags: &[Flag],
    ) -> Result<Self, ConfigError> {
        let apply_overrides = |layers: &mut Layers| -> Result<(), ConfigError> {
            for (name, text) in environment {
                layers.variable(name, text)?;
            }
            for flag in flags {
                let path = flag.key.iter().map(|&name| name.to_owned()).collect();
                layers.set(path, flag.value.clone(), &Origin::Flag(flag.name));
            }
            Ok(())
        };
        // The layers above the file can set the file's own path.
        let mut layers = Layers::default();
        apply_overrides(&mut layers)?;
        let configured_dir =
            layers.values.get("data_dir").and_then(Value::as_str).map(PathBuf::from);
        let configured_dir = configured_dir.map(|path| at_home(path, home));
        let default_dir = configured_dir.or_else(|| Some(home?.join(".a2a-hub")));
        let variable = environment.get(CONFIG_VARIABLE).filter(|path| !path.is_empty());
        let named = file.map(|path| (path, CONFIG_FLAG));
        let named = named.or_else(|| Some((PathBuf::from(variable?), CONFIG_VARIABLE)));
        let (named, named_by) = named.unzip();
        let mut file = named.or_else(|| Some(default_dir.as_ref()?.join("config.toml")));

        let mut layers = Layers::default();
        if let Some(path) = &file
            && !layers.file(path, named_by)?
        {
            file = None;
        }
        apply_overrides(&mut layers)?;
        let mut config = layers.config()?;
        config.expand(home);
        config.data_dir = config.data_dir.or(default_dir);
        let config_dir = file.as_deref().and_then(Path::parent).or(config.data_dir.as_deref());
        // The parent of a plain file name is empty.
        let config_dir = config_dir.and_then(|dir| absolute(Path::new(".").join(dir)).ok());
        config.tls.expand(config_dir.as_deref(), |path| at_home(path, home));
        for remote in config.remote.values_mut() {
            remote.tls.expand(config_dir.as_deref(), |path| at_home(path, home));
        }
        config.check()?;
        Ok(Self { config, file, origins: layers.origins })
    }

    /// True if the command line or the environment sets the value at `path`, so that a changed file
    /// has no effect on it.
    pub fn overrides_file(&self, path: &[&str]) -> bool {
        matches!(self.origin_of(path), Origin::Flag(_) | Origin::Variable(_))
    }

    /// True if the command line sets the value at `path`.
    pub fn is_on_the_command_line(&self, path: &[&str]) -> bool {
        matches!(self.origin_of(path), Origin::Flag(_))
    }

    fn origin_of(&self, path: &[&str]) -> &Origin {
        let path: Vec<_> = path.iter().map(|&name| name.to_owned()).collect();
        self.origin(&path)
    }

    /// Layer that sets the value at `path`.
    pub fn origin(&self, path: &[String]) -> &Origin {
        self.origins.get(path).unwrap_or(&Origin::Default)
    }
}

impl Layers {
    /// Adds a file as a layer; false if it does not exist and no flag or variable names it.
    fn file(&mut self, path: &Path, named_by: Option<&'static str>) -> Result<bool, ConfigError> {
        let text = match read_text(path, MAX_CONFIG) {
            Ok(text) => text,
            Err(why) if why.kind() == io::ErrorKind::NotFound => {
                let Some(named_by) = named_by else { return Ok(false) };
                return Err(ConfigError::Missing { path: path.to_owned(), named_by });
            }
            Err(why) => return Err(ConfigError::Unreadable { path: path.to_owned(), why }),
        };
        let table = text.parse().map_err(|why| ConfigError::Toml {
            path: path.to_owned(),
            why: toml_problem(&text, &why),
        })?;
        self.table(&[], table, &Origin::File(path.to_owned()))?;
        Ok(true)
    }

    fn variable(&mut self, name: &str, text: &str) -> Result<(), ConfigError> {
        let Some(words) = name.strip_prefix(PREFIX) else { return Ok(()) };
        // Shells unset a variable for a single command by an empty value.
        if text.is_empty() || NO_SETTINGS.contains(&words) {
            return Ok(());
        }
        let words = if words == "SOCKET" { "socket_path".to_owned() } else { words.to_lowercase() };
        let words: Vec<&str> = words.split('_').collect();
        let path = names::resolve::<Config>(&words).ok_or_else(|| unknown_variable(name))?;
        let value = match format!("value = {text}").parse::<Table>() {
            Ok(mut parsed) if parsed.len() == 1 => parsed.remove("value"),
            // Text that is not TOML is taken as a string: nobody quotes paths in a shell.
            Ok(_) | Err(_) => None,
        };
        let value = value.unwrap_or_else(|| Value::String(text.to_owned()));
        self.value(path, value, &Origin::Variable(name.to_owned()))
    }

    fn table(&mut self, path: &[String], table: Table, origin: &Origin) -> Result<(), ConfigError> {
        let kind = names::entry_kind::<Config>(path);
        for (name, value) in table {
            let name = match kind {
                EntryKind::Section(fields) => known(path, &name, fields, origin)?,
                EntryKind::Names | EntryKind::Value => name,
            };
            self.value([path, &[name]].concat(), value, origin)?;
        }
        Ok(())
    }

    fn value(
        &mut self,
        path: Vec<String>,
        value: Value,
        origin: &Origin,
    ) -> Result<(), ConfigError> {
        match (names::entry_kind::<Config>(&path), value) {
            (EntryKind::Section(_) | EntryKind::Names, Value::Table(table))
                if !table.is_empty() =>
            {
                self.table(&path, table, origin)
            }
            (_, value) => {
                self.set(path, value, origin);
                Ok(())
            }
        }
    }

    /// Sets one value. A value of the wrong type in its path stays; reading it fails later.
    fn set(&mut self, path: Vec<String>, value: Value, origin: &Origin) {
        let Some((name, sections)) = path.split_last() else { return };
        let mut table = &mut self.values;
        for section in sections {
            let entry = table.entry(section.clone()).or_insert_with(|| Table::new().into());
            let Value::Table(inner) = entry else { return };
            table = inner;
        }
        let empty_section = value.as_table().is_some_and(Table::is_empty);
        if !(empty_section && table.contains_key(name)) {
            table.insert(name.clone(), value);
            self.origins.insert(path, origin.clone());
        }
    }

    fn config(&self) -> Result<Config, ConfigError> {
        let mut track = serde_path_to_error::Track::new();
        let values = Value::Table(self.values.clone());
        Config::deserialize(serde_path_to_error::Deserializer::new(values, &mut track)).map_err(
            |why| {
                let key = track.path().to_string();
                let holds = |path: &&Vec<String>| key.starts_with(&path.join("."));
                let by = self.origins.keys().filter(holds).max_by_key(|path| path.len());
                let origin = by.map_or(&Origin::Default, |path| &self.origins[path]).clone();
                ConfigError::Value { key, origin, why: Box::new(why) }
            },
        )
    }
}

/// Path with `~/` replaced by the home directory.
fn at_home(path: PathBuf, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        (Ok(_), None) | (Err(_), _) => path,
    }
}

impl Config {
    /// Replaces `~` in paths by the home directory, as a shell would.
    fn expand(&mut self, home: Option<&Path>) {
        let expand = |path: &mut PathBuf| *path = at_home(std::mem::take(path), home);
        self.data_dir.iter_mut().for_each(expand);
        expand(&mut self.socket.path);
        self.workspaces.iter_mut().for_each(expand);
        for login in self.login.values_mut() {
            login.workspace.iter_mut().chain(&mut login.home).for_each(expand);
        }
        self.worktrees.expand(|path| at_home(path, home));
        for agent in self.agents.values_mut() {
            agent.workspaces.iter_mut().flatten().for_each(expand);
            for program in agent.programs.values_mut() {
                let path = at_home(PathBuf::from(&*program), home);
                if let Ok(path) = path.into_os_string().into_string() {
                    *program = path;
                }
            }
        }
    }
}

/// Spelling of `name` in this section: the Local Hub specification writes `dataDir` for `data_dir`.
fn known(
    section: &[String],
    name: &str,
    fields: &[&str],
    origin: &Origin,
) -> Result<String, ConfigError> {
    let snake: String = name
        .chars()
        .flat_map(|c| c.is_uppercase().then_some('_').into_iter().chain(c.to_lowercase()))
        .collect();
    if let Some(field) = fields.iter().find(|field| **field == snake) {
        return Ok((*field).to_owned());
    }
    let key = |name: &str| [section, &[name.to_owned()]].concat().join(".");
    let hint = match did_you_mean::nearest(&snake, fields.iter().copied()) {
        Some(name) => did_you_mean::question(&key(name)),
        None => format!("there are `{}`", fields.join("`, `")),
    };
    Err(ConfigError::Unknown { name: key(name), location: origin.to_string(), hint })
}

fn unknown_variable(name: &str) -> ConfigError {
    let variable = |path: &Vec<String>| format!("{PREFIX}{}", path.join("_").to_uppercase());
    let variables: Vec<_> = names::all::<Config>(&[]).iter().map(variable).collect();
    let hint = did_you_mean::hint(name, variables.iter().map(String::as_str))
        .unwrap_or_else(|| "`a2a-hub config show` lists the settings".to_owned());
    ConfigError::Unknown { name: name.to_owned(), location: "the environment".to_owned(), hint }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn read(file: &str, environment: &[(&str, &str)], flags: &[Flag]) -> Result<Settings, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        fs::write(&path, file).unwrap();
        let environment = environment.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
        Settings::read(Some(path), &environment, Some(Path::new("/home/me")), flags)
            .map_err(|why| why.to_string().replace(&dir.path().display().to_string(), "DIR"))
    }

    fn refused(file: &str, environment: &[(&str, &str)]) -> String {
        read(file, environment, &[]).unwrap_err()
    }

    #[test]
    fn later_layers_override_earlier_ones() {
        let file =
            "dataDir = '/file'\n[http]\nport = 1\nenabled = false\n[logging]\nlevel = 'warn'";
        let environment = [
            ("A2A_HUB_HTTP_PORT", "2"),
            ("A2A_HUB_SOCKET", "/env.sock"),
            ("A2A_HUB_AGENTS_CLAUDE_CODE_TIMEOUT_MS", "5"),
            ("A2A_HUB_LOGGING_LEVEL", "error"),
            ("A2A_HUB_LOGGING_PRETTY", ""),
            ("PATH", "/bin"),
        ];
        let flag = Flag { name: "--http-port", key: &["http", "port"], value: 3.into() };
        let settings = read(file, &environment, &[flag]).unwrap();
        let config = &settings.config;
        assert_eq!((config.http.port, config.http.enabled), (3, false));
        assert_eq!(config.data_dir.as_deref(), Some(Path::new("/file")));
        assert_eq!(config.socket.path, Path::new("/env.sock"));
        assert_eq!(config.agents.values().next().unwrap().timeout_ms, 5);
        let origin = |path: &[&str]| {
            settings
                .origin(&path.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
                .to_string()
        };
        assert_eq!(origin(&["http", "port"]), "--http-port");
        assert_eq!(origin(&["logging", "level"]), "A2A_HUB_LOGGING_LEVEL");
        assert!(origin(&["http", "enabled"]).ends_with("config.toml"));
        assert_eq!(origin(&["http", "host"]), "the default");
        let above = [&["http", "port"][..], &["socket", "path"], &["data_dir"], &["http", "host"]];
        assert_eq!(above.map(|path| settings.overrides_file(path)), [true, true, false, false]);
    }

    #[test]
    fn errors_name_file_variable_or_flag() {
        insta::assert_snapshot!(refused("[http]\nprot = 1", &[]), @"read DIR/config.toml: no setting is called `http.prot`; did you mean `http.port`?");
        insta::assert_snapshot!(refused("[agents.echo]\nenabeld = true", &[]), @"read DIR/config.toml: no setting is called `agents.echo.enabeld`; did you mean `agents.echo.enabled`?");
        insta::assert_snapshot!(refused("socket.colour = 'red'", &[]), @"read DIR/config.toml: no setting is called `socket.colour`; there are `path`, `enabled`");
        insta::assert_snapshot!(refused("", &[("A2A_HUB_HTTP_PROT", "1")]), @"read the environment: no setting is called `A2A_HUB_HTTP_PROT`; did you mean `A2A_HUB_HTTP_PORT`?");
        insta::assert_snapshot!(refused("", &[("A2A_HUB_COLOUR", "red")]), @"read the environment: no setting is called `A2A_HUB_COLOUR`; `a2a-hub config show` lists the settings");
        insta::assert_snapshot!(refused("[http]\nport = 'x'", &[]), @r#"set `http.port` as DIR/config.toml says: invalid type: string "x", expected a whole number from 0 to 65535"#);
        insta::assert_snapshot!(refused("", &[("A2A_HUB_HTTP_PORT", "high")]), @r#"set `http.port` as A2A_HUB_HTTP_PORT says: invalid type: string "high", expected a whole number from 0 to 65535"#);
        insta::assert_snapshot!(refused("http = 3", &[("A2A_HUB_HTTP_PORT", "4")]), @"set `http` as DIR/config.toml says: invalid type: integer `3`, expected an object");
        insta::assert_snapshot!(refused("[http]\nport =", &[]), @r#"read the configuration DIR/config.toml: line 2, column 7: a value is missing or cannot be read; write a text in quotes, such as `key = "text"`, a number, `true` or `false`"#);
    }

    #[test]
    fn tilde_expands_to_home_directory() {
        let file = "socket.path = '~/hub.sock'\nworkspaces = ['~', '~/src', '/src/~', '~other']\n\
            [agents.x]\nworkspaces = ['~/x']\nprograms = { git = '~/bin/git' }";
        let environment = [("A2A_HUB_DATA_DIR", "~/data")];
        let config = read(file, &environment, &[]).unwrap().config;
        assert_eq!(config.data_dir.as_deref(), Some(Path::new("/home/me/data")));
        assert_eq!(config.socket.path, Path::new("/home/me/hub.sock"));
        let home = ["/home/me", "/home/me/src", "/src/~", "~other"].map(PathBuf::from);
        assert_eq!(config.workspaces, home);
        let agent = config.agents.values().next().unwrap();
        assert_eq!(agent.workspaces, Some(vec![PathBuf::from("/home/me/x")]));
        assert_eq!(agent.programs["git"], "/home/me/bin/git");
    }

    #[test]
    fn tls_files_are_relative_to_configuration_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        fs::write(&path, "tls = { cert = 'a.pem', key = '~/b.key', client_ca = '/c.pem' }")
            .unwrap();
        let home = Some(Path::new("/home/me"));
        let settings = Settings::read(Some(path), &BTreeMap::new(), home, &[]).unwrap();
        let tls = settings.config.tls;
        assert_eq!(tls.cert, Some(dir.path().join("a.pem")));
        assert_eq!(tls.key.as_deref(), Some(Path::new("/home/me/b.key")));
        assert_eq!(tls.client_ca.as_deref(), Some(Path::new("/c.pem")));
    }

    #[test]
    fn empty_program_section_is_a_grant() {
        let file = "[agents.x.grant.process.git]\n[agents.x.grant.process.sh]\nmax_running = 1";
        let environment = [("A2A_HUB_AGENTS_X_GRANT_PROCESS_GIT_MAX_RUNNING", "2")];
        let settings = read(file, &environment, &[]).unwrap();
        let agent = settings.config.agents.values().next().unwrap();
        let process = &agent.grant.as_ref().unwrap().process;
        assert_eq!(process["git"].max_running, Some(2));
        assert_eq!(process["sh"].max_running, Some(1));
    }

    #[test]
    fn missing_named_file_is_explained() {
        let path = || PathBuf::from("/nowhere/config.toml");
        let none = BTreeMap::new();
        let why = Settings::read(Some(path()), &none, None, &[]).unwrap_err();
        insta::assert_snapshot!(why, @"read the configuration /nowhere/config.toml, which `--config` names: it is not there; make it, or leave `--config` out");
        let named = [("A2A_HUB_CONFIG".to_owned(), path().display().to_string())];
        let why = Settings::read(None, &named.into(), None, &[]).unwrap_err();
        insta::assert_snapshot!(why, @"read the configuration /nowhere/config.toml, which `A2A_HUB_CONFIG` names: it is not there; make it, or leave `A2A_HUB_CONFIG` out");
        let unset = [("A2A_HUB_CONFIG".to_owned(), String::new())];
        assert!(Settings::read(None, &unset.into(), None, &[]).is_ok(), "as shells unset one");
    }

    #[test]
    fn missing_home_means_no_default_file() {
        let environment = BTreeMap::from([("A2A_HUB_SOCKET".to_owned(), "/s".to_owned())]);
        let settings = Settings::read(None, &environment, None, &[]).unwrap();
        assert_eq!(settings.config.socket.path, Path::new("/s"));
        assert!(settings.config.data_dir().is_err());
    }
}
