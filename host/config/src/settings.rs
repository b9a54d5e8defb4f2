//! Settings of a hub, with their defaults and their checks.

mod extensions;
mod http;
mod logins;
mod repository_file;
mod tls;
mod topics;
mod worktrees;

pub use extensions::ExtensionSettings;
pub use http::Http;
pub use repository_file::RepositoryFile;
pub use tls::{ClientAuth, Tls, TlsClient, TlsVersion};
pub use topics::TopicSettings;
pub use worktrees::{RepositorySettings, WorktreeSettings};

use crate::{
    agent::AgentConfig,
    automation::{schedule::Schedule, trigger::Trigger},
    error::ConfigError,
    finding::Finding,
    login::LoginSettings,
    notify::Notifier,
    plugins::Plugins,
    push::Push,
    registry::Registry,
    remote::Remote,
    routing::{Routing, check_groups, check_handoffs},
    telemetry::Telemetry,
};
use a2a_hub_core::{
    health::circuit_breaker, http_name::HttpName, scheduling::resources::SharedResource,
    task::prices::Price,
};
use a2a_hub_protocol::id::{AgentId, TenantId};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

/// Default path of the unix socket, from the Local Hub specification.
pub const DEFAULT_SOCKET: &str = "/tmp/a2a-hub.sock";

/// The operator's settings of a hub; each section is a field.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Directory of the hub's persistent data: tasks, plugins, its log. By default `~/.a2a-hub`.
    pub data_dir: Option<PathBuf>,
    /// `[socket]`: the unix socket.
    pub socket: Socket,
    /// `[http]`: the HTTP server.
    pub http: Http,
    /// `[tls]`: TLS of the HTTP server.
    pub tls: Tls,
    /// `[logging]`: the log.
    pub logging: Logging,
    /// `[stop]`: the shutdown of the hub.
    pub stop: Stop,
    /// Directories that agents with the process capability may work in, unless their own settings
    /// name others.
    pub workspaces: Vec<PathBuf>,
    /// `[agents.<id>]`: settings of single agents.
    pub agents: BTreeMap<AgentId, AgentConfig>,
    /// `[clients]`: limits for slow clients.
    pub clients: Clients,
    /// `[tenants.<name>]`: tenants, who share the hub with its operator and see nothing of one
    /// another.
    pub tenants: BTreeMap<TenantId, Tenant>,
    /// Public URL of this hub, such as that of a proxy. Cards contain it.
    pub public_url: Option<String>,
    /// Default agent of messages that name none.
    pub default_agent: Option<AgentId>,
    /// Agent whose card is served at the root, in place of the hub's card.
    pub root_agent: Option<AgentId>,
    /// `[health]`: health checks of agents.
    pub health: Health,
    /// `[breaker]`: the circuit breaker of failing agents.
    pub breaker: Breaker,
    /// Maximum number of agents that run at once.
    pub max_tasks: Option<u32>,
    /// Maximum number of open streams over all clients.
    pub max_streams: Option<usize>,
    /// Time within which a repeated message, equal in all that its agent receives, returns the
    /// existing task, in milliseconds; 0 turns deduplication off.
    pub idempotency_window_ms: Option<u64>,
    /// `[contexts]`: retention of conversations.
    pub contexts: Contexts,
    /// `[retention]`: retention of tasks.
    pub retention: Retention,
    /// `[push]`: push notifications.
    pub push: Push,
    /// `[remote.<id>]`: remote agents, by their names in this hub.
    pub remote: BTreeMap<AgentId, Remote>,
    /// `[registry.<id>]`: other hubs and agent registries that are searched for agents as well.
    pub registry: BTreeMap<AgentId, Registry>,
    /// `[aliases]`: groups of agents that do the same work. A message to a group goes to one of its
    /// agents.
    pub aliases: BTreeMap<AgentId, Vec<AgentId>>,
    /// `[routing]`: routing of messages that name a skill or a group.
    pub routing: Routing,
    /// `[prices.<model>]`: prices of models, in dollars per million tokens, for agents that report
    /// tokens and no dollars.
    pub prices: BTreeMap<String, Price>,
    /// `[plugins]`: requirements and compile limits for components.
    pub plugins: Plugins,
    /// `[telemetry]`: export of traces.
    pub telemetry: Telemetry,
    /// `[finding]`: search for agents by their abilities.
    pub finding: Finding,
    /// `[schedule.<id>]`: messages that the hub sends at planned times.
    pub schedule: BTreeMap<String, Schedule>,
    /// `[trigger.<id>]`: messages that the hub sends when something happens.
    pub trigger: BTreeMap<String, Trigger>,
    /// `[login.<id>]`: logins of people and workspaces at the vendors of agents.
    pub login: BTreeMap<String, LoginSettings>,
    /// `[notify.<id>]`: programs and servers that get a message when something needs a person.
    pub notify: BTreeMap<String, Notifier>,
    /// `[worktrees]`: preparation and retention of worktrees.
    pub worktrees: WorktreeSettings,
    /// `[topics]`: retention of messages of topics.
    pub topics: TopicSettings,
    /// `[extensions]`: extensions of A2A that follow drafts.
    pub extensions: ExtensionSettings,
}

/// Retention of conversations.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Contexts {
    /// Age in days after which a conversation without activity is forgotten with its tasks; without
    /// a value, none is.
    pub max_age_days: Option<u32>,
}

/// Retention of finished tasks.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// Age in days after which a finished task is forgotten; without a value, none is.
    pub max_age_days: Option<u32>,
    /// Size of the store in MiB above which the oldest tasks are forgotten; 0 keeps all. A full
    /// disk would stop the hub, so the default sets a limit.
    pub max_mb: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { max_age_days: None, max_mb: 4096 }
    }
}

/// `[socket]`: the unix socket, for programs of this user.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Socket {
    /// Path of the socket.
    pub path: PathBuf,
    /// True if the hub listens on the socket.
    pub enabled: bool,
}

impl Default for Socket {
    fn default() -> Self {
        Self { path: DEFAULT_SOCKET.into(), enabled: true }
    }
}

/// Limits for slow clients.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Clients {
    /// Timeout for sending a complete request, and for reading an answer, in milliseconds.
    pub timeout_ms: u64,
}

impl Default for Clients {
    /// Half a minute: clients are on this machine, so one that is silent for that long is stuck.
    fn default() -> Self {
        Self { timeout_ms: 30_000 }
    }
}

impl Clients {
    /// Timeout for slow clients (slow loris, clients that never read).
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }
}

/// Health checks of agents.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Health {
    /// Interval between two health checks in milliseconds, with a jitter of a tenth.
    pub interval_ms: u64,
}

impl Default for Health {
    /// Every 30 seconds, as in the Local Hub specification.
    fn default() -> Self {
        Self { interval_ms: 30_000 }
    }
}

impl Health {
    /// The pause between two health checks of an agent, before jitter.
    pub fn interval(&self) -> Duration {
        Duration::from_millis(self.interval_ms)
    }
}

/// Circuit breaker of failing agents.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Breaker {
    /// Number of tasks or health checks that must fail in a row before the breaker opens.
    pub failures: u32,
    /// First pause in milliseconds; it doubles with each further failure.
    pub pause_ms: u64,
    /// Longest pause in milliseconds.
    pub max_pause_ms: u64,
}

impl Default for Breaker {
    /// Five failures in a row are no accident; a service takes half a minute to five minutes to
    /// recover.
    fn default() -> Self {
        Self { failures: 5, pause_ms: 30_000, max_pause_ms: 300_000 }
    }
}

impl Breaker {
    /// Converts to the settings of the circuit breaker in `core`.
    pub fn settings(&self) -> circuit_breaker::BreakerSettings {
        circuit_breaker::BreakerSettings {
            failures: self.failures,
            pause: Duration::from_millis(self.pause_ms),
            max_pause: Duration::from_millis(self.max_pause_ms),
        }
    }
}

/// Settings of the log.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Logging {
    /// Lowest level that is logged.
    pub level: Level,
    /// True for lines that people read, false for JSON.
    pub pretty: bool,
}

/// Level of a log line.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Details for finding a fault.
    Debug,
    /// Regular events, such as an agent that joins.
    #[default]
    Info,
    /// Unexpected events.
    Warn,
    /// Failures.
    Error,
}

/// Shutdown of the hub.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stop {
    /// Time that running tasks may still take after the hub was asked to stop, in milliseconds.
    pub drain_ms: u64,
}

impl Default for Stop {
    fn default() -> Self {
        Self { drain_ms: 10_000 }
    }
}

impl Stop {
    /// Time that running tasks may still take during shutdown.
    pub fn drain(&self) -> Duration {
        Duration::from_millis(self.drain_ms)
    }
}

/// `[tenants.<name>]`: a tenant. Its clients show the token in the file `tenants/<name>` of the
/// data directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {}

impl Config {
    /// Names under which the hub is called over HTTP, in addition to its own address: `http.names`,
    /// and that of `public_url`.
    pub fn http_names(&self) -> Vec<HttpName> {
        let published = self.public_url.as_deref().and_then(HttpName::of_url);
        self.http.names.iter().cloned().chain(published).collect()
    }

    /// Directory of the hub's persistent data.
    pub fn data_dir(&self) -> Result<&Path, ConfigError> {
        self.data_dir.as_deref().ok_or(ConfigError::Homeless)
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if !self.http.host.is_loopback() && !self.tls.is_on() {
            return Err(ConfigError::Open(self.http.host));
        }
        self.tls.check()?;
        let mut remote = self.remote.iter();
        remote.try_for_each(|(id, remote)| remote.tls.check(&format!("remote.{id}.tls")))?;
        self.check_numbers()?;
        if self.tenants.contains_key(&TenantId::default()) {
            return Err(ConfigError::NamelessTenant);
        }
        self.plugins.trusted_keys()?;
        for (name, url) in [
            ("public_url", &self.public_url),
            ("telemetry.otlp.endpoint", &self.telemetry.otlp.endpoint),
            ("finding.embeddings.url", &self.finding.embeddings.url),
        ] {
            if let Some(url) = url.as_ref().filter(|url| !is_plain_url(url)) {
                return Err(ConfigError::Url { name, url: url.clone() });
            }
        }
        self.finding.embeddings.check()?;
        for (name, registry) in &self.registry {
            if !is_plain_url(&registry.url) {
                let (name, url) = (name.clone(), registry.url.clone());
                return Err(ConfigError::Registry { name, url });
            }
        }
        self.schedule.iter().try_for_each(|(name, schedule)| schedule.check(name))?;
        self.trigger.iter().try_for_each(|(name, trigger)| trigger.check(name))?;
        if let Some(name) = self.trigger.keys().find(|name| self.schedule.contains_key(*name)) {
            return Err(ConfigError::SameAutomationName(name.clone()));
        }
        self.notify.iter().try_for_each(|(name, notifier)| notifier.check(name))?;
        self.check_logins()?;
        self.worktrees.check(self.http.port)?;
        self.topics.check()?;
        self.check_aliases()?;
        let is_agent = |id: &AgentId| {
            let is_alias = self.agents.values().any(|agent| agent.aliases.contains(id));
            is_alias || self.agents.contains_key(id) || self.remote.contains_key(id)
        };
        check_groups(&self.aliases, is_agent)?;
        check_handoffs(&self.routing, &self.aliases)?;
        for (agent, config) in &self.agents {
            config.check_settings(agent)?;
            config.check_programs(agent)?;
            config.check_acp(agent)?;
            config.check_servers(agent)?;
            config.confined.check(agent, self.http.port)?;
        }
        Ok(())
    }

    /// Agent for which the operator configured this alias.
    pub fn agent_by_alias(&self, alias: &AgentId) -> Option<&AgentId> {
        let mut agents = self.agents.iter();
        agents.find(|(_, config)| config.aliases.contains(alias)).map(|(agent, _)| agent)
    }

    fn check_aliases(&self) -> Result<(), ConfigError> {
        for (agent, config) in &self.agents {
            for alias in &config.aliases {
                let others = self.agents.iter().filter(|(other, _)| *other != agent);
                let other = others.clone().find(|(_, other)| other.aliases.contains(alias));
                let why = match other {
                    Some((other, _)) => format!("`{other}` is called so as well"),
                    None if self.remote.contains_key(alias) => {
                        format!("it is the id of an agent elsewhere, in `remote.{alias}`")
                    }
                    None => continue,
                };
                let (agent, alias) = (agent.clone(), alias.clone());
                return Err(ConfigError::Alias { agent, alias, why });
            }
        }
        Ok(())
    }

    /// Window of the deduplication of messages: ten minutes by default, which is longer than
    /// clients retry.
    pub fn idempotency_window(&self) -> Duration {
        Duration::from_millis(self.idempotency_window_ms.unwrap_or(600_000))
    }

    /// Maximum number of open streams: 2,000 by default, because each costs tens of kilobytes while
    /// its client is slow.
    pub fn max_streams(&self) -> usize {
        let default = SharedResource::Streams.default_total();
        self.max_streams.unwrap_or(usize::try_from(default).unwrap_or(usize::MAX))
    }

    /// The agents of a group, by its name.
    pub fn group(&self, name: &AgentId) -> Option<&[AgentId]> {
        self.aliases.get(name).map(Vec::as_slice)
    }

    /// The settings of one agent.
    pub fn agent(&self, id: &AgentId) -> AgentConfig {
        self.agents.get(id).cloned().unwrap_or_default()
    }
}

/// True if a URL begins with http:// or https://, and ends after its path.
fn is_plain_url(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let is_plain = |rest: &str| !rest.starts_with('/') && !rest.contains(['?', '#', '@', ' ']);
    rest.is_some_and(|rest| !rest.is_empty() && is_plain(rest))
}

/// Reads and checks a configuration; the error is its text.
#[cfg(test)]
pub(crate) fn read_checked(text: &str) -> Result<Config, String> {
    let config: Config = toml::from_str(text).map_err(|why| why.to_string())?;
    config.check().map_err(|why| why.to_string())?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;
    use proptest::prelude::*;

    #[test]
    fn the_specification_defaults() {
        let config: Config = toml::from_str("").unwrap();
        assert_eq!(config.socket.path, Path::new("/tmp/a2a-hub.sock"));
        assert_eq!(config.http.address().to_string(), "127.0.0.1:8080");
        assert!(config.http.enabled && config.socket.enabled);
    }

    #[test]
    fn a_grant_is_a_few_lines() {
        let text = r#"
            workspaces = ["/src"]
            [agents.parrot]
            limits = { memory_mb = 16 }
            [agents.parrot.grant.process.git]
            args = [["log"]]
        "#;
        let config: Config = toml::from_str(text).unwrap();
        let parrot = config.agent(&AgentId::parse("parrot").unwrap());
        assert_eq!(parrot.limits.limits().memory_bytes, 16 << 20);
        assert!(parrot.grant.unwrap().process.contains_key("git"));
    }

    #[test]
    fn a_registry_has_a_url() {
        let read = |text: &str| toml::from_str::<Config>(text).unwrap();
        assert!(read("registry.team.url = 'http://127.0.0.1:8081/'").check().is_ok());
        let wrong = read("registry.team.url = '127.0.0.1'").check().unwrap_err().to_string();
        insta::assert_snapshot!(wrong, @"set `registry.team.url` to `127.0.0.1`: it must be an absolute URL that begins with http:// or https://");
    }

    #[test]
    fn an_alias_is_of_one_agent() {
        let read = |text: &str| {
            let config: Config = toml::from_str(text).unwrap();
            config.check().map(|()| config).map_err(|why| why.to_string())
        };
        let id = |name: &str| AgentId::parse(name).unwrap();
        let good =
            read("agents.codex.aliases = ['coder', 'dev']\nagents.echo.aliases = ['parrot']");
        assert_eq!(good.unwrap().agent_by_alias(&id("dev")), Some(&id("codex")));
        let twice = read("agents.codex.aliases = ['coder']\nagents.echo.aliases = ['coder']");
        insta::assert_snapshot!(twice.unwrap_err(), @"call `codex` `coder` as `agents.codex.aliases` says: `echo` is called so as well; take another alias");
        let elsewhere = read("agents.codex.aliases = ['far']\nremote.far.url = 'http://localhost'");
        insta::assert_snapshot!(elsewhere.unwrap_err(), @"call `codex` `far` as `agents.codex.aliases` says: it is the id of an agent elsewhere, in `remote.far`; take another alias");
        assert!(toml::from_str::<Config>("agents.codex.aliases = ['Not One']").is_err());
    }

    /// Rows of the tables in the reference: each with its key, and the documented default.
    fn documented() -> Vec<(Vec<String>, &'static str)> {
        let page = include_str!("../../../docs/reference/configuration.md");
        let rows = page.lines().filter(|line| line.starts_with("| `") && line.ends_with(" |"));
        let cells = rows.map(|row| row.split(" | ").collect::<Vec<_>>());
        let settings = cells.filter(|cells| cells.len() == 4);
        settings
            .map(|cells| {
                let key = cells[0].trim_start_matches("| ").trim_matches('`');
                (key.split('.').map(str::to_owned).collect(), cells[1])
            })
            .collect()
    }

    fn is_name(part: &str) -> bool {
        part.starts_with('<')
    }

    /// True for a setting of `[routing]` whose type does not list its names.
    fn is_balance(key: &[String]) -> bool {
        let key: Vec<_> = key.iter().map(String::as_str).collect();
        matches!(key[..], ["routing", .., "balance"] | ["routing", _, "on_quota"])
    }

    #[test]
    fn reference_lists_every_setting() {
        let rows: Vec<_> = documented().into_iter().map(|(key, _)| key.join(".")).collect();
        let agent = ["agents", "any"].map(str::to_owned);
        let remote = ["remote", "any"].map(str::to_owned);
        let schedule = ["schedule", "any"].map(str::to_owned);
        let trigger = ["trigger", "any"].map(str::to_owned);
        let notify = ["notify", "any"].map(str::to_owned);
        let login = ["login", "any"].map(str::to_owned);
        let repository = ["worktrees", "repository", "any"].map(str::to_owned);
        let all = [&[][..], &agent, &remote, &schedule, &trigger, &notify, &login, &repository];
        let all = all.map(names::all::<Config>);
        for key in all.into_iter().flatten() {
            let key = key.join(".").replace("repository.any.", "repository.<path>.");
            let key = key.replace(".any.", ".<id>.");
            assert!(rows.contains(&key), "docs/reference/configuration.md: add a row for `{key}`");
        }
    }

    #[test]
    fn reference_lists_no_unknown_setting() {
        for (key, _) in documented() {
            for (at, part) in key.iter().enumerate() {
                let above: Vec<_> = key[..at]
                    .iter()
                    .map(|part| if is_name(part) { "any" } else { part }.to_owned())
                    .collect();
                let is_there = match names::entry_kind::<Config>(&above) {
                    names::EntryKind::Section(fields) => fields.contains(&part.as_str()),
                    names::EntryKind::Names => is_name(part) || is_balance(&key),
                    // A grant is one value with several settings, each of which has a row.
                    names::EntryKind::Value => {
                        is_name(part) || is_balance(&key) || above.iter().any(|it| it == "grant")
                    }
                };
                assert!(is_there, "docs/reference/configuration.md: `{}`", key.join("."));
            }
        }
    }

    #[test]
    fn reference_states_each_default() {
        let defaults: Config = toml::from_str("[agents.any]").unwrap();
        let defaults = toml::Value::try_from(&defaults).unwrap();
        let mut compared = 0;
        // In a build without optimisation another default applies, which the reference states below
        // the table.
        let told =
            documented().into_iter().filter(|(key, _)| key.join(".") != "plugins.compile_cpu_ms");
        for (key, told) in told {
            let mut parts = key.iter().map(|part| if part == "<id>" { "any" } else { part });
            let there = parts.try_fold(&defaults, |at, part| at.get(part));
            // The types have no value for settings that the hub determines at its start, such as
            // `data_dir`.
            let Some(there) = there.filter(|it| !it.is_table()) else { continue };
            let told = told.trim_matches('`');
            let read = toml::from_str::<toml::Table>(&format!("it = {told}"));
            let read = read.ok().and_then(|mut table| table.remove("it"));
            assert_eq!(read.as_ref(), Some(there), "`{}`: `{told}` is told", key.join("."));
            compared += 1;
        }
        assert!(compared > 25, "{compared} defaults are compared");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let unknown = toml::from_str::<Config>("[htttp]\nport = 1").unwrap_err().to_string();
        assert!(unknown.contains("unknown field `htttp`"), "{unknown}");
        let open: Config = toml::from_str("http.host = \"0.0.0.0\"").unwrap();
        assert!(open.check().unwrap_err().to_string().contains("set `tls.cert` and `tls.key`"));
        let never: Config = toml::from_str("health.interval_ms = 0").unwrap();
        assert_eq!(
            never.check().unwrap_err().to_string(),
            "set `health.interval_ms` to 0: it must be from 1 to 86400000"
        );
        for (url, good) in [
            ("https://hub.example/a2a-hub", true),
            ("http://127.0.0.1:8080/", true),
            ("hub.example", false),
            ("https://", false),
            ("https:///x", false),
            ("https://me@hub.example", false),
        ] {
            let config = Config { public_url: Some(url.to_owned()), ..Config::default() };
            assert_eq!(config.check().is_ok(), good, "{url}");
            let mut config = Config::default();
            config.telemetry.otlp.endpoint = Some(url.to_owned());
            assert_eq!(config.check().is_ok(), good, "{url}");
        }
    }

    proptest! {
        /// The fuzz target `config` covers more inputs.
        #[test]
        fn whatever_the_file_says_nothing_breaks(text in ".{0,80}", key in "[a-z_.]{1,20}", value in r#"[-0-9a-z\[\]{}="., ]{0,20}"#) {
            let _ = toml::from_str::<Config>(&text);
            if let Ok(config) = toml::from_str::<Config>(&format!("{key} = {value}")) {
                let _ = config.check();
            }
        }
    }
}
