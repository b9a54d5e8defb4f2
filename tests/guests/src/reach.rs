//! Behaviours that reach for the world outside: by a capability, or around all of them.

use crate::{argument, number, tell};
use a2a_hub_sdk::{Part, prelude::*, serde_json::Value};
use std::fs;

/// `remember KEY VALUE`
pub(crate) fn remember(ctx: &Context, task: &Task) -> Run {
    let argument = argument(task);
    let (key, value) = argument.split_once(' ').unwrap_or((&argument, ""));
    tell(ctx, ctx.remember(key, value).map(|()| format!("{key} is {} bytes", value.len())))
}

/// `recall KEY`
pub(crate) fn recall(ctx: &Context, task: &Task) -> Run {
    let value = ctx.recall::<String>(&argument(task));
    tell(ctx, value.map(|value| value.unwrap_or_else(|| "nothing".to_owned())))
}

/// `setting NAME`: what the operator set.
pub(crate) fn setting(ctx: &Context, task: &Task) -> Run {
    ctx.done(ctx.setting(&argument(task)).unwrap_or_else(|| "not set".to_owned()))
}

/// `put NAME TEXT`: a file, and where it is.
pub(crate) fn put(ctx: &Context, task: &Task) -> Run {
    let argument = argument(task);
    let (name, text) = argument.split_once(' ').unwrap_or((&argument, ""));
    tell(ctx, ctx.put_file(name, text.as_bytes()))
}

/// `put-many N`: N empty files of one name.
pub(crate) fn put_many(ctx: &Context, task: &Task) -> Run {
    for n in 0..number(task)? {
        if let Err(failure) = ctx.put_file("many", &[]) {
            ctx.say(format!("{n} files"))?;
            return tell(ctx, Err(failure));
        }
    }
    ctx.done("all of them")
}

/// `put-big N`: one file of N bytes.
pub(crate) fn put_big(ctx: &Context, task: &Task) -> Run {
    tell(ctx, ctx.put_file("big", &vec![b'x'; number(task)?]))
}

/// `put-and-ask NAME`: asks with the file's path, and the file stays while nobody answers.
pub(crate) fn put_and_ask(ctx: &Context, task: &Task) -> Run {
    let path = ctx.put_file(&argument(task), b"kept while I wait")?;
    let answer = ctx.ask(path)?;
    ctx.done(answer.text())
}

/// The names of the agents that this one may call.
pub(crate) fn agents(ctx: &Context, _: &Task) -> Run {
    let names = |cards: Vec<Value>| {
        let ids = cards.iter().map(|card| card["agentId"].as_str().unwrap_or("nameless"));
        ids.collect::<Vec<_>>().join(" ")
    };
    tell(ctx, ctx.agents().map(names))
}

/// `delegate AGENT`: says hi to another agent.
pub(crate) fn delegate(ctx: &Context, task: &Task) -> Run {
    let call = ctx.call(&argument(task), Message::user(vec![Part::text("hi")]));
    tell(ctx, call.and_then(|call| Ok(call.outcome()?.text())))
}

/// `env NAME`: a variable of the hub's environment.
#[expect(
    clippy::disallowed_methods,
    reason = "what it finds here is what the sandbox lets through"
)]
pub(crate) fn env(ctx: &Context, task: &Task) -> Run {
    match std::env::var(argument(task)) {
        Ok(value) => ctx.done(format!("present: {value}")),
        Err(why) => ctx.done(format!("absent: {why}")),
    }
}

/// `read PATH`: a file of the hub's machine.
pub(crate) fn read(ctx: &Context, task: &Task) -> Run {
    match fs::read(argument(task)) {
        Ok(content) => ctx.done(format!("{} bytes", content.len())),
        Err(why) => ctx.done(format!("refused: {why}")),
    }
}
