//! Scopes of API keys.

use a2a_hub_protocol::id::AgentId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

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
}

impl KeyScope {
    /// All scopes.
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Send, Self::Answer, Self::Approve, Self::Cancel, Self::Push];

    /// Name of the scope.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Send => "send",
            Self::Answer => "answer",
            Self::Approve => "approve",
            Self::Cancel => "cancel",
            Self::Push => "push",
        }
    }
}

/// Scopes of a key: a list such as `read, send:echo`. An empty list does not narrow the role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct KeyScopes {
    scopes: BTreeSet<KeyScope>,
    /// Agents that messages may begin tasks at; all, if empty.
    agents: BTreeSet<AgentId>,
}

/// Error for a text that is no scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no scope; the scopes are read, send, answer, approve, cancel and push, and \
     `send:AGENT` for messages to one agent"
)]
pub struct InvalidScope(String);

impl KeyScopes {
    /// Parses a list of scopes.
    ///
    /// # Errors
    ///
    /// The first text that is no scope.
    pub fn parse<'s>(names: impl IntoIterator<Item = &'s str>) -> Result<Self, InvalidScope> {
        let mut parsed = Self::default();
        let mut is_unlimited = false;
        for text in names {
            let invalid = || InvalidScope(crate::text::plain_text::line(text, 80));
            let (name, agent) = match text.split_once(':') {
                Some((name, agent)) => (name, Some(AgentId::parse(agent).map_err(|_| invalid())?)),
                None => (text, None),
            };
            let scope = KeyScope::ALL.into_iter().find(|one| one.name() == name);
            let scope = scope.ok_or_else(invalid)?;
            match agent {
                Some(agent) if scope == KeyScope::Send => {
                    parsed.agents.insert(agent);
                }
                Some(_) => return Err(invalid()),
                None => is_unlimited |= scope == KeyScope::Send,
            }
            parsed.scopes.insert(scope);
        }
        if is_unlimited {
            parsed.agents.clear();
        }
        Ok(parsed)
    }

    /// True if the key has this scope.
    pub fn contains(&self, scope: KeyScope) -> bool {
        self.scopes.is_empty() || self.scopes.contains(&scope)
    }

    /// Agents that messages may begin tasks at; `None` for all.
    pub fn agents(&self) -> Option<&BTreeSet<AgentId>> {
        (!self.agents.is_empty()).then_some(&self.agents)
    }

    /// Texts of the scopes, as [`KeyScopes::parse`] reads them.
    pub fn to_texts(&self) -> Vec<String> {
        let texts = self.scopes.iter().flat_map(|scope| match scope {
            KeyScope::Send if !self.agents.is_empty() => {
                self.agents.iter().map(|agent| format!("send:{agent}")).collect()
            }
            KeyScope::Send
            | KeyScope::Read
            | KeyScope::Answer
            | KeyScope::Approve
            | KeyScope::Cancel
            | KeyScope::Push => vec![scope.name().to_owned()],
        });
        texts.collect()
    }
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
    use super::*;

    fn texts(scopes: &[&str]) -> Vec<String> {
        KeyScopes::parse(scopes.iter().copied()).unwrap().to_texts()
    }

    #[test]
    fn scopes_round_trip_as_texts() {
        assert_eq!(texts(&[]), [""; 0]);
        assert_eq!(texts(&["send", "read", "read"]), ["read", "send"]);
        assert_eq!(texts(&["send:b", "send:a", "read"]), ["read", "send:a", "send:b"]);
        assert_eq!(texts(&["send:a", "send"]), ["send"], "the wider one counts");
    }

    #[test]
    fn other_texts_are_refused() {
        for wrong in
            ["", "admin", "Read", "read:echo", "send:", "send:A b", "send:a:b", "*", " read"]
        {
            let refused = KeyScopes::parse([wrong]).unwrap_err().to_string();
            assert!(refused.contains("the scopes are read, send"), "{refused}");
        }
        let stored: Result<KeyScopes, _> = serde_json::from_str(r#"["admin"]"#);
        assert!(stored.is_err(), "a scope of a later version widens nothing");
    }

    #[test]
    fn scopes_narrow_only_if_present() {
        let all = KeyScopes::default();
        assert!(KeyScope::ALL.iter().all(|scope| all.contains(*scope)) && all.agents().is_none());
        let reading = KeyScopes::parse(["read"]).unwrap();
        let has: Vec<_> = KeyScope::ALL.into_iter().filter(|one| reading.contains(*one)).collect();
        assert_eq!(has, [KeyScope::Read]);
    }
}
