//! Tasks that somebody sent: neither a child of another task, nor the run of a schedule or trigger,
//! nor a look at an agent's record.

use super::{failure::CommandError, global::Global, hub_client::Client, ids};
use a2a_hub_core::{task::trace_context::PARENT_TASK, text::plain_text::line};
use a2a_hub_protocol::{
    member,
    scheduled::{SCHEDULE, TRIGGER},
};
use a2a_hub_terminal::{
    render::{first_words, list, text},
    text::{FAINT, Text},
};
use anyhow::Context as _;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Number of tasks that are requested at once.
const PAGE: usize = 25;

/// Number of tasks among which the sent ones are searched, the newest first.
const SEARCHED: usize = 2_000;

/// Largest number of characters of a request that is shown in a note.
const MAX_REQUEST_LENGTH: usize = 60;

/// Tasks of a list without those that nobody sent, newest first.
#[derive(Debug, Default)]
pub struct SentTasks {
    /// The tasks, as the hub lists them.
    pub tasks: Vec<Value>,
    /// Number of tasks below each task that has some.
    pub descendants: BTreeMap<String, usize>,
}

/// True for a task that somebody sent.
pub fn is_sent(task: &Value) -> bool {
    let facts = &task["metadata"];
    let parts = list(&task["history"]).iter().flat_map(|message| list(&message["parts"]));
    let reads_record = |data: &Value| data["record"] == true || data["confirm"].is_object();
    [PARENT_TASK, SCHEDULE, TRIGGER].iter().all(|name| facts[name].is_null())
        && !parts.take(1).any(|part| reads_record(&part["data"]))
}

/// True if a task, in the JSON of A2A 0.3, waits for its client.
pub fn waits(task: &Value) -> bool {
    ["input-required", "auth-required"].contains(&text(&task["status"]["state"]))
}

/// True for a task that somebody sent, and for a run of a schedule or trigger that waits for an
/// answer.
pub fn is_for_people(task: &Value) -> bool {
    is_sent(task) || (waits(task) && task["metadata"][PARENT_TASK].is_null())
}

impl SentTasks {
    /// Requests tasks until `limit` of them are wanted. `query` has the conditions of
    /// `hub/tasks/list`, without `limit` and `offset`.
    ///
    /// # Errors
    ///
    /// The hub refuses the query, or cannot be reached.
    pub async fn find(
        client: &mut Client,
        query: &Value,
        limit: usize,
        is_wanted: fn(&Value) -> bool,
    ) -> anyhow::Result<Self> {
        let mut found = Self::default();
        // Children are newer than their parents, and come before them.
        let mut children = BTreeMap::<String, usize>::new();
        for offset in (0..SEARCHED).step_by(PAGE) {
            let mut query = query.clone();
            member::set(&mut query, "limit", PAGE);
            member::set(&mut query, "offset", offset);
            let listed = client.call("hub/tasks/list", query).await?;
            for task in list(&listed) {
                let id = text(&task["id"]);
                let count = children.remove(id).unwrap_or_default();
                if let Some(parent) = task["metadata"][PARENT_TASK].as_str() {
                    *children.entry(parent.to_owned()).or_default() += count + 1;
                }
                if is_wanted(task) {
                    if count > 0 {
                        found.descendants.insert(id.to_owned(), count);
                    }
                    found.tasks.push(task.clone());
                    if found.tasks.len() == limit {
                        return Ok(found);
                    }
                }
            }
            if list(&listed).len() < PAGE {
                break;
            }
        }
        Ok(found)
    }
}

/// Returns the latest task that somebody sent and that works in the current directory. The tasks of
/// a remote hub work in directories of its machine, so the latest of all counts there.
///
/// # Errors
///
/// None does, or the hub refuses the list.
pub async fn latest_here(client: &mut Client) -> anyhow::Result<Value> {
    let here = std::env::current_dir().context("find the current directory")?;
    let query = match client.is_remote() {
        true => json!({}),
        false => json!({ "workingDirectory": here }),
    };
    let found = SentTasks::find(client, &query, 1, is_sent).await?.tasks.pop();
    found.ok_or_else(|| {
        let here = here.display();
        let why = format!(
            "find the latest task: none that somebody sent works in {here}; name one, as `a2a-hub tasks` lists them"
        );
        CommandError::new("TASK_NOT_FOUND", why).mended_by("a2a-hub tasks").into()
    })
}

/// Resolves a typed part of a task's id, or returns the id of [`latest_here`], and notes which task
/// that is.
///
/// # Errors
///
/// No task has the id, several have it, or none is the latest.
pub async fn resolve_or_latest(
    global: &Global,
    client: &mut Client,
    typed: Option<&str>,
) -> anyhow::Result<String> {
    match typed {
        Some(typed) => ids::resolve(client, ids::Kind::Task, typed).await,
        None => {
            let task = latest_here(client).await?;
            note_taken(global, &task);
            Ok(text(&task["id"]).to_owned())
        }
    }
}

/// Name of a task's agent for people: the command, for a flow that `best` made.
pub fn agent_name(id: &str) -> &str {
    let digits = id.strip_prefix("best-of-").unwrap_or_default();
    let is_digest = digits.len() == 8 && digits.bytes().all(|it| it.is_ascii_hexdigit());
    if is_digest { "best" } else { id }
}

/// Notes which task a command takes that names none: its id, agent and request.
pub fn note_taken(global: &Global, task: &Value) {
    let request = list(&task["history"]).first().map(|message| first_words(&message["parts"]));
    let request = line(&request.unwrap_or_default(), MAX_REQUEST_LENGTH);
    let (id, agent) = (
        ids::short(text(&task["id"]), &std::iter::empty()).text,
        agent_name(text(&task["agentId"])),
    );
    // Only lists name the agent.
    let agent = Some(line(agent, MAX_REQUEST_LENGTH)).filter(|agent| !agent.is_empty());
    let words = [Some(format!("task {id}")), agent, Some(format!("`{request}`"))];
    let words: Vec<_> = words.into_iter().flatten().collect();
    global.console().note(Text::styled(FAINT, words.join(", ")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_of_best_is_named_by_command() {
        assert_eq!(agent_name("best-of-c493a717"), "best");
        for id in ["best-of-mine", "best-of-c493a7177", "codex"] {
            assert_eq!(agent_name(id), id);
        }
    }

    #[test]
    fn children_runs_and_looks_were_not_sent() {
        let with = |name: &str| json!({ "metadata": { name: { "name": "x" } } });
        let asked =
            |data: Value| json!({ "history": [{ "parts": [{ "kind": "data", "data": data }] }] });
        assert!(is_sent(&json!({})) && is_sent(&with("worktree")));
        assert!(is_sent(&asked(json!({ "do": "run", "flow": "x" }))));
        for other in [
            with(PARENT_TASK),
            with(SCHEDULE),
            with(TRIGGER),
            asked(json!({ "record": true })),
            asked(json!({ "confirm": { "task": "1" } })),
        ] {
            assert!(!is_sent(&other) && !is_for_people(&other), "{other}");
        }
        let waiting = |name: &str| json!({ "metadata": { name: {} }, "status": { "state": "input-required" } });
        assert!(is_for_people(&waiting(SCHEDULE)) && !is_sent(&waiting(SCHEDULE)));
        assert!(!is_for_people(&waiting(PARENT_TASK)), "its root shows the question");
    }
}
