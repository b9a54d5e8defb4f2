//! Compiles the examples of `docs/GUESTS.md`: each Rust example occurs here verbatim, or in the
//! agent that it names.

use a2a_hub_sdk::{
    AgentQuery, Artifact, CallOptions, Came, Child, Command, Context, Event, Exchange, Failure,
    MemoryItem, MemoryScope, Message, Need, OpenQuestion, Part, Request, Source, StepMode,
    TaskState, TextStream, Timer, Update, prelude::*, testing::ScriptedHost,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// This file, which contains the guide's examples.
const HERE: &str = include_str!("main.rs");
const ECHO: &str = include_str!("../../../guest-agents/echo/src/lib.rs");
const GUIDE: &str = include_str!("../../../docs/GUESTS.md");

/// Agent of `examples/` with its tests, compiled as a module.
#[expect(unreachable_pub, reason = "it is a library of its own, where it is at home")]
#[path = "../../../examples/agent/src/lib.rs"]
mod notebook;

#[derive(Serialize, Deserialize)]
struct Session;

/// Agent of the guide's own test.
struct MyAgent;

impl Agent for MyAgent {
    fn card() -> Card {
        Card::new("my-agent", "Counts commits", "0.1.0")
    }

    fn run(ctx: &Context, _task: &Task) -> Run {
        let mut commits = Vec::new();
        let log = Command::new("git").args(["log", "--oneline"]);
        ctx.run_lines(log, |line| {
            commits.push(line.to_owned());
            Ok(())
        })?;
        let branch = ctx.ask("Which branch?")?;
        ctx.done(format!("{} commits on {}", commits.len(), branch.text()))
    }
}

export!(MyAgent, manifest = "../manifest.toml");

#[test]
fn guide_examples_compile() {
    let lines =
        |text: &str| text.lines().map(|line| format!("{}\n", line.trim())).collect::<String>();
    let (here, echo) = (lines(HERE), lines(ECHO));
    let examples: Vec<_> = blocks("rust").map(lines).collect();
    assert!(
        examples.len() >= 15,
        "{} examples; does the guide still mark them as Rust?",
        examples.len()
    );
    for example in examples {
        assert!(here.contains(&example) || echo == example, "compiled nowhere:\n{example}");
    }
}

#[test]
fn guide_manifest_matches_embedded_manifest() {
    let manifest = blocks("toml").find(|block| block.contains("[process.git]")).unwrap();
    assert_eq!(manifest, include_str!("../manifest.toml"));
}

/// Code blocks of the guide in this language.
fn blocks(language: &str) -> impl Iterator<Item = &'static str> {
    let fence = format!("```{language}\n");
    GUIDE.match_indices("```").filter_map(move |(at, _)| {
        let text = GUIDE.get(at..)?.strip_prefix(&fence)?;
        text.split_once("```").map(|(block, _)| block)
    })
}

#[test]
fn it_counts_commits() {
    let host = ScriptedHost::new();
    host.program("git").stdout("a1 one\nb2 two\n");
    host.answer("main");
    let outcome = host.run::<MyAgent>("how many commits?").unwrap();
    assert_eq!(outcome.text(), "2 commits on main");
    assert_eq!(host.spawned()[0].args, ["log", "--oneline"]);
}

/// Examples that are compiled but not run: each item has its tests where it is defined.
mod compiled {
    #![expect(dead_code, reason = "examples are read and compiled")]
    #![expect(clippy::needless_borrow, reason = "examples borrow what they own elsewhere")]

    use super::*;

    fn chat() -> Command {
        Command::new("chat")
    }

    fn keeps(ctx: &Context, key: &str, prompt: &str) -> Result<Option<String>, Failure> {
        let mut child = match ctx.take_up(&key, chat())? {
            Some(child) => child,
            None => {
                let child = ctx.spawn(chat())?;
                child.settled();
                child
            }
        };
        child.write_line(&prompt)?;
        let answer = child.next_line(None)?;
        child.park(&key)?;
        Ok(answer)
    }

    fn says(ctx: &Context) -> Result<(), Failure> {
        ctx.say("reading the log")?;
        Ok(())
    }

    fn says_how_far_it_is(ctx: &Context) -> Result<(), Failure> {
        ctx.progress(40, "compiles")?;
        Ok(())
    }

    fn makes_one_grow(ctx: &Context) -> Result<(), Failure> {
        ctx.begin(Artifact::new("log", vec![Part::text("first lines\n")]))?;
        ctx.append(Artifact::new("log", vec![Part::text("last lines\n")]), true)?;
        Ok(())
    }

    fn takes_no_plain_text() -> String {
        let card = Card::new("charts", "Draws charts", "0.1.0")
            .inputs(&["application/json", "text/csv"])
            .outputs(&["image/svg+xml"]);
        card.to_json()
    }

    fn says_what_a_skill_takes(task: &Task) -> (String, Option<Value>) {
        let card = Card::new("shop", "Sells things", "0.1.0")
            .input("application/json")
            .skill("order", "Order", "Takes an order", &["shop"])
            .input_schema(&json!({
                "type": "object",
                "required": ["article"],
                "properties": { "article": { "type": "string" } }
            }));
        let article = task.message.data().map(|input| input["article"].clone());
        (card.to_json(), article)
    }

    fn waits_for_a_time(ctx: &Context, question: OpenQuestion) -> Run {
        let mut timer = Timer::every(Duration::from_secs(60));
        let answered = loop {
            let ready = ctx.wait(&[Source::Question(&question), Source::Timer(&timer)], None)?;
            if ready.contains(&0) {
                break question.answer()?;
            }
            timer.rewind();
            ctx.log(Level::Info, "nobody has answered yet");
        };
        ctx.done(answered.text())
    }

    fn makes_artifacts(ctx: &Context, markdown: String) -> Result<(), Failure> {
        ctx.artifact(Artifact::text("report", markdown).named("Report"))?;

        let mut answer = ctx.text_stream("answer");
        answer.push("word by ")?;
        answer.push("word")?;
        answer.finish("word by word")?;
        Ok(())
    }

    fn says_all_that_a2a_can(ctx: &Context, bytes: Vec<u8>, facts: &Value) -> Run {
        let chart = Artifact::new("chart", vec![Part::file("chart.svg", "image/svg+xml", bytes)]);
        ctx.artifact(chart.with(Part::url("https://example.com/chart").of_type("text/html")))?;
        ctx.reply(Message::from("see the chart").with_metadata(&facts))
    }

    fn knows_the_terms(ctx: &Context, task: &Task) -> Run {
        let markdown = |metre: Option<Value>| Ok::<_, Failure>(format!("**{metre:?}**"));
        let plain = |metre: Option<Value>| Ok::<_, Failure>(format!("{metre:?}"));
        let card = Card::new("poet", "Writes poems", "0.1.0")
            .extension("https://example.com/metre/v1", "Chooses a metre", false)
            .params(&json!({ "metres": ["iamb", "dactyl"] }))
            .input("image/*");

        let metre = task.message.extension("https://example.com/metre/v1");
        let is_active = ctx.extensions().iter().any(|uri| uri == "https://example.com/metre/v1");
        let poem = if ctx.accepts("text/markdown") { markdown(metre)? } else { plain(metre)? };
        ctx.done(if is_active { poem } else { card.to_json() })
    }

    fn calls_tools(ctx: &Context, mut known: Vec<String>) -> Run {
        for tool in ctx.tools()? {
            known.push(tool.name);
        }
        let found = ctx.call_tool("files", "read_file", &json!({ "path": "notes.md" }))?.text();
        ctx.done(found)
    }

    fn has_others_do_it(ctx: &Context) -> Run {
        let review = ctx.call("codex", "Review this diff.")?.text()?;
        ctx.done(review)
    }

    fn outlives_a_restart(ctx: &Context) -> Run {
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

    fn answers_others(ctx: &Context) -> Run {
        let options =
            CallOptions::new().key("review").timeout(Duration::from_secs(600)).answers_questions();
        let call = ctx.call_with("codex", "Review this diff.", &options)?;
        let outcome = loop {
            match call.next(None)? {
                Update::Finished(outcome) => break outcome,
                Update::Event(Event::Status(status))
                    if status.state == TaskState::InputRequired =>
                {
                    call.answer("The one in src.")?;
                }
                Update::Event(_) => {}
            }
        };
        Ok(outcome)
    }

    fn asks(ctx: &Context) -> Run {
        let answer = ctx.ask("Which branch?")?;
        let branch = answer.text();
        ctx.done(branch)
    }

    fn poses(ctx: &Context, child: &Child) -> Result<(), Failure> {
        let go_on = |_: Message| ();
        let question = ctx.pose(Need::Input, "May it go on?", None)?;
        match ctx.first_of(&question, &child)? {
            Came::Answer => go_on(question.answer()?),
            Came::Output => drop(question), // the program said something, or is gone
        }
        Ok(())
    }

    fn runs_a_program(ctx: &Context, mut commits: Vec<String>) -> Run {
        let exit = ctx.run_lines(Command::new("git").args(["log", "--oneline"]), |line| {
            commits.push(line.to_owned());
            Ok(())
        })?;
        if !exit.success() {
            return ctx.fail("git_failed", exit.stderr);
        }
        ctx.done(commits.join("\n"))
    }

    fn fetches(ctx: &Context) -> Run {
        let answer = ctx.fetch(&Request::get("https://api.example.com/v1/models"))?;
        if answer.status != 200 {
            return ctx.fail("no_models", answer.text());
        }
        ctx.done(answer.text())
    }

    fn reads_as_it_comes(
        ctx: &Context,
        prompt: &str,
        stream: &mut TextStream<'_>,
    ) -> Result<(), Failure> {
        let request = Request::new("POST", "https://api.example.com/v1/chat").body(prompt);
        let mut answer = ctx.exchange(&request)?;
        while let Some(event) = answer.next_event(None)? {
            stream.push(&event.data)?;
        }
        Ok(())
    }

    fn waits_for_several(
        ctx: &Context,
        child: &Child,
        answer: &Exchange,
        patience: Duration,
    ) -> Result<(), Failure> {
        let sources = [Source::Child(&child), Source::Exchange(&answer)];
        let ready = ctx.wait(&sources, Some(patience))?;
        if ready.is_empty() {
            ctx.say("still nothing")?;
        }
        Ok(())
    }

    fn reads_files() -> std::io::Result<String> {
        let readme = std::fs::read_to_string("/workspace/README.md");
        readme.map(|text| text.trim().to_owned())
    }

    fn remembers(ctx: &Context, session: &Session) -> Result<Option<Session>, Failure> {
        ctx.remember("session/42", &session)?;
        let session: Option<Session> = ctx.recall("session/42")?;
        Ok(session)
    }

    fn has_in_mind(ctx: &Context) -> Result<Vec<MemoryItem>, Failure> {
        let memory = ctx.memory();
        memory.set_goal("Ship the parser")?;
        memory.add_thought("Is the grammar ambiguous?")?;
        memory.decide("database", "sqlite", "one file")?;
        memory.set_var("depth", &3)?;
        memory.remember("fact1", &json!({ "info": "the cache is warm" }), "semantic")?;
        let items = memory.recall("how warm is the cache?")?;
        memory.private().remember("login", &json!({ "as": "me" }), "episodic")?;
        Ok(items)
    }

    fn hands_over(ctx: &Context) -> Result<String, Failure> {
        let options = CallOptions::new()
            .inherit_working_memory()
            .inherit_memory()
            .memory_scope(MemoryScope::Minimal)
            .memory_tokens(2_000);
        let answer = ctx.call_with("coder", "Write the parser", &options)?.text()?;
        Ok(answer)
    }

    fn reads_settings(ctx: &Context) -> Option<String> {
        let model = ctx.setting("model");
        model.filter(|model| !model.is_empty())
    }

    fn knows_others(ctx: &Context) -> Result<usize, Failure> {
        let cards = ctx.agents()?;
        Ok(cards.len())
    }

    fn finds_another(ctx: &Context) -> Result<String, Failure> {
        let found = ctx.find(AgentQuery::from("review my changes").version(">=1.0"))?;
        let best = found.agents.first().map(|agent| agent.id.clone());
        Ok(best.unwrap_or_default())
    }

    fn writes_a_file(ctx: &Context, name: &str, bytes: &[u8]) -> Result<String, Failure> {
        let path = ctx.put_file(name, bytes)?;
        Ok(path)
    }

    fn ends(ctx: &Context, is_repository: bool, is_logged_in: bool) -> Run {
        if !is_repository {
            return ctx.reject("I only speak about repositories.");
        }
        if !is_logged_in {
            return ctx.fail_with_fix("not_logged_in", "Nobody is logged in.", "claude /login");
        }
        ctx.done("3 commits")
    }
}
