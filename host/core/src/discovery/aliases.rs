//! Aliases: other names of agents. An agent's own id takes precedence over an alias, and an
//! operator's alias over one that a component claims.

use a2a_hub_protocol::id::AgentId;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// Author of a claim to an alias; the first takes precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClaimedBy {
    /// The operator, in `agents.<id>.aliases`.
    Operator,
    /// The manifest of a component that the operator vouches for.
    Manifest,
}

/// Claim of an agent to an alias.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasClaim {
    /// Alias that is claimed.
    pub alias: AgentId,
    /// Id of the agent.
    pub agent: AgentId,
    /// Author of the claim.
    pub by: ClaimedBy,
}

/// Effective aliases, and the claims that were rejected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aliases {
    of: BTreeMap<AgentId, AgentId>,
    /// Rejected claims.
    pub rejected: Vec<RejectedAlias>,
}

/// Rejected alias.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedAlias {
    /// Alias that is rejected.
    pub alias: AgentId,
    /// Agents that claim it, by id.
    pub agents: Vec<AgentId>,
    /// Reason for the rejection.
    pub why: AliasRejection,
}

/// Reason why an alias is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AliasRejection {
    /// It is the id of an agent.
    IsAnId,
    /// The operator gave it to this agent.
    OperatorsWord(AgentId),
    /// Several agents claim it with the same precedence.
    Several,
}

impl Aliases {
    /// Decides the claims; `ids` are the ids of all agents.
    pub fn new(ids: &BTreeSet<AgentId>, claims: Vec<AliasClaim>) -> Self {
        let mut claimed: BTreeMap<AgentId, BTreeMap<ClaimedBy, BTreeSet<AgentId>>> =
            BTreeMap::new();
        for AliasClaim { alias, agent, by } in claims {
            // An agent's claim to its own id has no effect.
            if alias != agent {
                claimed.entry(alias).or_default().entry(by).or_default().insert(agent);
            }
        }
        let mut aliases = Self::default();
        for (alias, by) in claimed {
            let mut by = by.into_values();
            let Some(first) = by.next() else { continue };
            let rest: Vec<_> = by.flatten().collect();
            let mut leave_out = |agents: Vec<AgentId>, why: AliasRejection| {
                let alias = alias.clone();
                aliases.rejected.push(RejectedAlias { alias, agents, why });
            };
            if ids.contains(&alias) {
                leave_out(first.into_iter().chain(rest).collect(), AliasRejection::IsAnId);
                continue;
            }
            let mut agents = first.into_iter();
            match (agents.next(), agents.next()) {
                (Some(agent), None) => {
                    let rest: Vec<_> = rest.into_iter().filter(|other| *other != agent).collect();
                    if !rest.is_empty() {
                        leave_out(rest, AliasRejection::OperatorsWord(agent.clone()));
                    }
                    aliases.of.insert(alias, agent);
                }
                (one, two) => {
                    leave_out(
                        one.into_iter().chain(two).chain(agents).collect(),
                        AliasRejection::Several,
                    );
                }
            }
        }
        aliases
    }

    /// Agent with this alias.
    pub fn agent(&self, alias: &AgentId) -> Option<&AgentId> {
        self.of.get(alias)
    }

    /// Aliases of an agent, in order.
    pub fn for_agent<'a>(&'a self, agent: &'a AgentId) -> impl Iterator<Item = &'a AgentId> {
        self.of.iter().filter(move |(_, its)| *its == agent).map(|(alias, _)| alias)
    }

    /// All effective aliases, in order.
    pub fn all(&self) -> impl Iterator<Item = &AgentId> {
        self.of.keys()
    }
}

impl fmt::Display for RejectedAlias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agents: Vec<_> = self.agents.iter().map(|agent| format!("`{agent}`")).collect();
        let (agents, alias) = (agents.join(" and "), &self.alias);
        match &self.why {
            AliasRejection::IsAnId => write!(
                f,
                "the alias `{alias}` of {agents} does not count: an agent has that id; take another alias in `agents.<id>.aliases`"
            ),
            AliasRejection::OperatorsWord(agent) => write!(
                f,
                "the alias `{alias}`, which the manifest of {agents} claims, is that of `{agent}` by the configuration"
            ),
            AliasRejection::Several => write!(
                f,
                "the alias `{alias}` counts for nobody: {agents} claim it; say which one has it in `agents.<id>.aliases`"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ClaimedBy::{Manifest, Operator};
    use proptest::prelude::*;

    fn id(name: &str) -> AgentId {
        AgentId::parse(name).unwrap()
    }

    fn claims(all: &[(&str, &str, ClaimedBy)]) -> Vec<AliasClaim> {
        all.iter()
            .map(|(alias, agent, by)| AliasClaim { alias: id(alias), agent: id(agent), by: *by })
            .collect()
    }

    fn aliases(all: &[(&str, &str, ClaimedBy)]) -> Aliases {
        Aliases::new(&["codex", "echo", "notes"].map(id).into(), claims(all))
    }

    #[test]
    fn operator_alias_takes_precedence() {
        for (said, alias, agent) in [
            (&[("coder", "codex", Manifest)][..], "coder", Some("codex")),
            (&[("coder", "codex", Operator), ("coder", "codex", Manifest)], "coder", Some("codex")),
            // A component can claim neither an id, nor an alias that the operator gave to another
            // agent.
            (&[("echo", "notes", Manifest)], "echo", None),
            (&[("echo", "codex", Operator)], "echo", None),
            (&[("coder", "notes", Manifest), ("coder", "codex", Operator)], "coder", Some("codex")),
            // The alphabetical order of the agents does not decide.
            (&[("coder", "echo", Manifest), ("coder", "codex", Manifest)], "coder", None),
            (&[("coder", "echo", Operator), ("coder", "codex", Operator)], "coder", None),
            (&[("codex", "codex", Manifest)], "codex", None),
        ] {
            assert_eq!(aliases(said).agent(&id(alias)), agent.map(id).as_ref(), "{said:?}");
        }
    }

    #[test]
    fn rejected_alias_is_explained() {
        let all = aliases(&[
            ("echo", "notes", Manifest),
            ("coder", "notes", Manifest),
            ("coder", "codex", Operator),
            ("a", "notes", Manifest),
            ("a", "codex", Manifest),
            ("codex", "codex", Operator),
        ]);
        let told: Vec<_> = all.rejected.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(told.join("\n"), @r"
        the alias `a` counts for nobody: `codex` and `notes` claim it; say which one has it in `agents.<id>.aliases`
        the alias `coder`, which the manifest of `notes` claims, is that of `codex` by the configuration
        the alias `echo` of `notes` does not count: an agent has that id; take another alias in `agents.<id>.aliases`
        ");
        assert_eq!(all.for_agent(&id("codex")).collect::<Vec<_>>(), [&id("coder")]);
    }

    proptest! {
        #[test]
        fn alias_names_one_agent_and_no_id(
            said in proptest::collection::vec((0usize..6, 0usize..3, any::<bool>()), 0..12)
        ) {
            let (names, ids) = (["a", "b", "c", "codex", "echo", "notes"], ["codex", "echo", "notes"]);
            let mut said: Vec<_> = said
                .iter()
                .map(|(alias, agent, by)| (names[*alias], ids[*agent], if *by { Operator } else { Manifest }))
                .collect();
            let all = aliases(&said);
            for alias in all.all() {
                prop_assert!(!ids.contains(&alias.as_str()));
                let agent = all.agent(alias).unwrap();
                let by_operator = said.iter().filter(|(one, _, by)| *one == alias.as_str() && *by == Operator);
                prop_assert!(by_operator.clone().all(|(_, its, _)| *its == agent.as_str()));
            }
            said.reverse();
            prop_assert_eq!(all, aliases(&said));
        }
    }
}
