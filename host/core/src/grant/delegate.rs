//! Permission of an agent to call other agents, with terms. A delegation never widens rights beyond
//! this grant.

use crate::grant::permissions::Permissions;
use a2a_hub_protocol::id::AgentId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Wildcard for every other agent.
const EVERY_AGENT: &str = "*";

/// Other agents that a component asks to call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected true for any agents, or names of agents, such as [\"codex\"]"
)]
pub enum PeersAsk {
    /// Any agents that the operator names, or none.
    Any(bool),
    /// These agents and no others.
    Named(BTreeSet<AgentId>),
}

impl Default for PeersAsk {
    fn default() -> Self {
        Self::Any(false)
    }
}

impl PeersAsk {
    /// True if it asks to call no agent.
    pub fn is_none(&self) -> bool {
        match self {
            Self::Any(any) => !any,
            Self::Named(names) => names.is_empty(),
        }
    }

    /// Agents that it names.
    pub fn named_agents(&self) -> impl Iterator<Item = &AgentId> {
        match self {
            Self::Any(_) => None,
            Self::Named(names) => Some(names),
        }
        .into_iter()
        .flatten()
    }

    /// True if it asks to call this agent, or any.
    pub fn includes(&self, agent: &str) -> bool {
        match self {
            Self::Any(any) => *any,
            Self::Named(names) => names.iter().any(|name| name.as_str() == agent),
        }
    }
}

/// Terms of an agent's calls to another agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DelegateTerms {
    /// Maximum permissions of the called agent's program in a task of this caller; never more than
    /// its own permissions.
    pub permissions: Permissions,
    /// True if the caller may answer the called agent's requests for permission. Otherwise they go
    /// to the client.
    pub approve: bool,
    /// True if the called agent may work in a worktree for this caller. Agents that came with the
    /// hub need no grant for that.
    pub worktrees: bool,
}

/// Agents that an agent may call, by name; `*` is every other agent. Written as a list of names, or
/// as a table of names and terms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct DelegateGrants(BTreeMap<String, DelegateTerms>);

#[derive(Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected names of agents, such as [\"codex\"], or a table of them, such as { codex = { permissions = \"edit\", approve = true } }"
)]
enum Written {
    Names(BTreeSet<String>),
    Terms(BTreeMap<String, DelegateTerms>),
}

impl From<Written> for DelegateGrants {
    fn from(written: Written) -> Self {
        match written {
            Written::Names(names) => names.into_iter().collect(),
            Written::Terms(terms) => Self(terms),
        }
    }
}

impl From<DelegateGrants> for Written {
    fn from(DelegateGrants(terms): DelegateGrants) -> Self {
        if terms.values().all(|terms| *terms == DelegateTerms::default()) {
            Self::Names(terms.into_keys().collect())
        } else {
            Self::Terms(terms)
        }
    }
}

impl FromIterator<String> for DelegateGrants {
    fn from_iter<T: IntoIterator<Item = String>>(names: T) -> Self {
        Self(names.into_iter().map(|name| (name, DelegateTerms::default())).collect())
    }
}

impl DelegateGrants {
    /// True if no other agent may be called.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if this agent is named itself, not only by the wildcard.
    pub fn names(&self, agent: &str) -> bool {
        self.0.contains_key(agent)
    }

    /// Terms for calls to this agent; its own entry takes precedence over the wildcard.
    pub fn terms(&self, agent: &str) -> Option<DelegateTerms> {
        self.0.get(agent).or_else(|| self.0.get(EVERY_AGENT)).copied()
    }

    /// Granted names.
    pub fn granted(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Restricts the grant to what a component asks for. For named agents, the wildcard stands for
    /// these.
    #[must_use]
    pub fn within(&self, ask: &PeersAsk) -> Self {
        match ask {
            PeersAsk::Any(true) => self.clone(),
            PeersAsk::Any(false) => Self::default(),
            PeersAsk::Named(names) => {
                let named = names.iter().map(|name| name.as_str());
                Self(named.filter_map(|name| Some((name.to_owned(), self.terms(name)?))).collect())
            }
        }
    }

    /// Allows calls to an agent, with its existing terms or the default ones.
    pub fn allow(&mut self, agent: String) {
        self.0.entry(agent).or_default();
    }

    /// Allows calls to an agent with these terms.
    pub fn allow_on(&mut self, agent: String, terms: DelegateTerms) {
        self.0.insert(agent, terms);
    }

    /// Revokes an agent's entry; false if it has none.
    pub fn withdraw(&mut self, agent: &str) -> bool {
        self.0.remove(agent).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn named_request_narrows_the_wildcard() {
        let asked = |written| serde_json::from_value::<PeersAsk>(written);
        let named = asked(json!(["codex", "echo"])).unwrap();
        let granted: DelegateGrants =
            serde_json::from_value(json!({ "*": { "permissions": "edit" }, "echo": {} })).unwrap();
        let held = granted.within(&named);
        assert_eq!(held.granted().collect::<Vec<_>>(), ["codex", "echo"]);
        let edit = DelegateTerms { permissions: Permissions::Edit, ..DelegateTerms::default() };
        assert_eq!(held.terms("codex"), Some(edit));
        assert_eq!(held.terms("echo"), Some(DelegateTerms::default()));
        assert_eq!(held.terms("gemini"), None);
        assert_eq!(granted.within(&asked(json!(true)).unwrap()), granted);
        assert!(granted.within(&PeersAsk::default()).is_empty());
        assert!(named.includes("echo") && !named.includes("gemini"));
        let wrong = asked(json!("codex")).unwrap_err().to_string();
        assert!(wrong.contains("names of agents"), "{wrong}");
        assert!(asked(json!(["Not One"])).is_err());
    }

    #[test]
    fn names_get_default_terms_table_sets_them() {
        let read = |written| serde_json::from_value::<DelegateGrants>(written);
        let named = read(json!(["codex", "*"])).unwrap();
        assert_eq!(named.terms("codex"), Some(DelegateTerms::default()));
        assert_eq!(named.terms("gemini"), Some(DelegateTerms::default()));
        assert!(named.names("codex") && !named.names("gemini"));
        assert_eq!(json!(named), json!(["*", "codex"]));

        let written = json!({ "*": {}, "codex": { "permissions": "edit", "approve": true, "worktrees": true } });
        let told = read(written).unwrap();
        let edit = DelegateTerms { permissions: Permissions::Edit, approve: true, worktrees: true };
        assert_eq!(told.terms("codex"), Some(edit));
        assert_eq!(told.terms("gemini"), Some(DelegateTerms::default()));
        assert_eq!(read(json!(told)).unwrap(), told);
        assert_eq!(read(json!([])).unwrap().terms("codex"), None);
        for wrong in
            [json!("codex"), json!({ "codex": true }), json!({ "codex": { "approved": true } })]
        {
            assert!(read(wrong).unwrap_err().to_string().contains("permissions = \"edit\""));
        }
    }

    #[test]
    fn repeated_grant_keeps_existing_terms() {
        let mut grants =
            serde_json::from_value::<DelegateGrants>(json!({ "codex": { "approve": true } }))
                .unwrap();
        grants.allow("codex".to_owned());
        grants.allow("echo".to_owned());
        assert!(grants.terms("codex").unwrap().approve && !grants.terms("echo").unwrap().approve);
        assert!(grants.withdraw("codex") && !grants.withdraw("codex"));
        assert_eq!(grants.granted().collect::<Vec<_>>(), ["echo"]);
    }
}
