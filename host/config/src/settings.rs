//! The settings themselves, with their defaults, and what must hold of them.

use crate::{
    agent::AgentConfig,
    error::ConfigError,
    finding::Finding,
    plugins::Plugins,
    push::Push,
    registry::Registry,
    remote::Remote,
    routing::{Routing, check_groups},
    telemetry::Telemetry,
};
use a2a_hub_core::health::circuit_breaker;
use a2a_hub_protocol::id::{AgentId, TenantId};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

/// Where the hub listens, unless it is told otherwise: the path of the Local Hub specification.
pub const DEFAULT_SOCKET: &str = "/tmp/a2a-hub.sock";

/// The operator's settings of a hub; each section is a field.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where the hub keeps what outlives it: tasks, plugins, its log. By default `~/.a2a-hub`.
    pub data_dir: Option<PathBuf>,
    /// `[socket]`: whether and where the unix socket is.
    pub socket: Socket,
    /// `[http]`: whether and where HTTP is served.
    pub http: Http,
    /// What is logged, and how.
    pub logging: Logging,
    /// How the hub stops.
    pub stop: Stop,
    /// Directories that agents with the process capability may work in, unless their own settings name others.
    pub workspaces: Vec<PathBuf>,
    /// Settings of single agents.
    pub agents: BTreeMap<AgentId, AgentConfig>,
    /// How long clients may keep the hub waiting.
    pub clients: Clients,
    /// `[tenants.<name>]`: those who share the hub beside its operator and see nothing of one another.
    pub tenants: BTreeMap<TenantId, Tenant>,
    /// The URL that others reach this hub by, such as that of a proxy: cards tell it.
    pub public_url: Option<String>,
    /// The agent that a message is for which names none.
    pub default_agent: Option<AgentId>,
    /// The agent whose card is found at the root, instead of the hub's own.
    pub root_agent: Option<AgentId>,
    /// How agents are asked how they are.
    pub health: Health,
    /// When an agent that fails is left alone.
    pub breaker: Breaker,
    /// How many tasks may be alive at once, over all agents.
    pub max_tasks: Option<u32>,
    /// How many streams may be open at once, over all clients.
    pub max_streams: Option<usize>,
    /// For how long a message that comes again, the same in all that its agent hears, is answered by the task that it began,
    /// in milliseconds; 0 makes each a task of its own.
    pub idempotency_window_ms: Option<u64>,
    /// How long conversations are kept.
    pub contexts: Contexts,
    /// How long tasks are kept.
    pub retention: Retention,
    /// How notifications are sent to where their clients want them.
    pub push: Push,
    /// Agents elsewhere, by the names they are to have here.
    pub remote: BTreeMap<AgentId, Remote>,
    /// Other hubs, and registries of agents, that are asked for agents besides this one's.
    pub registry: BTreeMap<AgentId, Registry>,
    /// `[aliases]`: groups of agents that do the same work, by their names. A message to a group is given to one of them.
    pub aliases: BTreeMap<AgentId, Vec<AgentId>>,
    /// `[routing]`: how messages are shared out that name a skill or a group.
    pub routing: Routing,
    /// `[plugins]`: what a component must show, and may cost, until it is an agent.
    pub plugins: Plugins,
    /// `[telemetry]`: what the hub tells of itself to whoever gathers traces.
    pub telemetry: Telemetry,
    /// `[finding]`: how agents are found by what they are to do.
    pub finding: Finding,
}

/// How long conversations are kept.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Contexts {
    /// A conversation in which nothing has happened for so many days is forgotten with its tasks; without it, none is.
    pub max_age_days: Option<u32>,
}

/// How long tasks are kept that are over.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// One that ended so many days ago is forgotten; without it, none is.
    pub max_age_days: Option<u32>,
    /// Once everything stored is larger, the oldest are forgotten, in MiB; 0 keeps them all. A disk that runs full would
    /// stop the hub, so there is a limit unless the operator says otherwise.
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
    /// The socket's path.
    pub path: PathBuf,
    /// Whether to listen on it.
    pub enabled: bool,
}

impl Default for Socket {
    fn default() -> Self {
        Self { path: DEFAULT_SOCKET.into(), enabled: true }
    }
}

/// `[http]`: the HTTP server, on loopback.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Http {
    /// Whether to serve HTTP.
    pub enabled: bool,
    /// The address to listen on: loopback only, for there is no TLS yet.
    pub host: IpAddr,
    /// The port to listen on; 0 takes a free one.
    pub port: u16,
}

impl Default for Http {
    fn default() -> Self {
        Self { enabled: true, host: Ipv4Addr::LOCALHOST.into(), port: 8080 }
    }
}

impl Http {
    /// The address and the port.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.host, self.port)
    }
}

/// How long clients may keep the hub waiting.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Clients {
    /// How long one may take to send what it began, and leave what there is for it, in milliseconds.
    pub timeout_ms: u64,
}

impl Default for Clients {
    /// Clients are on this machine: one that does nothing for half a minute is stuck.
    fn default() -> Self {
        Self { timeout_ms: 30_000 }
    }
}

impl Clients {
    /// How long a client may keep the hub waiting (slow loris, clients that never read).
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }
}

/// How agents are asked how they are.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Health {
    /// How often, in milliseconds, give or take a tenth.
    pub interval_ms: u64,
}

impl Default for Health {
    /// Every 30 seconds, as the Local Hub specification has it.
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

/// When an agent that fails is left alone, and for how long.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Breaker {
    /// How many tasks, or health checks, must fail one after the other.
    pub failures: u32,
    /// For how long at first, in milliseconds; twice as long each time it fails again.
    pub pause_ms: u64,
    /// For how long at most, in milliseconds.
    pub max_pause_ms: u64,
}

impl Default for Breaker {
    /// Five failures are no accident; half a minute to five is what a service takes to recover.
    fn default() -> Self {
        Self { failures: 5, pause_ms: 30_000, max_pause_ms: 300_000 }
    }
}

impl Breaker {
    /// As `core` takes it.
    pub fn settings(&self) -> circuit_breaker::Settings {
        circuit_breaker::Settings {
            failures: self.failures,
            pause: Duration::from_millis(self.pause_ms),
            max_pause: Duration::from_millis(self.max_pause_ms),
        }
    }
}

/// What is logged, and how.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Logging {
    /// The least that is worth a line.
    pub level: Level,
    /// Lines for people rather than JSON.
    pub pretty: bool,
}

/// How much a log line matters.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// For those who look for a fault.
    Debug,
    /// Also what happens in order, such as an agent that joins.
    #[default]
    Info,
    /// What should not happen.
    Warn,
    /// What must not happen.
    Error,
}

/// How the hub stops.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stop {
    /// How long tasks that are at work may go on once the hub is told to stop, in milliseconds.
    pub drain_ms: u64,
}

impl Default for Stop {
    fn default() -> Self {
        Self { drain_ms: 10_000 }
    }
}

impl Stop {
    /// How long tasks that are at work may go on.
    pub fn drain(&self) -> Duration {
        Duration::from_millis(self.drain_ms)
    }
}

/// `[tenants.<name>]`: a tenant, whose clients show the token in the file `tenants/<name>` of the data directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {}

impl Config {
    /// Where the hub keeps its data.
    pub fn data_dir(&self) -> Result<&Path, ConfigError> {
        self.data_dir.as_deref().ok_or(ConfigError::Homeless)
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if !self.http.host.is_loopback() {
            return Err(ConfigError::Open(self.http.host));
        }
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
        self.check_aliases()?;
        let is_agent = |id: &AgentId| {
            let is_alias = self.agents.values().any(|agent| agent.aliases.contains(id));
            is_alias || self.agents.contains_key(id) || self.remote.contains_key(id)
        };
        check_groups(&self.aliases, is_agent)?;
        for (agent, config) in &self.agents {
            config.check_settings(agent)?;
            config.check_programs(agent)?;
            config.check_servers(agent)?;
            config.confined.check(agent, self.http.port)?;
        }
        Ok(())
    }

    /// The agent that the operator calls `alias`, beside its id.
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

    /// For how long a message that comes again is known: ten minutes unless said, which is longer than clients try again.
    pub fn idempotency_window(&self) -> Duration {
        Duration::from_millis(self.idempotency_window_ms.unwrap_or(600_000))
    }

    /// How many streams may be open at once: 2,000 unless said, for each costs tens of kilobytes while its client is slow.
    pub fn max_streams(&self) -> usize {
        self.max_streams.unwrap_or(2_000)
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

/// Whether a URL begins with http:// or https://, and has nothing after a path.
fn is_plain_url(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let is_plain = |rest: &str| !rest.starts_with('/') && !rest.contains(['?', '#', '@', ' ']);
    rest.is_some_and(|rest| !rest.is_empty() && is_plain(rest))
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

    /// The rows of the reference's tables: the key, and the default as it stands there.
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

    /// Whether a setting of `[routing]` is told, whose types do not tell their names.
    fn is_balance(key: &[String]) -> bool {
        matches!(key.iter().map(String::as_str).collect::<Vec<_>>()[..], ["routing", .., "balance"])
    }

    #[test]
    fn reference_lists_every_setting() {
        let rows: Vec<_> = documented().into_iter().map(|(key, _)| key.join(".")).collect();
        let agent = ["agents", "any"].map(str::to_owned);
        let remote = ["remote", "any"].map(str::to_owned);
        let all = [&[][..], &agent, &remote].map(names::all::<Config>);
        for key in all.into_iter().flatten() {
            let key = key.join(".").replace(".any.", ".<id>.");
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
                let is_there = match names::place::<Config>(&above) {
                    names::Place::Section(fields) => fields.contains(&part.as_str()),
                    names::Place::Names => is_name(part) || is_balance(&key),
                    // A grant says several things in one value, of which each has a row.
                    names::Place::Value => {
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
        // A hub that the compiler did not optimise has another default, which is told below the table.
        let told =
            documented().into_iter().filter(|(key, _)| key.join(".") != "plugins.compile_cpu_ms");
        for (key, told) in told {
            let mut parts = key.iter().map(|part| if part == "<id>" { "any" } else { part });
            let there = parts.try_fold(&defaults, |at, part| at.get(part));
            // What has no value in the types is found out when the hub starts, such as `data_dir`.
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
        assert!(open.check().unwrap_err().to_string().contains("loopback only"));
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
        /// The fuzz target `config` goes further.
        #[test]
        fn whatever_the_file_says_nothing_breaks(text in ".{0,80}", key in "[a-z_.]{1,20}", value in r#"[-0-9a-z\[\]{}="., ]{0,20}"#) {
            let _ = toml::from_str::<Config>(&text);
            if let Ok(config) = toml::from_str::<Config>(&format!("{key} = {value}")) {
                let _ = config.check();
            }
        }
    }
}
