//! Members of a message's metadata that mean something to the hub, and which values each takes.
//!
//! A client says them in the metadata of its message or in that of the request around it, as its library makes easy. They are read here,
//! from both, and nowhere else: what only the request says counts as if the message said it, and a member that the two say differently is
//! refused, for nobody knows which one is meant. So is a value of another type: a fact that was ignored could have been a limit.

use crate::model::{
    budget::{BUDGET, Budget},
    error::A2aError,
    id::AgentId,
    message::{Message, Metadata},
    question::{QUESTION, answered_by},
    trace,
};
use serde_json::Value;

/// The words that `permissions` takes.
pub const PERMISSIONS: [&str; 4] = ["read-only", "ask", "edit", "full"];

/// The longest text that a member takes, in bytes: such as a model's name, or a path.
const MAX_TEXT: usize = 4_096;

/// How many names a list takes.
const MAX_NAMES: usize = 256;

/// A member, the values that it takes, and whether its agent receives it with the message.
struct Member {
    name: &'static str,
    takes: Takes,
    handed_on: bool,
}

/// The values of a member.
#[derive(Clone, Copy)]
enum Takes {
    Agent,
    Text,
    Flag,
    FlagOrText,
    Names,
    Permissions,
    Budget,
    Question,
    /// Whatever its reader understands, which refuses the rest.
    Any,
}

const fn routing(name: &'static str, takes: Takes) -> Member {
    Member { name, takes, handed_on: false }
}

const fn heard(name: &'static str, takes: Takes) -> Member {
    Member { name, takes, handed_on: true }
}

/// Every member.
const MEMBERS: [Member; 19] = [
    routing("targetAgent", Takes::Agent),
    routing("targetSkill", Takes::Text),
    routing("targetVersion", Takes::Text),
    routing("allowOlder", Takes::Flag),
    routing("workingDirectory", Takes::Text),
    heard(QUESTION, Takes::Question),
    heard(BUDGET, Takes::Budget),
    heard("model", Takes::Text),
    heard("effort", Takes::Text),
    heard("resume", Takes::Text),
    heard("allowedTools", Takes::Names),
    heard("mcpServers", Takes::Names),
    heard("permissions", Takes::Permissions),
    heard("inheritWorkingMemory", Takes::Flag),
    heard("inheritMemory", Takes::FlagOrText),
    heard("memoryQuery", Takes::Text),
    heard("memoryScope", Takes::Text),
    heard("memoryNames", Takes::Names),
    heard("memoryBudget", Takes::Any),
];

/// The names of all members.
pub fn names() -> impl Iterator<Item = &'static str> {
    MEMBERS.iter().map(|member| member.name)
}

/// What a message and its request say to the hub, checked.
#[derive(Clone, Copy, Debug)]
pub struct HubMetadata<'m> {
    message: Option<&'m Metadata>,
    request: Option<&'m Metadata>,
}

impl<'m> HubMetadata<'m> {
    /// Reads the metadata of a message and of its request.
    ///
    /// # Errors
    /// If a member has a value that it does not take, or the two say it differently. The error names the member.
    pub fn of(
        message: Option<&'m Metadata>,
        request: Option<&'m Metadata>,
    ) -> Result<Self, A2aError> {
        let read = Self { message, request };
        for Member { name, takes, .. } in &MEMBERS {
            let [of_message, of_request] = read.both(name);
            for (value, at) in [(of_message, "message.metadata"), (of_request, "metadata")] {
                if let Some(value) = value {
                    takes.check(value, &format!("{at}.{name}"))?;
                }
            }
            if let (Some(one), Some(other)) = (of_message, of_request)
                && one != other
            {
                let why = format!(
                    "differs from `metadata.{name}` of the request: say it in one of them, or the same in both"
                );
                return Err(A2aError::invalid(&format!("message.metadata.{name}"), why));
            }
        }
        Ok(read)
    }

    /// A member, wherever it is said; none if it is nowhere, or null.
    pub fn get(&self, name: &str) -> Option<&'m Value> {
        let [of_message, of_request] = self.both(name);
        of_message.or(of_request)
    }

    /// A member that takes a text.
    pub fn text(&self, name: &str) -> Option<&'m str> {
        self.get(name)?.as_str()
    }

    /// What the request says and the message does not, of all that its agent receives with it, and of the trace.
    pub fn of_request_alone(&self) -> Metadata {
        let handed_on = MEMBERS.iter().filter(|member| member.handed_on).map(|member| member.name);
        let alone = |name: &&'static str| {
            let [of_message, of_request] = self.both(name);
            of_message.is_none() && of_request.is_some()
        };
        let names = handed_on.chain(trace::NAMES).filter(alone);
        names.filter_map(|name| Some((name.to_owned(), self.get(name)?.clone()))).collect()
    }

    fn both(&self, name: &str) -> [Option<&'m Value>; 2] {
        [self.message, self.request]
            .map(|facts| facts.and_then(|facts| facts.get(name)).filter(|value| !value.is_null()))
    }
}

/// Checks the members of a message that no client sent, such as that of an agent to another one.
///
/// # Errors
/// If a member has a value that it does not take.
pub fn check(message: &Message) -> Result<(), A2aError> {
    HubMetadata::of(message.metadata.as_ref(), None).map(drop)
}

impl Takes {
    /// Refuses a value that the member does not take; `at` is its place, for the error.
    fn check(self, value: &Value, at: &str) -> Result<(), A2aError> {
        let refused = |why: String| Err(A2aError::invalid(at, why));
        let is_text = |value: &Value| value.as_str().is_some_and(|text| text.len() <= MAX_TEXT);
        match self {
            Self::Agent => match value.as_str().map(AgentId::parse) {
                Some(Ok(_)) => Ok(()),
                Some(Err(why)) => refused(why.to_string()),
                None => refused("must be a string".to_owned()),
            },
            Self::Text if is_text(value) => Ok(()),
            Self::Text => refused(format!("must be a string of at most {MAX_TEXT} bytes")),
            Self::Flag if value.is_boolean() => Ok(()),
            Self::Flag => refused("must be true or false".to_owned()),
            Self::FlagOrText if value.is_boolean() || is_text(value) => Ok(()),
            Self::FlagOrText => {
                refused("must be true or false, or a text that recalls items".to_owned())
            }
            Self::Names => match value.as_array() {
                Some(names) if names.len() <= MAX_NAMES && names.iter().all(is_text) => Ok(()),
                Some(_) | None => refused(format!("must be an array of at most {MAX_NAMES} texts")),
            },
            Self::Permissions => match value.as_str() {
                Some(word) if PERMISSIONS.contains(&word) => Ok(()),
                Some(_) | None => refused(format!("must be one of `{}`", PERMISSIONS.join("`, `"))),
            },
            Self::Budget => Budget::read(value, at).map(drop),
            Self::Question => answered_by(value, at).map(drop),
            Self::Any => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn facts(value: &Value) -> Metadata {
        value.as_object().cloned().unwrap_or_default()
    }

    /// What a member takes, and what is nearly that.
    const CASES: &[(&str, &str, &[&str])] = &[
        ("targetAgent", r#""echo""#, &["1", "\"Echo!\"", "[]"]),
        ("targetSkill", r#""review""#, &["1", "{}"]),
        ("targetVersion", r#""^2""#, &["2"]),
        ("allowOlder", "true", &["1", "\"true\""]),
        ("workingDirectory", r#""/src""#, &["7", "[\"/src\"]"]),
        ("question", r#""q""#, &["1", "{}", "[]", "\"\"", "true"]),
        (
            "budget",
            r#"{"tasks":1,"costUsd":0}"#,
            &[
                "[]",
                "1",
                "{\"tasks\":-1}",
                "{\"costUsd\":-1}",
                "{\"costUsd\":\"1\"}",
                "{\"token\":1}",
            ],
        ),
        ("model", r#""opus""#, &["1", "{}", "true"]),
        ("effort", r#""high""#, &["3"]),
        ("resume", r#""s""#, &["1", "true"]),
        ("allowedTools", r#"["Read"]"#, &["\"Read\"", "[1]", "{}"]),
        ("mcpServers", "[]", &["{}", "[{}]"]),
        ("permissions", r#""ask""#, &["\"all\"", "1", "[\"ask\"]", "true"]),
        ("inheritWorkingMemory", "false", &["0"]),
        ("inheritMemory", r#""budget""#, &["0", "{}"]),
        ("memoryQuery", r#""budget""#, &["1"]),
        ("memoryScope", r#""full""#, &["1"]),
        ("memoryNames", r#"["goal"]"#, &["\"goal\""]),
        ("memoryBudget", "{}", &[]),
    ];

    #[test]
    fn ill_typed_member_is_refused_by_name() {
        assert_eq!(CASES.len(), MEMBERS.len());
        for ((name, right, wrong), member) in CASES.iter().zip(&MEMBERS) {
            assert_eq!(*name, member.name);
            let said = |value: &str| {
                facts(&json!({ *name: serde_json::from_str::<Value>(value).unwrap() }))
            };
            for right in [right, "null"] {
                let said = said(right);
                HubMetadata::of(Some(&said), None).unwrap();
                HubMetadata::of(None, Some(&said)).unwrap();
            }
            for wrong in *wrong {
                let said = said(wrong);
                for (message, request, at) in
                    [(Some(&said), None, "message.metadata"), (None, Some(&said), "metadata")]
                {
                    let why = HubMetadata::of(message, request).unwrap_err().to_string();
                    assert!(why.starts_with(&format!("`{at}.{name}")), "{wrong}: {why}");
                }
            }
        }
    }

    #[test]
    fn contradiction_of_message_and_request_is_refused() {
        let (one, other) = (facts(&json!({ "question": "a" })), facts(&json!({ "question": "b" })));
        let why = HubMetadata::of(Some(&one), Some(&other)).unwrap_err().to_string();
        assert!(why.contains("differs from `metadata.question`"), "{why}");
        HubMetadata::of(Some(&one), Some(&one)).unwrap();
        let null = facts(&json!({ "question": null }));
        let read = HubMetadata::of(Some(&null), Some(&other)).unwrap();
        assert_eq!(read.text("question"), Some("b"));
        assert_eq!(read.of_request_alone(), other);
    }

    #[test]
    fn request_alone_leaves_routing_and_strangers_out() {
        let request = facts(&json!({ "targetAgent": "echo", "workingDirectory": "/", "x": 1,
            "model": "opus", "budget": { "tasks": 1 }, "x-workflow-id": "w" }));
        let read = HubMetadata::of(None, Some(&request)).unwrap();
        let alone = json!({ "model": "opus", "budget": { "tasks": 1 }, "x-workflow-id": "w" });
        assert_eq!(read.of_request_alone(), facts(&alone));
    }
}
