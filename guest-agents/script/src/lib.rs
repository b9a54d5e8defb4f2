//! Runs one program of a trusted flow file, and reports its output and exit code.
//!
//! The message holds JSON data: `run`, the program and its arguments, and `env`, its variables. The
//! hub refuses callers other than the flow, and commands other than those of its trusted file.

mod output;

use a2a_hub_sdk::prelude::*;
use a2a_hub_sdk::serde_json::Value;
use a2a_hub_sdk::{ExitStatus, Output, TaskState, TaskStatus};

use output::Tail;

/// Added to the number of a signal that ended a program, as shells do.
const SIGNAL: i32 = 128;

/// Runs the programs of flows.
pub struct Script;

impl Agent for Script {
    fn card() -> Card {
        let description = "Runs the programs of trusted flow files; only flows call it";
        Card::new("script", description, env!("CARGO_PKG_VERSION"))
            .inputs(&["application/json"])
            .outputs(&["text/plain", "application/json"])
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        let Some(command) = command(task) else {
            return ctx
                .reject("The message has no program: send `run`, a list of texts, as JSON data.");
        };
        let mut child = ctx.spawn(command)?;
        child.close_stdin();
        let mut tail = Tail::default();
        let status = loop {
            match child.next_output(None)? {
                Output::Stdout(bytes) | Output::Stderr(bytes) => tail.push(&bytes),
                Output::Exited(status) => break status,
            }
        };
        let exit = match status {
            ExitStatus::Code(code) => code,
            ExitStatus::Signal(signal) => SIGNAL + signal,
        };
        let parts = vec![Part::text(tail.into_text()), Part::data(&json!({ "exit": exit }))];
        let message = Some(Message::agent(parts));
        Ok(TaskStatus { message, ..TaskStatus::bare(TaskState::Completed) }.into())
    }
}
export!(Script, manifest = "../manifest.toml");

/// Command of a task's message.
fn command(task: &Task) -> Option<Command> {
    let data = task.message.data()?;
    let words = data.get("run")?.as_array()?;
    let words: Option<Vec<_>> = words.iter().map(|word| word.as_str().map(str::to_owned)).collect();
    let words = words?;
    let (program, args) = words.split_first()?;
    let mut command = Command::new(program).args(args);
    for (name, value) in data.get("env").and_then(Value::as_object).into_iter().flatten() {
        command = command.env(name, value.as_str()?);
    }
    Some(command)
}

#[cfg(test)]
mod tests {
    use a2a_hub_sdk::testing::{ScriptedHost, task};

    use super::*;

    fn outcome(host: &ScriptedHost, data: &Value) -> Outcome {
        let message = Message::user(vec![Part::data(data)]);
        Script::run(&host.context(), &Task { message, ..task("") }).unwrap()
    }

    #[test]
    fn output_and_exit_code_are_reported() {
        let host = ScriptedHost::new();
        host.program("cargo").args(&["test"]).stdout("1 failed\n").stderr("oh\n").exit(101);
        let data = json!({ "run": ["cargo", "test"], "env": { "A2A_INPUT_TASK": "$(x)" } });
        let outcome = outcome(&host, &data);
        assert_eq!(outcome.state(), Some(TaskState::Completed));
        assert_eq!(outcome.text(), "1 failed\noh\n");
        let Outcome::Status(status) = &outcome else { panic!("{outcome:?}") };
        assert_eq!(status.message.as_ref().unwrap().data().unwrap()["exit"], 101);
        assert_eq!(host.spawned()[0].env, [("A2A_INPUT_TASK".to_owned(), "$(x)".to_owned())]);
    }

    #[test]
    fn message_without_command_is_rejected() {
        let host = ScriptedHost::new();
        for data in [
            json!({}),
            json!({ "run": [] }),
            json!({ "run": "rm -r ." }),
            json!({ "run": ["a", 1] }),
        ] {
            assert_eq!(outcome(&host, &data).state(), Some(TaskState::Rejected), "{data}");
        }
        assert!(host.spawned().is_empty());
    }
}
