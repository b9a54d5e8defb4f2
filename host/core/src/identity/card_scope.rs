//! Scopes that skills of agents' cards require, and those that a caller holds for them.
//!
//! The hub authenticates callers itself, so of a requirement (A2A 1.0, section 4.5.2) only the
//! names of its scopes count: a caller has those of its key's scopes `card:NAME`. A tree of tasks
//! has the scopes of the caller that began it.

use crate::task::metadata::CARD_SCOPES;
use a2a_hub_protocol::{
    card::{AgentCard, Skill},
    message::Metadata,
};
use serde_json::json;
use std::collections::BTreeSet;

/// Prefix of a key's scope that names a scope of cards.
pub(super) const PREFIX: &str = "card:";

/// Longest name of a scope, in bytes.
const MAX_NAME: usize = 128;

/// Most characters of required scopes in a refusal.
const MAX_LISTED: usize = 160;

/// Scopes that a caller holds for skills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CardScopes {
    /// All: the operator's.
    All,
    /// These.
    Named(BTreeSet<String>),
}

impl CardScopes {
    /// No scopes.
    pub const NONE: Self = Self::Named(BTreeSet::new());

    /// Scopes that a tree of tasks holds, by the metadata that the hub gave its first task.
    pub fn of_tree(metadata: Option<&Metadata>) -> Self {
        match metadata.and_then(|facts| facts.get(CARD_SCOPES)) {
            None => Self::All,
            Some(named) => {
                let names = named.as_array().into_iter().flatten();
                Self::Named(names.filter_map(|name| name.as_str().map(str::to_owned)).collect())
            }
        }
    }

    /// Metadata for the tasks of a tree; `None` for all scopes.
    pub fn to_fact(&self) -> Option<(String, serde_json::Value)> {
        match self {
            Self::All => None,
            Self::Named(names) => Some((CARD_SCOPES.to_owned(), json!(names))),
        }
    }

    /// Checks that an agent may do a task for this caller. A message that names no skill of the
    /// card may be about any of them.
    ///
    /// # Errors
    ///
    /// The first skill whose scopes the caller lacks.
    pub fn require_for(&self, card: &AgentCard, skill: Option<&str>) -> Result<(), ScopesMissing> {
        let Self::Named(names) = self else { return Ok(()) };
        let lacks = |one: &&Skill| {
            let alternatives = one.required_scopes();
            alternatives.is_some_and(|all| !all.iter().any(|scopes| scopes.is_subset(names)))
        };
        let is_named = |one: &&Skill| skill == Some(one.id.as_str());
        let names_one = card.skills.iter().any(|one| is_named(&one));
        let mut skills = card.skills.iter().filter(|one| !names_one || is_named(one));
        match skills.find(lacks) {
            None => Ok(()),
            Some(lacking) => Err(ScopesMissing::new(lacking, names_one)),
        }
    }
}

/// Error for a caller without the scopes of a skill.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its skill `{skill}` requires {scopes}, which the caller lacks: {}; an API key holds a scope of a card as `card:NAME`",
    if *.is_named { "name another skill" } else { "name one of its other skills as `targetSkill`" }
)]
pub struct ScopesMissing {
    /// Id of the skill.
    skill: String,
    /// Required scopes, in words.
    scopes: String,
    /// True if the message names the skill.
    is_named: bool,
}

impl ScopesMissing {
    fn new(skill: &Skill, is_named: bool) -> Self {
        let alternatives = skill.required_scopes().unwrap_or_default();
        let quoted = |one: &BTreeSet<String>| {
            let names: Vec<_> = one.iter().map(|name| format!("`{name}`")).collect();
            names.join(" and ")
        };
        let words: Vec<_> = alternatives.iter().map(quoted).collect();
        let scopes = match words.is_empty() {
            true => "scopes that the hub cannot read".to_owned(),
            false => crate::text::plain_text::line(&words.join(", or "), MAX_LISTED),
        };
        Self { skill: crate::text::plain_text::line(&skill.id, 80), scopes, is_named }
    }
}

/// True if a key can name a scope of cards so: a scope of OAuth 2.0 (RFC 6749, section 3.3) without
/// the comma, which separates scopes of keys.
pub(super) fn is_name(name: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b',' | b'"' | b'\\' | b'`');
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn card(skills: &Value) -> AgentCard {
        let card = json!({ "name": "n", "description": "d", "version": "1", "skills": skills });
        serde_json::from_value(card).unwrap()
    }

    fn scopes(names: &[&str]) -> CardScopes {
        CardScopes::Named(names.iter().map(|name| (*name).to_owned()).collect())
    }

    /// Rows: the requirement of the skill `deploy`, the caller's scopes, and whether they suffice.
    #[test]
    fn one_alternative_suffices() {
        let v1 = |lists: &[&[&str]]| -> Value {
            lists.iter().map(|list| json!({ "schemes": { "oauth": { "list": list } } })).collect()
        };
        let two = json!([{ "schemes": { "a": { "list": ["x"] }, "b": { "list": ["y"] } } }]);
        for (member, required, names, may) in [
            ("securityRequirements", v1(&[&["x"]]), &["x"][..], true),
            ("securityRequirements", v1(&[&["x"]]), &["X", "x "], false),
            ("securityRequirements", v1(&[&["x"]]), &[], false),
            ("securityRequirements", v1(&[&["x", "y"]]), &["x"], false),
            ("securityRequirements", v1(&[&["x"], &["y"]]), &["y"], true),
            ("securityRequirements", v1(&[&[]]), &[], true),
            ("securityRequirements", v1(&[]), &[], true),
            ("securityRequirements", two.clone(), &["x"], false),
            ("securityRequirements", two, &["x", "y"], true),
            ("securityRequirements", json!([{ "oauth": ["x"] }]), &["x"], true),
            ("securityRequirements", json!([{ "oauth": ["x"] }]), &[], false),
            ("security", json!([{ "oauth": ["x"] }]), &[], false),
            ("security", json!([{ "oauth": ["x"] }, {}]), &[], true),
            ("security", json!([{ "oauth": 7 }]), &[""], false),
            ("security", json!("x"), &["x"], false),
            ("securityRequirements", json!([{ "schemes": { "oauth": {} } }]), &[], true),
            ("securityRequirements", Value::Null, &[], true),
        ] {
            let guarded =
                json!({ "id": "deploy", "name": "D", "description": "d", member: required });
            let card = card(&json!([guarded]));
            assert_eq!(scopes(names).require_for(&card, None).is_ok(), may, "{required} {names:?}");
            assert!(CardScopes::All.require_for(&card, Some("deploy")).is_ok(), "{required}");
        }
    }

    #[test]
    fn unnamed_skill_needs_scopes_of_all() {
        let required = json!([{ "schemes": { "oauth": { "list": ["prod", "\u{1b}[2J"] } } }]);
        let card = card(&json!([
            { "id": "status", "name": "S", "description": "s" },
            { "id": "deploy", "name": "D", "description": "d", "securityRequirements": required },
        ]));
        let none = CardScopes::NONE;
        assert!(none.require_for(&card, Some("status")).is_ok());
        for skill in [None, Some("other"), Some("Deploy"), Some("")] {
            assert!(none.require_for(&card, skill).is_err(), "{skill:?}");
        }
        let named = none.require_for(&card, Some("deploy")).unwrap_err().to_string();
        assert!(named.starts_with("its skill `deploy` requires `"), "{named}");
        assert!(named.contains("`prod`") && named.contains("name another skill;"), "{named}");
        assert!(!named.contains('\u{1b}'));
        let unnamed = none.require_for(&card, None).unwrap_err().to_string();
        assert!(unnamed.contains("as `targetSkill`"), "{unnamed}");
    }

    #[test]
    fn tree_keeps_scopes_of_its_caller() {
        for scopes in [CardScopes::All, CardScopes::NONE, scopes(&["a", "b"])] {
            let facts = Metadata::from_iter(scopes.to_fact());
            assert_eq!(CardScopes::of_tree(Some(&facts)), scopes);
        }
        assert_eq!(CardScopes::of_tree(None), CardScopes::All);
        let damaged = Metadata::from_iter([(CARD_SCOPES.to_owned(), json!("all"))]);
        assert_eq!(CardScopes::of_tree(Some(&damaged)), CardScopes::NONE);
    }

    #[test]
    fn names_are_scopes_of_oauth() {
        for name in ["deploy", "deploy:prod", "https://x.example/auth.read", "a/b"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a b", "a,b", "a\"", "ä", "a\u{1b}", &"x".repeat(129)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
