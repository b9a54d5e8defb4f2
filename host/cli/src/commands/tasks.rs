//! `tasks`: lists the hub's tasks, once or on each change.

use super::{completion, task::quota_wait};
pub(crate) use crate::since::{Since, since};
use crate::{
    Exit, Format, Global, block_on,
    client::{
        hub_client::Client,
        ids::{self, Kind},
        sent::{SentTasks, agent_name, is_for_people, waits},
    },
    search,
    ui::{
        render::{first_words, list, text},
        table::{Cell, Table},
        text::{FAINT, Text, style_of},
    },
};
use a2a_hub_core::text::plain_text::line;
use a2a_hub_protocol::{id::AgentId, member, task::TaskState};
use a2a_hub_terminal::Interrupts;
use anyhow::{Context as _, bail};
use clap::{Args, builder::PossibleValuesParser};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::{collections::BTreeMap, pin::pin, time::Duration};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

/// Interval at which a watched list is redrawn: its relative times become outdated.
const REDRAW_INTERVAL: Duration = Duration::from_secs(5);

/// Maximum number of entries that the hub lists at once.
const MAX_LISTED: u32 = 1_000;

/// Largest number of characters of a task's directory.
const MAX_DIRECTORY: usize = 200;

/// Time for which changes are collected before a watched list is printed again.
const GATHER: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub(crate) struct TasksArgs {
    /// Only tasks of this agent
    #[arg(long, value_name = "ID", add = completion::agents())]
    agent: Option<String>,
    /// Only tasks of this conversation
    #[arg(long, value_name = "ID", add = completion::contexts())]
    context: Option<String>,
    /// Only tasks of this workflow: the id of its root task, or the name in
    /// `metadata.x-workflow-id`
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,
    /// Only tasks in this state
    #[arg(long, value_parser = PossibleValuesParser::new(TaskState::ALL.map(TaskState::name)))]
    state: Option<String>,
    /// Only tasks whose state changed within this time (`30m`, `2h`, `1d`), or since this date
    /// (`2026-01-31`, or RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Since>,
    /// Maximum number of entries, newest first
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    limit: u32,
    /// Number of the newest entries to skip
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    offset: u32,
    /// List also child tasks, runs of schedules and triggers that do not wait for an answer, and
    /// looks at records. Those of one conversation or workflow are always listed
    #[arg(long)]
    all: bool,
    /// Print the list again on each change, until Ctrl-C
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    search: search::SearchOptions,
}

pub(crate) fn tasks(global: &Global, tasks: &TasksArgs) -> anyhow::Result<Exit> {
    block_on(async {
        let mut client = Client::connect(global).await?;
        let context = match &tasks.context {
            Some(typed) => Some(ids::resolve(&mut client, Kind::Context, typed).await?),
            None => None,
        };
        if let Some(agent) = &tasks.agent {
            AgentId::parse(agent.as_str())
                .with_context(|| format!("list the tasks of `{agent}`"))?;
            require_known_agent(&mut client, agent).await?;
        }
        if tasks.search.query.is_some() {
            let since = tasks.since.map(|since| since.moment(Timestamp::now()));
            let filters = json!({ "agentId": tasks.agent, "contextId": context,
                "state": tasks.state, "since": since });
            return search::search(global, &mut client, &tasks.search, filters, tasks.limit).await;
        }
        if tasks.watch {
            return watch(global, tasks, context.as_deref(), &mut client).await;
        }
        let (mut listed, descendants) = tasks.list(&mut client, context.as_deref()).await?;
        let is_cut = cut_off(&mut listed, tasks.limit);
        print(global, &listed, &descendants)?;
        note_cut(global, is_cut, tasks.limit, Some(tasks.offset), "tasks");
        Ok(Exit::Done)
    })
}

/// Refuses an unknown agent, with the nearest name. An agent that left may still have tasks.
async fn require_known_agent(client: &mut Client, agent: &str) -> anyhow::Result<()> {
    let Err(unknown) = client.call("hub/agents/get", json!({ "agentId": agent })).await else {
        return Ok(());
    };
    let params = json!({ "agentId": agent, "limit": 1, "historyLength": 0 });
    if list(&client.call("hub/tasks/list", params).await?).is_empty() {
        return Err(unknown);
    }
    Ok(())
}

impl TasksArgs {
    /// Returns the tasks, and the number of tasks below each one that has some.
    async fn list(
        &self,
        client: &mut Client,
        context: Option<&str>,
    ) -> anyhow::Result<(Value, BTreeMap<String, usize>)> {
        let since = self.since.map(|since| since.moment(Timestamp::now()));
        let Self { agent, workflow, state, offset, .. } = self;
        let limit = one_more(self.limit);
        let mut params = json!({ "agentId": agent, "contextId": context, "workflow": workflow,
            "state": state, "since": since });
        // The hub says what is wrong with a limit.
        if self.all || context.is_some() || workflow.is_some() || !(1..=MAX_LISTED).contains(&limit)
        {
            member::set(&mut params, "limit", limit);
            member::set(&mut params, "offset", *offset);
            return Ok((client.call("hub/tasks/list", params).await?, BTreeMap::new()));
        }
        let [skipped, count] = [*offset, limit].map(|it| usize::try_from(it).unwrap_or(usize::MAX));
        let found =
            SentTasks::find(client, &params, skipped.saturating_add(count), is_for_people).await?;
        Ok((found.tasks.into_iter().skip(skipped).collect(), found.descendants))
    }
}

/// Number of entries to request, to learn whether the hub has more than `limit`. The hub refuses a
/// limit that is out of its range.
pub(crate) fn one_more(limit: u32) -> u32 {
    if (1..MAX_LISTED).contains(&limit) { limit + 1 } else { limit }
}

/// Cuts a list to the limit that the user gave; true if it had more entries.
fn cut_off(listed: &mut Value, limit: u32) -> bool {
    let Some(all) = listed.as_array_mut() else { return false };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let is_cut = all.len() > limit;
    all.truncate(limit);
    is_cut
}

/// Cuts a list to the limit, and tells the user that it has more entries.
pub(crate) fn note_more(
    global: &Global,
    listed: &mut Value,
    limit: u32,
    offset: Option<u32>,
    noun: &str,
) {
    let is_cut = cut_off(listed, limit);
    note_cut(global, is_cut, limit, offset, noun);
}

/// Tells the user on standard error that a list has more entries. For programs as well: they would
/// take the section for the whole.
fn note_cut(global: &Global, is_cut: bool, limit: u32, offset: Option<u32>, noun: &str) {
    if is_cut {
        let next = offset.map(|offset| offset.saturating_add(limit));
        let next = next.map_or(String::new(), |next| format!(", `--offset {next}` the next"));
        let line = format!("there are more {noun}: `--limit COUNT` lists more{next}");
        global.console().note(Text::styled(FAINT, line));
    }
}

fn print(
    global: &Global,
    listed: &Value,
    descendants: &BTreeMap<String, usize>,
) -> anyhow::Result<()> {
    let columns = global.console().columns();
    global.show(listed, || Ok(sent_text(listed, descendants, Timestamp::now(), columns)))
}

/// Prints the list on each change; on a terminal, over the previous one.
async fn watch(
    global: &Global,
    tasks: &TasksArgs,
    context: Option<&str>,
    client: &mut Client,
) -> anyhow::Result<Exit> {
    let mut events = Client::connect(global).await?;
    events.ask("hub/events", json!({})).await?;
    let console = global.console();
    let mut interrupts = Interrupts::new()?;
    let mut unread = pin!(console.unread());
    let mut looks = interval(REDRAW_INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut shown = Value::Null;
    loop {
        let (mut listed, descendants) = tasks.list(client, context).await?;
        cut_off(&mut listed, tasks.limit);
        let redraws = global.format == Format::Pretty && console.columns().is_some();
        if listed != shown || redraws {
            if redraws {
                console.clear_screen()?;
            }
            print(global, &listed, &descendants)?;
            shown = listed;
        }
        tokio::select! {
            changed = changed(&mut events) => changed?,
            _ = looks.tick() => {}
            () = interrupts.next() => return Ok(Exit::Interrupted),
            () = &mut unread => return Ok(Exit::Interrupted),
        }
    }
}

/// Waits for a change of a task, and then for changes that follow closely. Cancel-safe, because the
/// caller reads the whole list again.
pub(crate) async fn changed(events: &mut Client) -> anyhow::Result<()> {
    while !is_of_tasks(&events.next().await?.1?)? {}
    let until = Instant::now() + GATHER;
    while let Ok(event) = timeout_at(until, events.next()).await {
        is_of_tasks(&event?.1?)?;
    }
    Ok(())
}

/// True for an event of a task; fails at the end of the stream.
fn is_of_tasks(event: &Value) -> anyhow::Result<bool> {
    if event["kind"] == "stream-end" {
        bail!(
            "watch the tasks: the event stream ended ({}); run the command again",
            text(&event["reason"])
        );
    }
    Ok(matches!(event["type"].as_str(), Some("task-created" | "task-state")))
}

/// Renders tasks as a table.
pub(crate) fn tasks_text(tasks: &Value, now: Timestamp, columns: Option<usize>) -> Text {
    sent_text(tasks, &BTreeMap::new(), now, columns)
}

/// Renders tasks as a table, each with the number of tasks below it. On a terminal, tasks that wait
/// for an answer come first, with their question.
fn sent_text(
    tasks: &Value,
    descendants: &BTreeMap<String, usize>,
    now: Timestamp,
    columns: Option<usize>,
) -> Text {
    if list(tasks).is_empty() {
        return "no tasks\n".into();
    }
    let ids = || list(tasks).iter().map(|task| text(&task["id"]));
    let of_first = list(tasks).first().and_then(directory);
    let is_other = |task: &Value| directory(task) != of_first;
    let differ = columns.is_some() && list(tasks).iter().any(is_other);
    let mut headers = vec!["TASK", "STATE", "CHANGED", "AGENT"];
    headers.extend(differ.then_some("IN"));
    headers.push("ASKED");
    let mut table = Table::new(headers);
    let is_question = |task: &&Value| columns.is_some() && waits(task);
    let (waiting, others): (Vec<_>, Vec<_>) = list(tasks).iter().partition(is_question);
    for task in waiting.into_iter().chain(others) {
        let status = &task["status"];
        let (id, state) = (text(&task["id"]), text(&status["state"]));
        let changed = match columns {
            Some(_) => quota_wait::changed(task, now),
            None => text(&status["timestamp"]).to_owned(),
        };
        let request = list(&task["history"]).first().map(|message| first_words(&message["parts"]));
        let question = is_question(&task).then(|| first_words(&status["message"]["parts"]));
        let question = question.filter(|question| !question.is_empty());
        let agent = agent_name(text(&task["agentId"]));
        let agent = match descendants.get(id) {
            Some(count) => format!("{agent} +{count}"),
            None => agent.to_owned(),
        };
        let mut row = vec![
            Cell::id(id, ids::short(id, &ids())),
            Cell::styled(style_of(state), state),
            changed.into(),
            agent.into(),
        ];
        row.extend(differ.then(|| shown_directory(directory(task), columns).into()));
        row.push(question.or(request).unwrap_or_default().into());
        table.row(row);
    }
    table.text(columns)
}

/// Directory in which a task works, as its message names it.
fn directory(task: &Value) -> Option<&str> {
    list(&task["history"]).first()?["metadata"]["workingDirectory"].as_str()
}

/// Last part of a directory on a terminal, and all of it in a pipe.
fn shown_directory(directory: Option<&str>, columns: Option<usize>) -> String {
    let Some(directory) = directory else { return "-".to_owned() };
    let last = directory.trim_end_matches('/').rsplit('/').next().unwrap_or(directory);
    let shown = if columns.is_some() && !last.is_empty() { last } else { directory };
    line(shown, MAX_DIRECTORY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-31T12:00:00Z".parse().unwrap()
    }

    fn listed() -> Value {
        let task = |id: &str, agent: &str, state: &str, at: &str, asked: &str| {
            json!({ "id": id, "contextId": "c", "agentId": agent, "status": { "state": state, "timestamp": at },
                "history": [{ "parts": [{ "kind": "text", "text": asked }] }] })
        };
        json!([
            task(
                "01a1fc8f-a111-7715-9c95-8a642d72e498",
                "claude-code",
                "input-required",
                "2026-01-31T11:58:00.000Z",
                "delete the old fixtures and everything that was generated from them\nall of it",
            ),
            task(
                "01a1fc8f-a111-7716-9c95-8a642d72f498",
                "echo",
                "completed",
                "2026-01-29T11:58:00Z",
                "翻訳してください"
            ),
            task(
                "01a1fc00-0000-7716-9c95-000000000001",
                "echo",
                "failed",
                "2026-01-29T11:58:00Z",
                "\x1b[2J\u{202e}x"
            ),
        ])
    }

    #[test]
    fn directory_is_column_only_if_several() {
        let now = "2026-01-31T12:00:00Z".parse().unwrap();
        let task = |id: &str, dir: &str| {
            json!({ "id": id, "agentId": "echo", "status": { "state": "working" },
            "history": [{ "parts": [], "metadata": { "workingDirectory": dir } }] })
        };
        let shown = |dirs: [&str; 2]| {
            let tasks = json!([task("a", dirs[0]), task("b", dirs[1])]);
            tasks_text(&tasks, now, Some(100)).words()
        };
        assert!(!shown(["/src/shop", "/src/shop"]).contains("IN"));
        let both = shown(["/src/shop", "/src/bank/"]);
        assert!(
            both.contains("  IN  ") && both.contains(" shop") && both.contains(" bank"),
            "{both}"
        );
    }

    #[test]
    fn task_table_fits_terminal_width() {
        let shown = |columns| tasks_text(&listed(), now(), columns).words();
        insta::assert_snapshot!(shown(Some(120)), @r"
        TASK      STATE           CHANGED     AGENT        ASKED
        2d72e498  input-required  2 min ago   claude-code  delete the old fixtures and everything that was generated from them
        2d72f498  completed       2 days ago  echo         翻訳してください
        00000001  failed          2 days ago  echo         \u{1b}[2J\u{202e}x
        ");
        insta::assert_snapshot!(shown(Some(60)), @r"
        TASK      STATE         CHANGED     AGENT        ASKED
        2d72e498  input-requi…  2 min ago   claude-code  delete the…
        2d72f498  completed     2 days ago  echo         翻訳してく…
        00000001  failed        2 days ago  echo         \u{1b}[2J\…
        ");
        insta::assert_snapshot!(shown(None).replace('\t', " → ").escape_debug().to_string().replace("\\n", "\n"), @r"
        01a1fc8f-a111-7715-9c95-8a642d72e498 → input-required → 2026-01-31T11:58:00.000Z → claude-code → delete the old fixtures and everything that was generated from them
        01a1fc8f-a111-7716-9c95-8a642d72f498 → completed → 2026-01-29T11:58:00Z → echo → 翻訳してください
        01a1fc00-0000-7716-9c95-000000000001 → failed → 2026-01-29T11:58:00Z → echo → \u{1b}[2J\u{202e}x
        ");
        insta::assert_snapshot!(tasks_text(&json!([]), now(), None).words(), @"no tasks");
    }
}
