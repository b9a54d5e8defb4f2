//! Guest whose runs are replayed: it executes its message line by line, and reports the results at
//! the end.
//!
//! A message to another agent has the same form: ` / ` stands for a newline, ` // ` for a newline
//! of the message that the other agent passes on, and so on.

use std::time::Duration;

use a2a_hub_sdk::{
    Call, CallOptions, Source, StepMode, TaskState, Update,
    prelude::*,
    serde_json::{self, Value},
};

/// Maximum nesting of messages.
const DEEPEST: usize = 8;

/// Guest that executes its message line by line.
pub struct DurableGuest;

impl Agent for DurableGuest {
    fn card() -> Card {
        Card::new("durable-guest", "Does what it is told, line by line", env!("CARGO_PKG_VERSION"))
            .skill("do", "Do", "Does what each line says", &["test"])
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        let mut came = Vec::new();
        let text = task.text();
        for line in text.lines() {
            if line == "decide" {
                return decide(ctx, &text);
            }
            if line == "bid" {
                return ctx.done(
                    json!({ "bid": random() % 100, "pass": false, "reason": "so" }).to_string(),
                );
            }
            let (act, rest) = line.split_once(' ').unwrap_or((line, ""));
            came.push(act_out(ctx, act, rest, came.last())?);
        }
        came.retain(|came| !came.is_empty());
        ctx.done(came.join(" | "))
    }
}
export!(DurableGuest, manifest = "../manifest.toml");

fn act_out(ctx: &Context, act: &str, rest: &str, last: Option<&String>) -> Result<String, Failure> {
    let (first, then) = rest.split_once(' ').unwrap_or((rest, ""));
    Ok(match act {
        "say" => {
            ctx.say(rest)?;
            String::new()
        }
        "say-last" => {
            ctx.say(last.cloned().unwrap_or_default())?;
            String::new()
        }
        "piece" => {
            ctx.append(Artifact::text("out", rest), false)?;
            String::new()
        }
        "ask" => ctx.ask(rest)?.text(),
        "call" => told(ctx.call(first, given_on(then)).and_then(Call::text)),
        "answer" => told(answering(ctx, first, then)),
        "feed" => told(feeding(ctx, first, then)),
        "read" => told(ctx.next_message(milliseconds(rest)).map(|it| it.text())),
        "race" => race(ctx, first, then)?,
        "children" => {
            let children = ctx.children()?.into_iter().map(|child| child.agent);
            children.collect::<Vec<_>>().join(",")
        }
        "step" => told(ctx.step(first, || shell(ctx, then))),
        "careful" => told(ctx.step_with(first, StepMode::Ask, || shell(ctx, then))),
        "again" => told(ctx.step_with(first, StepMode::Again, || shell(ctx, then))),
        "outside" => told(ctx.remember("key", "value").map(|()| "remembered".to_owned())),
        "inside" => told(ctx.step("inside", || ctx.ask("in a step?").map(|it| it.text()))),
        "fail" => return Err(Failure::Internal(rest.to_owned())),
        "sleep" => {
            ctx.sleep(milliseconds(rest).unwrap_or_default())?;
            String::new()
        }
        "setting" => ctx.setting(rest).unwrap_or_default(),
        "modes" => ctx.accepted_output_modes().join(","),
        "random" => random().to_string(),
        "time" => now().to_string(),
        other => format!("what is {other}?"),
    })
}

/// Answers by the JSON schema in a message, or does its work. One in six fails, and one in six
/// answers without JSON or with wrong one. With a line `slowly`, one in five is far too slow.
fn decide(ctx: &Context, text: &str) -> Run {
    let number = random();
    if text.lines().any(|line| line == "slowly") && number % 5 == 4 {
        ctx.sleep(Duration::from_secs(60))?;
    }
    if number.is_multiple_of(6) {
        return ctx.fail("broken", "this one fails");
    }
    let schema = text.split_once("It has to fit this JSON schema:\n");
    let Some((_, schema)) = schema.filter(|_| number % 6 != 1) else {
        return ctx.done(format!("done {number}"));
    };
    if number % 36 == 2 {
        return ctx.done(json!({ "choice": 7, "contributions": "none", "score": -1 }).to_string());
    }
    let is_choice = schema.contains("\"enum\"");
    let score = f64::from(u8::try_from(number % 101).unwrap_or_default()) / 100.0;
    let answer = json!({
        "choice": if number.is_multiple_of(2) { "yes" } else { "no" },
        "bid": number % 100, "pass": number % 7 == 2, "cost": number % 100, "minutes": 5, "plan": "soon",
        "refuse": number % 7 == 3, "value": if is_choice { json!("yes") } else { json!(number % 4) },
        "accept": number.is_multiple_of(3), "terms": "these", "confidence": 0.5, "reason": "so",
        "score": score, "contributions": contributions(text, number),
    });
    ctx.done(answer.to_string())
}

/// Contributions to the board in a message: the agent claims open items, finishes what it holds,
/// adds items, and sometimes takes what is not for it.
fn contributions(text: &str, mut number: u64) -> Vec<Value> {
    let Some((_, rest)) = text.split_once("The board is now:") else { return Vec::new() };
    let me = text.split_once("You are ").and_then(|(_, rest)| rest.split(',').next());
    let data = rest.split("[end of data]").next().unwrap_or_default();
    let board: Vec<_> = data.lines().filter_map(|line| line.strip_prefix("| ")).collect();
    let board: Vec<Value> = serde_json::from_str(&board.join("\n")).unwrap_or_default();
    let first = number;
    let mut one_in = |many: u64| {
        // Numerical Recipes, "Quick and dirty" generator; the high bits are the random ones.
        number =
            number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (number >> 33).is_multiple_of(many)
    };
    let mut wishes = Vec::new();
    for item in &board {
        let is_mine = item["by"].as_str() == me;
        let wish = |verb: &str, version: &Value| {
            let text = format!("by {} {first:x}", me.unwrap_or_default());
            json!({ "do": verb, "id": item["id"], "version": version, "text": text })
        };
        let version = &item["version"];
        match item["state"].as_str() {
            Some("open") if !one_in(3) => {
                wishes.push(wish("claim", version));
                if one_in(3) {
                    wishes.push(wish("finish", version));
                }
            }
            Some("claimed") if is_mine && one_in(6) => wishes.push(wish("release", version)),
            Some("claimed") if is_mine && one_in(6) => wishes.push(wish("claim", version)),
            Some("claimed") if is_mine && !one_in(6) => wishes.push(wish("finish", version)),
            Some(_) if one_in(8) => wishes.push(wish("finish", version)),
            Some(_) if one_in(8) => wishes.push(wish("claim", &json!(1))),
            Some(_) | None => {}
        }
    }
    if one_in(6) {
        let needs = board.first().map(|item| &item["id"]);
        wishes.push(
            json!({ "do": "add", "id": format!("x{first:x}"), "text": "more", "needs": [needs] }),
        );
    }
    wishes
}

fn told(came_to: Result<String, Failure>) -> String {
    came_to.unwrap_or_else(|why| format!("failed: {why}"))
}

/// Message to the other agent.
fn given_on(program: &str) -> String {
    let mut lines = program.replace(" / ", "\n");
    for level in 2..=DEEPEST {
        let [from, to] = [level, level - 1].map(|level| format!(" {} ", "/".repeat(level)));
        lines = lines.replace(&from, &to);
    }
    lines
}

/// Runs a command and emits its lines as they arrive.
fn shell(ctx: &Context, command: &str) -> Result<String, Failure> {
    let mut said = String::new();
    ctx.run_lines(Command::new("sh").args(["-c", command]), |line| {
        said.push_str(line);
        ctx.append(Artifact::text("out", format!("{line}\n")), false)
    })?;
    Ok(said)
}

/// Calls an agent, and answers all of its questions alike: `AGENT ANSWER PROGRAM`.
fn answering(ctx: &Context, agent: &str, rest: &str) -> Result<String, Failure> {
    let (answer, program) = rest.split_once(' ').unwrap_or((rest, ""));
    let options = CallOptions::new().answers_questions();
    let call = ctx.call_with(agent, given_on(program), &options)?;
    loop {
        match call.next(None)? {
            Update::Finished(outcome) => return Ok(outcome.text()),
            Update::Event(Event::Status(status)) if status.state == TaskState::InputRequired => {
                call.answer(answer)?;
            }
            Update::Event(_) => {}
        }
    }
}

/// Calls an agent, and sends it further messages, one a word: `AGENT MESSAGES PROGRAM`, with
/// commas between the messages.
fn feeding(ctx: &Context, agent: &str, rest: &str) -> Result<String, Failure> {
    let (messages, program) = rest.split_once(' ').unwrap_or((rest, ""));
    let call = ctx.call(agent, given_on(program))?;
    let sent: Vec<_> = messages.split(',').map(|it| told_of(call.send(it))).collect();
    Ok(format!("{}: {}", sent.join(","), call.text()?))
}

fn told_of(sent: Result<(), Failure>) -> String {
    told(sent.map(|()| "sent".to_owned()))
}

/// Time of a line; none if it names none.
fn milliseconds(rest: &str) -> Option<Duration> {
    rest.parse().ok().map(Duration::from_millis)
}

/// Calls several agents with the same message, and reports the order of their ends.
fn race(ctx: &Context, agents: &str, program: &str) -> Result<String, Failure> {
    let start = |agent| ctx.call(agent, given_on(program)).map(|call| (agent, call));
    let mut calls = agents.split(',').map(start).collect::<Result<Vec<_>, _>>()?;
    let mut ended = Vec::new();
    while !calls.is_empty() {
        let sources: Vec<_> = calls.iter().map(|(_, call)| Source::Call(call)).collect();
        let ready = ctx.wait(&sources, Some(Duration::from_secs(60)))?;
        if ctx.cancelled() {
            return Err(Failure::Cancelled);
        }
        for at in ready.into_iter().rev() {
            if let Update::Finished(outcome) = calls[at].1.next(None)? {
                let (agent, _) = calls.remove(at);
                ended.push(format!("{agent}: {}", outcome.text()));
            }
        }
    }
    Ok(ended.join(", "))
}

/// Time as the run sees it, in milliseconds since the Unix epoch.
#[expect(clippy::disallowed_methods, reason = "to see what a run is told that is replayed")]
fn now() -> u128 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap_or_default().as_millis()
}

#[cfg(target_arch = "wasm32")]
fn random() -> u64 {
    wasip2::random::random::get_random_u64()
}

#[cfg(not(target_arch = "wasm32"))]
fn random() -> u64 {
    4
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_sdk::testing::ScriptedHost;

    #[test]
    fn message_lines_are_executed_in_order() {
        let host = ScriptedHost::new();
        host.answer("blue");
        host.program("sh").stdout("one\n");
        let outcome =
            host.run::<DurableGuest>("say hi\nask which?\nstep s echo one\nrandom").unwrap();
        assert_eq!(outcome.text(), "blue | one | 4");
        // A finished step is not done again.
        host.answer("red");
        let outcome = host.run::<DurableGuest>("ask which?\nstep s echo one").unwrap();
        assert_eq!(outcome.text(), "red | one");
    }

    #[test]
    fn decision_fits_schema() {
        let host = ScriptedHost::new();
        let text = "say so\ndecide\nmore\nIt has to fit this JSON schema:\n{}";
        let outcome = host.run::<DurableGuest>(text).unwrap();
        assert!(outcome.text().contains("\"bid\":4"), "{}", outcome.text());
        assert_eq!(host.run::<DurableGuest>("decide").unwrap().text(), "done 4");
    }

    #[test]
    fn contributions_follow_board() {
        let board = json!([
            { "id": "a", "version": 1, "state": "open", "by": null },
            { "id": "b", "version": 2, "state": "claimed", "by": "ash" },
        ]);
        let board = serde_json::to_string_pretty(&board).unwrap().replace('\n', "\n| ");
        let text = format!("You are ash, and work. The board is now:\n| {board}\n[end of data]\n");
        let all: Vec<_> = (0..50).flat_map(|number| contributions(&text, number)).collect();
        let has = |verb: &str, id: &str| all.iter().any(|it| it["do"] == verb && it["id"] == id);
        assert!(has("claim", "a") && has("finish", "a") && !has("release", "a"), "{all:?}");
        assert!(has("finish", "b") && has("release", "b") && has("claim", "b"), "{all:?}");
        assert!(all.iter().any(|it| it["do"] == "add"), "{all:?}");
        assert_eq!(contributions("You are ash, and work.", 1), [Value::Null; 0]);
    }

    #[test]
    fn forwarded_message_expands_separators() {
        let given = given_on("ask a / call b ask c // say d /// say e / say f");
        assert_eq!(given, "ask a\ncall b ask c / say d // say e\nsay f");
    }
}
