//! Behaviours that hold resources, or request too many of them.

use crate::input::{argument, number, tell};
use a2a_hub_sdk::{Need, Part, PartContent, Source, prelude::*};
use std::time::Duration;

/// `log TEXT`: writes TEXT to the log.
pub(crate) fn log(ctx: &Context, task: &Task) -> Run {
    ctx.log(Level::Info, argument(task));
    ctx.done("logged")
}

/// `deep LEVELS`: emits JSON with this nesting.
pub(crate) fn deep(ctx: &Context, task: &Task) -> Run {
    let levels = number(task)?;
    let json = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let part = Part::new(PartContent::Data(json));
    let told = ctx.artifact(Artifact::new("deep", vec![part]));
    tell(ctx, told.map(|()| format!("{levels} levels")))
}

/// Asks with the longest possible timeout.
pub(crate) fn patient(ctx: &Context, _: &Task) -> Run {
    let answer = ctx.ask_within(Need::Input, "take your time", Some(Duration::MAX));
    tell(ctx, answer.map(|answer| answer.text()))
}

/// `hoard-questions N`: asks N questions while all earlier ones are open.
pub(crate) fn questions(ctx: &Context, task: &Task) -> Run {
    let mut open = Vec::new();
    for _ in 0..number(task)? {
        match ctx.pose(Need::Input, "well?", None) {
            Ok(question) => open.push(question),
            Err(failure) => {
                let count = open.len();
                drop(open);
                ctx.say(format!("{count} were open"))?;
                return tell(ctx, Err(failure));
            }
        }
    }
    ctx.done(format!("{} are open", open.len()))
}

/// `hoard-naps N`: opens N clocks at once.
pub(crate) fn naps(ctx: &Context, task: &Task) -> Run {
    let held = clocks(number(task)?);
    ctx.done(format!("{held} clocks"))
}

#[cfg(target_arch = "wasm32")]
fn clocks(count: usize) -> usize {
    let later = wasip2::clocks::monotonic_clock::subscribe_duration;
    (0..count).map(|_| later(u64::MAX)).collect::<Vec<_>>().len()
}

#[cfg(not(target_arch = "wasm32"))]
fn clocks(count: usize) -> usize {
    count
}

/// `wait-many N`: waits for one program by N handles.
pub(crate) fn wait_many(ctx: &Context, task: &Task) -> Run {
    let child = ctx.spawn(Command::new("sleep").arg("0.1"))?;
    let sources: Vec<_> = (0..number(task)?).map(|_| Source::Child(&child)).collect();
    tell(ctx, ctx.wait(&sources, None).map(|ready| format!("{} are ready", ready.len())))
}

/// `hoard-values N`: stores N empty values under short names.
pub(crate) fn values(ctx: &Context, task: &Task) -> Run {
    for n in 0..number(task)? {
        if let Err(failure) = ctx.remember(&format!("{n:x}"), "") {
            ctx.say(format!("{n} values"))?;
            return tell(ctx, Err(failure));
        }
    }
    ctx.done("all of them")
}
