//! Tests of an agent as its author writes them: natively, against a scripted hub.

use std::time::Duration;

use a2a_hub_sdk::prelude::*;
use a2a_hub_sdk::testing::{ScriptedHost, task};
use a2a_hub_sdk::{Exit, ExitStatus, Need, Part, Source, TaskState, TaskStatus, Update};

/// Lines that `cat` writes, and its exit.
fn cat(host: &ScriptedHost) -> Result<(Vec<String>, Exit), Failure> {
    let mut lines = Vec::new();
    let exit = host.context().run_lines(Command::new("cat"), |line| {
        lines.push(line.to_owned());
        Ok(())
    })?;
    Ok((lines, exit))
}

#[test]
fn lines_are_joined_across_chunks() {
    let host = ScriptedHost::new();
    let text = "\u{feff}grüße\r\n\n\u{feff}zwei\nohne Ende: €\r";
    let program = text.bytes().fold(host.program("cat"), |program, byte| program.stdout([byte]));
    let (lines, exit) = cat(&host).unwrap();
    assert_eq!(lines, ["grüße", "", "\u{feff}zwei", "ohne Ende: €"]);
    assert!(exit.success());
    assert!(program.stdin_closed());
}

#[test]
fn line_of_megabytes_is_read() {
    let host = ScriptedHost::new();
    let long = "x".repeat(5_000_000);
    let chunks = long.as_bytes().chunks(65_536);
    chunks.fold(host.program("cat"), |program, chunk| program.stdout(chunk)).stdout("\nnext\n");
    assert_eq!(cat(&host).unwrap().0, [long, "next".into()]);
}

#[test]
fn endless_line_is_refused() {
    let host = ScriptedHost::new();
    let chunk = [b'x'; 65_536];
    (0..257).fold(host.program("cat"), |program, _| program.stdout(chunk));
    assert!(matches!(cat(&host), Err(Failure::Exhausted(_))));
}

#[test]
fn tail_of_standard_error_is_kept() {
    let host = ScriptedHost::new();
    host.program("cat").stderr("x".repeat(9_000)).stderr("the reason\n").exit(3);
    let (_, exit) = cat(&host).unwrap();
    assert_eq!(exit.status, ExitStatus::Code(3));
    assert!(exit.stderr.ends_with("the reason") && exit.stderr.len() < 8_200);
}

#[test]
fn silent_program_times_out_and_continues() {
    let host = ScriptedHost::new();
    let program =
        host.program("chat").stdout("hel").pauses().stdout("lo\n").reads().stdout("bye\n");
    let mut child = host.context().spawn(Command::new("chat")).unwrap();
    let soon = Some(Duration::from_millis(30));
    assert_eq!(child.next_line(soon), Err(Failure::Timeout));
    assert_eq!(child.next_line(soon), Ok(Some("hello".into())));
    assert_eq!(child.next_line(soon), Err(Failure::Timeout));
    assert!(matches!(child.next_line(None), Err(Failure::Internal(_))));
    child.write_line("good night").unwrap();
    assert_eq!(child.next_line(soon), Ok(Some("bye".into())));
    assert_eq!(child.next_line(soon), Ok(None));
    assert_eq!(program.stdin(), "good night\n");
}

#[test]
fn killed_program_reports_signal() {
    let host = ScriptedHost::new();
    host.program("spin").stdout("1\n2\n").stdout("3\n");
    let mut child = host.context().spawn(Command::new("spin")).unwrap();
    assert_eq!(child.next_line(None), Ok(Some("1".into())));
    child.kill();
    assert_eq!(child.wait().unwrap().status, ExitStatus::Signal(15));
}

#[test]
fn short_deltas_are_batched() {
    let host = ScriptedHost::new();
    let ctx = host.context();
    let mut stream = ctx.text_stream("answer");
    stream.push("first").unwrap();
    assert_eq!(host.events().len(), 1);
    for _ in 0..51 {
        stream.push("0123456789").unwrap();
    }
    assert_eq!(host.events().len(), 1);
    stream.push("0123456789").unwrap();
    assert_eq!(host.events().len(), 2);
    stream.push("tail").unwrap();
    assert!(stream.is_waiting());
    stream.flush().unwrap();
    assert!(host.artifact("answer").unwrap().ends_with("9tail"));
    stream.finish("the whole").unwrap();
    assert_eq!(host.artifact("answer").unwrap(), "the whole");
}

#[test]
fn restarted_stream_replaces_sent_text() {
    let host = ScriptedHost::new();
    let ctx = host.context();
    let mut stream = ctx.text_stream("answer");
    stream.push("wrong").unwrap();
    stream.restart();
    stream.push("right").unwrap();
    assert_eq!(host.artifact("answer").unwrap(), "right");
}

#[test]
fn without_subscriber_only_whole_artifact_is_sent() {
    let host = ScriptedHost::new();
    let ctx = host.silent_context();
    let mut stream = ctx.text_stream("answer");
    stream.push("delta").unwrap();
    stream.flush().unwrap();
    stream.finish("whole").unwrap();
    assert_eq!(host.events().len(), 1);
}

/// Agent that asks, stores its answer, and counts until it is cancelled.
struct Counter;

impl Agent for Counter {
    fn card() -> Card {
        Card::new("counter", "Counts", "0.1.0")
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        if task.text() == "ask" {
            let answer = ctx.ask(Message::from("how far?").with(Part::data(&[1, 2])))?;
            return ctx.done(format!("as far as {}", answer.text()));
        }
        let count = ctx.recall::<u32>("count")?.unwrap_or(0) + 1;
        ctx.remember("count", &count)?;
        loop {
            ctx.say(format!("{count}"))?;
        }
    }
}
export!(Counter);

#[test]
fn question_is_asked_and_answered() {
    let host = ScriptedHost::new();
    host.answer("ten");
    let outcome = host.run::<Counter>("ask").unwrap();
    assert_eq!(
        (outcome.state(), outcome.text()),
        (Some(TaskState::Completed), "as far as ten".into())
    );
    let (need, prompt) = host.asked().remove(0);
    assert_eq!((need, prompt.text().as_str()), (Need::Input, "how far?"));
    assert_eq!(prompt.data(), Some(serde_json::json!([1, 2])));
}

#[test]
fn cancelled_run_fails_but_keeps_memory() {
    let host = ScriptedHost::new();
    host.cancel_after(3);
    assert_eq!(host.run::<Counter>("go"), Err(Failure::Cancelled));
    assert_eq!(host.said(), ["1", "1", "1"]);
    let ctx = host.context();
    assert_eq!(ctx.remembered("c"), Ok(vec!["count".to_owned()]));
    assert_eq!(ctx.recall::<String>("count"), Ok(None), "another shape counts as none");
    ctx.forget("count").unwrap();
    assert_eq!(ctx.recall::<u32>("count"), Ok(None));
}

#[test]
fn failure_has_machine_readable_reason() {
    let ctx = ScriptedHost::new().context();
    let expected = TaskStatus::new(TaskState::Failed, "sorry")
        .with_metadata(&serde_json::json!({ "reason": "no_luck" }));
    assert_eq!(ctx.fail("no_luck", "sorry"), Ok(Outcome::Status(expected)));
}

#[test]
fn wait_covers_agent_and_program() {
    let host = ScriptedHost::new();
    host.program("idle").reads();
    host.agent("echo", vec![Update::Finished(Outcome::completed("hi"))]);
    let ctx = host.context();
    let child = ctx.spawn(Command::new("idle")).unwrap();
    let call = ctx.call("echo", "hi").unwrap();
    assert_eq!(ctx.wait(&[Source::Child(&child), Source::Call(&call)], None).unwrap(), [1]);
    assert_eq!(call.outcome().unwrap().text(), "hi");
}

#[test]
fn unscripted_calls_are_denied() {
    let host = ScriptedHost::new();
    let ctx = host.context();
    assert!(matches!(ctx.spawn(Command::new("rm")), Err(Failure::Denied(_))));
    assert!(matches!(ctx.ask("really?"), Err(Failure::Denied(_))));
    assert_eq!(task("two\nlines").text(), "two\nlines");
}

#[test]
fn workspace_files_are_read_written_listed() {
    let host = ScriptedHost::new();
    let ctx = host.context();
    assert!(matches!(ctx.workspace().read("README.md"), Err(Failure::Denied(_))));
    host.workspace(&[("README.md", "hello"), ("src/a.rs", "")]);
    assert_eq!(ctx.workspace().read("/workspace/README.md").unwrap(), "hello");
    ctx.workspace().write("notes/today.md", "milk").unwrap();
    assert_eq!(host.workspace_file("notes/today.md").as_deref(), Some("milk"));
    assert_eq!(ctx.workspace().list("").unwrap(), ["README.md", "notes/", "src/"]);
    assert_eq!(ctx.workspace().list("src").unwrap(), ["a.rs"]);
    assert!(matches!(ctx.workspace().read("other.md"), Err(Failure::Invalid(_))));
    assert!(matches!(ctx.workspace().read("../secret"), Err(Failure::Invalid(_))));
    host.read_only_workspace();
    assert!(matches!(ctx.workspace().write("x", "y"), Err(Failure::Denied(_))));
}
