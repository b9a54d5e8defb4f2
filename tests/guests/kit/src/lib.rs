//! Guest for the official A2A compatibility kit (a2a-tck 1.0.0): the prefix of a message's id
//! selects its behaviour, as the scenarios of the kit describe it.

use a2a_hub_sdk::{Part, Source, TaskState, TaskStatus, Timer, prelude::*, serde_json::json};
use std::time::Duration;

/// Time for which a scenario works: the kit's default timeout of a stream.
const WORK: Duration = Duration::from_secs(2);

/// Longer time, for a client that disconnects and subscribes again.
const LONG_WORK: Duration = Duration::from_secs(4);

/// Guest that plays the scenarios.
pub struct KitGuest;

/// A scenario.
type Scenario = fn(&Context) -> Run;

/// Every scenario, under the prefix of the message ids that select it. A longer prefix stands
/// before its own beginning.
pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("tck-complete-task", |ctx| completed_with(ctx, "Hello from TCK")),
    ("tck-delayed-complete", |ctx| {
        work(ctx, WORK)?;
        completed_with(ctx, "Done after delay")
    }),
    ("test-resubscribe-message-id", |ctx| {
        work(ctx, LONG_WORK)?;
        completed(ctx)
    }),
    ("tck-artifact-text", |ctx| made(ctx, Part::text("Generated text content"))),
    ("tck-artifact-file-url", |ctx| {
        let url = Part::url("https://example.com/output.txt");
        made(ctx, url.named("output.txt").of_type("text/plain"))
    }),
    ("tck-artifact-file", |ctx| made(ctx, file())),
    ("tck-artifact-data", |ctx| made(ctx, Part::data(&json!({ "key": "value", "count": 42 })))),
    ("tck-message-response", |ctx| ctx.reply("Direct message response")),
    ("tck-input-required", |ctx| {
        ctx.ask(Message::nothing())?;
        completed(ctx)
    }),
    ("tck-auth-required", |ctx| {
        ctx.ask_auth("Authenticate, please")?;
        completed(ctx)
    }),
    ("tck-reject-task", |ctx| ctx.reject("rejected")),
    ("tck-stream-001", |ctx| streamed(ctx, Part::text("Stream hello from TCK"))),
    ("tck-stream-002", |ctx| ctx.reply("Stream message-only response")),
    ("tck-stream-003", |ctx| streamed(ctx, Part::text("Stream task lifecycle"))),
    ("tck-stream-ordering-001", |ctx| streamed(ctx, Part::text("Ordered output"))),
    ("tck-stream-artifact-text", |ctx| streamed(ctx, Part::text("Streamed text content"))),
    ("tck-stream-artifact-file", |ctx| streamed(ctx, file())),
    ("tck-stream-artifact-chunked", |ctx| {
        ctx.say("works")?;
        ctx.append(Artifact::text("chunks", "chunk-1 "), false)?;
        ctx.append(Artifact::text("chunks", "chunk-2"), true)?;
        completed(ctx)
    }),
];

impl Agent for KitGuest {
    fn card() -> Card {
        Card::new("kit-guest", "Plays the kit's scenarios", env!("CARGO_PKG_VERSION"))
            .input("application/json")
            .skill("tck", "Conformance", "Plays the scenarios of the A2A kit", &["tck"])
            .modes(&["text/plain"], &["text/plain"])
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        let id = &task.message.id;
        match SCENARIOS.iter().find(|(prefix, _)| id.starts_with(prefix)) {
            Some((_, scenario)) => scenario(ctx),
            None => completed_with(ctx, format!("Unhandled messageId prefix: {id}")),
        }
    }
}
export!(KitGuest, manifest = "../manifest.toml");

fn file() -> Part {
    Part::file("output.txt", "text/plain", b"tck".to_vec())
}

fn completed(_: &Context) -> Run {
    Ok(TaskStatus { state: TaskState::Completed, message: None, metadata: None }.into())
}

fn completed_with(_: &Context, text: impl Into<String>) -> Run {
    let text: String = text.into();
    Ok(TaskStatus::saying(TaskState::Completed, Message::from(text.as_str())).into())
}

fn made(ctx: &Context, part: Part) -> Run {
    ctx.artifact(Artifact::new("output", vec![part]))?;
    completed(ctx)
}

fn streamed(ctx: &Context, part: Part) -> Run {
    ctx.say("works")?;
    made(ctx, part)
}

/// Works for this time, unless the task is cancelled before.
fn work(ctx: &Context, time: Duration) -> Result<(), Failure> {
    ctx.say("works")?;
    ctx.wait(&[Source::Timer(&Timer::every(time))], None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_sdk::testing::{ScriptedHost, task};

    #[test]
    fn message_id_prefix_selects_scenario() {
        let play = |id: &str| {
            let host = ScriptedHost::new();
            let mut task = task("hi");
            task.message.id = id.to_owned();
            format!("{:?}", KitGuest::run(&host.context(), &task))
        };
        assert!(play("tck-complete-task-1").contains("Hello from TCK"));
        assert!(play("tck-message-response").contains("Direct message response"));
        assert!(play("another").contains("Unhandled messageId prefix: another"));
    }

    #[test]
    fn no_prefix_hides_a_later_one() {
        for (n, (prefix, _)) in SCENARIOS.iter().enumerate() {
            let hides = |(later, _): &&(&str, Scenario)| later.starts_with(prefix);
            assert_eq!(SCENARIOS[n + 1..].iter().find(hides).map(|it| it.0), None, "{prefix}");
        }
    }
}
