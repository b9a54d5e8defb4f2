//! `inbox`, `allow`, `deny` and `later`: the questions of all tasks, their answers, and notices.

mod deadline;
mod history;
mod notices;
mod shown;
pub(crate) mod waiting;

use self::{
    deadline::{deadline, deadline_cell},
    shown::{SHOWN, not_shown},
};
use crate::{
    Exit, Format, Global, block_on,
    client::{hub_client::Client, ids},
    commands::{
        completion,
        task::answer::NO_QUESTION,
        tasks::{Since, changed, since},
    },
    permissions::millis,
    ui::{
        console::Console,
        dialogue,
        failure::CommandError,
        interactive::{self, UserAnswer},
        render::{ago, counted, list, text},
        table::{Cell, Table},
        text::{FAINT, Text},
    },
};
use a2a_hub_core::text::plain_text::line;
use a2a_hub_terminal::Interrupts;
use anyhow::bail;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::{collections::HashSet, pin::pin, time::Duration};
use tokio::time::sleep;

/// Fewest characters of an abbreviated id.
const SHORTEST_ID: usize = 3;

/// Most characters of the reason why an answer does not count.
const MAX_REASON: usize = 600;

/// Most questions that a command considers.
const MAX_LISTED: usize = 1_000;

/// Time for which `later` sets a question aside by default.
const DEFAULT_LATER: Duration = Duration::from_hours(2);

/// Interval at which a watched list is read again: deadlines and queued questions have no events.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Kind of a question.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Kind {
    Permission,
    Input,
    Auth,
}

#[derive(Debug, Args)]
pub(crate) struct InboxArgs {
    /// Only questions of this kind
    #[arg(long, value_enum, conflicts_with = "history")]
    kind: Option<Kind>,
    /// Only questions of this agent
    #[arg(long, value_name = "ID", conflicts_with = "history", add = completion::agents())]
    agent: Option<String>,
    /// List the questions that were answered or closed, with who answered them
    #[arg(long)]
    history: bool,
    /// Print the list again on each change, until Ctrl-C
    #[arg(long, conflicts_with = "history")]
    watch: bool,
    /// Only list the questions, also on a terminal
    #[arg(long)]
    list: bool,
    /// Mark all notices as read, such as those of failed tasks
    #[arg(long, conflicts_with_all = ["kind", "agent", "history", "watch", "list"])]
    mark_read: bool,
    /// Maximum number of entries
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
}

#[derive(Debug, Args)]
pub(crate) struct AllowArgs {
    /// Ids of the questions, or unique beginnings or ends of them [default: the only open one]
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Allow all open requests for permission
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Also allow the same from now on: make a rule of the same request of the same agent in the
    /// same repository
    #[arg(long)]
    always: bool,
    /// Accept that the program may run code from the repository, which the agent may change
    #[arg(long, requires = "always")]
    trust_workspace: bool,
    /// Time until the rule expires, such as 1d; `0d` for never [default: 30d]
    #[arg(long = "for", value_name = "TIME", requires = "always", value_parser = since)]
    time: Option<Since>,
}

#[derive(Debug, Args)]
pub(crate) struct DenyArgs {
    /// Ids of the questions, or unique beginnings or ends of them [default: the only open one]
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Deny all open requests for permission
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Reason, which the agent gets to read
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LaterArgs {
    /// Id of the question, or a unique beginning or end of it
    #[arg(value_name = "ID")]
    id: String,
    /// Time until the question counts as denied, such as 30m, 2h or 1d
    #[arg(value_name = "TIME", default_value = "2h", value_parser = since)]
    time: Since,
}

/// Lists the open questions and the notices; on a terminal, goes through the questions one by one.
pub(crate) fn inbox(global: &Global, args: &InboxArgs) -> anyhow::Result<Exit> {
    block_on(async {
        let mut client = Client::connect(global).await?;
        if args.mark_read {
            return notices::mark_all(global, &mut client).await;
        }
        if args.history {
            return history::show(global, &mut client, args.limit).await;
        }
        if args.watch {
            return watch(global, &mut client, args).await;
        }
        let open = fetch(&mut client, args).await?;
        let walks = global.format == Format::Pretty && !args.list;
        let is_empty = list(&open["questions"]).is_empty() && list(&open["notices"]).is_empty();
        let console = global.console();
        if walks && console.is_attended() && console.columns().is_some() && !is_empty {
            return walk(global, &mut client, &open).await;
        }
        print(global, &open)?;
        Ok(Exit::Done)
    })
}

async fn fetch(client: &mut Client, args: &InboxArgs) -> anyhow::Result<Value> {
    let kind = args.kind.map(|kind| match kind {
        Kind::Permission => "permission",
        Kind::Input => "input",
        Kind::Auth => "auth",
    });
    let query = json!({ "kind": kind, "agentId": args.agent, "limit": args.limit });
    let mut open = client.call("hub/questions/list", query).await?;
    // The filters are for questions.
    if kind.is_none() && args.agent.is_none() {
        notices::attach(client, &mut open, args.limit, false).await?;
    }
    Ok(open)
}

fn print(global: &Global, open: &Value) -> anyhow::Result<()> {
    let columns = global.console().columns();
    global.show(open, || Ok(inbox_text(&global.command(), open, Timestamp::now(), columns)))
}

async fn watch(global: &Global, client: &mut Client, args: &InboxArgs) -> anyhow::Result<Exit> {
    let mut events = Client::connect(global).await?;
    events.ask("hub/events", json!({})).await?;
    let console = global.console();
    let mut interrupts = Interrupts::new()?;
    let mut unread = pin!(console.unread());
    let mut printed = None;
    loop {
        let open = fetch(client, args).await?;
        let now = Some((without_deadlines(&open), open["notices"].clone()));
        if now != printed {
            if global.format == Format::Pretty && console.columns().is_some() {
                console.clear_screen()?;
            }
            print(global, &open)?;
            printed = now;
        }
        tokio::select! {
            changed = changed(&mut events) => changed?,
            () = sleep(POLL_INTERVAL) => {}
            () = interrupts.next() => return Ok(Exit::Interrupted),
            () = &mut unread => return Ok(Exit::Interrupted),
        }
    }
}

/// The questions without their deadlines, which the hub computes anew.
fn without_deadlines(open: &Value) -> Vec<Value> {
    let mut questions = list(&open["questions"]).to_vec();
    for question in &mut questions {
        if let Some(members) = question.as_object_mut() {
            members.remove("expiresAt");
        }
    }
    questions
}

/// Shows the notices, which are read then; goes through the questions, and answers each as the user
/// types.
async fn walk(global: &Global, client: &mut Client, open: &Value) -> anyhow::Result<Exit> {
    let console = global.console();
    let questions = list(&open["questions"]);
    let (now, columns) = (Timestamp::now(), console.columns());
    let mut output: Text = match questions {
        [] => NOTHING_WAITS.into(),
        questions => table(questions, now).text(columns),
    };
    output.append(notices::notices_text(open, now, columns));
    console.print_fitted(output)?;
    // The notices of a remote hub are its operator's to see.
    if global.hub.is_none()
        && let Err(why) = notices::mark_listed(console, client, open).await
    {
        console.note(format!("{why:#}"));
    }
    let mut allowed_too = HashSet::new();
    for (number, question) in (1..).zip(questions) {
        let id = text(&question["id"]);
        if allowed_too.contains(id) {
            continue;
        }
        let columns = console.stderr_columns().unwrap_or(80);
        let path = path_of(question);
        let whose = format!("{number}/{} {path}", questions.len());
        console.prompt(&dialogue::question(&whose, text(&question["text"]), columns));
        let Some(answer) = prompt(console, question).await? else { return Ok(Exit::Done) };
        match answer {
            Choice::Skip => {}
            Choice::Later => match set_aside(client, id, DEFAULT_LATER).await {
                Ok(question) => console.note(format!("set aside: {}", deadline(&question))),
                Err(why) => console.note(format!("{why:#}")),
            },
            Choice::Always => {
                let result = answer_one(client, id, "allow", Some(json!({}))).await?;
                let others = list(&result["alsoAllowed"]).iter();
                allowed_too.extend(others.map(|id| text(id).to_owned()));
                console.note(match result["answered"] == true {
                    true => format!("allowed, and from now on by {}", new_rules(&result)),
                    false => refusal(&result),
                });
            }
            Choice::Answer(answer) => {
                let result = answer_one(client, id, &answer, None).await?;
                console.note(match result["answered"] == true {
                    true => format!("answered: {}", line(&answer, SHOWN.1)),
                    false => refusal(&result),
                });
            }
        }
    }
    Ok(Exit::Done)
}

/// Answers a question, and returns the result; `always` has the terms of a rule to make of it.
async fn answer_one(
    client: &mut Client,
    id: &str,
    answer: &str,
    always: Option<Value>,
) -> anyhow::Result<Value> {
    let request = json!({ "ids": [id], "answer": answer, "always": always });
    let mut results = client.call("hub/questions/answer", request).await?;
    Ok(results.get_mut(0).map(Value::take).unwrap_or_default())
}

/// Decision of the user about a question.
enum Choice {
    Answer(String),
    /// Allow it, and the same from now on.
    Always,
    Later,
    Skip,
}

/// Prompts until the user has chosen; none if the user wants to leave.
async fn prompt(console: Console, question: &Value) -> anyhow::Result<Option<Choice>> {
    let is_permission = question["kind"] == "permission";
    let hint = match is_permission {
        true => "[y]es, [a]lways, [n]o, `no REASON`, [l]ater, [s]kip, [q]uit",
        false => "your answer, or: [l]ater, [s]kip, [q]uit",
    };
    loop {
        let typed = match interactive::ask(console, hint).await? {
            UserAnswer::Text(typed) => typed,
            UserAnswer::Nothing => return Ok(Some(Choice::Skip)),
            UserAnswer::Interrupted => return Ok(None),
        };
        match choice(&typed, is_permission) {
            Some(Typed::Choice(choice)) => return Ok(Some(choice)),
            Some(Typed::Quit) => return Ok(None),
            None => console.note("answer with one of these"),
        }
    }
}

/// Meaning of a typed line.
enum Typed {
    Choice(Choice),
    Quit,
}

/// Meaning of what the user typed; none for an unclear answer to a request for permission.
fn choice(typed: &str, is_permission: bool) -> Option<Typed> {
    let word = typed.trim().trim_end_matches(['.', '!']).to_lowercase();
    let answer = |answer: &str| Typed::Choice(Choice::Answer(answer.to_owned()));
    Some(match word.as_str() {
        "l" | "later" => Typed::Choice(Choice::Later),
        "s" | "skip" => Typed::Choice(Choice::Skip),
        "q" | "quit" => Typed::Quit,
        "y" | "yes" | "allow" if is_permission => answer("allow"),
        "a" | "always" if is_permission => Typed::Choice(Choice::Always),
        "n" | "no" | "deny" if is_permission => answer("deny"),
        _ if is_permission => {
            let (no, _) = word.split_once([' ', ',', ':'])?;
            ["no", "n", "deny"].contains(&no).then(|| answer(typed.trim()))?
        }
        _ => answer(typed),
    })
}

/// Allows requests for permission.
pub(crate) fn allow(global: &Global, args: &AllowArgs) -> anyhow::Result<Exit> {
    let terms = json!({
        "trustsWorkspace": args.trust_workspace,
        "forMs": args.time.map(millis).transpose()?,
    });
    answer(global, &args.ids, args.all, ("allow", args.always.then_some(terms)))
}

/// Denies requests for permission.
pub(crate) fn deny(global: &Global, args: &DenyArgs) -> anyhow::Result<Exit> {
    let answered = args.why.as_ref().map_or("deny".to_owned(), |why| format!("no, {why}"));
    answer(global, &args.ids, args.all, (&answered, None))
}

fn answer(
    global: &Global,
    typed: &[String],
    all: bool,
    (answer, always): (&str, Option<Value>),
) -> anyhow::Result<Exit> {
    block_on(async {
        let mut client = Client::connect(global).await?;
        let kind = typed.is_empty().then_some("permission");
        let query = json!({ "limit": MAX_LISTED, "kind": kind });
        let open = client.call("hub/questions/list", query).await?;
        let open = list(&open["questions"]);
        let chosen = match typed {
            [] if all => open.to_vec(),
            [] => vec![only(global, open)?.clone()],
            typed => {
                let found = typed.iter().map(|typed| resolve(open, typed));
                let mut found = found.collect::<Result<Vec<_>, _>>()?;
                let mut known = HashSet::new();
                found.retain(|question| known.insert(text(&question["id"]).to_owned()));
                found
            }
        };
        if let Some(other) = chosen.iter().find(|question| question["kind"] != "permission") {
            let (id, task) = (text(&other["id"]), text(&other["taskId"]));
            let why = format!(
                "question {id} asks for no permission: answer it with `a2a-hub task answer {task} --question {id} \"...\"`"
            );
            return Err(CommandError::new(NO_QUESTION, why).into());
        }
        if chosen.is_empty() {
            global.show(&json!([]), || Ok("no task asks for a permission\n".into()))?;
            return Ok(Exit::Done);
        }
        // Named before they are answered: a question that comes now is not among them.
        let ids: Vec<_> = chosen.iter().map(|question| question["id"].clone()).collect();
        let mut results = Vec::new();
        for ids in ids.chunks(100) {
            let request = json!({ "ids": ids, "answer": answer, "always": always });
            let some = client.call("hub/questions/answer", request).await?;
            results.extend(list(&some).iter().cloned());
        }
        let failed = results.iter().filter(|result| result["answered"] != true).count();
        global.show(&json!(results), || Ok(results_text(&chosen, &results, answer)))?;
        Ok(if failed == 0 { Exit::Done } else { Exit::Fault })
    })
}

/// Sets a question aside.
pub(crate) fn later(global: &Global, args: &LaterArgs) -> anyhow::Result<Exit> {
    let Since::Ago(time) = args.time else {
        bail!("set a question aside: give a duration, such as 30m, 2h or 1d");
    };
    block_on(async {
        let mut client = Client::connect(global).await?;
        let open = client.call("hub/questions/list", json!({ "limit": MAX_LISTED })).await?;
        let question = resolve(list(&open["questions"]), &args.id)?;
        let time = time.max(Duration::from_secs(1));
        let question = set_aside(&mut client, text(&question["id"]), time).await?;
        global.show(&question, || Ok(format!("set aside: {}\n", deadline(&question)).into()))?;
        Ok(Exit::Done)
    })
}

/// Sets a question aside for this time, and returns it.
async fn set_aside(client: &mut Client, id: &str, time: Duration) -> anyhow::Result<Value> {
    let later = json!({ "id": id, "forMs": u64::try_from(time.as_millis())? });
    client.call("hub/questions/later", later).await
}

/// The only request for permission, which the user need not name.
fn only<'q>(global: &Global, open: &'q [Value]) -> anyhow::Result<&'q Value> {
    match open {
        [question] => {
            let summary = line(text(&question["text"]), SHOWN.1);
            global.console().note(format!("{}: {summary}", path_of(question)));
            Ok(question)
        }
        [] => {
            let why = "no task asks for a permission".to_owned();
            Err(CommandError::new(NO_QUESTION, why).mended_by("a2a-hub inbox").into())
        }
        several => {
            let why = format!(
                "{} requests for permission are open: name those that you mean, or all with `--all`",
                several.len()
            );
            Err(CommandError::new(NO_QUESTION, why).mended_by("a2a-hub inbox").into())
        }
    }
}

/// Fewest characters of a full id.
const FULL_ID: usize = 36;

/// The open question with this id, or with this beginning or end of it. The hub is asked about a
/// full id that is not open: it may know who answered it.
fn resolve(open: &[Value], typed: &str) -> anyhow::Result<Value> {
    let id = |question: &&Value| text(&question["id"]).to_owned();
    if let Some(exact) = open.iter().find(|question| id(question) == typed) {
        return Ok(exact.clone());
    }
    if typed.len() >= FULL_ID {
        return Ok(json!({ "id": typed, "kind": "permission" }));
    }
    let is_meant = |question: &&Value| {
        let id = id(question);
        typed.len() >= SHORTEST_ID && (id.starts_with(typed) || id.ends_with(typed))
    };
    let found: Vec<_> = open.iter().filter(is_meant).collect();
    let why = match &found[..] {
        [question] => return Ok(Value::clone(question)),
        [] => format!("no open question has the id `{typed}`: it is answered, or never was"),
        several => format!("{} open questions match `{typed}`: type more of the id", several.len()),
    };
    Err(CommandError::new(NO_QUESTION, why).mended_by("a2a-hub inbox").into())
}

/// Agents from the root of the tree to the one that asks.
fn path_of(question: &Value) -> String {
    let path: Vec<_> = list(&question["path"]).iter().map(text).collect();
    if path.is_empty() { text(&question["agentId"]).to_owned() } else { path.join(" > ") }
}

/// Text of an inbox without questions.
const NOTHING_WAITS: &str = "nothing waits for you\n";

/// Renders the open questions, and the notices below them.
fn inbox_text(command: &str, open: &Value, now: Timestamp, columns: Option<usize>) -> Text {
    let mut output = questions_text(command, open, now, columns);
    output.append(notices::notices_text(open, now, columns));
    output.append(notices::hints(command, open, columns));
    output
}

/// Renders the open questions, each with its text and what its task works on.
fn questions_text(command: &str, open: &Value, now: Timestamp, columns: Option<usize>) -> Text {
    let questions = list(&open["questions"]);
    if questions.is_empty() {
        return NOTHING_WAITS.into();
    }
    let mut output = table(questions, now).text(columns);
    if let Some(hint) = not_shown(&open["total"], questions.len(), "question") {
        output.push(FAINT, &hint);
    }
    let has = |permission: bool| {
        questions.iter().any(|question| (question["kind"] == "permission") == permission)
    };
    if has(true) {
        output.push(FAINT, &format!("{command} allow QUESTION\n"));
        output.push(FAINT, &format!("{command} deny QUESTION --why \"...\"\n"));
    }
    if has(false) {
        let input = questions.iter().find(|question| question["kind"] != "permission");
        let [task, id] =
            ["taskId", "id"].map(|name| input.map_or("", |question| text(&question[name])));
        let hint = format!("{command} task answer {task} --question {id} \"...\"\n");
        output.push(FAINT, &hint);
    }
    output.push(FAINT, &format!("{command} later QUESTION 2h\n"));
    output
}

/// Table of open questions, each with its text and the request of its task.
fn table(questions: &[Value], now: Timestamp) -> Table {
    let ids = || questions.iter().map(|question| text(&question["id"]));
    let mut table = Table::new(["QUESTION", "KIND", "AGENT", "OPENED", "DEADLINE"]);
    for question in questions {
        let (id, kind) = (text(&question["id"]), text(&question["kind"]));
        table.row([
            Cell::id(id, ids::short(id, &ids())),
            kind.into(),
            text(&question["agentId"]).into(),
            ago(&question["openedAt"], now).into(),
            deadline_cell(question, now),
        ]);
        let marks = [
            (question["setAside"] == true, "set aside"),
            (question["queued"] == true, "asked next"),
            (question["interrupted"] == true, "its run was interrupted"),
        ];
        let marks: Vec<_> = marks.iter().filter(|(is_it, _)| *is_it).map(|(_, it)| *it).collect();
        if !marks.is_empty() {
            table.add_note(format!("({})", marks.join(", ")));
        }
        table.add_note(format!("for: {}", text(&question["request"])));
        if list(&question["path"]).len() > 1 {
            table.add_note(format!("by: {}", path_of(question)));
        }
        let lines = text(&question["text"]).lines().filter(|it| !it.trim().is_empty());
        let lines: Vec<_> = lines.collect();
        let is_cut = lines.iter().take(SHOWN.0).any(|words| words.chars().count() > SHOWN.1);
        for words in lines.iter().take(SHOWN.0) {
            table.add_note(line(words, SHOWN.1));
        }
        if is_cut || lines.len() > SHOWN.0 {
            let more = counted(lines.len().saturating_sub(SHOWN.0), "more line");
            table.add_note(format!("… cut, {more}: a2a-hub inbox --format json has all"));
        }
    }
    table
}

/// Ids of the rules that an answer made, and the number of other questions that they answered.
fn new_rules(result: &Value) -> String {
    let ids = list(&result["rules"]).iter().map(text).collect::<Vec<_>>().join(", ");
    match list(&result["alsoAllowed"]).len() {
        0 => ids,
        others => format!("{ids} ({} like it allowed as well)", counted(others, "open question")),
    }
}

/// Reason why an answer does not count.
fn refusal(result: &Value) -> String {
    line(text(&result["error"]), MAX_REASON)
}

fn results_text(chosen: &[Value], results: &[Value], answer: &str) -> Text {
    let mut output = Text::new();
    for (question, result) in chosen.iter().zip(results) {
        let subject = match text(&question["text"]) {
            "" => text(&question["id"]).to_owned(),
            asks => format!("{}: {}", path_of(question), line(asks, SHOWN.1)),
        };
        let line = match result["answered"] == true {
            true if !list(&result["rules"]).is_empty() => {
                format!("allowed, and from now on by {}: {subject}\n", new_rules(result))
            }
            true => {
                format!("{}: {subject}\n", if answer == "allow" { "allowed" } else { "denied" })
            }
            false => {
                format!("not answered: {subject}: {}\n", refusal(result))
            }
        };
        output.push(crate::ui::text::PLAIN, &line);
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(id: &str, kind: &str, asks: &str) -> Value {
        json!({ "id": id, "kind": kind, "taskId": "t-1", "agentId": "codex", "path": ["reviewer", "codex"],
            "request": "fix the parser", "text": asks, "openedAt": "2026-01-31T11:58:00Z", "expiresAt": "2026-02-01T11:58:00Z" })
    }

    #[test]
    fn only_clear_words_answer_permission() {
        let answer = |typed: &str, is_permission| match choice(typed, is_permission) {
            Some(Typed::Choice(Choice::Answer(answer))) => answer,
            Some(Typed::Choice(Choice::Always)) => "(always)".to_owned(),
            Some(Typed::Choice(Choice::Later)) => "(later)".to_owned(),
            Some(Typed::Choice(Choice::Skip)) => "(skip)".to_owned(),
            Some(Typed::Quit) => "(quit)".to_owned(),
            None => "(unclear)".to_owned(),
        };
        for (typed, meaning) in [
            ("y", "allow"),
            ("Yes.", "allow"),
            ("n", "deny"),
            ("no, use pnpm", "no, use pnpm"),
            ("deny: too broad", "deny: too broad"),
            ("yes please", "(unclear)"),
            ("maybe", "(unclear)"),
            ("nothing", "(unclear)"),
            ("a", "(always)"),
            ("always.", "(always)"),
            ("l", "(later)"),
            ("S", "(skip)"),
            ("quit", "(quit)"),
        ] {
            assert_eq!(answer(typed, true), meaning, "{typed}");
        }
        assert_eq!(answer("the second one", false), "the second one");
        assert_eq!(answer("yes", false), "yes");
    }

    #[test]
    fn abbreviated_id_must_be_unique() {
        let open = [question("01aa-1111", "permission", "?"), question("01bb-2111", "input", "?")];
        let id = |typed: &str| {
            resolve(&open, typed)
                .map_or_else(|why| why.to_string(), |it| text(&it["id"]).to_owned())
        };
        assert_eq!(id("01bb"), "01bb-2111");
        assert_eq!(id("1111"), "01aa-1111");
        assert_eq!(id("01bb-2111"), "01bb-2111");
        assert!(id("111").starts_with("2 open questions match"));
        assert!(id("zz").starts_with("no open question"), "too short");
        let full_id = "01a22b8a-28c2-714c-b0ff-326b15449244";
        assert_eq!(id(full_id), full_id, "the hub knows who answered it");
    }

    #[test]
    fn inbox_fits_terminal_width() {
        let now = "2026-01-31T12:00:00Z".parse().unwrap();
        let mut next =
            question("01bb-2111", "permission", "codex asks:\nRun `rm -rf /tmp/x`?\u{1b}[2J");
        next["queued"] = json!(true);
        let questions = [question("01aa-1111", "input", "which one?"), next];
        let open = json!({ "questions": questions, "total": 3 });
        let rendered = |width| inbox_text("a2a-hub", &open, now, width).words();
        insta::assert_snapshot!(rendered(Some(60)), @r#"
        QUESTION   KIND        AGENT  OPENED     DEADLINE
        01aa-1111  input       codex  2 min ago  in 23 h 58 min
            for: fix the parser
            by: reviewer > codex
            which one?
        01bb-2111  permission  codex  2 min ago  in 23 h 58 min
            (asked next)
            for: fix the parser
            by: reviewer > codex
            codex asks:
            Run `rm -rf /tmp/x`?[2J
        1 question not shown: --limit COUNT
        a2a-hub allow QUESTION
        a2a-hub deny QUESTION --why "..."
        a2a-hub task answer t-1 --question 01aa-1111 "..."
        a2a-hub later QUESTION 2h
        "#);
        assert_eq!(inbox_text("a2a-hub", &json!({}), now, None).words(), "nothing waits for you\n");
    }

    #[test]
    fn near_deadline_is_highlighted() {
        let now = "2026-01-31T12:00:00Z".parse().unwrap();
        let mut near = question("01aa-1111", "permission", "?");
        near["expiresAt"] = json!("2026-01-31T12:05:00Z");
        for (expiring, shown) in [(json!(true), "soon, in 5 min"), (json!(null), "ago  in 5 min")] {
            near["expiring"] = expiring;
            let text = inbox_text("a2a-hub", &json!({ "questions": [near] }), now, Some(80));
            assert!(text.words().contains(shown), "{}", text.words());
        }
        near["expiresAt"] = json!(null);
        let text = inbox_text("a2a-hub", &json!({ "questions": [near] }), now, Some(80));
        assert!(!text.words().contains("soon"), "{}", text.words());
    }
}
