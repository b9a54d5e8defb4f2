//! `send` to an agent elsewhere, named by its URL: without the hub.

use super::{Exit, block_on, follow::Shown, note};
use crate::{
    config,
    outbound::Outbound,
    remote::{RemoteAgent, Telling},
};
use a2a_hub_protocol::{
    compat,
    event::{Recorded, TaskEvent, Told},
    id::{ContextId, TaskId},
    message::Message,
    operation::SendMessage,
    push::Secret,
};
use anyhow::Context as _;
use serde_json::Value;
use std::collections::BTreeSet;
use tokio::signal::unix::{SignalKind, signal};

/// Whether an agent is named by its URL.
pub(super) fn is_url(agent: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| agent.starts_with(scheme))
}

/// Sends a message to the agent at `url`, showing what the variable `token_env` holds as a bearer token.
pub(super) fn send(
    url: &str,
    message: Message,
    token_env: Option<&str>,
    shown: &mut Shown,
) -> anyhow::Result<Exit> {
    let token = token_env.map(token).transpose()?;
    let exit = block_on(async {
        let outbound = Outbound::unguarded().context("set up TLS")?;
        let agent = RemoteAgent::find(outbound, url, token).await?;
        let mut telling = agent.stream(SendMessage::new(message, None)?).await?;
        follow(&agent, &mut telling, shown).await
    });
    shown.finish()?;
    let exit = exit?;
    if let (Exit::NeedsInput, Some(task)) = (exit, &shown.task) {
        note(&format!("answer with: a2a-hub send {url} --task {task} \"...\""));
    }
    Ok(exit)
}

async fn follow(
    agent: &RemoteAgent,
    telling: &mut Telling,
    shown: &mut Shown,
) -> anyhow::Result<Exit> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    loop {
        let told = tokio::select! {
            told = telling.next() => told,
            _ = interrupt.recv() => {
                if let Some(task) = telling.task().cloned() {
                    note("cancelling");
                    if let Err(why) = agent.cancel(task).await {
                        note(&format!("cancel: {why}"));
                    }
                }
                return Ok(Exit::Interrupted);
            }
        };
        match told {
            Some(told) => shown.event(&as_the_hub_tells(told?))?,
            None => return Ok(shown.exit()),
        }
    }
}

/// The same in the words that the other commands read.
fn as_the_hub_tells(told: Told) -> Value {
    let event = |task: TaskId, context: ContextId, event: TaskEvent| {
        compat::write_event(&Recorded { task, context, seq: 0, event }).unwrap_or_default()
    };
    match told {
        Told::Task(task) => compat::write_task(&task, None),
        Told::Message(message) => compat::write_message(&message),
        Told::Status { task, context, update } => event(task, context, TaskEvent::Status(update)),
        Told::Artifact { task, context, update } => {
            event(task, context, TaskEvent::Artifact(update))
        }
    }
}

fn token(name: &str) -> anyhow::Result<Secret> {
    let found = config::environment(&BTreeSet::from([name.to_owned()])).pop();
    let (_, token) = found.with_context(|| format!("read the token: {name} is not set"))?;
    Ok(Secret::new(token))
}
