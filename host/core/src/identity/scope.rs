//! Scopes of API keys.
//!
//! ```text
//! scopes = scope *( "," scope )
//! scope  = name [ ":" target ]
//! name   = "read" / "send" / "answer" / "approve" / "cancel" / "push" / "apply"
//!        / "admin" / "admin:grant"
//! target = "own" / agent [ "/" skill ] [ ":alone" ]
//! scope  =/ "card:" scope-token        ; of agents' cards (RFC 6749, section 3.3)
//! ```
//!
//! Several targets of one name add up. `own` is for all names but `send` and the two of `admin`,
//! `:alone` is for `send`, and the names of `admin` have no target.

use super::{
    card_scope::{self, CardScopes},
    scope_target::{ScopeTarget, TaskFacts},
};
use a2a_hub_protocol::id::AgentId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Kind of operations that a person may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyScope {
    /// Reads tasks, conversations, questions, agents and events.
    Read,
    /// Sends messages that begin tasks, and publishes to topics.
    Send,
    /// Answers questions of tasks, and sends them further messages.
    Answer,
    /// Answers requests for permission: an agent's program then does what it asked for.
    Approve,
    /// Cancels tasks, and removes their worktrees.
    Cancel,
    /// Changes webhooks of tasks.
    Push,
    /// Takes over changes of tasks into the operator's repositories.
    Apply,
    /// Adds, changes and removes people of the tenant, and their keys.
    Admin,
    /// Changes grants of plug-ins: with them, an agent has the operator's rights.
    AdminGrant,
}

impl KeyScope {
    /// All scopes.
    pub const ALL: [Self; 9] = [
        Self::Read,
        Self::Send,
        Self::Answer,
        Self::Approve,
        Self::Cancel,
        Self::Push,
        Self::Apply,
        Self::Admin,
        Self::AdminGrant,
    ];

    /// Name of the scope.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Send => "send",
            Self::Answer => "answer",
            Self::Approve => "approve",
            Self::Cancel => "cancel",
            Self::Push => "push",
            Self::Apply => "apply",
            Self::Admin => "admin",
            Self::AdminGrant => "admin:grant",
        }
    }

    /// True if only a key that names the scope has it: no role includes it.
    pub fn is_explicit(self) -> bool {
        match self {
            Self::Apply | Self::Admin | Self::AdminGrant => true,
            Self::Read | Self::Send | Self::Answer | Self::Approve | Self::Cancel | Self::Push => {
                false
            }
        }
    }

    /// True if the scope may be narrowed to `target`.
    fn may_be_narrowed_to(self, target: &ScopeTarget) -> bool {
        match (self, target) {
            (Self::Admin | Self::AdminGrant, _) | (Self::Send, ScopeTarget::Initiated) => false,
            (Self::Send, ScopeTarget::Agent { .. }) => true,
            (_, ScopeTarget::Initiated) => true,
            (_, ScopeTarget::Agent { alone, .. }) => !alone,
        }
    }
}

/// Scopes of a key: a list such as `read:own, send:echo`. An empty list does not narrow the role,
/// and contains no explicit scope ([`KeyScope::is_explicit`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct KeyScopes {
    /// Narrowings of each scope; a scope without one is for everything.
    scopes: BTreeMap<KeyScope, BTreeSet<ScopeTarget>>,
    /// Scopes of agents' cards, which no role includes.
    of_cards: BTreeSet<String>,
}

/// Error for a text that is no scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no scope; the scopes are read, send, answer, approve, cancel, push, apply, admin and \
     admin:grant; all but the last two also for one agent or skill, such as `send:echo` or \
     `approve:codex/review`, all but send also for own tasks, such as `read:own`, and send also \
     without the agents that the agent calls, as `send:echo:alone`; and `card:deploy` is the scope `deploy` that skills of \
     agents' cards require"
)]
pub struct InvalidScope(String);

impl KeyScopes {
    /// Parses a list of scopes.
    ///
    /// # Errors
    ///
    /// The first text that is no scope.
    pub fn parse<'s>(names: impl IntoIterator<Item = &'s str>) -> Result<Self, InvalidScope> {
        let mut scopes: BTreeMap<_, BTreeSet<ScopeTarget>> = BTreeMap::new();
        let (mut unlimited, mut of_cards) = (BTreeSet::new(), BTreeSet::new());
        for text in names {
            let of_card = text.strip_prefix(card_scope::PREFIX);
            if let Some(name) = of_card.filter(|name| card_scope::is_name(name)) {
                of_cards.insert(name.to_owned());
                continue;
            }
            let (scope, target) = parse_one(text)
                .ok_or_else(|| InvalidScope(crate::text::plain_text::line(text, 80)))?;
            let targets = scopes.entry(scope).or_default();
            match target {
                Some(target) => {
                    targets.insert(target);
                }
                None => {
                    unlimited.insert(scope);
                }
            }
        }
        for scope in unlimited {
            scopes.insert(scope, BTreeSet::new());
        }
        Ok(Self { scopes, of_cards })
    }

    /// The scope of messages that begin tasks.
    pub fn sending() -> Self {
        let scopes = BTreeMap::from([(KeyScope::Send, BTreeSet::new())]);
        Self { scopes, of_cards: BTreeSet::new() }
    }

    /// True if the key has this scope, at least for some tasks.
    pub fn contains(&self, scope: KeyScope) -> bool {
        match self.scopes.is_empty() && self.of_cards.is_empty() {
            true => !scope.is_explicit(),
            false => self.scopes.contains_key(&scope),
        }
    }

    /// Scopes that the key holds for skills of agents' cards.
    pub fn of_cards(&self) -> CardScopes {
        CardScopes::Named(self.of_cards.clone())
    }

    /// Narrowings of a scope; `None` if it is not narrowed, or missing.
    pub fn targets(&self, scope: KeyScope) -> Option<&BTreeSet<ScopeTarget>> {
        self.scopes.get(&scope).filter(|targets| !targets.is_empty())
    }

    /// True if a narrowing names a skill.
    pub fn name_skills(&self) -> bool {
        let names = |target: &ScopeTarget| match target {
            ScopeTarget::Agent { skill, .. } => skill.is_some(),
            ScopeTarget::Initiated => false,
        };
        self.scopes.values().flatten().any(names)
    }

    /// True if the key has this scope for a task. `approve` needs the agent that asks itself: what
    /// `flow` may ask is no statement about what the agents below it do.
    pub fn covers(&self, scope: KeyScope, facts: &TaskFacts) -> bool {
        let is_covered = |target: &ScopeTarget| match scope == KeyScope::Approve {
            true => facts.is_itself_covered_by(target),
            false => facts.is_covered_by(target),
        };
        self.contains(scope)
            && self.targets(scope).is_none_or(|targets| targets.iter().any(is_covered))
    }

    /// True if the key has this scope for all tasks of a tree, whichever agents work in it.
    pub fn covers_tree(&self, scope: KeyScope, facts: &TaskFacts) -> bool {
        let is_covered = |targets: &BTreeSet<ScopeTarget>| {
            facts.is_initiator && targets.contains(&ScopeTarget::Initiated)
        };
        self.contains(scope) && self.targets(scope).is_none_or(is_covered)
    }

    /// True if the key may begin a task at this agent, for this skill. `None` is an agent that the
    /// hub chooses.
    pub fn covers_message(&self, agent: Option<&AgentId>, skill: Option<&str>) -> bool {
        let Some(targets) = self.targets(KeyScope::Send) else {
            return self.contains(KeyScope::Send);
        };
        agent.is_some_and(|agent| targets.iter().any(|one| one.covers_message(agent, skill)))
    }

    /// Agents that a task may reach by delegation, if a message of this key begins it; `None` for
    /// all that the agents' grants name.
    pub fn reach(&self, agent: &AgentId, skill: Option<&str>) -> Option<BTreeSet<AgentId>> {
        let targets = self.targets(KeyScope::Send)?;
        let mut covering = targets.iter().filter(|one| one.covers_message(agent, skill)).peekable();
        let is_open = |target: &ScopeTarget| match target {
            ScopeTarget::Agent { alone, .. } => !alone,
            ScopeTarget::Initiated => true,
        };
        covering.peek()?;
        if covering.any(is_open) {
            return None;
        }
        let agents = targets.iter().filter_map(|target| match target {
            ScopeTarget::Agent { agent, skill: None, .. } => Some(agent.clone()),
            ScopeTarget::Agent { skill: Some(_), .. } | ScopeTarget::Initiated => None,
        });
        Some(agents.collect())
    }

    /// True if these scopes include all of `other`, so that their key may give `other`
    /// away: to a key of the same person, or of another one, whose own tasks are others.
    /// `admin:grant` is never included: only the operator gives it.
    pub fn include(&self, other: &Self, is_same_person: bool) -> bool {
        let includes = |scope: KeyScope| {
            let covers_each = |mine: &BTreeSet<ScopeTarget>| {
                let covers =
                    |its: &ScopeTarget| mine.iter().any(|one| one.covers(its, is_same_person));
                other.targets(scope).is_some_and(|its| its.iter().all(covers))
            };
            scope != KeyScope::AdminGrant
                && self.contains(scope)
                && self.targets(scope).is_none_or(covers_each)
        };
        other.of_cards.is_subset(&self.of_cards)
            && KeyScope::ALL.into_iter().filter(|scope| other.contains(*scope)).all(includes)
    }

    /// Scopes that both have; `None` if they have none in common, because an empty list would not
    /// narrow. The own tasks at one agent are in neither `own` nor the agent, and so in none.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let mut scopes = BTreeMap::new();
        for scope in KeyScope::ALL {
            if !self.contains(scope) || !other.contains(scope) {
                continue;
            }
            let targets = match (self.targets(scope), other.targets(scope)) {
                (Some(one), Some(two)) => {
                    let within = |some: &BTreeSet<ScopeTarget>, all: &BTreeSet<ScopeTarget>| {
                        let is_covered =
                            |it: &&ScopeTarget| all.iter().any(|one| one.covers(it, true));
                        some.iter().filter(is_covered).cloned().collect::<BTreeSet<_>>()
                    };
                    let both: BTreeSet<_> =
                        within(one, two).union(&within(two, one)).cloned().collect();
                    if both.is_empty() {
                        continue;
                    }
                    both
                }
                (Some(targets), None) | (None, Some(targets)) => targets.clone(),
                (None, None) => BTreeSet::new(),
            };
            scopes.insert(scope, targets);
        }
        let of_cards: BTreeSet<_> = &self.of_cards & &other.of_cards;
        let is_empty = scopes.is_empty() && of_cards.is_empty();
        (!is_empty).then_some(Self { scopes, of_cards })
    }

    /// Texts of the scopes, as [`KeyScopes::parse`] reads them.
    pub fn to_texts(&self) -> Vec<String> {
        let texts = self.scopes.iter().flat_map(|(scope, targets)| {
            let name = scope.name();
            match targets.is_empty() {
                true => vec![name.to_owned()],
                false => targets.iter().map(|target| format!("{name}:{target}")).collect(),
            }
        });
        let of_cards = self.of_cards.iter().map(|name| format!("{}{name}", card_scope::PREFIX));
        texts.chain(of_cards).collect()
    }
}

fn parse_one(text: &str) -> Option<(KeyScope, Option<ScopeTarget>)> {
    let named = |name: &str| KeyScope::ALL.into_iter().find(|one| one.name() == name);
    if let Some(scope) = named(text) {
        return Some((scope, None));
    }
    let (name, target) = text.split_once(':')?;
    let (scope, target) = (named(name)?, ScopeTarget::parse(target)?);
    scope.may_be_narrowed_to(&target).then_some((scope, Some(target)))
}

impl TryFrom<Vec<String>> for KeyScopes {
    type Error = InvalidScope;

    fn try_from(texts: Vec<String>) -> Result<Self, InvalidScope> {
        Self::parse(texts.iter().map(String::as_str))
    }
}

impl From<KeyScopes> for Vec<String> {
    fn from(scopes: KeyScopes) -> Self {
        scopes.to_texts()
    }
}

#[cfg(test)]
mod tests {
    use super::super::scope_target::TaskAgent;
    use super::*;
    use proptest::prelude::*;

    fn scopes(texts: &[&str]) -> KeyScopes {
        KeyScopes::parse(texts.iter().copied()).unwrap()
    }

    fn texts(of: &[&str]) -> Vec<String> {
        scopes(of).to_texts()
    }

    fn id(name: &str) -> AgentId {
        AgentId::parse(name).unwrap()
    }

    fn facts(is_initiator: bool, agents: &[&str]) -> TaskFacts {
        let agent = |text: &&str| {
            let (agent, skill) = text.split_once('/').unwrap_or((text, ""));
            let skill = Some(skill.to_owned()).filter(|skill| !skill.is_empty());
            TaskAgent { agent: id(agent), skill }
        };
        TaskFacts { is_initiator, agents: agents.iter().map(agent).collect() }
    }

    #[test]
    fn scopes_round_trip_as_texts() {
        assert_eq!(texts(&[]), [""; 0]);
        assert_eq!(texts(&["send", "read", "read"]), ["read", "send"]);
        assert_eq!(texts(&["send:b", "send:a", "read"]), ["read", "send:a", "send:b"]);
        assert_eq!(texts(&["send:a", "send"]), ["send"], "the wider one counts");
        let all = ["read:own", "read:echo", "send:echo/a/b:alone", "apply", "admin", "admin:grant"];
        assert_eq!(texts(&all), all);
        assert_eq!(texts(&["card:x:prod", "send"]), ["send", "card:x:prod"]);
    }

    #[test]
    fn intersection_never_widens() {
        for (one, other, both) in [
            (&[][..], &["read"][..], Some("read")),
            (&["read", "send"], &["send:a"], Some("send:a")),
            (&["send:a", "send:b"], &["send:b", "send:c"], Some("send:b")),
            (&["read", "send:a"], &["read", "send:b"], Some("read")),
            (&["send:a"], &["send:b"], None),
            (&["read"], &["cancel"], None),
            (&["read:own"], &["read:echo"], None),
            (&["read:own", "apply"], &["read:own", "apply:echo"], Some("read:own apply:echo")),
            (&["send:echo"], &["send:echo:alone"], Some("send:echo:alone")),
            (&["send:echo"], &["send:echo/sum"], Some("send:echo/sum")),
            (&["admin"], &[], None),
            (&["card:x", "send"], &["card:x", "card:y"], Some("card:x")),
            (&["card:x"], &["card:y"], None),
            (&["card:x"], &[], None),
        ] {
            let parse = |texts: &[&str]| KeyScopes::parse(texts.iter().copied()).unwrap();
            let found = parse(one).intersection(&parse(other));
            assert_eq!(found, parse(other).intersection(&parse(one)));
            assert_eq!(
                found.map(|it| it.to_texts().join(" ")).as_deref(),
                both,
                "{one:?} {other:?}"
            );
        }
        let all = KeyScopes::default();
        let every = all.intersection(&all).unwrap();
        assert_eq!(every.to_texts().join(" "), "read send answer approve cancel push");
    }

    #[test]
    fn other_texts_are_refused() {
        for wrong in [
            "",
            "owner",
            "Read",
            "send:",
            "send:A b",
            "send:a:b",
            "*",
            " read",
            "send:own",
            "card",
            "card:",
            "card:a b",
            "admin:own",
            "admin:echo",
            "admin:grant:echo",
            "read:echo:alone",
            "read:own:alone",
            "read:own/x",
            "read:echo/",
            "read:echo/a b",
            "read:echo/a,b",
            "read:echo/a:b",
            "read:echo/\u{1b}",
            "read::own",
            "read:INITIATED",
            "apply:",
            "send:echo:alone:alone",
        ] {
            let refused = KeyScopes::parse([wrong]).unwrap_err().to_string();
            assert!(refused.contains("the scopes are read, send"), "{wrong}: {refused}");
            assert!(!refused.contains('\u{1b}'));
        }
        let stored: Result<KeyScopes, _> = serde_json::from_str(r#"["root"]"#);
        assert!(stored.is_err(), "a scope of a later version widens nothing");
    }

    #[test]
    fn scopes_narrow_only_if_present() {
        let has = |of: &KeyScopes| {
            let names = KeyScope::ALL.into_iter().filter(|one| of.contains(*one));
            names.map(KeyScope::name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(has(&KeyScopes::default()), "read send answer approve cancel push");
        assert_eq!(has(&scopes(&["read"])), "read");
        assert_eq!(has(&scopes(&["admin"])), "admin");
        assert_eq!(has(&scopes(&["card:x"])), "", "a list with a scope of cards alone narrows");
        assert_eq!(KeyScopes::default().of_cards(), CardScopes::NONE);
        assert_eq!(has(&scopes(&["admin:grant", "apply:own"])), "apply admin:grant");
    }

    /// Row for each list of scopes and each task: which scopes cover it.
    #[test]
    fn narrowed_scopes_cover_their_tasks() {
        let own = facts(true, &["echo"]);
        let below_flow = facts(false, &["codex/review", "flow"]);
        for (of, scope, is_own_covered, is_below_covered) in [
            (&["read"][..], KeyScope::Read, true, true),
            (&["read:own"], KeyScope::Read, true, false),
            (&["read:echo"], KeyScope::Read, true, false),
            (&["read:codex"], KeyScope::Read, false, true),
            (&["read:codex/review"], KeyScope::Read, false, true),
            (&["read:codex/other"], KeyScope::Read, false, false),
            (&["read:flow"], KeyScope::Read, false, true),
            (&["read:own", "read:flow"], KeyScope::Read, true, true),
            (&["answer:flow"], KeyScope::Answer, false, true),
            (&["approve:flow"], KeyScope::Approve, false, false),
            (&["approve:codex"], KeyScope::Approve, false, true),
            (&["read:own"], KeyScope::Cancel, false, false),
            (&[], KeyScope::Cancel, true, true),
            (&[], KeyScope::Apply, false, false),
            (&["apply:own"], KeyScope::Apply, true, false),
        ] {
            let of = scopes(of);
            assert_eq!(of.covers(scope, &own), is_own_covered, "{of:?}");
            assert_eq!(of.covers(scope, &below_flow), is_below_covered, "{of:?}");
            let unknown = TaskFacts::default();
            let is_narrowed = of.targets(scope).is_some() || !of.contains(scope);
            assert_eq!(of.covers(scope, &unknown), !is_narrowed, "{of:?}");
        }
    }

    #[test]
    fn messages_need_named_agent_and_skill() {
        let of = scopes(&["send:echo/sum", "send:codex"]);
        for (agent, skill, may) in [
            (Some("echo"), Some("sum"), true),
            (Some("echo"), None, false),
            (Some("echo"), Some("summary"), false),
            (Some("codex"), Some("any"), true),
            (Some("claude"), Some("sum"), false),
            (None, Some("sum"), false),
            (None, None, false),
        ] {
            let agent = agent.map(id);
            assert_eq!(of.covers_message(agent.as_ref(), skill), may, "{agent:?} {skill:?}");
        }
        assert!(KeyScopes::default().covers_message(None, None));
        assert!(!scopes(&["read"]).covers_message(Some(&id("echo")), None));
    }

    #[test]
    fn only_alone_limits_delegation() {
        let reach = |of: &[&str], agent: &str| {
            let reach = scopes(of).reach(&id(agent), None)?;
            Some(reach.iter().map(AgentId::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(reach(&[], "flow"), None);
        assert_eq!(reach(&["send"], "flow"), None);
        assert_eq!(reach(&["send:flow"], "flow"), None);
        assert_eq!(reach(&["send:flow:alone"], "flow").as_deref(), Some("flow"));
        let two = ["send:flow:alone", "send:codex:alone"];
        assert_eq!(reach(&two, "flow").as_deref(), Some("codex flow"));
        assert_eq!(reach(&["send:flow:alone", "send:flow"], "flow"), None, "the wider one counts");
        assert_eq!(reach(&["send:flow:alone", "send:codex/x"], "flow").as_deref(), Some("flow"));
    }

    #[test]
    fn nobody_gives_away_more_than_the_own() {
        let all = ["read", "send", "answer", "approve", "cancel", "push", "admin"];
        for (mine, other, is_same, may) in [
            (&all[..], &[][..], false, true),
            (&all, &["apply"], false, false),
            (&all, &["admin"], false, true),
            (&all, &["read:own", "send:echo"], false, true),
            (&["admin", "admin:grant"], &["admin:grant"], false, false),
            (&["admin", "read"], &[], false, false),
            (&["admin", "read"], &["read:own"], false, true),
            (&["admin", "read:own"], &["read:own"], true, true),
            (&["admin", "read:own"], &["read:own"], false, false),
            (&["admin", "read:own"], &["read"], true, false),
            (&["admin", "send:echo"], &["send:echo/x"], false, true),
            (&["admin", "send:echo/x"], &["send:echo"], false, false),
            (&["admin", "send:echo:alone"], &["send:echo"], false, false),
            (&["admin", "send:echo"], &["send:echo:alone"], false, true),
            (&all, &["card:x"], true, false),
            (&["admin", "card:x"], &["card:x"], false, true),
            (&["admin", "card:x"], &["card:x", "card:y"], false, false),
        ] {
            assert_eq!(scopes(mine).include(&scopes(other), is_same), may, "{mine:?} {other:?}");
        }
    }

    fn any_scope() -> impl Strategy<Value = String> {
        let target = prop_oneof![
            Just(String::new()),
            Just(":own".to_owned()),
            "[a-c][a-z0-9-]{0,4}".prop_map(|agent| format!(":{agent}")),
            "[a-c]{1,2}/[a-zA-Z0-9._/-]{1,8}".prop_map(|skill| format!(":{skill}")),
            "[a-c]{1,2}".prop_map(|agent| format!(":{agent}:alone")),
            ".{0,6}".prop_map(|any| format!(":{any}")),
        ];
        let names: Vec<_> = KeyScope::ALL.into_iter().map(KeyScope::name).collect();
        let of_key = (proptest::sample::select(names), target)
            .prop_map(|(name, target)| name.to_owned() + &target);
        prop_oneof![4 => of_key, 1 => "card:[a-c:/]{0,3}"]
    }

    proptest! {
        #[test]
        fn printed_scopes_parse_to_same(offered in prop::collection::vec(any_scope(), 0..12)) {
            let valid: Vec<_> =
                offered.iter().filter(|one| KeyScopes::parse([one.as_str()]).is_ok()).collect();
            let parsed = KeyScopes::parse(valid.iter().map(|one| one.as_str())).unwrap();
            let texts = parsed.to_texts();
            let again = KeyScopes::parse(texts.iter().map(String::as_str)).unwrap();
            prop_assert_eq!(&again, &parsed);
            let json = serde_json::to_string(&parsed).unwrap();
            prop_assert_eq!(serde_json::from_str::<KeyScopes>(&json).unwrap(), parsed);
        }

        #[test]
        fn added_target_of_other_scope_widens_nothing(
            offered in prop::collection::vec(any_scope(), 1..6), more in any_scope(),
        ) {
            let valid = |all: &[String]| -> Vec<String> {
                all.iter().filter(|one| KeyScopes::parse([one.as_str()]).is_ok()).cloned().collect()
            };
            let (base, more) = (valid(&offered), valid(&[more]));
            prop_assume!(!base.is_empty() && !more.is_empty());
            let narrow = KeyScopes::try_from(base.clone()).unwrap();
            let wide = KeyScopes::try_from([base, more].concat()).unwrap();
            let is_grant = wide.contains(KeyScope::AdminGrant);
            let has_own = |of: &KeyScopes| of.to_texts().iter().any(|text| text.ends_with(":own"));
            prop_assert!(is_grant || wide.include(&narrow, true));
            prop_assert!(is_grant || has_own(&narrow) || wide.include(&narrow, false));
        }
    }
}
