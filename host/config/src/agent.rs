//! What the settings of one agent may say, and what it is told of them: text, under a name.

use crate::{confined::Confined, error::ConfigError, mcp::McpServer};
use a2a_hub_core::{
    grant::Grant,
    granted_limits::{GrantedLimits, LimitName},
    kept::Room,
    permissions::Permissions,
    quota,
    tree::TreeLimits,
};
use a2a_hub_protocol::id::AgentId;
use a2a_hub_runtime::{
    Limits,
    limits::{MAX_MEMORY_BYTES, Rates},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::Duration,
};

/// Settings of one agent.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentConfig {
    /// Whether to load it.
    pub enabled: bool,
    /// What it is called besides its id: a message to one of these names is for it. No agent may have one of them as its id.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub aliases: BTreeSet<AgentId>,
    /// What it may do. Agents that come with the hub get what they ask for unless this is said; plugins get nothing.
    pub grant: Option<Grant>,
    /// Where its programs are that the hub does not find on its `PATH`, by the names that the manifest uses.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<String, String>,
    /// Variables that all its programs are passed besides those that the manifest asks for, in the same words.
    pub env: BTreeSet<String>,
    /// Whether the kernel confines its programs: those of plug-ins unless this says no, those of agents that come with the hub if
    /// it says yes.
    pub confine: Option<bool>,
    /// What its programs may do besides, where they are confined.
    pub confined: Confined,
    /// Servers of the Model Context Protocol whose tools it may be granted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp: BTreeMap<String, McpServer>,
    /// Directories it may work in, instead of the hub's `workspaces`.
    pub workspaces: Option<Vec<PathBuf>>,
    /// What the program behind it may do without asking.
    pub permissions: Permissions,
    /// How long its question for permission waits before it counts as denied, in milliseconds. An hour unless said: then a
    /// person who is there has seen it, and what waits holds a program.
    pub approval_timeout_ms: u64,
    /// What only the agent itself understands.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, SettingText>,
    /// What it may use up.
    pub limits: LimitsConfig,
    /// How long a task may take, in milliseconds.
    pub timeout_ms: u64,
    /// How long a task waits for its client's answer, in milliseconds, if the agent itself is more patient.
    pub answer_timeout_ms: u64,
    /// How many of its tasks run at once: unless said, 8 if each may start programs, for a coding agent takes a core and a
    /// gigabyte, and 64 if it has only its own megabytes.
    pub max_running: Option<usize>,
    /// How many wait for that; more are refused.
    pub max_queued: usize,
    /// How many wait for their client's answer while the agent takes up room; more tasks are refused meanwhile. One that can be
    /// started again with the answer takes up none where room is needed, and has no such limit.
    pub max_waiting: usize,
    /// How many messages of the conversation so far it is given with a new task.
    pub history: usize,
    /// The SHA-256 digest its component must have, in hex.
    pub sha256: Option<String>,
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            aliases: BTreeSet::new(),
            grant: None,
            programs: BTreeMap::new(),
            env: BTreeSet::new(),
            confine: None,
            confined: Confined::default(),
            mcp: BTreeMap::new(),
            workspaces: None,
            permissions: Permissions::default(),
            approval_timeout_ms: 60 * 60 * 1000,
            settings: BTreeMap::new(),
            limits: LimitsConfig::default(),
            // A coding agent at work is slow, not stuck.
            timeout_ms: 30 * 60 * 1000,
            // People sleep; then what it holds is given back.
            answer_timeout_ms: 24 * 60 * 60 * 1000,
            max_running: None,
            // More than anybody watches.
            max_queued: 64,
            // A sixteenth of all the room there is.
            max_waiting: 256,
            // A long talk, and it fits any model.
            history: 50,
            sha256: None,
        }
    }
}

impl AgentConfig {
    /// How long a task may take.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// How long a task waits for its client.
    pub fn answer_timeout(&self) -> Duration {
        Duration::from_millis(self.answer_timeout_ms)
    }

    /// What may follow from one of its tasks.
    pub fn tree_limits(&self) -> TreeLimits {
        let (tree, default) = (self.limits.tree, TreeLimits::default());
        TreeLimits {
            depth: tree.depth.unwrap_or(default.depth),
            tasks: tree.tasks.unwrap_or(default.tasks),
            tokens: tree.tokens,
            cost_usd: tree.cost_usd,
        }
    }

    /// How many of its tasks run and wait, if each may start programs or not.
    pub fn quota(&self, runs_programs: bool) -> quota::QuotaLimits {
        let max_running = self.max_running.unwrap_or(if runs_programs { 8 } else { 64 });
        quota::QuotaLimits {
            max_running,
            max_queued: self.max_queued,
            max_waiting: self.max_waiting,
        }
    }
}

/// What an agent may use up per task; what is left out is as [`Limits::default`].
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Memory of one run, all its linear memories together, in MiB.
    pub memory_mb: Option<usize>,
    /// Time on the processor, in milliseconds.
    pub cpu_ms: Option<u64>,
    /// How many events one run may emit.
    pub events: Option<u64>,
    /// Bytes of the events it emits.
    pub output_bytes: Option<u64>,
    /// How many bytes one run may log.
    pub log_bytes: Option<u64>,
    /// How many requests one run may send by HTTP.
    pub http_requests: Option<u64>,
    /// Bytes of those requests and of their answers.
    pub http_bytes: Option<u64>,
    /// Bytes that one run writes into files of its workspace.
    pub workspace_bytes: Option<u64>,
    /// How many files and directories one run makes there.
    pub workspace_files: Option<u64>,
    /// How many events one run may emit each second before it has to wait.
    pub events_per_second: Option<u64>,
    /// Bytes of the events it emits each second.
    pub output_bytes_per_second: Option<u64>,
    /// How many lines it may log each second.
    pub log_lines_per_second: Option<u64>,
    /// How often it may ask for its memory each second.
    pub memory_calls_per_second: Option<u64>,
    /// How many files it may write each second.
    pub files_per_second: Option<u64>,
    /// How many programs it may start each second.
    pub programs_per_second: Option<u64>,
    /// How many programs it keeps between its tasks; 4 unless said, and with 0 each task starts its own.
    pub kept_programs: Option<usize>,
    /// How long a program is kept that no task takes up, in milliseconds: ten minutes unless said.
    pub kept_idle_ms: Option<u64>,
    /// Memory that the programs it keeps take up together, in MiB: 2048 unless said.
    pub kept_memory_mb: Option<u64>,
    /// What may follow from one of its tasks, if it gives tasks to other agents.
    pub tree: TreeConfig,
}

/// What an agent keeps between its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptLimits {
    /// How many programs, and how much memory they take up.
    pub room: Room,
    /// How long one is kept that no task takes up.
    pub idle: Duration,
}

impl Default for KeptLimits {
    fn default() -> Self {
        // A person talks with a few agents at once, and thinks for minutes; a coding agent takes half a gigabyte.
        Self { room: Room { programs: 4, bytes: 2 << 30 }, idle: Duration::from_secs(10 * 60) }
    }
}

/// What may follow from one task; what is left out is as [`TreeLimits::default`].
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct TreeConfig {
    /// How many levels of tasks there may be below it.
    pub depth: Option<u32>,
    /// How many tasks there may be below it in all.
    pub tasks: Option<u32>,
    /// Tokens that the tasks below it may use, as their agents report them.
    pub tokens: Option<u64>,
    /// Dollars that the tasks below it may cost, as their agents report them.
    pub cost_usd: Option<f64>,
}

impl LimitsConfig {
    /// The numbers that are said, by their names.
    pub(crate) fn said(&self) -> impl Iterator<Item = (LimitName, u64)> {
        let wide = |number: Option<usize>| number.and_then(|number| u64::try_from(number).ok());
        let all = [
            (LimitName::MemoryMb, wide(self.memory_mb)),
            (LimitName::CpuMs, self.cpu_ms),
            (LimitName::Events, self.events),
            (LimitName::OutputBytes, self.output_bytes),
            (LimitName::LogBytes, self.log_bytes),
            (LimitName::HttpRequests, self.http_requests),
            (LimitName::HttpBytes, self.http_bytes),
            (LimitName::WorkspaceBytes, self.workspace_bytes),
            (LimitName::WorkspaceFiles, self.workspace_files),
            (LimitName::EventsPerSecond, self.events_per_second),
            (LimitName::OutputBytesPerSecond, self.output_bytes_per_second),
            (LimitName::LogLinesPerSecond, self.log_lines_per_second),
            (LimitName::MemoryCallsPerSecond, self.memory_calls_per_second),
            (LimitName::FilesPerSecond, self.files_per_second),
            (LimitName::ProgramsPerSecond, self.programs_per_second),
            (LimitName::KeptPrograms, wide(self.kept_programs)),
            (LimitName::KeptIdleMs, self.kept_idle_ms),
            (LimitName::KeptMemoryMb, self.kept_memory_mb),
        ];
        all.into_iter().filter_map(|(name, number)| Some((name, number?)))
    }

    /// The same with the numbers of a grant in place of its own.
    #[must_use]
    pub fn with(mut self, granted: &GrantedLimits) -> Self {
        for (name, number) in granted {
            let number = Some(*number);
            match name {
                LimitName::MemoryMb => {
                    let mb = number.and_then(|mb| usize::try_from(mb).ok());
                    self.memory_mb = Some(mb.unwrap_or(usize::MAX).min(MAX_MEMORY_BYTES >> 20));
                }
                LimitName::CpuMs => self.cpu_ms = number,
                LimitName::Events => self.events = number,
                LimitName::OutputBytes => self.output_bytes = number,
                LimitName::LogBytes => self.log_bytes = number,
                LimitName::HttpRequests => self.http_requests = number,
                LimitName::HttpBytes => self.http_bytes = number,
                LimitName::WorkspaceBytes => self.workspace_bytes = number,
                LimitName::WorkspaceFiles => self.workspace_files = number,
                LimitName::EventsPerSecond => self.events_per_second = number,
                LimitName::OutputBytesPerSecond => self.output_bytes_per_second = number,
                LimitName::LogLinesPerSecond => self.log_lines_per_second = number,
                LimitName::MemoryCallsPerSecond => self.memory_calls_per_second = number,
                LimitName::FilesPerSecond => self.files_per_second = number,
                LimitName::ProgramsPerSecond => self.programs_per_second = number,
                LimitName::KeptPrograms => {
                    self.kept_programs = number.and_then(|most| usize::try_from(most).ok());
                }
                LimitName::KeptIdleMs => self.kept_idle_ms = number,
                LimitName::KeptMemoryMb => self.kept_memory_mb = number,
            }
        }
        self
    }

    /// What it keeps between its tasks, with defaults for what is left out.
    pub fn kept(&self) -> KeptLimits {
        let default = KeptLimits::default();
        KeptLimits {
            room: Room {
                programs: self.kept_programs.unwrap_or(default.room.programs),
                bytes: self
                    .kept_memory_mb
                    .map_or(default.room.bytes, |mb| mb.saturating_mul(1 << 20)),
            },
            idle: self.kept_idle_ms.map_or(default.idle, Duration::from_millis),
        }
    }

    /// The limits, with defaults for what is left out.
    pub fn limits(&self) -> Limits {
        let default = Limits::default();
        Limits {
            memory_bytes: self.memory_mb.map_or(default.memory_bytes, |mb| mb << 20),
            cpu: self.cpu_ms.map_or(default.cpu, Duration::from_millis),
            events: self.events.unwrap_or(default.events),
            output_bytes: self.output_bytes.unwrap_or(default.output_bytes),
            log_bytes: self.log_bytes.unwrap_or(default.log_bytes),
            http_requests: self.http_requests.unwrap_or(default.http_requests),
            http_bytes: self.http_bytes.unwrap_or(default.http_bytes),
            workspace_bytes: self.workspace_bytes.unwrap_or(default.workspace_bytes),
            workspace_files: self.workspace_files.unwrap_or(default.workspace_files),
            rates: self.rates(default.rates),
        }
    }

    fn rates(&self, default: Rates) -> Rates {
        Rates {
            events: self.events_per_second.unwrap_or(default.events),
            output_bytes: self.output_bytes_per_second.unwrap_or(default.output_bytes),
            log_lines: self.log_lines_per_second.unwrap_or(default.log_lines),
            memory_calls: self.memory_calls_per_second.unwrap_or(default.memory_calls),
            files: self.files_per_second.unwrap_or(default.files),
            programs: self.programs_per_second.unwrap_or(default.programs),
        }
    }
}

/// A setting that only the agent understands. Numbers and booleans are told as text.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "Said")]
pub struct SettingText(String);

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected text, a number or a boolean")]
enum Said {
    Text(String),
    Flag(bool),
    Whole(i64),
    Fraction(f64),
}

impl From<Said> for SettingText {
    fn from(said: Said) -> Self {
        Self(match said {
            Said::Text(text) => text,
            Said::Flag(flag) => flag.to_string(),
            Said::Whole(number) => number.to_string(),
            Said::Fraction(number) => number.to_string(),
        })
    }
}

/// The longest name of a setting.
const MAX_NAME: usize = 64;

/// Names that tell of settings of the hub's own, and what those are called.
const OWN: &[(&str, &str)] = &[
    ("permissions", "permissions"),
    ("approval_timeout", "approval_timeout_ms"),
    ("workspace", "workspaces"),
    ("hub_program", "grant.delegate"),
    ("hub_socket", "grant.delegate"),
];

impl AgentConfig {
    /// What the agent is told when it asks, by name; `workspace` is where its programs start if nobody says otherwise.
    pub fn told(&self, workspace: &Path) -> BTreeMap<String, String> {
        let own =
            self.settings.iter().map(|(name, SettingText(text))| (name.clone(), text.clone()));
        let mut told: BTreeMap<_, _> = own.collect();
        told.insert("permissions".to_owned(), self.permissions.word().to_owned());
        told.insert("approval_timeout".to_owned(), self.approval_timeout_ms.to_string());
        told.insert("workspace".to_owned(), workspace.display().to_string());
        told
    }

    /// Whether its programs can be found, and what they are passed.
    pub(super) fn check_programs(&self, agent: &AgentId) -> Result<(), ConfigError> {
        let ours = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        let names_some = |word: &str| {
            let name = word.strip_suffix('*').unwrap_or(word);
            !name.is_empty() && name.bytes().all(ours)
        };
        let agent = || agent.clone();
        if let Some(word) = self.env.iter().find(|word| !names_some(word)) {
            return Err(ConfigError::Variable { agent: agent(), word: word.clone() });
        }
        let relative = self.programs.iter().find(|(_, path)| !Path::new(path).is_absolute());
        relative.map_or(Ok(()), |(name, path)| {
            Err(ConfigError::Relative { agent: agent(), name: name.clone(), path: path.clone() })
        })
    }

    /// Whether its servers of tools can be started.
    pub(super) fn check_servers(&self, agent: &AgentId) -> Result<(), ConfigError> {
        let wrong = self.mcp.iter().find_map(|(name, server)| Some((name, server.wrong(name)?)));
        wrong.map_or(Ok(()), |(name, why)| {
            Err(ConfigError::Server { agent: agent.clone(), name: name.clone(), why })
        })
    }

    pub(super) fn check_settings(&self, agent: &AgentId) -> Result<(), ConfigError> {
        let fits = |name: &str| {
            let ours = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b);
            (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(ours)
        };
        for name in self.settings.keys() {
            let way_out = if let Some((_, key)) = OWN.iter().find(|(own, _)| own == name) {
                format!("say `agents.{agent}.{key}`")
            } else if !fits(name) {
                format!("choose a name of 1 to {MAX_NAME} characters of a-z, 0-9, `_` and `-`")
            } else {
                continue;
            };
            return Err(ConfigError::Setting { agent: agent.clone(), name: name.clone(), way_out });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn read(agent: &str) -> Result<AgentConfig, String> {
        let text = format!("[agents.any]\n{agent}");
        let config: Config = toml::from_str(&text).map_err(|why| why.message().to_owned())?;
        config.check().map_err(|why| why.to_string())?;
        Ok(config.agent(&AgentId::parse("any").unwrap()))
    }

    fn told(agent: &str) -> String {
        read(agent).map_or_else(|why| why, |config| format!("{:?}", config.told(Path::new("/w"))))
    }

    #[test]
    fn an_agent_is_told_its_settings_as_text() {
        insta::assert_snapshot!(told(""), @r#"{"approval_timeout": "3600000", "permissions": "ask", "workspace": "/w"}"#);
        let all = "permissions = 'read-only'\napproval_timeout_ms = 1\nsettings = { model = 'x', turns = 3, deep = true, heat = 0.5 }";
        insta::assert_snapshot!(told(all), @r#"{"approval_timeout": "1", "deep": "true", "heat": "0.5", "model": "x", "permissions": "read-only", "turns": "3", "workspace": "/w"}"#);
        let unnamed = Config::default().agent(&AgentId::parse("other").unwrap());
        assert_eq!(unnamed.told(Path::new("/w"))["permissions"], "ask");
    }

    #[test]
    fn each_word_is_told_as_it_is_written() {
        for word in ["ask", "read-only", "edit", "full"] {
            let config = read(&format!("permissions = '{word}'")).unwrap();
            assert_eq!(config.told(Path::new("/w"))["permissions"], word);
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        insta::assert_snapshot!(told("permissions = 'yolo'"), @"unknown variant `yolo`, expected one of `read-only`, `ask`, `edit`, `full`");
        insta::assert_snapshot!(told("settings.permissions = 'full'"), @"set `agents.any.settings.permissions`: say `agents.any.permissions`");
        insta::assert_snapshot!(told("settings.approval_timeout = 1"), @"set `agents.any.settings.approval_timeout`: say `agents.any.approval_timeout_ms`");
        insta::assert_snapshot!(told("settings.workspace = '/'"), @"set `agents.any.settings.workspace`: say `agents.any.workspaces`");
        insta::assert_snapshot!(told("settings.hub_program = '/a'"), @"set `agents.any.settings.hub_program`: say `agents.any.grant.delegate`");
        insta::assert_snapshot!(told("settings.Model = 'x'"), @"set `agents.any.settings.Model`: choose a name of 1 to 64 characters of a-z, 0-9, `_` and `-`");
        insta::assert_snapshot!(told("programs.vibe-acp = 'vibe'"), @"run `vibe` as `agents.any.programs.vibe-acp` says: give it an absolute path");
        insta::assert_snapshot!(told("env = ['*']"), @"pass on `*` as `agents.any.env` says: name a variable, or several by how they begin, such as `VIBE_*`");
        insta::assert_snapshot!(told("settings.tools = ['a']"), @"expected text, a number or a boolean");
    }
}
