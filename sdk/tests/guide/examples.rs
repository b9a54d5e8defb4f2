//! Examples in Rust of the book, one a module. This file is generated:
//! `A2A_HUB_BOOK=write cargo nextest run -p a2a-hub-sdk` writes it.

mod reference_1 {
use a2a_hub_sdk::prelude::*;
}

mod reference_2 {
use a2a_hub_sdk::prelude::*;

/// Counts words.
pub struct Counter;

impl Agent for Counter {
    fn card() -> Card {
        Card::new("counter", "Counts words", "0.1.0")
            .skill("count", "Count", "Counts the words of a text", &["text"])
            .example("count these four words")
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        ctx.done(format!("{} words", task.text().split_whitespace().count()))
    }

    fn health(_ctx: &Context) -> Health {
        Health::healthy().with_version("1.0")
    }

    fn cancel(_ctx: &Context, _task_id: &str) -> Result<(), Failure> {
        Ok(())
    }
}

export!(Counter);
}

mod reference_3 {
use a2a_hub_sdk::prelude::*;

pub fn card() -> Card {
    Card::new("shop", "Sells things", "0.1.0")
        .provider("Example Ltd", "https://example.com")
        .input("application/json")
        .skill("order", "Order", "Takes an order", &["shop"])
        .example("one lamp, please")
        .input_schema(&json!({
            "type": "object",
            "required": ["article"],
            "properties": { "article": { "type": "string" } }
        }))
        .extension("https://example.com/gift/v1", "Wraps the order", false)
        .params(&json!({ "papers": ["red", "blue"] }))
}
}

mod reference_4 {
use a2a_hub_sdk::prelude::*;

pub fn look(task: &Task) -> Message {
    let article = task.message.data().map(|input| input["article"].clone());
    let files = task.message.parts.iter().filter(|part| matches!(part.content, PartContent::Raw(_)));
    let earlier = task.history.iter().filter(|message| message.role == Role::User).count();
    let text = format!("{}: {article:?}, {} files, {earlier} earlier", task.text(), files.count());
    Message::from(text).with(Part::url("https://example.com/chart").of_type("text/html"))
}
}

mod reference_5 {
use a2a_hub_sdk::prelude::*;

pub fn report(ctx: &Context) -> Result<(), Failure> {
    ctx.say("reading the log")?;
    ctx.progress(40, "compiles")?;
    ctx.log(Level::Info, "40 files are compiled");
    ctx.emit([TaskStatus::new(TaskState::Working, "nearly done")])
}
}

mod reference_6 {
use a2a_hub_sdk::prelude::*;

pub fn make(ctx: &Context, svg: Vec<u8>) -> Result<(), Failure> {
    ctx.artifact(Artifact::text("report", "# Report").named("Report"))?;
    ctx.artifact(Artifact::new("chart", vec![Part::file("chart.svg", "image/svg+xml", svg)]))?;

    let mut answer = ctx.text_stream("answer");
    answer.push("word by ")?;
    answer.push("word")?;
    answer.finish("word by word")?;

    ctx.begin(Artifact::new("log", vec![Part::text("first lines\n")]))?;
    ctx.append(Artifact::new("log", vec![Part::text("last lines\n")]), true)
}
}

mod reference_7 {
use a2a_hub_sdk::prelude::*;

pub fn end(ctx: &Context, is_repository: bool, is_logged_in: bool) -> Run {
    if !is_repository {
        return ctx.reject("I only answer questions about repositories.");
    }
    if !is_logged_in {
        return ctx.fail_with_fix("not_logged_in", "Nobody is logged in.", "claude /login");
    }
    ctx.done("3 commits")
}
}

mod reference_8 {
use a2a_hub_sdk::prelude::*;

pub fn with_usage(text: &str) -> Run {
    let usage = json!({ "usage": { "input_tokens": 120, "output_tokens": 40 } });
    Ok(TaskStatus::new(TaskState::Completed, text).with_metadata(&usage).into())
}
}

mod reference_9 {
use a2a_hub_sdk::prelude::*;

pub fn ask(ctx: &Context) -> Run {
    let branch = ctx.ask("Which branch?")?.text();
    let hour = Some(Duration::from_secs(3600));
    let sure = ctx.ask_within(Need::Input, format!("Delete {branch}?"), hour)?;
    if sure.text() != "yes" {
        return ctx.done("nothing was deleted");
    }
    ctx.done(format!("{branch} is deleted"))
}
}

mod reference_10 {
use a2a_hub_sdk::prelude::*;

pub fn ask_while_running(ctx: &Context, child: &Child) -> Run {
    let question = ctx.pose(Need::Input, "May it continue?", None)?;
    match ctx.first_of(&question, child)? {
        WaitEvent::Answer => ctx.done(question.answer()?.text()),
        WaitEvent::Output => {
            drop(question); // withdraws it
            ctx.done("the program went on without an answer")
        }
    }
}
}

mod reference_11 {
use a2a_hub_sdk::prelude::*;

pub fn read_to_the_end(ctx: &Context) -> Run {
    let mut words = Vec::new();
    loop {
        match ctx.next_message(Some(Duration::from_secs(60))) {
            Ok(message) if message.text() == "end" => return ctx.done(words.join(" ")),
            Ok(message) => words.push(message.text()),
            Err(Failure::Timeout) => return ctx.done("nobody has sent `end`"),
            Err(other) => return Err(other),
        }
    }
}
}

mod reference_12 {
use a2a_hub_sdk::prelude::*;

pub fn log(ctx: &Context) -> Run {
    let mut commits = Vec::new();
    let exit = ctx.run_lines(Command::new("git").args(["log", "--oneline"]), |line| {
        commits.push(line.to_owned());
        Ok(())
    })?;
    if !exit.success() {
        return ctx.fail("git_failed", exit.stderr);
    }
    ctx.done(commits.join("\n"))
}
}

mod reference_13 {
use a2a_hub_sdk::prelude::*;

pub fn chat(ctx: &Context, key: &str, prompt: &str) -> Run {
    let command = || Command::new("chat");
    let mut child = match ctx.take_up(key, command())? {
        Some(child) => child,
        None => {
            let child = ctx.spawn(command())?;
            child.settled();
            child
        }
    };
    child.write_line(prompt)?;
    let answer = child.next_line(None)?;
    child.park(key)?;
    ctx.done(answer.unwrap_or_default())
}
}

mod reference_14 {
use a2a_hub_sdk::prelude::*;

pub fn models(ctx: &Context) -> Run {
    let answer = ctx.fetch(&Request::get("https://api.example.com/v1/models"))?;
    if answer.status != 200 {
        return ctx.fail("no_models", answer.text());
    }
    ctx.done(answer.text())
}
}

mod reference_15 {
use a2a_hub_sdk::prelude::*;

pub fn stream(ctx: &Context, prompt: &str) -> Run {
    let request = Request::new("POST", "https://api.example.com/v1/chat")
        .header("content-type", "application/json")
        .body(prompt);
    let mut answer = ctx.exchange(&request)?;
    let mut text = String::new();
    let mut stream = ctx.text_stream("answer");
    while let Some(event) = answer.next_event(None)? {
        stream.push(&event.data)?;
        text.push_str(&event.data);
    }
    stream.finish(&text)?;
    ctx.done(text)
}
}

mod reference_16 {
use a2a_hub_sdk::prelude::*;

pub fn wait(ctx: &Context, question: OpenQuestion) -> Run {
    let mut timer = Timer::every(Duration::from_secs(60));
    let answer = loop {
        let ready = ctx.wait(&[Source::Question(&question), Source::Timer(&timer)], None)?;
        if ready.contains(&0) {
            break question.answer()?;
        }
        timer.rewind();
        ctx.log(Level::Info, "still no answer");
    };
    ctx.done(answer.text())
}
}

mod reference_17 {
use a2a_hub_sdk::prelude::*;

pub fn files(ctx: &Context, bytes: &[u8]) -> Run {
    let path = ctx.put_file("picture.png", bytes)?;
    let readme = std::fs::read_to_string("/workspace/README.md").unwrap_or_default();
    ctx.done(format!("{path}, and {} bytes of readme", readme.len()))
}
}

mod reference_18 {
use a2a_hub_sdk::prelude::*;

pub fn count(ctx: &Context) -> Run {
    let seen = ctx.recall::<u64>("seen")?.unwrap_or_default() + 1;
    ctx.remember("seen", &seen)?;
    let keys = ctx.remembered("session/")?;
    for key in &keys {
        ctx.forget(key)?;
    }
    ctx.done(format!("{seen} times, {} sessions", keys.len()))
}
}

mod reference_19 {
use a2a_hub_sdk::prelude::*;

pub fn think(ctx: &Context) -> Run {
    let memory = ctx.memory();
    memory.set_goal("Ship the parser")?;
    memory.add_thought("Is the grammar ambiguous?")?;
    memory.decide("database", "sqlite", "one file")?;
    memory.set_var("depth", &3)?;
    memory.remember("fact1", &json!({ "info": "the cache is warm" }), "semantic")?;
    memory.private().remember("login", &json!({ "as": "me" }), "episodic")?;
    let items = memory.recall("how warm is the cache?")?;
    ctx.done(format!("{} items, goal {:?}", items.len(), memory.goal()?))
}
}

mod reference_20 {
use a2a_hub_sdk::prelude::*;

pub fn review(ctx: &Context) -> Run {
    let found = ctx.find(AgentQuery::from("review my changes").version(">=1.0"))?;
    let best = found.agents.first().map_or("codex", |agent| agent.id.as_str());
    let review = ctx.call(best, "Review this diff.")?.text()?;
    ctx.done(review)
}
}

mod reference_21 {
use a2a_hub_sdk::prelude::*;

pub fn supervised(ctx: &Context) -> Run {
    let options =
        CallOptions::new().key("review").timeout(Duration::from_secs(600)).answers_questions();
    let call = ctx.call_with("codex", "Review this diff.", &options)?;
    loop {
        match call.next(None)? {
            Update::Finished(outcome) => return Ok(outcome),
            Update::Event(Event::Status(status)) if status.state == TaskState::InputRequired => {
                call.answer("The one in src.")?;
            }
            Update::Event(_) => {}
        }
    }
}
}

mod reference_22 {
use a2a_hub_sdk::prelude::*;

pub fn smaller_change(ctx: &Context) -> Run {
    let mut tries = Vec::new();
    for agent in ["claude-code", "codex"] {
        let options = CallOptions::new().key(agent).worktree(Worktree::New);
        let call = ctx.call_with(agent, "Make the failing test pass.", &options)?;
        let (task, mut lines) = (call.task_id(), u64::MAX);
        call.outcome_with(|event| {
            if let Event::Artifact(update) = event
                && let Some(changes) = update.worktree_changes()
            {
                lines = changes.insertions + changes.deletions;
            }
            Ok(())
        })?;
        tries.push((lines, task));
    }
    tries.sort();
    let (lines, task) = &tries[0];
    ctx.done(format!("a2a-hub task apply {task} takes over {lines} changed lines"))
}
}

mod reference_23 {
use a2a_hub_sdk::prelude::*;

pub fn hand_over(ctx: &Context) -> Run {
    let options = CallOptions::new()
        .inherit_working_memory()
        .inherit_memory()
        .memory_scope(MemoryScope::Minimal)
        .memory_tokens(2_000);
    ctx.done(ctx.call_with("coder", "Write the parser", &options)?.text()?)
}
}

mod reference_24 {
use a2a_hub_sdk::prelude::*;

pub fn notes(ctx: &Context) -> Run {
    for tool in ctx.tools()? {
        ctx.log(Level::Debug, format!("{}: {}", tool.server, tool.name));
    }
    let found = ctx.call_tool("files", "read_file", &json!({ "path": "notes.md" }))?;
    ctx.done(found.text())
}
}

mod reference_25 {
use a2a_hub_sdk::prelude::*;

pub fn model(ctx: &Context) -> String {
    ctx.setting("model").unwrap_or_else(|| "small".to_owned())
}
}

mod reference_26 {
use a2a_hub_sdk::prelude::*;

pub fn release(ctx: &Context) -> Run {
    let diff = ctx.step("diff", || {
        let mut diff = String::new();
        ctx.run_lines(Command::new("git").arg("diff"), |line| {
            diff.push_str(line);
            Ok(())
        })?;
        Ok(diff)
    })?;
    let review = ctx.call("codex", diff)?.text()?;
    if ctx.ask("Shall I push?")?.text() == "yes" {
        let push = Command::new("git").arg("push");
        ctx.step_with("push", StepMode::Ask, || ctx.run_lines(push, |_| Ok(())).map(drop))?;
    }
    ctx.done(review)
}
}

mod readme {
use a2a_hub_sdk::prelude::*;

struct Echo;

impl Agent for Echo {
    fn card() -> Card {
        Card::new("echo", "Returns your text", "0.1.0")
            .skill("echo", "Echo", "Returns the text", &["test"])
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        ctx.done(task.text())
    }
}
export!(Echo);
}

mod tutorial {
//! Keeps short notes and lists them.

use a2a_hub_sdk::prelude::*;

/// The key of the notes in the agent's memory.
const NOTES: &str = "notes";

pub struct Notes;

impl Agent for Notes {
    fn card() -> Card {
        Card::new("notes", "Keeps short notes and lists them", env!("CARGO_PKG_VERSION"))
            .skill("notes", "Notes", "Keeps, lists or forgets notes", &["notes"])
            .example("note buy milk")
            .example("list")
            .example("forget")
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        let text = task.text();
        let (word, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let mut notes: Vec<String> = ctx.recall(NOTES)?.unwrap_or_default();
        match (word, rest) {
            ("note", note) if !note.is_empty() => {
                notes.push(note.to_owned());
                ctx.remember(NOTES, &notes)?;
                ctx.done(format!("kept; that makes {}", notes.len()))
            }
            ("list", "") => {
                let mut stream = ctx.text_stream("notes");
                let mut list = String::new();
                for (index, note) in notes.iter().enumerate() {
                    let line = format!("{}. {note}\n", index + 1);
                    stream.push(&line)?;
                    list.push_str(&line);
                }
                stream.finish(&list)?;
                ctx.done(format!("{} notes", notes.len()))
            }
            ("forget", "") => {
                let answer = ctx.ask(format!("Forget {} notes?", notes.len()))?;
                if answer.text().trim() != "yes" {
                    return ctx.done("kept them all");
                }
                ctx.forget(NOTES)?;
                ctx.done("forgotten")
            }
            _ => ctx.reject("Say `note TEXT`, `list` or `forget`."),
        }
    }
}
export!(Notes, manifest = "../manifest.toml");

#[cfg(test)]
mod tests {
    use a2a_hub_sdk::testing::ScriptedHost;

    use super::*;

    #[test]
    fn keeps_and_lists_notes() {
        let host = ScriptedHost::new();
        assert_eq!(host.run::<Notes>("note buy milk").unwrap().text(), "kept; that makes 1");
        assert_eq!(host.run::<Notes>("list").unwrap().text(), "1 notes");
        assert_eq!(host.artifact("notes").unwrap(), "1. buy milk\n");
    }

    #[test]
    fn asks_before_it_forgets() {
        let host = ScriptedHost::new();
        host.run::<Notes>("note buy milk").unwrap();
        host.answer("yes");
        assert_eq!(host.run::<Notes>("forget").unwrap().text(), "forgotten");
    }
}
}

mod tutorial_updated {
//! Keeps short notes and lists them.

use a2a_hub_sdk::prelude::*;

/// The key of the notes in the agent's memory.
const NOTES: &str = "notes";

pub struct Notes;

impl Agent for Notes {
    fn card() -> Card {
        Card::new("notes", "Keeps short notes and lists them", env!("CARGO_PKG_VERSION"))
            .skill("notes", "Notes", "Keeps, lists or forgets notes", &["notes"])
            .example("note buy milk")
            .example("list")
            .example("forget")
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        let text = task.text();
        let (word, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let mut notes: Vec<String> = ctx.recall(NOTES)?.unwrap_or_default();
        match (word, rest) {
            ("note", note) if !note.is_empty() => {
                notes.push(note.to_owned());
                ctx.remember(NOTES, &notes)?;
                ctx.done(format!("kept; that makes {}", notes.len()))
            }
            ("list", "") => {
                let mut stream = ctx.text_stream("notes");
                let mut list = String::new();
                for (index, note) in notes.iter().enumerate() {
                    let line = format!("{}. {note}\n", index + 1);
                    stream.push(&line)?;
                    list.push_str(&line);
                }
                stream.finish(&list)?;
                ctx.done(format!("{} notes", notes.len()))
            }
            ("find", word) if !word.is_empty() => {
                notes.retain(|note| note.contains(word));
                ctx.done(notes.join("\n"))
            }
            ("forget", "") => {
                let answer = ctx.ask(format!("Forget {} notes?", notes.len()))?;
                if answer.text().trim() != "yes" {
                    return ctx.done("kept them all");
                }
                ctx.forget(NOTES)?;
                ctx.done("forgotten")
            }
            _ => ctx.reject("Say `note TEXT`, `list` or `forget`."),
        }
    }
}
export!(Notes, manifest = "../manifest.toml");

#[cfg(test)]
mod tests {
    use a2a_hub_sdk::testing::ScriptedHost;

    use super::*;

    #[test]
    fn keeps_and_lists_notes() {
        let host = ScriptedHost::new();
        assert_eq!(host.run::<Notes>("note buy milk").unwrap().text(), "kept; that makes 1");
        assert_eq!(host.run::<Notes>("list").unwrap().text(), "1 notes");
        assert_eq!(host.artifact("notes").unwrap(), "1. buy milk\n");
    }

    #[test]
    fn asks_before_it_forgets() {
        let host = ScriptedHost::new();
        host.run::<Notes>("note buy milk").unwrap();
        host.answer("yes");
        assert_eq!(host.run::<Notes>("forget").unwrap().text(), "forgotten");
    }
}
}

mod testing {
use a2a_hub_sdk::prelude::*;

struct Commits;

impl Agent for Commits {
    fn card() -> Card {
        Card::new("commits", "Counts commits", "0.1.0")
    }

    fn run(ctx: &Context, _task: &Task) -> Run {
        let mut commits = 0;
        ctx.run_lines(Command::new("git").args(["log", "--oneline"]), |_line| {
            commits += 1;
            Ok(())
        })?;
        let branch = ctx.ask("Which branch?")?;
        ctx.done(format!("{commits} commits on {}", branch.text()))
    }
}

export!(Commits);

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_sdk::testing::ScriptedHost;

    #[test]
    fn counts_commits() {
        let host = ScriptedHost::new();
        host.program("git").stdout("a1 one\nb2 two\n");
        host.answer("main");

        let outcome = host.run::<Commits>("how many commits?").unwrap();

        assert_eq!(outcome.text(), "2 commits on main");
        assert_eq!(host.spawned()[0].args, ["log", "--oneline"]);
    }

    #[test]
    fn fails_without_git() {
        let failure = ScriptedHost::new().run::<Commits>("how many commits?").unwrap_err();
        assert_eq!(failure.text(), "`git log --oneline` is not in the script");
    }
}
}

mod together {
use a2a_hub_sdk::prelude::*;

pub fn review(ctx: &Context) -> Run {
    let review = ctx.call("codex", "Review this diff.")?.text()?;
    ctx.done(review)
}
}
