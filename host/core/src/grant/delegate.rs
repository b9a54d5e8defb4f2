//! Permission of an agent to call other agents, with terms. A delegation never widens rights beyond
//! this grant.

use crate::grant::permissions::Permissions;
use a2a_hub_protocol::id::AgentId;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// Wildcard for every other agent.
const EVERY_AGENT: &str = "*";

/// Longest id of a skill, in bytes.
const MAX_SKILL: usize = 256;

/// An agent that is called, or one of its skills: `codex`, `codex/review`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Callee {
    /// Agent.
    pub agent: AgentId,
    /// Id of the skill; none for all that the agent does.
    pub skill: Option<String>,
}

impl Callee {
    /// The agent with all its skills.
    pub fn new(agent: AgentId) -> Self {
        Self { agent, skill: None }
    }

    /// Parses the written form.
    ///
    /// # Errors
    ///
    /// The name of the agent is invalid, or the skill is empty, too long or has control characters.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (agent, skill) = match text.split_once('/') {
            Some((agent, skill)) => (agent, Some(skill)),
            None => (text, None),
        };
        let agent = AgentId::parse(agent).map_err(|why| why.to_string())?;
        let is_id = |skill: &str| {
            let size = 1..=MAX_SKILL;
            size.contains(&skill.len()) && !skill.chars().any(char::is_control)
        };
        match skill {
            Some(skill) if !is_id(skill) => Err(format!(
                "`{}`: the id of a skill has 1 to {MAX_SKILL} bytes, and no control characters",
                text.escape_debug()
            )),
            skill => Ok(Self { agent, skill: skill.map(str::to_owned) }),
        }
    }
}

impl TryFrom<String> for Callee {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<Callee> for String {
    fn from(callee: Callee) -> Self {
        callee.to_string()
    }
}

impl fmt::Display for Callee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.skill {
            Some(skill) => write!(f, "{}/{skill}", self.agent),
            None => self.agent.fmt(f),
        }
    }
}

/// Reason why a call is outside of a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutsideGrant {
    /// Neither the agent nor one of its skills is granted.
    Agent,
    /// These skills of the agent are granted, and the call is for none of them.
    Skills(Vec<String>),
}

/// Other agents that a component asks to call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected true for any agents, or names of agents, such as [\"codex\", \"gemini/review\"]"
)]
pub enum PeersAsk {
    /// Any agents that the operator names, or none.
    Any(bool),
    /// These agents, or these skills of theirs, and no others.
    Named(BTreeSet<Callee>),
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

    /// Agents and skills that it names.
    pub fn named(&self) -> impl Iterator<Item = &Callee> {
        match self {
            Self::Any(_) => None,
            Self::Named(names) => Some(names),
        }
        .into_iter()
        .flatten()
    }

    /// True if a grant of this agent or skill allows something that it asks for.
    pub fn overlaps(&self, granted: &str) -> bool {
        match self {
            Self::Any(any) => *any,
            Self::Named(names) => names.iter().any(|name| match granted.split_once('/') {
                Some((agent, skill)) => {
                    let is_same = name.skill.as_deref().is_none_or(|named| named == skill);
                    name.agent.as_str() == agent && is_same
                }
                None => name.agent.as_str() == granted,
            }),
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

/// Agents that an agent may call, by name; `*` is every other agent, and `codex/review` is one
/// skill of an agent. Written as a list of names, or as a table of names and terms.
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

    /// True if this agent, or a skill of it, is named itself, not only by the wildcard.
    pub fn names(&self, agent: &str) -> bool {
        self.0.contains_key(agent) || self.skills_of(agent).next().is_some()
    }

    /// True if this agent may be called, perhaps for some of its skills only.
    pub fn reaches(&self, agent: &str) -> bool {
        self.agent_terms(agent).is_some() || self.names(agent)
    }

    /// Skills of an agent that have entries of their own.
    pub fn skills_of(&self, agent: &str) -> impl Iterator<Item = &str> {
        self.0.keys().filter_map(move |name| name.strip_prefix(agent)?.strip_prefix('/'))
    }

    /// Skills to which calls to this agent are limited; none if it may be called for all.
    pub fn limited_skills(&self, agent: &str) -> Option<Vec<&str>> {
        self.agent_terms(agent).is_none().then(|| self.skills_of(agent).collect())
    }

    /// Terms for calls to this agent as a whole; its own entry takes precedence over the wildcard.
    fn agent_terms(&self, agent: &str) -> Option<DelegateTerms> {
        self.0.get(agent).or_else(|| self.0.get(EVERY_AGENT)).copied()
    }

    /// Terms for calls to this agent or skill. The entry of a skill takes precedence over that of
    /// its agent.
    pub fn terms(&self, callee: &Callee) -> Option<DelegateTerms> {
        let of_skill = callee.skill.as_ref().and_then(|_| self.0.get(&callee.to_string()));
        of_skill.copied().or_else(|| self.agent_terms(callee.agent.as_str()))
    }

    /// The callee of a call. `hint` is a skill that the message of a call without one names: it
    /// counts only if the grant is for skills, since it may be a client's instruction to the
    /// caller. A call without any skill is for the only granted one.
    ///
    /// # Errors
    ///
    /// The call is outside of the grant.
    pub fn callee(&self, call: &Callee, hint: Option<&str>) -> Result<Callee, OutsideGrant> {
        let agent = call.agent.as_str();
        let mut granted: Vec<_> = self.skills_of(agent).map(str::to_owned).collect();
        let of = |skill: &str| Callee { agent: call.agent.clone(), skill: Some(skill.to_owned()) };
        match call.skill.as_deref().or(hint) {
            Some(skill) if granted.iter().any(|it| it == skill) => Ok(of(skill)),
            _ if self.agent_terms(agent).is_some() => Ok(call.clone()),
            None if granted.len() == 1 => Ok(of(&granted.remove(0))),
            _ if granted.is_empty() => Err(OutsideGrant::Agent),
            _ => Err(OutsideGrant::Skills(granted)),
        }
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
                Self(names.iter().flat_map(|name| self.overlap(name)).collect())
            }
        }
    }

    /// Entries of what both the grant and a request for this agent or skill hold.
    fn overlap(&self, requested: &Callee) -> Vec<(String, DelegateTerms)> {
        let entry = |name: String, terms: Option<DelegateTerms>| Some((name, terms?));
        match &requested.skill {
            Some(_) => entry(requested.to_string(), self.terms(requested)).into_iter().collect(),
            None => {
                let agent = requested.agent.as_str();
                let skills = self.skills_of(agent).map(|skill| format!("{agent}/{skill}"));
                let skills = skills.filter_map(|name| {
                    let terms = self.0.get(&name).copied();
                    entry(name, terms)
                });
                entry(agent.to_owned(), self.agent_terms(agent)).into_iter().chain(skills).collect()
            }
        }
    }

    /// Allows calls to an agent or a skill, with its existing terms or the default ones.
    pub fn allow(&mut self, agent: String) {
        self.0.entry(agent).or_default();
    }

    /// Allows calls to an agent or a skill with these terms.
    pub fn allow_on(&mut self, agent: String, terms: DelegateTerms) {
        self.0.insert(agent, terms);
    }

    /// Revokes the entry of an agent or a skill; false if it has none.
    pub fn withdraw(&mut self, agent: &str) -> bool {
        self.0.remove(agent).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn callee(text: &str) -> Callee {
        Callee::parse(text).unwrap()
    }

    #[test]
    fn named_request_narrows_the_wildcard() {
        let asked = |written| serde_json::from_value::<PeersAsk>(written);
        let named = asked(json!(["codex", "echo"])).unwrap();
        let granted: DelegateGrants =
            serde_json::from_value(json!({ "*": { "permissions": "edit" }, "echo": {} })).unwrap();
        let held = granted.within(&named);
        assert_eq!(held.granted().collect::<Vec<_>>(), ["codex", "echo"]);
        let edit = DelegateTerms { permissions: Permissions::Edit, ..DelegateTerms::default() };
        assert_eq!(held.terms(&callee("codex")), Some(edit));
        assert_eq!(held.terms(&callee("echo")), Some(DelegateTerms::default()));
        assert_eq!(held.terms(&callee("gemini")), None);
        assert_eq!(granted.within(&asked(json!(true)).unwrap()), granted);
        assert!(granted.within(&PeersAsk::default()).is_empty());
        assert!(named.overlaps("echo") && !named.overlaps("gemini"));
        let wrong = asked(json!("codex")).unwrap_err().to_string();
        assert!(wrong.contains("names of agents"), "{wrong}");
        assert!(asked(json!(["Not One"])).is_err());
    }

    #[test]
    fn names_get_default_terms_table_sets_them() {
        let read = |written| serde_json::from_value::<DelegateGrants>(written);
        let named = read(json!(["codex", "*"])).unwrap();
        assert_eq!(named.terms(&callee("codex")), Some(DelegateTerms::default()));
        assert_eq!(named.terms(&callee("gemini")), Some(DelegateTerms::default()));
        assert!(named.names("codex") && !named.names("gemini"));
        assert_eq!(json!(named), json!(["*", "codex"]));

        let written = json!({ "*": {}, "codex": { "permissions": "edit", "approve": true, "worktrees": true } });
        let told = read(written).unwrap();
        let edit = DelegateTerms { permissions: Permissions::Edit, approve: true, worktrees: true };
        assert_eq!(told.terms(&callee("codex")), Some(edit));
        assert_eq!(told.terms(&callee("gemini")), Some(DelegateTerms::default()));
        assert_eq!(read(json!(told)).unwrap(), told);
        assert_eq!(read(json!([])).unwrap().terms(&callee("codex")), None);
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
        assert!(
            grants.terms(&callee("codex")).unwrap().approve
                && !grants.terms(&callee("echo")).unwrap().approve
        );
        assert!(grants.withdraw("codex") && !grants.withdraw("codex"));
        assert_eq!(grants.granted().collect::<Vec<_>>(), ["echo"]);
    }

    #[test]
    fn call_is_for_granted_skill_or_whole_agent() {
        let read = |written| serde_json::from_value::<DelegateGrants>(written).unwrap();
        let codex = callee("codex");
        let both = json!({ "codex": {}, "codex/review": { "permissions": "edit" } });
        let (none, skills) = (Err(OutsideGrant::Agent), |names: &[&str]| {
            Err(OutsideGrant::Skills(names.iter().map(|name| (*name).to_owned()).collect()))
        });
        let (whole, review) = (Ok(callee("codex")), Ok(callee("codex/review")));
        for (granted, skill, expected) in [
            (json!(["codex"]), None, &whole),
            (json!(["codex"]), Some("review"), &whole),
            (json!(["*"]), Some("review"), &whole),
            (json!(["codex/review"]), Some("review"), &review),
            (json!(["codex/review"]), None, &review),
            (json!(["codex/review"]), Some("write"), &skills(&["review"])),
            (json!(["codex/review", "codex/test"]), None, &skills(&["review", "test"])),
            (both.clone(), Some("review"), &review),
            (both.clone(), Some("write"), &whole),
            (both.clone(), None, &whole),
            (json!(["codex-2/review", "cod"]), Some("review"), &none),
            (json!([]), None, &none),
        ] {
            let found = read(granted.clone()).callee(&codex, skill);
            assert_eq!(found, *expected, "{granted} {skill:?}");
            // By name, a skill of a granted agent counts as well.
            let named = Callee { skill: skill.map(str::to_owned), ..codex.clone() };
            let expected = expected.clone().map(|found| Callee {
                skill: found.skill.or_else(|| named.skill.clone()),
                ..found
            });
            assert_eq!(read(granted.clone()).callee(&named, None), expected, "{granted} {named}");
        }
        let both = read(both);
        let edit = |name: &str| both.terms(&callee(name)).unwrap().permissions;
        assert_eq!(edit("codex/review"), Permissions::Edit);
        assert_eq!([edit("codex"), edit("codex/write")], [Permissions::Ask; 2]);
        assert_eq!(both.limited_skills("codex"), None);
        let one = read(json!(["codex/review"]));
        assert_eq!(one.limited_skills("codex"), Some(vec!["review"]));
        assert!(one.reaches("codex") && one.names("codex") && !one.reaches("echo"));
        assert_eq!(one.terms(&callee("codex")), None);
    }

    #[test]
    fn skills_overlap_on_both_sides() {
        let read = |written| serde_json::from_value::<DelegateGrants>(written).unwrap();
        for (asked, granted, held) in [
            (json!(["codex/review"]), json!(["codex"]), json!(["codex/review"])),
            (json!(["codex"]), json!(["codex/review"]), json!(["codex/review"])),
            (json!(["codex/review"]), json!(["*"]), json!(["codex/review"])),
            (json!(["codex/review"]), json!(["codex/test"]), json!([])),
            (json!(["codex"]), json!(["*", "codex/test"]), json!(["codex", "codex/test"])),
            (
                json!(["codex", "codex/review"]),
                json!({ "codex/review": { "approve": true } }),
                json!({ "codex/review": { "permissions": "ask", "approve": true, "worktrees": false } }),
            ),
            (json!(true), json!(["codex/review"]), json!(["codex/review"])),
        ] {
            let ask: PeersAsk = serde_json::from_value(asked.clone()).unwrap();
            assert_eq!(json!(read(granted.clone()).within(&ask)), held, "{asked} {granted}");
        }
        let ask: PeersAsk = serde_json::from_value(json!(["codex/review", "echo"])).unwrap();
        for (granted, overlaps) in [
            ("codex", true),
            ("codex/review", true),
            ("codex/test", false),
            ("echo/any", true),
            ("gemini", false),
        ] {
            assert_eq!(ask.overlaps(granted), overlaps, "{granted}");
        }
        for wrong in ["codex/", "/review", "codex/a\u{7}", "Not One/x", ""] {
            assert!(Callee::parse(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(Callee::parse("codex/a/b").unwrap().skill.as_deref(), Some("a/b"));
    }
}
