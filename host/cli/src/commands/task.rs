//! `task`: shows, cancels, watches or saves one task of the hub or of a remote agent.

pub(crate) mod answer;
pub(crate) mod handoff;
pub(crate) mod output;
pub(crate) mod question;
pub(crate) mod quota_wait;
pub(crate) mod reference;
mod resume_in_cli;
pub(crate) mod review;
pub(crate) mod save_files;
mod timeline;
mod tree;
mod watch;
mod worktree_request;
#[cfg(feature = "hub")]
mod worktree_trust;
pub(crate) mod worktrees;

use super::{
    cancel::{self, Cancel},
    tasks::{TasksArgs, tasks},
};
use crate::{
    Exit, Global, ask,
    client::{remote_task, sent::waits, task_snapshot::TaskStateSnapshot},
    ui::{
        render::{ago, list, message_for_reading, message_text, routing_lines, text},
        text::{FAINT, PLAIN, Text, style_of},
    },
};
use a2a_hub_core::{context_memory::transfer::Inherited, text::plain_text::line};
use answer::{AnswerOptions, answer};
use clap::Subcommand;
use handoff::HandoffOptions;
use jiff::Timestamp;
use reference::One;
use resume_in_cli::{ResumeInCli, resume_in_cli};
use save_files::Saved;
use serde_json::{Value, json};
use std::{
    fmt::{self, Write as _},
    path::{Path, PathBuf},
};
use timeline::TimelineArgs;
use tree::TreeArgs;
use watch::watch;
use worktrees::{ApplyOptions, DiffOptions, DiscardOptions};

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// List tasks, those that wait for an answer first; `a2a-hub tasks` does the same
    List(TasksArgs),
    /// Show a task with its messages and artifacts
    Show(One),
    /// Answer the question of a task, and print what follows
    Answer(AnswerOptions),
    /// Cancel a task, or all tasks of the hub in one state
    Cancel(Cancel),
    /// Print the events of a task until it ends; Ctrl-C does not cancel the task
    Watch(One),
    /// Show a task and its child tasks as a tree, with their states and usage
    Tree(TreeArgs),
    /// Print what happened in a task, a line for each event of its log: states, messages, tools,
    /// questions and who answered them
    Timeline(TimelineArgs),
    /// Have another agent go on with a task, with what was asked, said and changed so far
    Handoff(HandoffOptions),
    /// Have a task that waits for the reset of its agent's quota try now
    RetryNow(quota_wait::RetryNowOptions),
    /// Print the changes of a task that works in a worktree, as a patch
    Diff(DiffOptions),
    /// Comment on lines of a task's changes, and send the comments to its agent as one message
    Review(review::ReviewOptions),
    /// Take over the changes of a task into the repository that its worktree is of
    Apply(ApplyOptions),
    /// Remove the worktree of a task with all its files
    Discard(DiscardOptions),
    /// Continue the session of a task in the vendor's own program, such as `claude --resume`
    #[command(name = "open", visible_alias = "resume-in-cli")]
    ResumeInCli(ResumeInCli),
    /// Save the files of a task; existing files are never overwritten
    Save {
        #[command(flatten)]
        one: One,
        /// Directory to save to; created if missing
        #[arg(default_value = ".")]
        dir: PathBuf,
    },
}

pub(crate) fn task(global: &Global, task: TaskCommand) -> anyhow::Result<Exit> {
    match task {
        TaskCommand::Show(one) => {
            let (id, task) = one.ask(global, "tasks/get")?;
            global.show(&task, || {
                // The task's JSON does not name its agent; its tree does.
                let tree = match one.url()? {
                    None if waits(&task) => ask(global, "hub/tasks/tree", json!({ "id": id }))?,
                    Some(_) | None => Value::Null,
                };
                let remote = one.url()?.map(|url| one.elsewhere.named(url));
                let agent = remote.as_deref().or_else(|| tree["tasks"][0]["agentId"].as_str());
                let agent = agent.map(|agent| (global.command(), agent));
                Ok(task_text(&task, agent, Timestamp::now())?)
            })?;
        }
        TaskCommand::List(args) => return tasks(global, &args),
        TaskCommand::Answer(args) => return answer(global, args),
        TaskCommand::Cancel(cancel) => cancel::cancel(global, &cancel)?,
        TaskCommand::Watch(one) => match one.url()? {
            Some(url) => {
                return remote_task::watch(global, url, &one.elsewhere, one.remote_id()?);
            }
            None => return watch(global, one.id.as_deref()),
        },
        TaskCommand::ResumeInCli(args) => return resume_in_cli(global, &args),
        TaskCommand::Handoff(args) => return handoff::handoff(global, &args),
        TaskCommand::RetryNow(args) => return quota_wait::retry_now(global, &args),
        TaskCommand::Diff(args) => return worktrees::diff(global, &args),
        TaskCommand::Review(args) => return review::review(global, &args),
        TaskCommand::Apply(args) => return worktrees::apply(global, &args),
        TaskCommand::Discard(args) => return worktrees::discard(global, &args),
        TaskCommand::Tree(tree) => return tree::tree(global, &tree),
        TaskCommand::Timeline(args) => return timeline::timeline(global, &args),
        TaskCommand::Save { one, dir } => save(global, &one, &dir)?,
    }
    Ok(Exit::Done)
}

fn save(global: &Global, one: &One, dir: &Path) -> anyhow::Result<()> {
    let mut snapshot = TaskStateSnapshot::default();
    let (id, task) = one.ask(global, "tasks/get")?;
    snapshot.apply(&task);
    let saved = save_files::save(&snapshot, dir)?;
    if saved.is_empty() {
        global.console().note(format!("task {id} made no files"));
    }
    let all: Vec<_> = saved.iter().map(Saved::to_json).collect();
    global.show(&json!({ "taskId": id, "saved": all }), || {
        Ok(saved.iter().map(|saved| saved.text() + "\n").collect::<String>().into())
    })
}

/// Renders a task of `agent`, with the command that answers its question.
fn task_text(
    task: &Value,
    agent: Option<(String, &str)>,
    now: Timestamp,
) -> Result<Text, fmt::Error> {
    let (mut out, status) = (Text::new(), &task["status"]);
    let when = ago(&status["timestamp"], now);
    writeln!(out, "task     {}", text(&task["id"]))?;
    writeln!(out, "context  {}", text(&task["contextId"]))?;
    out.push(PLAIN, "state    ");
    out.push(style_of(text(&status["state"])), text(&status["state"]));
    writeln!(out, ", {when}")?;
    if let Some(reason) = task["metadata"]["reason"].as_str() {
        writeln!(out, "reason   {reason}")?;
    }
    let quota = quota_wait::lines(task, "a2a-hub", now);
    for line in quota.into_iter().chain(handoff::lines(&task["metadata"])) {
        writeln!(out, "{line}")?;
    }
    for line in routing_lines(&task["metadata"]["routing"]) {
        writeln!(out, "{line}")?;
    }
    if let Some(fact) = Inherited::from_metadata(task["metadata"].as_object()) {
        writeln!(out, "memory   {}", fact.line())?;
    }
    if let Some(session) = task["metadata"]["vendorSession"].as_str() {
        writeln!(out, "session  {}", line(session, MAX_SESSION))?;
    }
    if let Some(why) = task["metadata"]["costUncounted"].as_str() {
        writeln!(out, "cost     {}", line(why, MAX_ROUTING))?;
    }
    let mut push_message = |author: &str, message: &Value| {
        let words = match message["artifactId"].is_string() {
            true => message_text(message),
            false => message_for_reading(message),
        };
        out.push(PLAIN, "\n");
        out.push(FAINT, author);
        out.push(PLAIN, "\n");
        words.trim_end().lines().try_for_each(|line| writeln!(out, "  {line}"))
    };
    // An answer that is an artifact, too, is printed once.
    let last = &status["message"];
    let in_history = |message: &Value| message["messageId"] == last["messageId"];
    // Messages without an id, of agents on other hosts, cannot be distinguished.
    let is_identified = last["messageId"].is_string();
    let is_repeated = is_identified && status["state"] == "completed" && {
        let mut snapshot = TaskStateSnapshot::default();
        snapshot.apply(task);
        snapshot.last_words().is_none()
    };
    for message in list(&task["history"]) {
        if is_repeated && in_history(message) {
            continue;
        }
        push_message(if message["role"] == "user" { "you" } else { "agent" }, message)?;
    }
    for artifact in list(&task["artifacts"]) {
        push_message(&format!("made: {}", text(&artifact["name"])), artifact)?;
    }
    if last.is_object() && !is_repeated && !list(&task["history"]).iter().any(in_history) {
        push_message("agent", last)?;
    }
    if let (true, Some((command, agent)), Some(id)) = (waits(task), agent, task["id"].as_str()) {
        let question = task["metadata"]["question"]["id"].as_str();
        writeln!(out, "\n{}", question::answer_with(&command, agent, id, question))?;
    }
    Ok(out)
}

/// Maximum length, in characters, of the id of a session.
const MAX_SESSION: usize = 100;

/// Maximum length, in characters, of the routing details of one agent.
const MAX_ROUTING: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_is_rendered_with_question() {
        let part = |text: &str| json!([{ "kind": "text", "text": text }]);
        let task = json!({
            "kind": "task", "id": "01a1fc8f-a111-7715-9c95-8a642d72e498", "contextId": "ctx-1",
            "status": {
                "state": "input-required", "timestamp": "2026-01-31T11:58:00.000Z",
                "message": { "kind": "message", "messageId": "m2", "role": "agent", "parts": part("May I delete them?") },
            },
            "history": [
                { "messageId": "m1", "role": "user", "parts": part("delete the old fixtures\nall of them") },
                { "messageId": "m0", "role": "user", "parts": [{ "kind": "data", "data": { "keep": ["a", "b"], "why": "one\ntwo" } }] },
            ],
            "artifacts": [{ "artifactId": "a", "name": "list", "parts": part("one.json\ntwo.json\n") }],
            "metadata": {
                "vendorSession": "7f3c-1", "reason": "permission", "question": { "id": "q-1", "kind": "permission" },
                "inherited": {
                    "from": { "agent": "planner", "task": "t-1" }, "scope": "minimal", "delivered": true, "bytes": 30,
                    "went": { "decisions": 1, "names": ["db"] }, "stayed": [{ "rule": "private", "thoughts": 2 }],
                },
            },
        });
        let now = "2026-01-31T12:00:00Z".parse().unwrap();
        insta::assert_snapshot!(task_text(&task, Some(("a2a-hub".to_owned(), "claude-code")), now).unwrap().words(), @r#"
        task     01a1fc8f-a111-7715-9c95-8a642d72e498
        context  ctx-1
        state    input-required, 2 min ago
        reason   permission
        memory   1 decision from planner (t-1), scope minimal: db; stayed, for it is private: 2 thoughts
        session  7f3c-1

        you
          delete the old fixtures
          all of them

        you
          keep:
            - a
            - b
          why:
            one
            two

        made: list
          one.json
          two.json

        agent
          May I delete them?

        answer with: a2a-hub task answer 01a1fc8f-a111-7715-9c95-8a642d72e498 --question q-1 "..."
        "#);
    }
}
