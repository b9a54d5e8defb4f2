//! Notes after the answer of a task: its cost and time, and its changes in a worktree; and the note
//! before it about changes that a worktree lacks.

use crate::{
    Exit, Format, Global,
    client::{hub_client::Client, task_snapshot::TaskStateSnapshot},
    ui::{
        failure::CommandError,
        render::{duration, list, text},
        text::{FAINT, Text},
    },
};
use a2a_hub_core::text::plain_text::line;
use serde_json::json;
use std::{
    process::{Output, Stdio},
    time::Duration,
};
use tokio::{process::Command, time::timeout};

/// Time from which on a task is worth a note about its duration.
const LONG: Duration = Duration::from_secs(10);

/// Most time in which git lists the changes of a checkout.
const STATUS_TIME: Duration = Duration::from_secs(2);

/// Most files that the note about uncommitted changes names.
const MAX_NAMED: usize = 3;

/// Most characters of a file's name in that note.
const MAX_NAME: usize = 100;

/// Reason of a refusal: the task has no worktree.
const NO_WORKTREE: &str = "no_worktree";

/// Tells the user at a terminal how long a task took, and what it and its child tasks cost.
pub(super) async fn say_cost(
    global: &Global,
    client: &mut Client,
    snapshot: &TaskStateSnapshot,
    exit: Exit,
    took: Duration,
) {
    let is_over = matches!(exit, Exit::Done | Exit::TaskFailed);
    let Some(task) = snapshot.task.as_deref().filter(|_| is_over) else { return };
    let is_for_people = global.format == Format::Pretty;
    if !is_for_people || global.console().stderr_columns().is_none() {
        return;
    }
    // The note is not worth an error.
    let tree = client.call("hub/tasks/tree", json!({ "id": task })).await.unwrap_or_default();
    let cost: f64 = list(&tree["tasks"]).iter().filter_map(|it| it["costUsd"].as_f64()).sum();
    if let Some(note) = cost_note(took, cost) {
        global.console().note(Text::styled(FAINT, note));
    }
}

fn cost_note(took: Duration, cost: f64) -> Option<String> {
    let took_long = (took >= LONG).then(|| format!("took {}", duration(took.as_secs())));
    let cost = (cost > 0.0).then(|| format!("${cost:.2}"));
    let facts: Vec<_> = took_long.into_iter().chain(cost).collect();
    (!facts.is_empty()).then(|| facts.join(", "))
}

/// Tells the user whether a task changed anything in its worktree, and how to read and take over
/// the changes.
pub(super) async fn say_worktree(
    global: &Global,
    client: &mut Client,
    snapshot: &TaskStateSnapshot,
) {
    let Some(task) = snapshot.task.as_deref().filter(|_| snapshot.has_worktree()) else { return };
    if global.format == Format::Json {
        return;
    }
    let params = json!({ "taskId": task, "summary": true });
    let has_changes = match client.call("hub/tasks/diff", params).await {
        Ok(diff) => !text(&diff["text"]).trim().is_empty() || !list(&diff["leftOut"]).is_empty(),
        // The hub removes a worktree without changes when its task ends. The diff itself reports
        // what else is wrong.
        Err(why) => !CommandError::from_error(&why).is(NO_WORKTREE),
    };
    let way_on = worktree_note(&global.command(), task, has_changes);
    global.console().note(Text::styled(FAINT, way_on));
}

/// Note about the changes of a task in its worktree; `command` is this program.
fn worktree_note(command: &str, task: &str, has_changes: bool) -> String {
    if !has_changes {
        return "the task changed no file in its worktree".to_owned();
    }
    format!(
        "your files are as before; then: {command} task diff {task}, {command} task apply {task}"
    )
}

/// Names the uncommitted changes of a directory's checkout, which a new worktree lacks. Silent if
/// git does not tell them in time.
#[expect(clippy::disallowed_methods, reason = "the user's own git, as the user would type it")]
pub(in crate::commands) async fn note_uncommitted(global: &Global, directory: &str) {
    if global.format == Format::Json {
        return;
    }
    let git = async |args: &[&str]| {
        let mut git = Command::new("git");
        // Neither the repository's file system monitor nor its hooks run.
        let safe = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];
        git.args(["--no-optional-locks", "-C", directory]).args(safe).args(args);
        git.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        timeout(STATUS_TIME, git.output()).await.ok()?.ok()
    };
    // A filter is a program, and an agent may have named one in the repository (CWE-78).
    let filters = git(&["config", "--show-scope", "--get-regexp", r"^filter\."]).await;
    if !filters.is_some_and(|filters| has_no_repository_filter(&filters)) {
        return;
    }
    let status = ["status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=all"];
    if let Some(listed) = git(&status).await
        && let Some(note) = uncommitted_note(&listed.stdout)
    {
        global.console().note(note);
    }
}

/// True if the listed filters are all of the user or the system. Git exits with 1 if it has none.
fn has_no_repository_filter(listed: &Output) -> bool {
    let scopes = ["global\t", "system\t"];
    let text = String::from_utf8_lossy(&listed.stdout);
    matches!(listed.status.code(), Some(0 | 1))
        && text.lines().all(|line| scopes.iter().any(|scope| line.starts_with(scope)))
}

/// Note about the changes that `git status --porcelain -z` lists; none without any.
fn uncommitted_note(status: &[u8]) -> Option<String> {
    let entries = status.split(|byte| *byte == 0).filter_map(|entry| entry.get(3..));
    let plain = |name| line(&String::from_utf8_lossy(name), MAX_NAME);
    let names: Vec<_> = entries.map(plain).collect();
    if names.is_empty() {
        return None;
    }
    let named = names.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("not in the worktree, since it is not committed: {named}{more}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uncommitted_files_are_named_and_counted() {
        assert_eq!(uncommitted_note(b""), None);
        let note = uncommitted_note(b" M src/a.rs\0?? new \x1b[2J\nname\0").unwrap();
        assert!(note.ends_with("committed: src/a.rs, new [2J name"), "{note:?}");
        let many = uncommitted_note(b" M a\0 M b\0 M c\0 M d\0 M e\0").unwrap();
        assert!(many.ends_with("a, b, c and 2 more"), "{many}");
    }

    #[test]
    fn cost_and_long_time_are_noted() {
        let note = |seconds, cost| cost_note(Duration::from_secs(seconds), cost);
        assert_eq!(note(3, 0.0), None);
        assert_eq!(note(3, 0.126).as_deref(), Some("$0.13"));
        assert_eq!(note(61, 0.0).as_deref(), Some("took 1 min"));
        assert_eq!(note(10, 2.0).as_deref(), Some("took 10 s, $2.00"));
    }
}
