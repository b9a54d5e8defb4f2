//! Metadata members that the hub interprets, and the values that each accepts.
//!
//! A client sets them in the metadata of its message or of the surrounding request, depending on
//! its library. This module validates both and merges them. A member of the request counts as a
//! member of the message. Different values for one member in both are refused, because the intended
//! one is unknown. A value of the wrong type is refused as well, because the ignored member might
//! have been a limit.

use crate::model::{
    budget::{BUDGET, Budget},
    error::A2aError,
    id::{AgentId, TaskId},
    message::{Message, Metadata},
    question::{QUESTION, answered_by},
    trace,
};
use serde_json::Value;

/// Accepted values of `permissions`.
pub const PERMISSIONS: [&str; 4] = ["read-only", "ask", "edit", "full"];

/// Metadata member with the id of the skill that a message is for.
pub const TARGET_SKILL: &str = "targetSkill";

/// Member that asks for a worktree: true, or an object with the commit to start from, as
/// `{"base": "main"}`. A flow also names a child, in whose worktree another child works:
/// `{"task": "…"}`.
pub const WORKTREE: &str = "worktree";

/// Metadata member of a flow's task: the child whose worktree has the result. `hub/tasks/diff`,
/// `apply` and `discard` follow it.
pub const WORKTREE_TASK: &str = "worktreeTask";

/// Member that names directories in which the agent works besides the working directory.
pub const ADDITIONAL_DIRECTORIES: &str = "additionalDirectories";

/// Maximum number of additional directories.
pub const MAX_DIRECTORIES: usize = 100;

/// Wish of the member [`WORKTREE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorktreeWish {
    /// A new worktree that starts from this commit, branch or tag.
    New {
        /// The commit.
        base: String,
    },
    /// The worktree of this task.
    OfTask(TaskId),
}

/// Wish of a value of the member [`WORKTREE`]; none if it asks for no worktree. `at` is the path of
/// the value, for the error.
///
/// # Errors
/// If the value is neither a boolean nor an object with at most a text `base` or `task`.
pub fn worktree_wish(value: &Value, at: &str) -> Result<Option<WorktreeWish>, A2aError> {
    let why = || {
        let why = "must be true or false, or an object with the commit to start from (`base`), or in a flow with a child \
                   (`task`)";
        A2aError::invalid(at, why.to_owned())
    };
    let new = |base: &str| Some(WorktreeWish::New { base: base.to_owned() });
    match value {
        Value::Bool(asks) => Ok(new("HEAD").filter(|_| *asks)),
        Value::Object(members) => {
            let mut members = members.iter();
            match (members.next(), members.next()) {
                (None, _) => Ok(new("HEAD")),
                (Some((name, Value::String(base))), None) if name == "base" => Ok(new(base)),
                (Some((name, Value::String(task))), None) if name == "task" => {
                    Ok(Some(WorktreeWish::OfTask(TaskId::new(task.as_str()))))
                }
                (Some(_), _) => Err(why()),
            }
        }
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => Err(why()),
    }
}

/// Maximum length of a text value in bytes, for example a model's name or a path.
const MAX_TEXT: usize = 4_096;

/// Maximum number of names in a list.
const MAX_NAMES: usize = 256;

/// Name of a member, its accepted values, and whether the agent receives it with the message.
struct Member {
    name: &'static str,
    takes: Takes,
    handed_on: bool,
}

/// Type of a member's value.
#[derive(Clone, Copy)]
enum Takes {
    Agent,
    Text,
    Flag,
    FlagOrText,
    Names,
    Directories,
    Permissions,
    Budget,
    Question,
    Worktree,
    /// Validated by the code that reads the member.
    Any,
}

const fn routing(name: &'static str, takes: Takes) -> Member {
    Member { name, takes, handed_on: false }
}

const fn forwarded(name: &'static str, takes: Takes) -> Member {
    Member { name, takes, handed_on: true }
}

/// All members.
const MEMBERS: [Member; 22] = [
    routing("targetAgent", Takes::Agent),
    forwarded(TARGET_SKILL, Takes::Text),
    routing("targetVersion", Takes::Text),
    routing("allowOlder", Takes::Flag),
    routing("workingDirectory", Takes::Text),
    routing(WORKTREE, Takes::Worktree),
    forwarded(ADDITIONAL_DIRECTORIES, Takes::Directories),
    forwarded(QUESTION, Takes::Question),
    forwarded(BUDGET, Takes::Budget),
    forwarded("model", Takes::Text),
    forwarded("effort", Takes::Text),
    forwarded("resume", Takes::Text),
    forwarded("allowedTools", Takes::Names),
    forwarded("mcpServers", Takes::Names),
    forwarded("permissions", Takes::Permissions),
    forwarded("inheritWorkingMemory", Takes::Flag),
    forwarded("inheritMemory", Takes::FlagOrText),
    forwarded("memoryQuery", Takes::Text),
    forwarded("memoryScope", Takes::Text),
    forwarded("memoryNames", Takes::Names),
    forwarded("memoryBudget", Takes::Any),
    forwarded("memoryFrom", Takes::Text),
];

/// Names of all members.
pub fn names() -> impl Iterator<Item = &'static str> {
    MEMBERS.iter().map(|member| member.name)
}

/// Validated metadata of a message and its request.
#[derive(Clone, Copy, Debug)]
pub struct HubMetadata<'m> {
    message: Option<&'m Metadata>,
    request: Option<&'m Metadata>,
}

impl<'m> HubMetadata<'m> {
    /// Validates the metadata of a message and of its request.
    ///
    /// # Errors
    /// If a member has an invalid value, or different values in message and request. The error
    /// names the member.
    pub fn parse(
        message: Option<&'m Metadata>,
        request: Option<&'m Metadata>,
    ) -> Result<Self, A2aError> {
        let read = Self { message, request };
        // Most metadata has one or two of the members: looking each of them up costs more.
        let mut is_named = [false; MEMBERS.len()];
        for (name, _) in message.into_iter().chain(request).flatten() {
            let mut rows = MEMBERS.iter().zip(&mut is_named);
            if let Some((_, is_named)) = rows.find(|(member, _)| member.name == name) {
                *is_named = true;
            }
        }
        let named = MEMBERS.iter().zip(is_named).filter(|(_, is_named)| *is_named);
        for (Member { name, takes, .. }, _) in named {
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

    /// Value of a member, from the message or the request; `None` if it is absent or null.
    pub fn get(&self, name: &str) -> Option<&'m Value> {
        let [of_message, of_request] = self.both(name);
        of_message.or(of_request)
    }

    /// Value of a text member.
    pub fn text(&self, name: &str) -> Option<&'m str> {
        self.get(name)?.as_str()
    }

    /// Members that only the request sets, limited to those that the agent receives and those of
    /// the trace.
    pub fn of_request_alone(&self) -> Metadata {
        if self.request.is_none() {
            return Metadata::new();
        }
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

/// Validates the metadata of a message that no client sent, such as an agent's message to another
/// agent.
///
/// # Errors
/// If a member has an invalid value.
pub fn check(message: &Message) -> Result<(), A2aError> {
    HubMetadata::parse(message.metadata.as_ref(), None).map(drop)
}

impl Takes {
    /// Refuses an invalid value; `at` is the path of the value, for the error.
    fn check(self, value: &Value, at: &str) -> Result<(), A2aError> {
        let refused = |why: String| Err(A2aError::invalid(at, why));
        let is_text = |value: &Value| value.as_str().is_some_and(|text| text.len() <= MAX_TEXT);
        let is_path = |value: &Value| {
            is_text(value) && value.as_str().is_some_and(|path| path.starts_with('/'))
        };
        let is_list = |max: usize, fits: &dyn Fn(&Value) -> bool| {
            value.as_array().is_some_and(|all| all.len() <= max && all.iter().all(fits))
        };
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
            Self::Names if is_list(MAX_NAMES, &is_text) => Ok(()),
            Self::Names => refused(format!("must be an array of at most {MAX_NAMES} texts")),
            Self::Directories if is_list(MAX_DIRECTORIES, &is_path) => Ok(()),
            Self::Directories => {
                refused(format!("must be an array of at most {MAX_DIRECTORIES} absolute paths"))
            }
            Self::Permissions => match value.as_str() {
                Some(word) if PERMISSIONS.contains(&word) => Ok(()),
                Some(_) | None => refused(format!("must be one of `{}`", PERMISSIONS.join("`, `"))),
            },
            Self::Budget => Budget::read(value, at).map(drop),
            Self::Question => answered_by(value, at).map(drop),
            Self::Worktree => worktree_wish(value, at).map(drop),
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

    /// A valid value of each member, and invalid ones.
    const CASES: &[(&str, &str, &[&str])] = &[
        ("targetAgent", r#""echo""#, &["1", "\"Echo!\"", "[]"]),
        ("targetSkill", r#""review""#, &["1", "{}"]),
        ("targetVersion", r#""^2""#, &["2"]),
        ("allowOlder", "true", &["1", "\"true\""]),
        ("workingDirectory", r#""/src""#, &["7", "[\"/src\"]"]),
        ("worktree", r#"{"base":"main"}"#, &["1", "\"main\"", "{\"bass\":\"x\"}", "{\"base\":1}"]),
        ("additionalDirectories", r#"["/src"]"#, &["\"/src\"", "[\"src\"]", "[\"\"]", "[7]", "{}"]),
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
        ("memoryFrom", r#""task""#, &["1"]),
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
                HubMetadata::parse(Some(&said), None).unwrap();
                HubMetadata::parse(None, Some(&said)).unwrap();
            }
            for wrong in *wrong {
                let said = said(wrong);
                for (message, request, at) in
                    [(Some(&said), None, "message.metadata"), (None, Some(&said), "metadata")]
                {
                    let why = HubMetadata::parse(message, request).unwrap_err().to_string();
                    assert!(why.starts_with(&format!("`{at}.{name}")), "{wrong}: {why}");
                }
            }
        }
    }

    #[test]
    fn additional_directories_are_bounded() {
        let named = |count: usize| facts(&json!({ ADDITIONAL_DIRECTORIES: vec!["/src"; count] }));
        HubMetadata::parse(Some(&named(MAX_DIRECTORIES)), None).unwrap();
        let why = HubMetadata::parse(Some(&named(MAX_DIRECTORIES + 1)), None).unwrap_err();
        assert!(why.to_string().contains("at most 100 absolute paths"), "{why}");
    }

    #[test]
    fn contradicting_message_and_request_is_refused() {
        let (one, other) = (facts(&json!({ "question": "a" })), facts(&json!({ "question": "b" })));
        let why = HubMetadata::parse(Some(&one), Some(&other)).unwrap_err().to_string();
        assert!(why.contains("differs from `metadata.question`"), "{why}");
        HubMetadata::parse(Some(&one), Some(&one)).unwrap();
        let null = facts(&json!({ "question": null }));
        let read = HubMetadata::parse(Some(&null), Some(&other)).unwrap();
        assert_eq!(read.text("question"), Some("b"));
        assert_eq!(read.of_request_alone(), other);
    }

    #[test]
    fn request_metadata_excludes_routing_and_unknown_members() {
        let request = facts(&json!({ "targetAgent": "echo", "workingDirectory": "/", "x": 1,
            "model": "opus", "budget": { "tasks": 1 }, "x-workflow-id": "w" }));
        let read = HubMetadata::parse(None, Some(&request)).unwrap();
        let alone = json!({ "model": "opus", "budget": { "tasks": 1 }, "x-workflow-id": "w" });
        assert_eq!(read.of_request_alone(), facts(&alone));
    }
}
