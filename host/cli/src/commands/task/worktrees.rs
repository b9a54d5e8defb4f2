//! Worktrees of tasks: `task diff`, `task apply`, `task discard`, and `worktrees`.

use crate::commands::{
    completion,
    task::{review, worktree_request::ask_for},
};
#[cfg(feature = "hub")]
use crate::commands::{duration, task::worktree_trust};
use crate::{
    Exit, Format, Global,
    ui::{
        render::{counted, list, text},
        text::{FAINT, PLAIN, Text, style_of},
    },
};
#[cfg(feature = "hub")]
use crate::{
    ask, block_on,
    client::{
        hub_client::Client,
        ids::{self, Kind},
    },
    ui::{
        render::ago,
        table::{Cell, Table},
    },
};
#[cfg(feature = "hub")]
use a2a_hub_worktrees::RepositoryPaths;
use anyhow::Context as _;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::Args;
#[cfg(feature = "hub")]
use clap::Subcommand;
#[cfg(feature = "hub")]
use jiff::Timestamp;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Longest shown id of a commit.
const SHORT_ID: usize = 9;

#[derive(Debug, Args)]
pub(crate) struct DiffOptions {
    /// Id of the task, or a unique beginning or end of it [default: the latest task with a
    /// worktree of the current directory's repository]
    #[arg(add = completion::tasks())]
    id: Option<String>,
    /// Files or directories from the top of the repository [default: all]
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
    /// Print a table of the changed files in place of the patch
    #[arg(long)]
    stat: bool,
    /// Print what changed since your last review, and which of its comments are outdated
    #[arg(long)]
    since_review: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApplyOptions {
    /// Id of the task, or a unique beginning or end of it [default: the latest task with a
    /// worktree of the current directory's repository]
    #[arg(add = completion::tasks())]
    id: Option<String>,
    /// Files or directories from the top of the repository whose changes are taken over
    /// [default: all]
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
    /// Create this branch with the commits of the task, and leave the checkout as it is
    #[arg(long, value_name = "NAME", conflicts_with_all = ["commit", "index"])]
    branch: Option<String>,
    /// Commit the changes to the branch of the checkout
    #[arg(long, conflicts_with = "index")]
    commit: bool,
    /// Message of the commit [default: the first line of the task's message]
    #[arg(long, short, value_name = "TEXT", requires = "commit")]
    message: Option<String>,
    /// Change the index of the checkout as well as its files
    #[arg(long)]
    index: bool,
    /// Change another checkout of the repository, in which DIR lies
    #[arg(long, value_name = "DIR", conflicts_with = "branch")]
    to: Option<PathBuf>,
    /// Take over files that programs obey, too, such as those of editors, agents and CI
    #[arg(long, short)]
    yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DiscardOptions {
    /// Id of the task, or a unique beginning or end of it
    #[arg(add = completion::tasks())]
    id: String,
    /// Remove also what the result lacks, such as files that cannot be read
    #[arg(long)]
    force: bool,
}

#[cfg(feature = "hub")]
#[derive(Debug, Args)]
pub(crate) struct WorktreesCommand {
    #[command(subcommand)]
    command: Option<WorktreesAction>,
}

#[cfg(feature = "hub")]
#[derive(Debug, Subcommand)]
enum WorktreesAction {
    /// List the worktrees of tasks, oldest first (the default)
    List,
    /// Print the directory of a task's worktree
    Path {
        /// Id of the task, or a unique beginning or end of it
        #[arg(add = completion::tasks())]
        id: String,
    },
    /// Trust the file `.a2a-hub/worktree.toml` of a repository: its setup runs in new worktrees
    ///
    /// Shows the file, or how it differs from the one that is trusted, and asks at a terminal.
    Trust {
        /// Directory of the repository [default: the current directory]
        dir: Option<PathBuf>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        /// Trust it no longer
        #[arg(long, conflicts_with = "yes")]
        revoke: bool,
    },
    /// Remove the worktrees of finished tasks; their changes stay in their repositories as
    /// `refs/a2a-hub/TASK/result`
    Prune {
        /// Age from which on a worktree is removed, such as `12h` or `7d`
        #[arg(long, value_name = "TIME", default_value = "7d", value_parser = duration::milliseconds)]
        older_than: u64,
        /// Remove also those that have what their results lack, such as files that cannot be read
        #[arg(long)]
        force: bool,
        /// Keep no changes, and remove the kept ones (`refs/a2a-hub/*`) of earlier worktrees in the
        /// same repositories and in that of the current directory
        #[arg(long)]
        forget: bool,
    },
}

/// Prints the changes of a task.
pub(crate) fn diff(global: &Global, args: &DiffOptions) -> anyhow::Result<Exit> {
    let mut params = json!({ "summary": args.stat, "sinceReview": args.since_review });
    review::set_paths(&mut params, &args.paths);
    let (id, answer) = ask_for(global, "hub/tasks/diff", args.id.as_deref(), params)?;
    if global.format == Format::Json {
        global.console().print_json(&answer)?;
        return Ok(Exit::Done);
    }
    if text(&answer["text"]).is_empty() {
        global.console().note(match args.since_review {
            true => format!("task {id} changed no file since the review"),
            false => format!("task {id} changed no file"),
        });
    } else if let Some(raw) =
        answer["raw"].as_str().filter(|_| global.console().columns().is_none())
    {
        // Bytes in another encoding than UTF-8, for `git apply`.
        let raw = STANDARD.decode(raw).context("read the patch")?;
        global.console().print_bytes(&raw)?;
    } else {
        // Not wrapped: `git apply` reads it.
        global.console().print(&coloured(text(&answer["text"])))?;
    }
    note_omitted(global, &answer);
    review::note_outdated(global, &answer["review"]);
    Ok(Exit::Done)
}

/// Names the parts of a worktree that are not among its changes.
fn note_omitted(global: &Global, answer: &Value) {
    for part in list(&answer["leftOut"]) {
        let (name, reason) = (text(&part["name"]), text(&part["reason"]));
        global.console().note(format!("not in the result: {name} {reason}"));
    }
}

/// Colours the lines of a patch.
fn coloured(patch: &str) -> Text {
    let mut out = Text::new();
    for line in patch.split_inclusive('\n') {
        let style = match line.as_bytes() {
            [b'+', ..] if !line.starts_with("+++") => style_of("completed"),
            [b'-', ..] if !line.starts_with("---") => style_of("failed"),
            [b'@', ..] => FAINT,
            _ => PLAIN,
        };
        out.push(style, line);
    }
    out
}

/// Takes over the changes of a task.
pub(crate) fn apply(global: &Global, args: &ApplyOptions) -> anyhow::Result<Exit> {
    let to = match (&args.branch, args.commit, args.index) {
        (Some(name), ..) => json!({ "branch": name }),
        (None, true, _) => json!("commit"),
        (None, false, true) => json!("index"),
        (None, false, false) => json!("files"),
    };
    let checkout = args.to.as_deref().map(std::path::absolute).transpose();
    let checkout = checkout.context("find the directory that `--to` names")?;
    let mut params = json!({
        "to": to, "message": args.message, "acceptsAll": args.yes, "checkout": checkout,
    });
    review::set_paths(&mut params, &args.paths);
    let (id, answer) = ask_for(global, "hub/tasks/apply", args.id.as_deref(), params)?;
    global.show(&answer, || {
        let files = list(&answer["files"]);
        let mut out = Text::new();
        if let Some(branch) = answer["branch"].as_str() {
            out.push(PLAIN, &format!("branch {branch} has the changes of task {id}\n"));
        } else if files.is_empty() {
            let changes = if args.paths.is_empty() { "all changes" } else { "these changes" };
            out.push(PLAIN, &format!("the checkout has {changes} of the task already\n"));
        } else {
            let directory = text(&answer["checkout"]);
            out.push(PLAIN, &format!("{} changed in {directory}\n", counted(files.len(), "file")));
            files.iter().for_each(|file| out.push(PLAIN, &format!("  {}\n", text(file))));
        }
        if let Some(commit) = answer["commit"].as_str().filter(|_| args.commit) {
            out.push(PLAIN, &format!("commit {}\n", short(commit)));
        }
        Ok(out)
    })?;
    if global.format != Format::Json {
        note_omitted(global, &answer);
    }
    Ok(Exit::Done)
}

/// Removes the worktree of a task.
pub(crate) fn discard(global: &Global, args: &DiscardOptions) -> anyhow::Result<Exit> {
    let (id, answer) =
        ask_for(global, "hub/tasks/discard", Some(&args.id), json!({ "force": args.force }))?;
    global.show(&answer, || {
        Ok(match list(&answer).len() {
            0 | 1 => format!("the worktree of task {id} was removed\n"),
            count => format!("{count} worktrees of task {id} were removed\n"),
        }
        .into())
    })?;
    Ok(Exit::Done)
}

/// Lists or removes worktrees.
#[cfg(feature = "hub")]
pub(crate) fn worktrees(global: &Global, args: &WorktreesCommand) -> anyhow::Result<Exit> {
    match &args.command {
        None | Some(WorktreesAction::List) => {
            let answer = ask(global, "hub/worktrees/list", json!({}))?;
            let columns = global.console().columns();
            global.show(&answer, || Ok(table(list(&answer), Timestamp::now(), columns)))?;
        }
        Some(WorktreesAction::Path { id }) => {
            let (id, all) = block_on(async {
                let mut client = Client::connect(global).await?;
                let id = ids::resolve(&mut client, Kind::Task, id).await?;
                anyhow::Ok((id, client.call("hub/worktrees/list", json!({})).await?))
            })?;
            let found = list(&all).iter().find(|one| one["taskId"] == id);
            let Some(found) = found else {
                anyhow::bail!(
                    "task {id} has no worktree; `a2a-hub send --worktree` gives a task one, and \
                     `a2a-hub worktrees` lists them"
                );
            };
            global.show(found, || Ok(format!("{}\n", text(&found["path"])).into()))?;
        }
        Some(WorktreesAction::Trust { dir, yes, revoke }) => {
            return worktree_trust::trust(global, dir.as_deref(), *yes, *revoke);
        }
        Some(WorktreesAction::Prune { older_than, force, forget }) => {
            let here = std::env::current_dir().ok().filter(|_| *forget);
            let here = here.filter(|here| RepositoryPaths::find(here).is_ok());
            let params = json!({
                "olderThanMs": older_than, "force": force, "forget": forget, "directory": here,
            });
            let answer = ask(global, "hub/worktrees/prune", params)?;
            global.show(&answer, || Ok(pruned(list(&answer))))?;
            if list(&answer).iter().any(|one| !one["trouble"].is_null()) {
                return Ok(Exit::Fault);
            }
        }
    }
    Ok(Exit::Done)
}

#[cfg(feature = "hub")]
fn table(worktrees: &[Value], now: Timestamp, columns: Option<usize>) -> Text {
    if worktrees.is_empty() {
        return "no worktrees\n".into();
    }
    let ids = || worktrees.iter().map(|one| text(&one["taskId"]));
    let repository = &worktrees[0]["repository"];
    let is_other = |one: &Value| one["repository"] != *repository;
    let differ = columns.is_none() || worktrees.iter().any(is_other);
    let mut names = vec!["TASK", "STATE", "AGENT", "MADE", "CHANGES"];
    names.extend(differ.then_some("REPOSITORY"));
    names.push("ASKED");
    let mut table = Table::new(names);
    for one in worktrees {
        let created = match columns {
            Some(_) => ago(&one["createdAt"], now),
            None => text(&one["createdAt"]).to_owned(),
        };
        let state = one["state"].as_str().unwrap_or("gone");
        let (id, agent) = (text(&one["taskId"]), text(&one["agentId"]));
        let mut row = vec![
            Cell::id(id, ids::short(id, &ids())),
            Cell::styled(style_of(state), state),
            agent.into(),
            created.into(),
            changes(one).into(),
        ];
        row.extend(differ.then(|| text(&one["repository"]).into()));
        row.push(text(&one["asked"]).to_owned().into());
        table.row(row);
    }
    let mut out = table.text(columns);
    out.append(conflicts(worktrees, columns));
    out
}

/// Latest known changes of a worktree in a word.
#[cfg(feature = "hub")]
fn changes(one: &Value) -> String {
    let size = &one["changes"];
    match (size["insertions"].as_u64(), size["deletions"].as_u64()) {
        _ if one["applied"] == true => "applied".to_owned(),
        (Some(_), Some(_)) if size["files"] == 0 => "none".to_owned(),
        (Some(more), Some(less)) => format!("+{more} -{less}"),
        _ => "-".to_owned(),
    }
}

/// One line for each pair of worktrees that conflict. Both of them list it.
#[cfg(feature = "hub")]
fn conflicts(worktrees: &[Value], columns: Option<usize>) -> Text {
    let ids = || worktrees.iter().map(|one| text(&one["taskId"]));
    let shown = |id| columns.map_or(id, |_| ids::short(id, &ids()).text);
    let mut out = Text::new();
    for one in worktrees {
        let id = text(&one["taskId"]);
        for conflict in list(&one["conflicts"]) {
            let other = text(&conflict["taskId"]);
            if other < id {
                continue;
            }
            let paths = list(&conflict["paths"]).iter().map(text).collect::<Vec<_>>().join(", ");
            let more = match conflict["more"].as_u64() {
                None | Some(0) => String::new(),
                Some(more) => format!(" and {more} more"),
            };
            let line = format!("{} conflicts with {} in {paths}{more}\n", shown(id), shown(other));
            out.push(style_of("failed"), &line);
        }
    }
    out
}

#[cfg(feature = "hub")]
fn pruned(removed: &[Value]) -> Text {
    if removed.is_empty() {
        return "no worktree of a finished task is that old\n".into();
    }
    let mut out = Text::new();
    for one in removed {
        let id = text(&one["taskId"]);
        let line = match (one["keptAs"].as_str(), one["trouble"].as_str()) {
            (_, Some(why)) => format!("{id}  stays: {why}\n"),
            (Some(saved_as), None) => format!("{id}  removed; its changes are {saved_as}\n"),
            (None, None) => format!("{id}  removed; nothing is kept\n"),
        };
        out.push(PLAIN, &line);
    }
    out
}

/// The beginning of a commit's id.
fn short(commit: &str) -> &str {
    commit.get(..SHORT_ID).unwrap_or(commit)
}

#[cfg(feature = "hub")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicting_pair_is_listed_once() {
        let one = |id: &str, with: &str, more: u64| json!({ "taskId": id, "conflicts": [{ "taskId": with, "paths": ["a", "b"], "more": more }] });
        let all =
            [one("t1", "t2", 0), one("t2", "t1", 0), one("t3", "t4", 3), json!({ "taskId": "t4" })];
        insta::assert_snapshot!(conflicts(&all, None).words(), @r"
        t1 conflicts with t2 in a, b
        t3 conflicts with t4 in a, b and 3 more
        ");
    }
}
