//! Directories of a task: its working directory, and the additional ones that its messages name.
//!
//! The latest message that names a working directory or additional directories decides about the
//! additional ones. A message that names another working directory alone ends the earlier ones.

use a2a_hub_core::task::metadata;
use a2a_hub_protocol::{
    hub_metadata::ADDITIONAL_DIRECTORIES,
    message::{Message, Metadata, Role},
    task::Task,
};
use serde_json::Value;
use std::path::{Component, Path};

/// Directories of a task, as its messages name them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskDirectories {
    /// Working directory.
    pub working: Option<String>,
    /// Directories in which the agent works besides the working directory.
    pub additional: Vec<String>,
}

/// Additional directories of a task.
pub fn additional(task: &Task) -> Vec<String> {
    let decides = |message: &Message| match named(message) {
        None if metadata::directory_of(message).is_some() => Some(Vec::new()),
        named => named,
    };
    // An agent's own messages give it no directories.
    let of_client = task.history.iter().rev().filter(|message| message.role == Role::User);
    of_client.filter_map(decides).next().unwrap_or_default()
}

/// Additional directories that a message names; none if it names no list.
pub fn named(message: &Message) -> Option<Vec<String>> {
    let named = message.metadata.as_ref()?.get(ADDITIONAL_DIRECTORIES)?.as_array()?;
    Some(named.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Makes a message name exactly these additional directories.
pub fn set(message: &mut Message, directories: &[String]) {
    if directories.is_empty() {
        if let Some(facts) = &mut message.metadata {
            facts.remove(ADDITIONAL_DIRECTORIES);
        }
    } else {
        message.metadata.get_or_insert_default().extend(member(directories));
    }
}

/// Metadata member with these additional directories; empty without any.
pub fn member(directories: &[String]) -> Metadata {
    let member = (ADDITIONAL_DIRECTORIES.to_owned(), Value::from(directories));
    Some(member).filter(|_| !directories.is_empty()).into_iter().collect()
}

/// True if one of these directories is `path`, or contains it as both are written. A path with
/// `..` lies in none.
pub fn contain(directories: &[String], path: &str) -> bool {
    !climbs(path) && directories.iter().any(|directory| Path::new(path).starts_with(directory))
}

/// True if a path has a part `..`.
pub fn climbs(path: &str) -> bool {
    Path::new(path).components().any(|part| part == Component::ParentDir)
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::{ContextId, TaskId},
        task::{TaskState, TaskStatus},
    };
    use serde_json::json;

    fn message(facts: &Value) -> Message {
        Message { metadata: facts.as_object().cloned(), ..Message::text(Role::User, "hi") }
    }

    fn task(messages: &[Value]) -> Task {
        let status =
            TaskStatus { state: TaskState::Working, message: None, timestamp: String::new() };
        Task {
            id: TaskId::new("t"),
            context_id: ContextId::new("c"),
            status,
            artifacts: Vec::new(),
            history: messages.iter().map(message).collect(),
            metadata: None,
        }
    }

    #[test]
    fn latest_message_with_directories_decides() {
        let first = json!({ "workingDirectory": "/a", "additionalDirectories": ["/b", "/c"] });
        let of = |later: &[Value]| {
            additional(&task(&[std::slice::from_ref(&first), later].concat())).join(" ")
        };
        assert_eq!(of(&[]), "/b /c");
        assert_eq!(of(&[json!({ "model": "m" }), json!({})]), "/b /c", "an answer changes nothing");
        assert_eq!(of(&[json!({ "additionalDirectories": ["/d"] })]), "/d");
        assert_eq!(of(&[json!({ "additionalDirectories": [] })]), "");
        assert_eq!(of(&[json!({ "workingDirectory": "/d" })]), "", "they belong to the former one");
        assert_eq!(of(&[json!({ "additionalDirectories": null })]), "/b /c");
        let mut task = task(&[first.clone(), json!({ "additionalDirectories": ["/"] })]);
        task.history[1].role = Role::Agent;
        assert_eq!(additional(&task), ["/b", "/c"], "an agent gives itself none");
    }

    #[test]
    fn message_names_exactly_set_directories() {
        let mut sent = message(&json!({ "model": "m" }));
        set(&mut sent, &["/b".to_owned()]);
        assert_eq!(named(&sent), Some(vec!["/b".to_owned()]));
        set(&mut sent, &[]);
        assert_eq!(json!(sent.metadata), json!({ "model": "m" }));
        let mut plain = Message::text(Role::User, "hi");
        set(&mut plain, &[]);
        assert_eq!(plain.metadata, None);
    }

    #[test]
    fn path_outside_is_not_contained() {
        let both = ["/a/b".to_owned(), "/c".to_owned()];
        for inside in ["/a/b", "/a/b/x", "/c/./d"] {
            assert!(contain(&both, inside), "{inside}");
        }
        for outside in ["/a", "/a/bc", "/a/b/../x", "/c/..", "c", "", "/"] {
            assert!(!contain(&both, outside), "{outside}");
        }
    }
}
