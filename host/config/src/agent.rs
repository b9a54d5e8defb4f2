//! Settings of one agent, and the named texts that the agent can read of them.

use crate::{confined::Confined, error::ConfigError, mcp::McpServer};
use a2a_hub_core::{
    grant::{
        Grant,
        permissions::Permissions,
        resource_limits::{GrantedLimits, LimitName},
    },
    scheduling::{process_pool::PoolCapacity, task_admission},
    task::{quota::QuotaReaction, tree_budget::TreeLimits},
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
    /// True to load the agent.
    pub enabled: bool,
    /// Command line of a program that speaks the Agent Client Protocol, such as `["opencode",
    /// "acp"]`: the agent drives this program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub acp: Vec<String>,
    /// Further names of the agent: a message to an alias is for this agent. An alias must not be
    /// the id of another agent.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub aliases: BTreeSet<AgentId>,
    /// Capabilities of the agent. By default, bundled agents get what their manifest asks for,
    /// plug-ins get nothing.
    pub grant: Option<Grant>,
    /// Paths of programs that are not on the hub's `PATH`, by the manifest's names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<String, String>,
    /// Environment variables passed to all its programs beside those of the manifest, in the same
    /// syntax.
    pub env: BTreeSet<String>,
    /// True to confine its programs by the kernel. By default programs of plug-ins are confined,
    /// those of bundled agents are not.
    pub confine: Option<bool>,
    /// Further permissions of its confined programs.
    pub confined: Confined,
    /// MCP servers whose tools the agent may be granted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp: BTreeMap<String, McpServer>,
    /// People, and `tenant:NAME` for tenants, whose tasks use the operator's own login although the
    /// agent has logins of people or workspaces.
    pub default_login: BTreeSet<String>,
    /// Directories in which it may work, in place of the hub's `workspaces`.
    pub workspaces: Option<Vec<PathBuf>>,
    /// Permissions of the program that it drives, without asking.
    pub permissions: Permissions,
    /// Timeout of its questions for permission in milliseconds, after which they count as denied.
    /// The default is an hour: a person at the machine has seen the question by then, and a waiting
    /// task holds a program.
    pub approval_timeout_ms: u64,
    /// Settings that only the agent itself interprets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, SettingText>,
    /// Resource limits.
    pub limits: LimitsConfig,
    /// Maximum run time of a task, in milliseconds.
    pub timeout_ms: u64,
    /// Timeout for the client's answer, in milliseconds, if the agent's own is longer.
    pub answer_timeout_ms: u64,
    /// Limit of running tasks. The default is 8 if the agent may start programs, since a coding
    /// agent takes a core and a gigabyte, and 64 otherwise.
    pub max_running: Option<usize>,
    /// Limit of queued tasks; more are refused.
    pub max_queued: usize,
    /// Limit of tasks that wait for their client's answer and use capacity; more tasks are refused
    /// meanwhile. A task that can be replayed with the answer is evicted if capacity is needed, and
    /// does not count.
    pub max_waiting: usize,
    /// Reaction if the quota of its account is used up. By default the setting of the group decides
    /// that the client named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_quota: Option<QuotaReaction>,
    /// Longest wait for the reset of a quota, in milliseconds.
    pub quota_wait_ms: u64,
    /// Name of the login that it shares with other agents: all of them wait if its quota is used
    /// up. By default the agent has an account that no other agent uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Number of earlier messages of the conversation that a new task gets.
    pub history: usize,
    /// SHA-256 digest that its component must have, in hex.
    pub sha256: Option<String>,
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            acp: Vec::new(),
            aliases: BTreeSet::new(),
            grant: None,
            programs: BTreeMap::new(),
            env: BTreeSet::new(),
            confine: None,
            confined: Confined::default(),
            mcp: BTreeMap::new(),
            default_login: BTreeSet::new(),
            workspaces: None,
            permissions: Permissions::default(),
            approval_timeout_ms: 24 * 60 * 60 * 1000,
            settings: BTreeMap::new(),
            limits: LimitsConfig::default(),
            // A working coding agent is slow, not stuck.
            timeout_ms: 30 * 60 * 1000,
            // People sleep; after that the task's resources are released.
            answer_timeout_ms: 24 * 60 * 60 * 1000,
            max_running: None,
            // More than anybody watches.
            max_queued: 64,
            // A sixteenth of the total capacity.
            max_waiting: 256,
            on_quota: None,
            // Vendors reset their quotas after some hours, and after a week.
            quota_wait_ms: 24 * 60 * 60 * 1000,
            account: None,
            // A long conversation that still fits any model.
            history: 50,
            sha256: None,
        }
    }
}

impl AgentConfig {
    /// Maximum run time of a task.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// Timeout for the client's answer.
    pub fn answer_timeout(&self) -> Duration {
        Duration::from_millis(self.answer_timeout_ms)
    }

    /// Longest wait for the reset of a quota.
    pub fn quota_wait(&self) -> Duration {
        Duration::from_millis(self.quota_wait_ms)
    }

    /// Limits of the tree of tasks below one of its tasks.
    pub fn tree_limits(&self) -> TreeLimits {
        let (tree, default) = (self.limits.tree, TreeLimits::default());
        TreeLimits {
            depth: tree.depth.unwrap_or(default.depth),
            tasks: tree.tasks.unwrap_or(default.tasks),
            tokens: tree.tokens,
            cost_usd: tree.cost_usd,
        }
    }

    /// Limits of running and waiting tasks. The default depends on whether they may start programs.
    pub fn quota(&self, runs_programs: bool) -> task_admission::QuotaLimits {
        let max_running = self.max_running.unwrap_or(if runs_programs { 8 } else { 64 });
        task_admission::QuotaLimits {
            max_running,
            max_queued: self.max_queued,
            max_waiting: self.max_waiting,
        }
    }
}

/// Resource limits of an agent's run; the defaults are those of [`Limits::default`].
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Memory of one run in MiB: the sum of its linear memories.
    pub memory_mb: Option<usize>,
    /// CPU time, in milliseconds.
    pub cpu_ms: Option<u64>,
    /// Events that one run may emit.
    pub events: Option<u64>,
    /// Total bytes of the events.
    pub output_bytes: Option<u64>,
    /// Bytes that one run may log.
    pub log_bytes: Option<u64>,
    /// HTTP requests that one run may send.
    pub http_requests: Option<u64>,
    /// Total bytes of the requests and their responses.
    pub http_bytes: Option<u64>,
    /// Bytes that one run may write to files of its workspace.
    pub workspace_bytes: Option<u64>,
    /// Files and directories that one run may create in its workspace.
    pub workspace_files: Option<u64>,
    /// Events per second; a run that exceeds this is delayed.
    pub events_per_second: Option<u64>,
    /// Bytes of events per second.
    pub output_bytes_per_second: Option<u64>,
    /// Log lines per second.
    pub log_lines_per_second: Option<u64>,
    /// Memory accesses per second.
    pub memory_calls_per_second: Option<u64>,
    /// Files written per second.
    pub files_per_second: Option<u64>,
    /// Programs started per second.
    pub programs_per_second: Option<u64>,
    /// Idle programs that the agent may keep between its tasks. The default is 4; with 0 each task
    /// starts its own.
    pub kept_programs: Option<usize>,
    /// Time after which an idle program is ended, in milliseconds. The default is ten minutes.
    pub kept_idle_ms: Option<u64>,
    /// Total memory of its idle programs in MiB. The default is 2048.
    pub kept_memory_mb: Option<u64>,
    /// Limits of the tree of tasks below one of its tasks.
    pub tree: TreeConfig,
}

/// Limits of the programs that an agent keeps between its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleLimits {
    /// Number of programs, and their total memory.
    pub capacity: PoolCapacity,
    /// Time after which an idle program is ended.
    pub idle: Duration,
}

impl Default for IdleLimits {
    fn default() -> Self {
        // People use a few agents at once and think for minutes; a coding agent takes half a
        // gigabyte.
        Self {
            capacity: PoolCapacity { programs: 4, bytes: 2 << 30 },
            idle: Duration::from_secs(10 * 60),
        }
    }
}

/// Limits of the tree of tasks below one task; the defaults are those of [`TreeLimits::default`].
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct TreeConfig {
    /// Levels of tasks below the task.
    pub depth: Option<u32>,
    /// Total number of tasks below the task.
    pub tasks: Option<u32>,
    /// Tokens of the tasks below it, as their agents report them.
    pub tokens: Option<u64>,
    /// Cost in dollars of the tasks below it, as their agents report it.
    pub cost_usd: Option<f64>,
}

impl LimitsConfig {
    /// Limits that are set, by name.
    pub(crate) fn configured(&self) -> impl Iterator<Item = (LimitName, u64)> {
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

    /// Replaces limits by those of a grant.
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
                    self.kept_programs = number.and_then(|count| usize::try_from(count).ok());
                }
                LimitName::KeptIdleMs => self.kept_idle_ms = number,
                LimitName::KeptMemoryMb => self.kept_memory_mb = number,
            }
        }
        self
    }

    /// Limits of idle programs, with defaults for those not set.
    pub fn idle_limits(&self) -> IdleLimits {
        let default = IdleLimits::default();
        IdleLimits {
            capacity: PoolCapacity {
                programs: self.kept_programs.unwrap_or(default.capacity.programs),
                bytes: self
                    .kept_memory_mb
                    .map_or(default.capacity.bytes, |mb| mb.saturating_mul(1 << 20)),
            },
            idle: self.kept_idle_ms.map_or(default.idle, Duration::from_millis),
        }
    }

    /// Limits, with defaults for those not set.
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

/// Setting that only the agent interprets. Numbers and booleans are converted to text.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "RawSetting")]
pub struct SettingText(String);

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected text, a number or a boolean")]
enum RawSetting {
    Text(String),
    Flag(bool),
    Whole(i64),
    Fraction(f64),
}

impl From<RawSetting> for SettingText {
    fn from(raw: RawSetting) -> Self {
        Self(match raw {
            RawSetting::Text(text) => text,
            RawSetting::Flag(flag) => flag.to_string(),
            RawSetting::Whole(number) => number.to_string(),
            RawSetting::Fraction(number) => number.to_string(),
        })
    }
}

/// Maximum length of a setting's name.
const MAX_NAME: usize = 64;

/// Names reserved for the hub, each with the hub's setting that controls it.
const RESERVED: &[(&str, &str)] = &[
    ("acp", "acp"),
    ("permissions", "permissions"),
    ("approval_timeout", "approval_timeout_ms"),
    ("workspace", "workspaces"),
    ("hub_program", "grant.delegate"),
    ("hub_socket", "grant.delegate"),
];

impl AgentConfig {
    /// Settings as the agent reads them, by name; `workspace` is the default working directory of
    /// its programs.
    pub fn effective_settings(&self, workspace: &Path) -> BTreeMap<String, String> {
        let configured =
            self.settings.iter().map(|(name, SettingText(text))| (name.clone(), text.clone()));
        let mut settings: BTreeMap<_, _> = configured.collect();
        settings.insert("permissions".to_owned(), self.permissions.word().to_owned());
        settings.insert("approval_timeout".to_owned(), self.approval_timeout_ms.to_string());
        settings.insert("workspace".to_owned(), workspace.display().to_string());
        settings
    }

    /// Checks the paths of its programs and the names of their environment variables.
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

    /// Checks its MCP servers.
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
            let way_out =
                if let Some((_, key)) = RESERVED.iter().find(|(reserved, _)| reserved == name) {
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
        read(agent).map_or_else(
            |why| why,
            |config| format!("{:?}", config.effective_settings(Path::new("/w"))),
        )
    }

    #[test]
    fn agent_reads_settings_as_text() {
        insta::assert_snapshot!(told(""), @r#"{"approval_timeout": "86400000", "permissions": "ask", "workspace": "/w"}"#);
        let all = "permissions = 'read-only'\napproval_timeout_ms = 1\nsettings = { model = 'x', turns = 3, deep = true, heat = 0.5 }";
        insta::assert_snapshot!(told(all), @r#"{"approval_timeout": "1", "deep": "true", "heat": "0.5", "model": "x", "permissions": "read-only", "turns": "3", "workspace": "/w"}"#);
        let unnamed = Config::default().agent(&AgentId::parse("other").unwrap());
        assert_eq!(unnamed.effective_settings(Path::new("/w"))["permissions"], "ask");
    }

    #[test]
    fn permission_words_round_trip() {
        for word in ["ask", "read-only", "edit", "full"] {
            let config = read(&format!("permissions = '{word}'")).unwrap();
            assert_eq!(config.effective_settings(Path::new("/w"))["permissions"], word);
        }
    }

    #[test]
    fn invalid_settings_are_explained() {
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
