//! Requests to the agent `flow` itself: check, draw, test or run the flow file in a message.
//!
//! A text is a flow file to check. JSON data has the members `flow` (text of the file) and `do`:
//! `check`, `mermaid`, `test` (with `fakes`) or `run` (with `input` or `text`). Requests about the
//! record of agents are those of every flow.

use a2a_hub_coordination::flow::{Definition, Needs, Simulation};
use a2a_hub_sdk::prelude::*;
use a2a_hub_sdk::serde_json::Value;

use crate::{
    origin::is_child,
    problems::list,
    record,
    run::{begin, input_of_text, parsed},
};

/// Words of the member `do`.
const DO: [&str; 4] = ["check", "mermaid", "test", "run"];

/// Answers a request.
pub(crate) fn answer(ctx: &Context, task: &Task) -> Run {
    if let Some(answer) = record::answer(ctx, task, |_| false) {
        return answer;
    }
    let Some(Value::Object(data)) = task.message.data() else {
        return parsed(ctx, &task.text(), check);
    };
    let text = |name: &str| data.get(name).and_then(Value::as_str).unwrap_or_default();
    let (flow, word) = (text("flow"), text("do"));
    match word {
        "check" | "" => parsed(ctx, flow, check),
        "mermaid" => parsed(ctx, flow, |ctx, definition| ctx.done(definition.mermaid())),
        "test" => parsed(ctx, flow, |ctx, definition| test(ctx, &definition, text("fakes"))),
        // The grants of the agent `flow` would otherwise count for every agent that may call it.
        "run" if is_child(task) => ctx.reject(
            "Run a flow file: another agent asks, and only a client may. Put the file into the folder \
             `flows` of the data directory, and call the flow by its name.",
        ),
        "run" => parsed(ctx, flow, |ctx, definition| {
            // The hub gives these to files that it reads itself.
            let needs = Needs { memory: false, unlisted: false, ..definition.needs() };
            if needs != Needs::default() {
                return ctx.reject(
                    "Run a flow file: a file in a message has no `run`, no `permissions` above `ask`, no [worktree] \
                     (`--worktree` gives it one), and no budget of `depth`, `tokens` or `costUsd`. Put it into the folder `flows` of the data directory; if it is held \
                     back, trust it: `a2a-hub flow trust NAME`.",
                );
            }
            let flow_input = match data.get("input") {
                Some(input) => Ok(input.clone()),
                None => input_of_text(&definition, text("text")),
            };
            begin(ctx, task, definition, flow_input)
        }),
        _ => ctx.reject(format!("`do` is one of {}, and here is `{word}`.", DO.join(", "))),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "`parsed` passes the definition on")]
#[expect(clippy::unnecessary_wraps, reason = "`parsed` passes the result on")]
fn check(_: &Context, definition: Definition) -> Run {
    let count = definition.step_ids().count();
    let steps = if count == 1 { "1 step".to_owned() } else { format!("{count} steps") };
    let mut text = format!("The flow is right: {steps}.");
    if !definition.warnings.is_empty() {
        text.push_str("\nWarnings:\n");
        text.push_str(&list(&definition.warnings));
    }
    // The sandbox does not see the agents; the command line compares the names with the hub's.
    let status = TaskStatus::new(TaskState::Completed, text);
    Ok(Outcome::Status(status.with_metadata(&json!({ "agents": definition.agents() }))))
}

/// Simulates the flow with scripted answers.
fn test(ctx: &Context, definition: &Definition, fakes: &str) -> Run {
    let Simulation { transitions, failures } = match definition.simulate(fakes) {
        Ok(simulation) => simulation,
        Err(problems) => return ctx.fail("invalid_fakes", list(&problems)),
    };
    let transitions = transitions.join("\n");
    if failures.is_empty() {
        return ctx.done(format!("{transitions}\nThe test passed."));
    }
    let failures: Vec<_> = failures.iter().map(|why| format!("- {why}")).collect();
    let text = format!("{transitions}\nThe test failed:\n{}", failures.join("\n"));
    ctx.fail("flow_test_failed", text)
}
