//! Errors of the configuration, and the origin of a setting.

use a2a_hub_core::{grant::resource_limits::OutOfRange, plugin::signature::InvalidKey};
use a2a_hub_protocol::{expected::plain, id::AgentId};
use std::{fmt, io, net::IpAddr, path::PathBuf};

/// Error in the configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("read the configuration {path}: {why}")]
    Unreadable {
        /// Path of the configuration file.
        path: PathBuf,
        /// Error of the system.
        why: io::Error,
    },
    /// The named file does not exist.
    #[error(
        "read the configuration {path}, which `{named_by}` names: it is not there; make it, or leave `{named_by}` out"
    )]
    Missing {
        /// Path of the missing file.
        path: PathBuf,
        /// Flag or variable that names the file.
        named_by: &'static str,
    },
    /// The file is not valid TOML.
    #[error("read the configuration {path}: {why}")]
    Toml {
        /// Path of the configuration file.
        path: PathBuf,
        /// Line and column of the error, and the way out.
        why: String,
    },
    /// The setting does not exist.
    #[error("read {location}: no setting is called `{name}`; {hint}")]
    Unknown {
        /// Name of the setting.
        name: String,
        /// File, variable or flag that names the setting.
        location: String,
        /// Suggestion of a similar setting.
        hint: String,
    },
    /// The setting has an invalid value.
    #[error("set `{key}` as {origin} says: {}", plain(why.message()))]
    Value {
        /// Path of the setting, such as `http.port`.
        key: String,
        /// Layer that sets the value.
        origin: Origin,
        /// Error of the value.
        why: Box<toml::de::Error>,
    },
    /// The environment variable is not UTF-8.
    #[error("read the environment: {0} is not UTF-8; set it to text")]
    NotText(String),
    /// No home directory is set, so the data directory is unknown.
    #[error("find a place for the hub's data: HOME is not set; name one with --data-dir")]
    Homeless,
    /// HTTP would be open to other machines.
    #[error(
        "listen on {0}: everybody on the way would read plain HTTP; set `tls.cert` and `tls.key`, or set `http.host` to \
         127.0.0.1 or ::1 and let a web server with TLS pass requests on"
    )]
    Open(IpAddr),
    /// The setting of TLS is invalid.
    #[error("set `tls.{setting}`: {why}")]
    Tls {
        /// Name of the setting.
        setting: &'static str,
        /// Reason, and way out.
        why: String,
    },
    /// The setting of TLS of outgoing connections is missing.
    #[error("set `{setting}`: {why}")]
    ClientTls {
        /// Path of the setting, such as `remote.far.tls.key`.
        setting: String,
        /// Reason, and way out.
        why: String,
    },
    /// The number is out of range.
    #[error("set `{name}` to {value}: {why}")]
    Range {
        /// Path of the setting, such as `clients.timeout_ms`.
        name: String,
        /// Value of the setting.
        value: u64,
        /// Allowed range.
        why: OutOfRange,
    },
    /// The price is no amount of money.
    #[error("set `{name}` to {dollars}: it must be from 0 to {max} dollars per million tokens")]
    Price {
        /// Path of the setting, such as `prices.gpt-5.input`.
        name: String,
        /// Value of the setting.
        dollars: f64,
        /// Largest allowed value.
        max: f64,
    },
    /// The tenant has an empty name.
    #[error(
        "set `tenants`: a tenant has a name, as in `[tenants.acme]`; who names none is of the default tenant"
    )]
    NamelessTenant,
    /// The URL is not an absolute HTTP URL.
    #[error(
        "set `{name}` to `{url}`: it must be an absolute URL that begins with http:// or https://"
    )]
    Url {
        /// Name of the setting.
        name: &'static str,
        /// Value of the setting.
        url: String,
    },
    /// The agent's limits allow no task.
    #[error("run no task of `{0}`: set its `max_running` to 1 or more, or its `enabled` to false")]
    Idle(AgentId),
    /// The URL of the registry is not an absolute HTTP URL.
    #[error(
        "set `registry.{name}.url` to `{url}`: it must be an absolute URL that begins with http:// or https://"
    )]
    Registry {
        /// Name of the registry.
        name: AgentId,
        /// Value of the URL.
        url: String,
    },
    /// The settings of the embeddings server are incomplete or invalid.
    #[error("set `finding.embeddings.{name}`: {why}")]
    Embeddings {
        /// Name of the setting.
        name: &'static str,
        /// Way out.
        why: &'static str,
    },
    /// The alias is used twice, or is the id of another agent.
    #[error("call `{agent}` `{alias}` as `agents.{agent}.aliases` says: {why}; take another alias")]
    Alias {
        /// Agent with the alias.
        agent: AgentId,
        /// Alias.
        alias: AgentId,
        /// Owner of the name.
        why: String,
    },
    /// The group of agents is invalid.
    #[error(
        "call agents `{group}` as `aliases.{group}` says: {why}; take another name, or other agents"
    )]
    Group {
        /// Name of the group.
        group: AgentId,
        /// Reason.
        why: String,
    },
    /// Tasks of the group cannot be handed over.
    #[error("hand tasks of `{group}` over as `routing.{group}.on_quota` says: {why}")]
    OnQuota {
        /// Name of the group.
        group: String,
        /// Reason.
        why: String,
    },
    /// The setting of a schedule, trigger, notifier or login is missing or invalid.
    #[error("set `{kind}.{name}.{key}`: {why}")]
    Automation {
        /// `schedule` or `trigger`.
        kind: &'static str,
        /// Name of the schedule or trigger.
        name: String,
        /// Name of the setting.
        key: String,
        /// Reason, and way out.
        why: String,
    },
    /// The schedule or trigger has a name that tasks cannot carry.
    #[error(
        "call a {kind} `{name}`: a name has 1 to {max_length} of a-z, 0-9, `-` and `_`; take such a name"
    )]
    AutomationName {
        /// `schedule` or `trigger`.
        kind: &'static str,
        /// Name of the schedule or trigger.
        name: String,
        /// Maximum length.
        max_length: usize,
    },
    /// A schedule and a trigger have one name, which would identify two senders of messages.
    #[error("call a trigger `{0}`: a schedule has that name; take another one")]
    SameAutomationName(String),
    /// The setting of worktrees is invalid.
    #[error("set `worktrees.{key}`: {why}")]
    Worktrees {
        /// Name of the setting.
        key: String,
        /// Reason, and way out.
        why: String,
    },
    /// The setting of topics is invalid.
    #[error("set `topics.{key}`: {why}")]
    Topics {
        /// Name of the setting.
        key: &'static str,
        /// Reason, and way out.
        why: String,
    },
    /// The name of an agent's setting is invalid.
    #[error("set `agents.{agent}.settings.{name}`: {way_out}")]
    Setting {
        /// Agent of the setting.
        agent: AgentId,
        /// Name of the setting.
        name: String,
        /// Way out.
        way_out: String,
    },
    /// The confined program may not be given that.
    #[error("set `agents.{agent}.confined.{name}`: {why}")]
    Confined {
        /// Agent of the setting.
        agent: AgentId,
        /// Name of the setting.
        name: String,
        /// Reason, and way out.
        why: String,
    },
    /// The MCP server cannot be started.
    #[error("set `agents.{agent}.mcp.{name}`: {why}")]
    Server {
        /// Agent of the setting.
        agent: AgentId,
        /// Name of the server.
        name: String,
        /// Reason, and way out.
        why: String,
    },
    /// The program's path is relative, so it would depend on the working directory.
    #[error("run `{path}` as `agents.{agent}.programs.{name}` says: give it an absolute path")]
    Relative {
        /// Agent of the setting.
        agent: AgentId,
        /// Name of the program in the manifest.
        name: String,
        /// Path of the program.
        path: String,
    },
    /// The command line of a program of the Agent Client Protocol is invalid.
    #[error("drive the program that `agents.{agent}.acp` names: {why}")]
    Acp {
        /// Agent of the setting.
        agent: AgentId,
        /// Reason, and way out.
        why: String,
    },
    /// The word does not name environment variables.
    #[error(
        "pass on `{word}` as `agents.{agent}.env` says: name a variable, or several by how they begin, such as `VIBE_*`"
    )]
    Variable {
        /// Agent of the setting.
        agent: AgentId,
        /// Word.
        word: String,
    },
    /// The key is not a valid public key for signatures.
    #[error("set `plugins.keys`: {0}")]
    Key(#[from] InvalidKey),
}

/// Layer that sets a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Default of the hub: no layer sets the value.
    Default,
    /// Configuration file.
    File(PathBuf),
    /// Environment variable.
    Variable(String),
    /// Flag of the command line.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => write!(f, "the default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Variable(name) => write!(f, "{name}"),
            Self::Flag(name) => write!(f, "{name}"),
        }
    }
}
