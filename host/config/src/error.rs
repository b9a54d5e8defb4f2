//! Every way in which settings cannot be followed, and where a setting came from.

use a2a_hub_core::{granted_limits::OutOfRange, signature::InvalidKey};
use a2a_hub_protocol::{expected::plain, id::AgentId};
use std::{fmt, io, net::IpAddr, path::PathBuf};

/// Settings that cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("read the configuration {path}: {why}")]
    Unreadable {
        /// The configuration file.
        path: PathBuf,
        /// The system's error.
        why: io::Error,
    },
    /// The file that is named is not there.
    #[error(
        "read the configuration {path}, which `{named_by}` names: it is not there; make it, or leave `{named_by}` out"
    )]
    Missing {
        /// Where it should be.
        path: PathBuf,
        /// The flag or the variable that names it.
        named_by: &'static str,
    },
    /// The file does not say what a configuration does.
    #[error("read the configuration {path}: {why}")]
    Toml {
        /// The configuration file.
        path: PathBuf,
        /// The line of the file, and what is wrong with it.
        why: Box<toml::de::Error>,
    },
    /// Nothing is called that.
    #[error("read {place}: no setting is called `{name}`; {hint}")]
    Unknown {
        /// What was to be set.
        name: String,
        /// The file, the variable or the flag that names it.
        place: String,
        /// What it may have been meant to be.
        hint: String,
    },
    /// A setting cannot have that value.
    #[error("set `{key}` as {origin} says: {}", plain(why.message()))]
    Value {
        /// The setting by its path, such as `http.port`.
        key: String,
        /// The layer that has the value.
        origin: Origin,
        /// What is wrong with it.
        why: Box<toml::de::Error>,
    },
    /// A variable cannot be read.
    #[error("read the environment: {0} is not UTF-8; set it to text")]
    NotText(String),
    /// There is no home directory to keep data in.
    #[error("find a place for the hub's data: HOME is not set; name one with --data-dir")]
    Homeless,
    /// HTTP would be open to others.
    #[error(
        "listen on {0}: this hub has no TLS yet, so it serves HTTP on loopback only; set `http.host` to 127.0.0.1 or ::1"
    )]
    Open(IpAddr),
    /// A number is nothing that can be followed.
    #[error("set `{name}` to {value}: {why}")]
    Range {
        /// The setting by its path, such as `clients.timeout_ms`.
        name: String,
        /// What it was to be.
        value: u64,
        /// What it can be.
        why: OutOfRange,
    },
    /// A tenant has no name.
    #[error(
        "set `tenants`: a tenant has a name, as in `[tenants.acme]`; who names none is of the default tenant"
    )]
    NamelessTenant,
    /// Nobody could be reached by that.
    #[error(
        "set `{name}` to `{url}`: it must be an absolute URL that begins with http:// or https://"
    )]
    Url {
        /// The setting.
        name: &'static str,
        /// What it was set to.
        url: String,
    },
    /// An agent could never run.
    #[error("run no task of `{0}`: set its `max_running` to 1 or more, or its `enabled` to false")]
    Idle(AgentId),
    /// No registry could be reached by that.
    #[error(
        "set `registry.{name}.url` to `{url}`: it must be an absolute URL that begins with http:// or https://"
    )]
    Registry {
        /// The registry, as the operator calls it.
        name: AgentId,
        /// What its URL was set to.
        url: String,
    },
    /// Texts cannot be sent to a server of embeddings so.
    #[error("set `finding.embeddings.{name}`: {why}")]
    Embeddings {
        /// The setting.
        name: &'static str,
        /// What to do instead.
        why: &'static str,
    },
    /// An alias would be of two agents, or is an agent's id.
    #[error("call `{agent}` `{alias}` as `agents.{agent}.aliases` says: {why}; take another alias")]
    Alias {
        /// The agent that is to be called so.
        agent: AgentId,
        /// The alias.
        alias: AgentId,
        /// Whose name it is.
        why: String,
    },
    /// A group of agents is none.
    #[error(
        "call agents `{group}` as `aliases.{group}` says: {why}; take another name, or other agents"
    )]
    Group {
        /// The group's name.
        group: AgentId,
        /// What is wrong with it.
        why: String,
    },
    /// An agent's setting cannot be called that.
    #[error("set `agents.{agent}.settings.{name}`: {way_out}")]
    Setting {
        /// The agent that the setting is for.
        agent: AgentId,
        /// The name that was given to the setting.
        name: String,
        /// What to do instead.
        way_out: String,
    },
    /// A confined program cannot be given that.
    #[error("set `agents.{agent}.confined.{name}`: {why}")]
    Confined {
        /// The agent that the setting is for.
        agent: AgentId,
        /// The setting.
        name: String,
        /// Why not, and what to do instead.
        why: String,
    },
    /// A server of tools cannot be started so.
    #[error("set `agents.{agent}.mcp.{name}`: {why}")]
    Server {
        /// The agent that the setting is for.
        agent: AgentId,
        /// The server, as the operator calls it.
        name: String,
        /// Why not, and what to do instead.
        why: String,
    },
    /// Where a program is depends on where somebody stands.
    #[error("run `{path}` as `agents.{agent}.programs.{name}` says: give it an absolute path")]
    Relative {
        /// The agent that the setting is for.
        agent: AgentId,
        /// The program, as the manifest calls it.
        name: String,
        /// Where it was said to be.
        path: String,
    },
    /// A word names no variable.
    #[error(
        "pass on `{word}` as `agents.{agent}.env` says: name a variable, or several by how they begin, such as `VIBE_*`"
    )]
    Variable {
        /// The agent that the setting is for.
        agent: AgentId,
        /// The word that was to name a variable.
        word: String,
    },
    /// A key cannot verify any signature.
    #[error("set `plugins.keys`: {0}")]
    Key(#[from] InvalidKey),
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// No layer sets it: the default of the hub.
    Default,
    /// The configuration file at this path.
    File(PathBuf),
    /// A variable of the environment.
    Variable(String),
    /// The command line, by this flag.
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
