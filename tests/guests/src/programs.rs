//! Behaviours that run programs.

use crate::input::{argument, number, tell};
use a2a_hub_sdk::{Child, Exit, ExitStatus, Need, Source, WaitEvent, prelude::*};
use std::time::Duration;

/// Interval of the slow behaviours, in seconds.
const PACE: &str = "0.1";

/// Duration in seconds, longer than any test.
const LONG: &str = "600";

/// Default last number of `count`.
const COUNT: usize = 20;

/// `sleep SECONDS`: runs the program `sleep`.
pub(crate) fn sleep(ctx: &Context, task: &Task) -> Run {
    let slept = nap(ctx, &argument(task));
    tell(ctx, slept.map(|exit| how(&exit)))
}

/// `count [N]`: emits one number at a time, slowly.
pub(crate) fn count(ctx: &Context, task: &Task) -> Run {
    let last = number(task).unwrap_or(COUNT);
    for n in 1..=last {
        ctx.append(Artifact::text("count", format!("{n}\n")), n == last)?;
        nap(ctx, PACE)?;
    }
    ctx.done(format!("counted to {last}"))
}

/// `sh TEXT`: runs TEXT in a shell, and emits its output line by line.
pub(crate) fn sh(ctx: &Context, task: &Task) -> Run {
    let shell = Command::new("sh").args(["-c".to_owned(), argument(task)]);
    let ran = ctx
        .run_lines(shell, |line| ctx.append(Artifact::text("output", format!("{line}\n")), false));
    tell(ctx, ran.map(|exit| how(&exit)))
}

/// `Review of your changes …`: emits the message, and runs the script `on-review` of its directory,
/// if it has one.
pub(crate) fn reviewed(ctx: &Context, task: &Task) -> Run {
    ctx.append(Artifact::text("review", task.text()), false)?;
    let script = "if [ -f on-review ]; then . ./on-review; fi";
    let ran = ctx.run_lines(Command::new("sh").args(["-c", script]), |_| Ok(()));
    tell(ctx, ran.map(|exit| how(&exit)))
}

/// `shells TEXT`: runs each line of TEXT in a separate shell, one after the other, and reports the
/// exit of the last one.
pub(crate) fn shells(ctx: &Context, task: &Task) -> Run {
    let mut last = Ok("none".to_owned());
    for line in argument(task).lines() {
        let shell = Command::new("sh").args(["-c", line]);
        let said = |line: &str| ctx.append(Artifact::text("output", format!("{line}\n")), false);
        last = ctx.run_lines(shell, said).map(|exit| how(&exit));
    }
    tell(ctx, last)
}

/// `sh-and-put TEXT`: runs TEXT in a shell, then writes a file, and reports its path.
pub(crate) fn sh_and_put(ctx: &Context, task: &Task) -> Run {
    ctx.put_file("before", &[])?;
    let shell = Command::new("sh").args(["-c".to_owned(), argument(task)]);
    ctx.run_lines(shell, |_| Ok(()))?;
    tell(ctx, ctx.put_file("after", b"written by the hub"))
}

/// `exec PROGRAM [ARGS]`: runs any program, granted or not.
pub(crate) fn exec(ctx: &Context, task: &Task) -> Run {
    let argument = argument(task);
    let mut words = argument.split_whitespace();
    let program = words.next().unwrap_or("never-granted");
    let mut output = String::new();
    let ran = ctx.run_lines(Command::new(program).args(words), |line| {
        output.push_str(line);
        Ok(())
    });
    tell(ctx, ran.map(|exit| format!("{}: {output}", how(&exit))))
}

/// `spawn-many N`: starts N programs at once.
pub(crate) fn spawn_many(ctx: &Context, task: &Task) -> Run {
    let wanted = number(task)?;
    let mut children = Vec::new();
    for _ in 0..wanted {
        match ctx.spawn(Command::new("sleep").arg(LONG)) {
            Ok(child) => children.push(child),
            Err(failure) => {
                ctx.say(format!("{} started", children.len()))?;
                return tell(ctx, Err(failure));
            }
        }
    }
    ctx.done(format!("{} started", children.len()))
}

/// Waits for the first of two programs, and reports which it was.
pub(crate) fn wait(ctx: &Context, _: &Task) -> Run {
    let slow = ctx.spawn(Command::new("sleep").arg(LONG))?;
    let quick = ctx.spawn(Command::new("sleep").arg(PACE))?;
    let first = first_of(ctx, &[&slow, &quick]);
    ctx.done(match first {
        Some(0) => "the slow one",
        Some(_) => "the quick one",
        None => "neither",
    })
}

/// `pose SECONDS QUESTION`: asks the client while a program sleeps, and reports which came first.
pub(crate) fn pose(ctx: &Context, task: &Task) -> Run {
    let argument = argument(task);
    let (seconds, question) = argument.split_once(' ').unwrap_or((&argument, "which one?"));
    let child = ctx.spawn(Command::new("sleep").arg(seconds))?;
    let open = ctx.pose(Need::Input, question, None)?;
    match ctx.first_of(&open, &child)? {
        WaitEvent::Answer => tell(ctx, open.answer().map(|answer| answer.text())),
        WaitEvent::Output => {
            drop(open);
            ctx.say("nobody need answer")?;
            tell(ctx, child.wait().map(|exit| how(&exit)))
        }
    }
}

/// `retire SECONDS`: ends while a detached program sleeps, with a longer time than allowed.
pub(crate) fn retire(ctx: &Context, task: &Task) -> Run {
    ctx.spawn(Command::new("sleep").arg(argument(task)))?.retire(Duration::from_secs(60));
    ctx.done("it may sleep on")
}

/// `fingerprint PROGRAM`: reports the fingerprint of the program's file.
pub(crate) fn fingerprint(ctx: &Context, task: &Task) -> Run {
    tell(ctx, ctx.fingerprint(&argument(task)))
}

/// Ignores cancellation.
pub(crate) fn ignore_cancel(ctx: &Context, _: &Task) -> Run {
    ctx.say("nobody stops me")?;
    loop {
        match nap(ctx, PACE) {
            Ok(_) | Err(Failure::Cancelled) => {}
            Err(failure) => return Err(failure),
        }
    }
}

fn nap(ctx: &Context, seconds: &str) -> Result<Exit, Failure> {
    ctx.run_lines(Command::new("sleep").arg(seconds), |_| Ok(()))
}

fn first_of(ctx: &Context, children: &[&Child]) -> Option<usize> {
    let sources: Vec<_> = children.iter().map(|child| Source::Child(child)).collect();
    ctx.wait(&sources, Some(Duration::from_secs(10))).ok()?.first().copied()
}

/// Exit such as `exit 0`, with the output on standard error.
fn how(Exit { status, stderr }: &Exit) -> String {
    let how = match status {
        ExitStatus::Code(code) => format!("exit {code}"),
        ExitStatus::Signal(signal) => format!("signal {signal}"),
    };
    if stderr.is_empty() { how } else { format!("{how}: {stderr}") }
}
