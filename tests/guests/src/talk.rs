//! Behaviours that send messages, or end in a certain way.

use crate::input::{argument, number, tell};
use a2a_hub_sdk::{
    Need, Part, Source, TaskState, TaskStatus, Timer, prelude::*, serde_json, serde_json::json,
};
use std::{thread, time::Duration};

/// Asks the client, and repeats the answer.
pub(crate) fn ask(ctx: &Context, _: &Task) -> Run {
    let answer = ctx.ask("what do you say?")?;
    ctx.done(answer.text())
}

/// Asks the client without a text.
pub(crate) fn ask_silently(ctx: &Context, _: &Task) -> Run {
    let answer = ctx.ask(Message::nothing())?;
    ctx.done(answer.text())
}

/// Reports its progress twice, and fails with a fix.
pub(crate) fn progress(ctx: &Context, _: &Task) -> Run {
    ctx.progress(40, "compiles")?;
    ctx.progress(80, "")?;
    ctx.fail_with_fix("not_logged_in", "nobody is logged in", "guest login")
}

/// `ring MS`: asks, and reports how often a timer fired before the answer.
pub(crate) fn ring(ctx: &Context, task: &Task) -> Run {
    let period = Duration::from_millis(number(task)?.try_into().unwrap_or(u64::MAX));
    let question = ctx.pose(Need::Input, "shall it stop?", None)?;
    let (mut timer, mut rang) = (Timer::every(period), 0);
    while !ctx.wait(&[Source::Timer(&timer), Source::Question(&question)], None)?.contains(&1) {
        timer.rewind();
        rang += 1;
        ctx.append(Artifact::text("rings", format!("rang {rang}\n")), false)?;
    }
    ctx.done(format!("{} after {rang}", question.answer()?.text()))
}

/// Asks the client to authenticate.
pub(crate) fn auth(ctx: &Context, _: &Task) -> Run {
    let answer = ctx.ask_auth("who are you?")?;
    ctx.done(answer.text())
}

/// Asks for permission, and repeats the answer.
pub(crate) fn permit(ctx: &Context, _: &Task) -> Run {
    let kind = json!({ "question": { "kind": "permission" } });
    let answer = ctx.ask(Message::from("may I?").with_metadata(&kind))?;
    ctx.done(answer.text())
}

/// Repeats the message as the agent gets it, which begins with the hub's note.
pub(crate) fn heard(ctx: &Context, task: &Task) -> Run {
    ctx.done(task.text())
}

/// Answers with a message and without a task.
pub(crate) fn reply(ctx: &Context, task: &Task) -> Run {
    ctx.reply(argument(task))
}

/// `reply-late MS TEXT`: answers with a message after a pause.
#[expect(clippy::disallowed_methods, reason = "a guest has a thread and a time of its own")]
pub(crate) fn reply_late(ctx: &Context, task: &Task) -> Run {
    let argument = argument(task);
    let (pause, text) = argument.split_once(' ').unwrap_or((&argument, ""));
    let pause = pause.parse().map_err(|_| Failure::Invalid(format!("`{pause}` is no pause")))?;
    thread::sleep(Duration::from_millis(pause));
    ctx.reply(text)
}

/// Emits an artifact with every kind of part, and answers with a message that has every member.
pub(crate) fn parts(ctx: &Context, task: &Task) -> Run {
    let facts = serde_json::json!({ "kind": "fact" });
    let all = Artifact::text("parts", "a text")
        .with(Part::file("a.bin", "application/octet-stream", vec![0, 255]))
        .with(Part::url("https://example.com/a.png").named("a.png").of_type("image/png"))
        .with(Part::data(&serde_json::json!({ "n": [1, null] })).with_metadata(&facts))
        .named("Parts")
        .described("one of each")
        .with_metadata(&facts)
        .with_extension("urn:a2a-hub:test");
    ctx.artifact(all)?;
    let message = Message::from("made them")
        .with_metadata(&facts)
        .with_extension("urn:a2a-hub:test")
        .about(&task.id);
    Ok(TaskStatus::saying(TaskState::Completed, message).with_metadata(&facts).into())
}

/// Emits a text in two chunks, and replaces it by another.
pub(crate) fn replace(ctx: &Context, _: &Task) -> Run {
    ctx.append(Artifact::text("text", "a "), false)?;
    ctx.append(Artifact::text("text", "draft"), false)?;
    ctx.artifact(Artifact::text("text", "the text"))?;
    ctx.done("said it")
}

/// Rejects the task.
pub(crate) fn reject(ctx: &Context, _: &Task) -> Run {
    ctx.reject("not today")
}

/// Fails for a known reason.
pub(crate) fn fail(ctx: &Context, _: &Task) -> Run {
    ctx.fail("told-to", "failed, as told")
}

/// Completes the task without a message.
pub(crate) fn no_outcome_message(_: &Context, _: &Task) -> Run {
    Ok(TaskStatus { state: TaskState::Completed, message: None, metadata: None }.into())
}

/// Reports the earlier messages of this context, one per line.
pub(crate) fn history(ctx: &Context, task: &Task) -> Run {
    ctx.done(task.history.iter().map(Message::text).collect::<Vec<_>>().join("\n"))
}

/// `tick N MS`: emits a chunk of an artifact every MS milliseconds, N times, by the guest's own
/// clock and without a program.
#[expect(clippy::disallowed_methods, reason = "a guest has a thread and a time of its own")]
pub(crate) fn tick(ctx: &Context, task: &Task) -> Run {
    let argument = argument(task);
    let numbers: Vec<u64> = argument.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [times, pace] = numbers[..] else {
        return Err(Failure::Invalid(format!("`{argument}` is not a number and a pace")));
    };
    for n in 1..=times {
        ctx.append(Artifact::text("tick", format!("{n}\n")), n == times)?;
        thread::sleep(Duration::from_millis(pace));
    }
    ctx.done(format!("ticked {times} times"))
}

/// `spell TEXT`: emits an artifact letter by letter, without marking the last chunk.
pub(crate) fn spell(ctx: &Context, task: &Task) -> Run {
    for letter in argument(task).chars() {
        ctx.append(Artifact::text("spelt", letter), false)?;
    }
    ctx.done("spelt")
}

/// `leak TEXT`: emits TEXT in every possible way.
pub(crate) fn leak(ctx: &Context, task: &Task) -> Run {
    let text = argument(task);
    ctx.log(Level::Warn, &text);
    ctx.say(&text)?;
    let (one, other) = text.split_at(text.len() / 2);
    let facts = json!({ &text: [&text] });
    let parts = vec![Part::text(one), Part::text(other), Part::data(&facts)];
    let message = Message { id: text.clone(), ..Message::agent(parts) };
    let message = message.with_metadata(&facts).with_extension(&text).about(&text);
    ctx.emit([TaskStatus { message: Some(message), ..TaskStatus::new(TaskState::Working, "") }])?;
    let file = Part::file(&text, &text, text.clone().into_bytes()).with_metadata(&facts);
    let artifact = Artifact::text(&text, &text).named(&text).described(&text).with(file);
    ctx.artifact(artifact.with_metadata(&facts).with_extension(&text))?;
    ctx.ask(text.as_str())?;
    Ok(TaskStatus::new(TaskState::Failed, &text).with_metadata(&facts).into())
}

/// Reports the terms of the request: active extensions, and accepted media types.
pub(crate) fn terms(ctx: &Context, _: &Task) -> Run {
    let terms = [ctx.extensions(), ctx.accepted_output_modes()];
    ctx.done(terms.map(|all| all.join(", ")).join("; "))
}

/// Tries to end the task by an event instead of returning.
pub(crate) fn final_by_emit(ctx: &Context, _: &Task) -> Run {
    let emitted = ctx.emit([TaskStatus::new(TaskState::Completed, "done before the end")]);
    tell(ctx, emitted.map(|()| "emitted".to_owned()))
}

/// Returns a status that says that it is still working.
pub(crate) fn open_outcome(_: &Context, _: &Task) -> Run {
    Ok(TaskStatus::new(TaskState::Working, "still at it").into())
}

/// Emits invalid JSON.
pub(crate) fn bad_json(ctx: &Context, _: &Task) -> Run {
    let mut status = TaskStatus::new(TaskState::Working, "with bad metadata");
    status.metadata = Some("{not json".to_owned());
    tell(ctx, ctx.emit([status]).map(|()| "emitted".to_owned()))
}
