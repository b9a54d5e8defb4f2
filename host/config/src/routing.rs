//! Groups of agents, and the distribution of messages among equivalent agents.

use crate::error::ConfigError;
use a2a_hub_core::routing::Balance;
use a2a_hub_protocol::id::AgentId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// `[routing]`: distribution of messages that name a skill or a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Routing {
    /// Default strategy.
    pub balance: Balance,
    /// `[routing.<name>]`: strategy of one skill, by its id, or of one group.
    #[serde(flatten)]
    pub by_name: BTreeMap<String, RouteConfig>,
}

/// Distribution of messages that name one skill or one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct RouteConfig {
    /// Strategy: `round-robin`, `least-loaded`, `latency` or `affinity`; by default that of all
    /// messages.
    pub balance: Option<Balance>,
    /// Reaction to a failure for lack of quota or login; groups only.
    pub on_quota: OnQuota,
}

/// Reaction if the agent that a group chose fails because its quota is used up, or because it is
/// not logged in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnQuota {
    /// The task fails.
    #[default]
    Fail,
    /// The hub hands the task over to another agent of the group.
    Handoff,
}

impl Routing {
    /// Strategy for messages that name this skill or this group. The skill's setting takes
    /// precedence.
    pub fn balance(&self, skill: Option<&str>, group: Option<&AgentId>) -> Balance {
        let names = skill.into_iter().chain(group.map(AgentId::as_str));
        let mut named = names.filter_map(|name| self.by_name.get(name)?.balance);
        named.next().unwrap_or(self.balance)
    }

    /// Reaction if an agent of this group fails for lack of quota or login.
    pub fn on_quota(&self, group: &AgentId) -> OnQuota {
        self.by_name.get(group.as_str()).map(|route| route.on_quota).unwrap_or_default()
    }
}

/// Checks that only groups with another agent to hand over to do so.
pub(crate) fn check_handoffs(
    routing: &Routing,
    groups: &BTreeMap<AgentId, Vec<AgentId>>,
) -> Result<(), ConfigError> {
    let handing = routing.by_name.iter().filter(|(_, it)| it.on_quota == OnQuota::Handoff);
    for (name, _) in handing {
        let group = groups.iter().find(|(group, _)| group.as_str() == name);
        let why = match group.map(|(_, agents)| agents.iter().collect::<BTreeSet<_>>().len()) {
            None => format!("no group is called so; add `aliases.{name} = [\"AGENT\", \"AGENT\"]`"),
            Some(0 | 1) => format!("the group has one agent; add another one to `aliases.{name}`"),
            Some(_) => continue,
        };
        return Err(ConfigError::OnQuota { group: name.clone(), why });
    }
    Ok(())
}

/// Checks that each group has a name of no configured agent, has members, and contains no other
/// group.
pub(crate) fn check_groups(
    groups: &BTreeMap<AgentId, Vec<AgentId>>,
    is_agent: impl Fn(&AgentId) -> bool,
) -> Result<(), ConfigError> {
    for (group, agents) in groups {
        let wrong = |why: String| Err(ConfigError::Group { group: group.clone(), why });
        if is_agent(group) {
            return wrong("an agent is called so".to_owned());
        }
        if agents.is_empty() {
            return wrong("it names no agent".to_owned());
        }
        if let Some(other) = agents.iter().find(|agent| groups.contains_key(agent)) {
            return wrong(format!("`{other}` is a group itself; name its agents"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn read(text: &str) -> Result<Config, String> {
        let config: Config = toml::from_str(text).map_err(|why| why.to_string())?;
        config.check().map_err(|why| why.to_string())?;
        Ok(config)
    }

    #[test]
    fn skill_balance_precedes_group_and_default() {
        let config = read(
            "aliases.reviewer = ['codex', 'claude-code']
            [routing]
            balance = 'least-loaded'
            [routing.review]
            balance = 'affinity'
            [routing.reviewer]
            balance = 'latency'
            on_quota = 'handoff'",
        )
        .unwrap();
        let reviewer = AgentId::parse("reviewer").unwrap();
        let members = config.group(&reviewer).unwrap();
        assert_eq!(
            members.iter().map(AgentId::as_str).collect::<Vec<_>>(),
            ["codex", "claude-code"]
        );
        let of = |skill, group| config.routing.balance(skill, group);
        assert_eq!(of(None, None), Balance::LeastLoaded);
        assert_eq!(of(None, Some(&reviewer)), Balance::Latency);
        assert_eq!(of(Some("review"), Some(&reviewer)), Balance::Affinity);
        assert_eq!(of(Some("write"), Some(&reviewer)), Balance::Latency);
        let on_quota = |name| config.routing.on_quota(&AgentId::parse(name).unwrap());
        assert_eq!((on_quota("reviewer"), on_quota("review")), (OnQuota::Handoff, OnQuota::Fail));
        let again: Config = toml::from_str(&toml::to_string(&config).unwrap()).unwrap();
        assert_eq!((again.routing, again.aliases), (config.routing, config.aliases));
    }

    #[test]
    fn invalid_group_is_refused() {
        for (text, why) in [
            (
                "aliases.reviewer = []",
                "call agents `reviewer` as `aliases.reviewer` says: it names no agent",
            ),
            (
                "aliases.echo = ['codex']\nagents.echo.enabled = true",
                "an agent is called so; take another name, or other agents",
            ),
            ("aliases.a = ['b']\naliases.b = ['codex']", "`b` is a group itself; name its agents"),
            ("aliases.Reviewer = ['codex']", "`Reviewer` cannot name an agent"),
            ("aliases.a = 'codex'", "expected a sequence"),
            ("routing.balance = 'random'", "unknown variant `random`"),
            ("routing.review = 'affinity'", "expected struct RouteConfig"),
            (
                "routing.a.on_quota = 'retry'",
                "unknown variant `retry`, expected `fail` or `handoff`",
            ),
            (
                "routing.review.on_quota = 'handoff'",
                "hand tasks of `review` over as `routing.review.on_quota` says: no group is called so; add \
                 `aliases.review",
            ),
            (
                "aliases.a = ['codex', 'codex']\nrouting.a.on_quota = 'handoff'",
                "the group has one agent; add another one to `aliases.a`",
            ),
            ("routing.review.balanced = 'affinity'", "unknown field `balanced`"),
        ] {
            let refused = read(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
