//! Options of every command: the hub to talk to, and the format of the output.

use super::exit::ExitScheme;
#[cfg(feature = "hub")]
use super::{
    failure::{CommandError, HUB_NOT_RUNNING},
    running_hub,
};
use a2a_hub_config::{ConfigError, Flag, Settings, is_colourless};
use a2a_hub_terminal::{
    console::{Console, Wish},
    interactive::{ProgressLine, ProgressOutput},
    render::shell_word,
    text::Text,
};
use clap::{Args, ValueEnum};
use serde_json::Value;
use std::path::PathBuf;

/// Options of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Unix socket of the hub [default: `socket.path` of the configuration, or /tmp/a2a-hub.sock]
    #[arg(long, global = true, value_name = "PATH", hide = cfg!(not(feature = "hub")))]
    pub socket: Option<String>,
    /// Configuration file [default: config.toml in the data directory]
    #[arg(long, global = true, value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// Data directory of the hub [default: ~/.a2a-hub]
    #[arg(long, global = true, value_name = "PATH")]
    pub data_dir: Option<String>,
    /// Remote hub that you joined, by its name or URL [default: the hub of this machine]
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "socket")]
    pub hub: Option<String>,
    /// Tenant to act for; only its tasks and conversations are visible [default: the default
    /// tenant]
    #[arg(long, global = true, value_name = "NAME")]
    pub tenant: Option<String>,
    /// Format of the output
    #[arg(long, global = true, value_enum, default_value_t = Format::Pretty)]
    pub format: Format,
    /// Print agents' text unfiltered, with terminal control sequences
    #[arg(long, global = true)]
    pub raw: bool,
    /// Print without colours, and Markdown as source text
    #[arg(long, global = true)]
    pub plain: bool,
    /// Meaning of the exit code: of this program, or of the official A2A CLI
    #[arg(long, global = true, value_enum, default_value_t = ExitScheme::Hub)]
    pub exit: ExitScheme,
    /// Log at level `debug`
    #[arg(long, global = true)]
    pub verbose: bool,
}

/// Format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text for people
    Pretty,
    /// One JSON value per line, for programs
    Json,
}

impl Global {
    /// Loads the configuration with the command line as the topmost layer; `flags` are the
    /// command's own options.
    pub fn settings(&self, mut flags: Vec<Flag>) -> Result<Settings, ConfigError> {
        let mut flag = |name, key, value: Option<&str>| {
            flags.extend(value.map(|value| Flag { name, key, value: value.into() }));
        };
        flag("--socket", &["socket", "path"], self.socket.as_deref());
        flag("--data-dir", &["data_dir"], self.data_dir.as_deref());
        flag("--verbose", &["logging", "level"], self.verbose.then_some("debug"));
        Settings::load(self.config.clone(), &flags)
    }

    /// Returns the command line of this program that addresses the same hub and tenant.
    pub fn command(&self) -> String {
        let mut command = "a2a-hub".to_owned();
        let config = self.config.as_ref().map(|path| path.display().to_string());
        for (flag, value) in [
            ("--socket", &self.socket),
            ("--config", &config),
            ("--data-dir", &self.data_dir),
            ("--hub", &self.hub),
            ("--tenant", &self.tenant),
        ] {
            if let Some(value) = value {
                command.push_str(&format!(" {flag} {}", shell_word(value)));
            }
        }
        command
    }

    /// Prints `answer` as JSON, or `text` for people, depending on `--format`.
    pub fn show(
        &self,
        answer: &Value,
        text: impl FnOnce() -> anyhow::Result<Text>,
    ) -> anyhow::Result<()> {
        match self.format {
            Format::Json => self.console().print_json(answer)?,
            Format::Pretty => self.console().print_fitted(text()?)?,
        }
        Ok(())
    }

    /// Console with the user's output options.
    pub fn console(&self) -> Console {
        Console::new(Wish { raw: self.raw, plain: self.plain || is_colourless() })
    }

    /// Starts a progress line for `subject`; `wanted` is false if it would interfere with the
    /// output.
    pub fn progress(&self, subject: &str, wanted: bool) -> ProgressLine {
        let printing = match (self.format, self.verbose) {
            (Format::Json, _) => ProgressOutput::Nothing,
            (Format::Pretty, true) => ProgressOutput::Messages,
            (Format::Pretty, false) => ProgressOutput::Line,
        };
        ProgressLine::new(self.console(), subject, wanted, printing)
    }

    /// Refuses a configuration file that `--config` names and that is missing, also for commands
    /// that do not read it.
    ///
    /// # Errors
    /// The file does not exist.
    pub fn require_config(&self) -> Result<(), ConfigError> {
        match &self.config {
            Some(path) if matches!(path.try_exists(), Ok(false)) => {
                Err(ConfigError::Missing { path: path.clone(), named_by: "--config" })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the hub's data directory.
    pub fn data_dir(&self) -> Result<PathBuf, ConfigError> {
        Ok(self.to_find_the_hub()?.config.data_dir()?.to_owned())
    }

    /// Returns the path of the hub's socket. By default this is the socket of the hub that runs on
    /// the data directory. An explicit socket of the command line or the environment takes
    /// precedence, except that a data directory of the command line takes precedence over a socket
    /// of the environment. An explicit data directory that no hub uses is an error: no other hub is
    /// meant.
    #[cfg(feature = "hub")]
    pub fn socket_path(&self) -> anyhow::Result<PathBuf> {
        let settings = self.to_find_the_hub()?;
        let (socket, data_dir) = (["socket", "path"], ["data_dir"]);
        let by_directory =
            settings.is_on_the_command_line(&data_dir) && !settings.is_on_the_command_line(&socket);
        if settings.overrides_file(&socket) && !by_directory {
            return Ok(settings.config.socket.path);
        }
        let dir = settings.config.data_dir()?;
        let hub = running_hub::read_if_running(dir);
        if hub.is_none() && settings.overrides_file(&data_dir) {
            let why = format!(
                "connect to the hub: no hub uses the data directory {}; `a2a-hub start` starts one \
                 there",
                dir.display()
            );
            return Err(CommandError::new(HUB_NOT_RUNNING, why).mended_by("a2a-hub start").into());
        }
        Ok(hub.as_ref().and_then(running_hub::socket).unwrap_or(settings.config.socket.path))
    }

    /// Loads the configuration, or without its file if the file has an error and a hub runs: the
    /// running hub keeps its configuration and must remain reachable, at least for `stop`. A file
    /// that was named and is missing is an error for every command, because another one was meant.
    #[cfg(feature = "hub")]
    fn to_find_the_hub(&self) -> Result<Settings, ConfigError> {
        self.settings(Vec::new()).or_else(|error| {
            if matches!(error, ConfigError::Missing { .. }) {
                return Err(error);
            }
            let without = Self { config: Some("/dev/null".into()), ..self.clone() };
            let found = without.settings(Vec::new()).ok();
            let runs = |it: &Settings| {
                it.config.data_dir().is_ok_and(|dir| running_hub::read_if_running(dir).is_some())
            };
            found.filter(runs).ok_or(error)
        })
    }

    /// Loads the configuration, whose data directory has the joined hubs.
    #[cfg(not(feature = "hub"))]
    fn to_find_the_hub(&self) -> Result<Settings, ConfigError> {
        self.settings(Vec::new())
    }
}

#[cfg(feature = "hub")]
#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Options for a data directory with a run file of this process, which counts as its hub.
    fn global(dir: &std::path::Path, config: &str) -> Global {
        let run = serde_json::json!({ "pid": std::process::id(), "socket": "/a" });
        fs::write(dir.join(running_hub::RUN_FILE), run.to_string()).unwrap();
        Global {
            socket: None,
            config: Some(dir.join(config)),
            data_dir: Some(dir.display().to_string()),
            hub: None,
            tenant: None,
            format: Format::Pretty,
            raw: false,
            plain: false,
            exit: ExitScheme::Hub,
            verbose: false,
        }
    }

    #[test]
    fn missing_config_is_refused_while_hub_runs() {
        let dir = tempfile::tempdir().unwrap();
        let missing = global(dir.path(), "none.toml");
        for why in [missing.data_dir().unwrap_err(), missing.require_config().unwrap_err()] {
            let path = dir.path().join("none.toml").display().to_string();
            assert!(why.to_string().contains(&path), "{why}");
        }
        assert!(missing.socket_path().is_err());
        // A file with an error must not hide the running hub.
        fs::write(dir.path().join("broken.toml"), "[http\n").unwrap();
        let broken = global(dir.path(), "broken.toml");
        assert!(broken.require_config().is_ok() && broken.socket_path().is_ok());
    }
}
