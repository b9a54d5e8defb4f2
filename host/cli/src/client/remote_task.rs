//! Tasks of remote agents, without the hub: started by `send`, shown, watched and cancelled.

use super::{remote::RemoteOptions, signals::LeaveSignals, task_snapshot::TaskStateSnapshot};
use crate::{
    Exit, Format, Global, block_on,
    commands::{
        follow::show_event,
        leave::{LeaveChoice, OnLeave, asks, decide, detached},
        send::{Send, SendStep, conclude, message},
        task::{
            output::{TaskOutput, print_begun},
            question::{self, QuestionOutcome, question},
        },
    },
    ui::interactive::ProgressLine,
};
use a2a_hub_client::{A2aClient, RemoteTaskStream};
use a2a_hub_core::text::duration::Span;
use a2a_hub_protocol::{
    event::{SequencedEvent, StreamResponse, TaskEvent},
    id::{ContextId, TaskId},
    operation::{SendMessage, Wait},
    v03,
};
use anyhow::{Context as _, bail};
use serde_json::{Map, Value};
use std::{future::pending, pin::pin, time::Duration};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

/// Interval at which a remote task is read while its question waits at the prompt.
const POLL_INTERVAL: Duration = Duration::from_secs(3);

/// Maximum time in which a remote agent tells the id of a task.
const MAX_BEGIN: Duration = Duration::from_secs(60);

/// Sends a message to the agent at a URL, and prints its answer.
pub(crate) fn send(global: &Global, mut send: Send) -> anyhow::Result<Exit> {
    let url = send.agent.clone();
    let option = send.cwd.as_ref().map(|_| "--cwd");
    if let Some(option) = option.or((!send.additional.is_empty()).then_some("--add-dir")) {
        bail!(
            "send to {url}: a remote agent cannot work in a directory of this machine \
             (`{option}`); attach files with `--file`"
        );
    }
    if send.go_on {
        bail!(
            "continue with {url}: conversations with remote agents are not stored here; use the \
             `--context ID` that the answer ended with"
        );
    }
    let named = send.elsewhere.named(&url);
    block_on(async {
        let timeout = send.timeout.map(Duration::from_millis);
        let agent = send.elsewhere.find(&url).await?;
        if send.detach {
            let task = begun(&agent, &send).await?;
            return print_begun(global, &task, &format!(" --agent {named}"));
        }
        let (mut step, mut earlier) = (SendStep::Send, None);
        loop {
            let modes = agent.card().other.get("defaultOutputModes").unwrap_or(&Value::Null);
            let shown = TaskOutput::new(global, send.stream).written_in(modes);
            let mut shown = shown.after(earlier.take());
            let mut progress = global.progress(&url, true);
            let until = timeout.map(|timeout| Instant::now() + timeout);
            let watch = FollowOptions { until, on_leave: OnLeave::Cancel };
            let followed = match &step {
                SendStep::Send | SendStep::Answer(_) => {
                    let request = SendMessage::new(message(&send)?, None)?;
                    match in_time(until, agent.stream(request)).await {
                        Some(Ok(telling)) => {
                            watch.follow(&agent, telling, &mut shown, &mut progress).await
                        }
                        Some(Err(why)) => Err(why.into()),
                        None => Ok(None),
                    }
                }
                SendStep::Watch(task) => {
                    let telling = agent.subscribe(TaskId::new(task.as_str()));
                    watch.follow(&agent, telling, &mut shown, &mut progress).await
                }
                SendStep::Show(task) => {
                    shown.event(task)?;
                    shown.exit().map(Some)
                }
            };
            drop(progress);
            if let (Ok(None), Some(timeout)) = (&followed, timeout) {
                let timeout = Span(timeout);
                shown.give_up(format!("The task exceeded its time limit of {timeout}."));
            }
            let again = format!(" --agent {named}");
            let exit = followed.map_err(|why| shown.broken_off(&why, &again))?;
            let exit = exit.unwrap_or(Exit::TaskFailed);
            if shown.is_detached() {
                shown.finish(exit, Map::new())?;
                shown.note_detached(&again);
                return Ok(exit);
            }
            conclude(&send, &mut shown, exit)?;
            let closed = closed(&agent, &shown.snapshot);
            match question(global, &shown, exit, &named, closed).await? {
                QuestionOutcome::Nothing => return Ok(exit),
                QuestionOutcome::Answered(task, answer) => {
                    step = SendStep::Answer(task.clone());
                    send.become_answer(task, answer, &shown);
                }
                QuestionOutcome::Closed(task) => step = SendStep::after(task),
                QuestionOutcome::Lost(_, why) => return Err(why),
                QuestionOutcome::Interrupted(task) => {
                    cancel(&agent, Some(TaskId::new(task))).await?;
                    return Ok(Exit::Interrupted);
                }
            }
            earlier = Some(shown);
        }
    })
}

/// Sends the message, and returns its task as soon as the agent has told it.
async fn begun(agent: &A2aClient, send: &Send) -> anyhow::Result<Value> {
    let mut sent = SendMessage::new(message(send)?, None)?;
    sent.wait = Wait::No;
    let timeout = send.timeout.map_or(MAX_BEGIN, Duration::from_millis);
    match agent.send(sent, timeout).await? {
        StreamResponse::Task(task) => Ok(v03::json::write_task(&task)),
        StreamResponse::Message(_)
        | StreamResponse::Status { .. }
        | StreamResponse::Artifact { .. } => bail!(
            "detach from {}: the agent answered at once, without a task; leave `--detach` out",
            send.agent
        ),
    }
}

/// Reads the task until its question is closed, and returns the task then. An agent that does not
/// answer leaves the question open.
async fn closed(agent: &A2aClient, snapshot: &TaskStateSnapshot) -> anyhow::Result<Value> {
    let task = snapshot.task.as_deref().unwrap_or_default();
    loop {
        sleep(POLL_INTERVAL).await;
        if let Ok(task) = agent.get(TaskId::new(task)).await {
            let task = v03::json::write_task(&task);
            if !question::is_open(&task, snapshot.question()) {
                return Ok(task);
            }
        }
    }
}

/// Prints the events of a task of the agent at `url`.
pub(crate) fn watch(
    global: &Global,
    url: &str,
    options: &RemoteOptions,
    task: &str,
) -> anyhow::Result<Exit> {
    block_on(async {
        let agent = options.find(url).await?;
        let mut shown = TaskOutput::new(global, true);
        let mut still = global.progress(url, false);
        let watch = FollowOptions { until: None, on_leave: OnLeave::LetBe };
        let telling = agent.subscribe(TaskId::new(task));
        let followed = watch.follow(&agent, telling, &mut shown, &mut still).await;
        let again = format!(" --agent {}", options.named(url));
        let exit = followed.map_err(|why| shown.broken_off(&why, &again))?;
        let exit = exit.unwrap_or(Exit::TaskFailed);
        shown.finish(exit, Map::new())?;
        if exit == Exit::NeedsInput && global.format == Format::Pretty {
            question::print_question(global.console(), &shown, &format!("task {task}"));
        }
        Ok(exit)
    })
}

/// Returns a task of the agent at `url` in the hub's JSON form; `stop` cancels the task first.
pub(crate) fn task(
    url: &str,
    options: &RemoteOptions,
    task: &str,
    stop: bool,
) -> anyhow::Result<Value> {
    block_on(async {
        let (agent, id) = (options.find(url).await?, TaskId::new(task));
        let task = if stop { agent.cancel(id).await? } else { agent.get(id).await? };
        Ok(v03::json::write_task(&task))
    })
}

/// Options of following a task.
struct FollowOptions {
    /// Deadline.
    until: Option<Instant>,
    on_leave: OnLeave,
}

impl FollowOptions {
    /// Prints events until the task ends; returns `None` if the deadline passed and the task was
    /// cancelled.
    async fn follow(
        &self,
        agent: &A2aClient,
        mut telling: RemoteTaskStream,
        shown: &mut TaskOutput,
        progress: &mut ProgressLine,
    ) -> anyhow::Result<Option<Exit>> {
        let mut signals = LeaveSignals::new()?;
        let mut unread = pin!(shown.console().unread());
        let is_on_terminal = shown.console().columns().is_some();
        let asks = asks(shown, self.on_leave);
        loop {
            let task = telling.task().cloned();
            // The future outlives ticks because it measures the time since the last event.
            let mut next = pin!(telling.next());
            let event = loop {
                tokio::select! {
                    told = &mut next => break told,
                    () = progress.tick(), if !shown.in_line => progress.draw(),
                    () = at(self.until) => {
                        progress.clear();
                        call_off(agent, task, &mut signals, shown).await;
                        return Ok(None);
                    }
                    signal = signals.next() => {
                        progress.clear();
                        let asks = asks && task.is_some();
                        match decide(signal, asks, shown, &mut signals, pending()).await? {
                            LeaveChoice::GoOn => continue,
                            LeaveChoice::Detach => return Ok(Some(detached(shown))),
                            LeaveChoice::Cancel => {}
                        }
                        if self.on_leave == OnLeave::Cancel {
                            let again = "cancelling; press Ctrl-C again to leave at once";
                            shown.console().note(again);
                            call_off(agent, task, &mut signals, shown).await;
                        }
                        return Ok(Some(Exit::Interrupted));
                    }
                    () = &mut unread, if !shown.is_unread() => {
                        if is_on_terminal {
                            return Ok(Some(detached(shown)));
                        }
                        shown.leave_unread();
                        if self.on_leave == OnLeave::Cancel {
                            call_off(agent, task, &mut signals, shown).await;
                        }
                        return Ok(Some(Exit::Interrupted));
                    }
                }
            };
            progress.clear();
            match event {
                Some(event) => show_event(shown, progress, &as_the_hub_tells(event?))?,
                None => return shown.exit().map(Some),
            }
        }
    }
}

/// Cancels a task that is no longer waited for, and reports a failure.
async fn call_off(
    agent: &A2aClient,
    task: Option<TaskId>,
    signals: &mut LeaveSignals,
    shown: &TaskOutput,
) {
    tokio::select! {
        cancelled = cancel(agent, task) => {
            if let Err(why) = cancelled {
                shown.console().note(format!("cancel the task: {why}; the remote agent may continue it"));
            }
        }
        _ = signals.next() => {}
    }
}

async fn cancel(agent: &A2aClient, task: Option<TaskId>) -> anyhow::Result<()> {
    let task = task.context("the agent has not sent the task's id yet")?;
    agent.cancel(task).await?;
    Ok(())
}

async fn in_time<T>(until: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    match until {
        Some(until) => timeout_at(until, work).await.ok(),
        None => Some(work.await),
    }
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => pending().await,
    }
}

/// Converts an event to the hub's JSON form, which the other commands read.
fn as_the_hub_tells(response: StreamResponse) -> Value {
    let event = |task: TaskId, context: ContextId, event: TaskEvent| {
        v03::json::write_event(&SequencedEvent { task, context, seq: 0, event }).unwrap_or_default()
    };
    match response {
        StreamResponse::Task(task) => v03::json::write_task(&task),
        StreamResponse::Message(message) => v03::json::write_message(&message),
        StreamResponse::Status { task, context, update } => {
            event(task, context, TaskEvent::Status(update))
        }
        StreamResponse::Artifact { task, context, update } => {
            event(task, context, TaskEvent::Artifact(update))
        }
    }
}
