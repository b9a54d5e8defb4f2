//! Overview of a configuration for its operator: defaults that are filled in, settings without a
//! value, and sections of agents that do not exist.

use crate::{names, settings::Config};
use a2a_hub_core::discovery::did_you_mean::nearest;
use a2a_hub_protocol::id::AgentId;
use std::collections::BTreeSet;
use toml::Table;

/// Section `[agents.<id>]` of an agent that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownAgent {
    /// Name of the section.
    pub id: AgentId,
    /// Existing agent with a similar name.
    pub meant: Option<String>,
}

impl Config {
    /// Returns the configuration with the defaults of settings that have no value; `max_tasks` is
    /// the hub's own default.
    #[must_use]
    pub fn with_defaults(&self, max_tasks: u32) -> Self {
        let window = self.idempotency_window().as_millis();
        Self {
            max_tasks: self.max_tasks.or(Some(max_tasks)),
            max_streams: Some(self.max_streams()),
            idempotency_window_ms: u64::try_from(window).ok(),
            ..self.clone()
        }
    }

    /// Lists the sections of agents that are neither among the `known` ones nor remote.
    pub fn unknown_agents(&self, known: &BTreeSet<String>) -> Vec<UnknownAgent> {
        let remote = self.remote.keys().map(AgentId::as_str);
        let known: BTreeSet<&str> = known.iter().map(String::as_str).chain(remote).collect();
        let unknown = self.agents.keys().filter(|id| !known.contains(id.as_str()));
        let found = unknown.map(|id| UnknownAgent {
            id: id.clone(),
            meant: nearest(id.as_str(), known.iter().copied()).map(str::to_owned),
        });
        found.collect()
    }
}

/// Lists the settings with fixed names that have no value in `values`, a whole configuration.
pub fn unset(values: &Table) -> Vec<String> {
    let is_set = |path: &[String]| {
        let (name, sections) = path.split_last()?;
        let mut at = values;
        for section in sections {
            at = at.get(section)?.as_table()?;
        }
        at.get(name)
    };
    let mut unset: Vec<_> =
        names::all::<Config>(&[]).into_iter().filter(|path| is_set(path).is_none()).collect();
    unset.sort();
    unset.iter().map(|path| path.join(".")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_agent_is_found_with_nearest_name() {
        let text = "[agents.ecoh]\n[agents.far]\n[agents.echo]\n[agents.zzz]\n[remote.far]\nurl = 'http://localhost'";
        let config: Config = toml::from_str(text).unwrap();
        let known = ["echo", "codex"].map(str::to_owned).into();
        let found = config.unknown_agents(&known);
        let found: Vec<_> = found.iter().map(|it| (it.id.as_str(), it.meant.as_deref())).collect();
        assert_eq!(found, [("ecoh", Some("echo")), ("zzz", None)]);
    }

    #[test]
    fn defaults_and_unset_settings_are_listed() {
        let config = Config { max_streams: Some(7), ..Config::default() }.with_defaults(2_000);
        let numbers = (config.max_tasks, config.max_streams, config.idempotency_window_ms);
        assert_eq!(numbers, (Some(2_000), Some(7), Some(600_000)));
        let unset = unset(&Table::try_from(&config).unwrap());
        for name in ["public_url", "retention.max_age_days", "telemetry.otlp.endpoint"] {
            assert!(unset.iter().any(|it| it == name), "{name}: {unset:?}");
        }
        assert!(!unset.iter().any(|it| ["max_tasks", "http.port"].contains(&it.as_str())));
    }
}
