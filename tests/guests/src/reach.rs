//! Behaviours that access the world outside: by a capability, or bypassing them.

use crate::input::{argument, number, tell};
use a2a_hub_sdk::{
    AgentQuery, CallOptions, ChildTask, FoundAgent, FoundAgents, Part, Source, TaskState, Tool,
    Update, WorktreeChanges,
    prelude::*,
    serde_json::{self, Value},
};
use std::{fs, thread, time::Duration};

/// `remember KEY VALUE`: stores a value.
pub(crate) fn remember(ctx: &Context, task: &Task) -> Run {
    let argument = argument(task);
    let (key, value) = argument.split_once(' ').unwrap_or((&argument, ""));
    tell(ctx, ctx.remember(key, value).map(|()| format!("{key} is {} bytes", value.len())))
}

/// `recall KEY`: reads a value.
pub(crate) fn recall(ctx: &Context, task: &Task) -> Run {
    let value = ctx.recall::<String>(&argument(task));
    tell(ctx, value.map(|value| value.unwrap_or_else(|| "nothing".to_owned())))
}

/// `setting NAME`: reports a setting of the operator.
pub(crate) fn setting(ctx: &Context, task: &Task) -> Run {
    ctx.done(ctx.setting(&argument(task)).unwrap_or_else(|| "not set".to_owned()))
}

/// `put NAME TEXT`: writes a file, and reports its path.
pub(crate) fn put(ctx: &Context, task: &Task) -> Run {
    let argument = argument(task);
    let (name, text) = argument.split_once(' ').unwrap_or((&argument, ""));
    tell(ctx, ctx.put_file(name, text.as_bytes()))
}

/// `put-many N`: writes N empty files with the same name.
pub(crate) fn put_many(ctx: &Context, task: &Task) -> Run {
    for n in 0..number(task)? {
        if let Err(failure) = ctx.put_file("many", &[]) {
            ctx.say(format!("{n} files"))?;
            return tell(ctx, Err(failure));
        }
    }
    ctx.done("all of them")
}

/// `put-big N`: writes one file of N bytes.
pub(crate) fn put_big(ctx: &Context, task: &Task) -> Run {
    tell(ctx, ctx.put_file("big", &vec![b'x'; number(task)?]))
}

/// `put-and-ask NAME`: asks with the file's path; the file exists until the answer.
pub(crate) fn put_and_ask(ctx: &Context, task: &Task) -> Run {
    let path = ctx.put_file(&argument(task), b"kept while I wait")?;
    let answer = ctx.ask(path)?;
    ctx.done(answer.text())
}

/// Reports the tools that it may call, one per line.
pub(crate) fn tools(ctx: &Context, _: &Task) -> Run {
    let line = |tool: &Tool| {
        let said = tool.description.as_deref().unwrap_or_default();
        format!("{}:{} {said} {}\n", tool.server, tool.name, tool.input_schema)
    };
    tell(ctx, ctx.tools().map(|tools| tools.iter().map(line).collect::<String>()))
}

/// `tool SERVER:NAME [MS] [JSON]`: calls a tool, and reports its result.
pub(crate) fn tool(ctx: &Context, task: &Task) -> Run {
    let argument = argument(task);
    let (tool, rest) = argument.split_once(' ').unwrap_or((&argument, ""));
    let (server, name) = tool.split_once(':').unwrap_or((tool, ""));
    let (ms, json) = rest.split_once(' ').unwrap_or((rest, "{}"));
    let within = ms.parse().ok().map(Duration::from_millis);
    let arguments = serde_json::from_str(json).unwrap_or_default();
    let called = ctx.call_tool_within(server, name, &arguments, within);
    tell(ctx, called.map(|result| format!("{:?} {}", result.is_error, result.text())))
}

/// Reports the names of the agents that it may call.
pub(crate) fn agents(ctx: &Context, _: &Task) -> Run {
    let names = |cards: Vec<Value>| {
        let ids = cards.iter().map(|card| card["agentId"].as_str().unwrap_or("nameless"));
        ids.collect::<Vec<_>>().join(" ")
    };
    tell(ctx, ctx.agents().map(names))
}

/// `find QUERY`: searches for agents by JSON or a text, and reports each with its score and
/// reasons.
pub(crate) fn find(ctx: &Context, task: &Task) -> Run {
    let told = |found: FoundAgents| {
        let one = |agent: &FoundAgent| {
            let why: Vec<_> = agent.why.iter().map(|why| why.what.as_str()).collect();
            format!("{} {} {}", agent.id, agent.score, why.join(","))
        };
        found.agents.iter().map(one).collect::<Vec<_>>().join(" ")
    };
    let argument = argument(task);
    let query = serde_json::from_str(&argument).unwrap_or_else(|_| AgentQuery::from(argument));
    tell(ctx, ctx.find(query).map(told))
}

/// `delegate AGENT`: sends "hi" to another agent.
pub(crate) fn delegate(ctx: &Context, task: &Task) -> Run {
    let call = ctx.call(&argument(task), Message::user(vec![Part::text("hi")]));
    tell(ctx, call.and_then(|call| Ok(call.outcome()?.text())))
}

/// `call AGENT TEXT`: calls another agent, and reports its answer.
pub(crate) fn call(ctx: &Context, task: &Task) -> Run {
    let told = argument(task);
    let (agent, text) = told.split_once(' ').unwrap_or((&told, ""));
    let call = ctx.call(agent, Message::user(vec![Part::text(text)]))?;
    ctx.done(format!("{} said: {}", agent, call.outcome()?.text()))
}

/// `call-both AGENT TEXT`: calls another agent twice at once, and reports which call ended first.
pub(crate) fn call_both(ctx: &Context, task: &Task) -> Run {
    let told = argument(task);
    let (agent, text) = told.split_once(' ').unwrap_or((&told, ""));
    let make = |key: &str| {
        let options = CallOptions::new().key(key).timeout(Duration::from_secs(60));
        ctx.call_with(agent, Message::user(vec![Part::text(text)]), &options)
    };
    let calls = [make("one")?, make("two")?];
    let mut ended = [false; 2];
    while ended != [true; 2] {
        let left: Vec<_> = (0..2).filter(|&at| !ended[at]).collect();
        let sources: Vec<_> = left.iter().map(|&at| Source::Call(&calls[at])).collect();
        for ready in ctx.wait(&sources, None)? {
            let at = left[ready];
            ended[at] |= matches!(calls[at].next(None)?, Update::Finished(_));
        }
    }
    let told = |child: ChildTask| format!("{} {:?}", child.key.unwrap_or_default(), child.state);
    ctx.done(ctx.children()?.into_iter().map(told).collect::<Vec<_>>().join(", "))
}

/// `call-and-drop AGENT TEXT`: calls another agent, drops the call, and reports the child's state.
#[expect(clippy::disallowed_methods, reason = "a guest has a thread and a time of its own")]
pub(crate) fn call_and_drop(ctx: &Context, task: &Task) -> Run {
    let told = argument(task);
    let (agent, text) = told.split_once(' ').unwrap_or((&told, ""));
    let call = ctx.call(agent, Message::user(vec![Part::text(text)]))?;
    let heard = call.next(Some(Duration::from_secs(20)))?;
    drop(call);
    while ctx.children()?.iter().any(|child| child.state == TaskState::Working) {
        thread::sleep(Duration::from_millis(10));
    }
    let states: Vec<_> = ctx.children()?.iter().map(|child| format!("{:?}", child.state)).collect();
    ctx.done(format!("{} after {}", states.join(", "), matches!(heard, Update::Event(_))))
}

/// `env NAME`: reads a variable of the hub's environment.
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

/// `read PATH`: reads a file of the hub's machine.
pub(crate) fn read(ctx: &Context, task: &Task) -> Run {
    match fs::read(argument(task)) {
        Ok(content) => ctx.done(format!("{} bytes", content.len())),
        Err(why) => ctx.done(format!("refused: {why}")),
    }
}

/// `call-in-worktree AGENT SCRIPT`: another agent runs the script in a new worktree, and then `ls`
/// in the same one. Reports the changes and the files.
pub(crate) fn call_in_worktree(ctx: &Context, task: &Task) -> Run {
    let told = argument(task);
    let (agent, script) = told.split_once(' ').unwrap_or((&told, ""));
    let (mut changes, mut output) = (WorktreeChanges::default(), String::new());
    let mut work = |script: &str, place: Worktree| {
        let message = Message::user(vec![Part::text(format!("sh {script}"))]);
        let call = ctx.call_with(agent, message, &CallOptions::new().worktree(place))?;
        output.clear();
        loop {
            match call.next(None)? {
                Update::Finished(outcome) => return Ok((call.task_id(), outcome.text())),
                Update::Event(Event::Artifact(update)) => match update.worktree_changes() {
                    Some(made) => changes = made,
                    None => output.push_str(&update.artifact.joined_text()),
                },
                Update::Event(_) => {}
            }
        }
    };
    let first = match work(script, Worktree::New) {
        Ok((first, _)) => first,
        Err(failure) => return tell(ctx, Err::<String, _>(failure)),
    };
    work("ls", Worktree::Of(first))?;
    let WorktreeChanges { files, insertions, deletions, patch } = changes;
    let is_patch = patch.starts_with(b"diff --git");
    ctx.done(format!(
        "{files} +{insertions} -{deletions} {is_patch}: {}",
        output.replace('\n', " ")
    ))
}
