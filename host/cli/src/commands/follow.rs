//! Follows a task of the hub until it ends: prints its events and handles Ctrl-C and a closed
//! standard output.

use super::{
    leave::{LeaveChoice, OnLeave, asks, decide, detached},
    task::output::TaskOutput,
};
use crate::{
    Exit, Format, Global,
    client::{hub_client::Client, signals::LeaveSignals},
    ui::{
        interactive::ProgressLine,
        text::{FAINT, Text},
    },
};
use serde_json::{Value, json};
use std::{collections::VecDeque, io, pin::pin};

/// Answer of the hub, or event of its stream: the id of the request, and the value.
type StreamAnswer = (u64, anyhow::Result<Value>);

/// Maximum number of events that are kept while the user is asked; the stream is read on
/// afterwards.
const MAX_BUFFERED: usize = 4_096;

/// Prints events until the task ends or waits for its client. Fails if the stream ends before that.
pub(crate) async fn follow(
    client: &mut Client,
    id: u64,
    shown: &mut TaskOutput,
    progress: &mut ProgressLine,
    on_leave: OnLeave,
) -> anyhow::Result<Exit> {
    let mut signals = LeaveSignals::new()?;
    let mut unread = pin!(shown.console().unread());
    let is_on_terminal = shown.console().columns().is_some();
    let asks = asks(shown, on_leave);
    let (mut interrupted, mut cancelling) = (false, None);
    let mut buffered: VecDeque<StreamAnswer> = VecDeque::new();
    loop {
        let (mut again, mut leaves) = (false, interrupted || shown.is_unread());
        tokio::select! {
            answered = next(&mut buffered, client) => {
                progress.clear();
                match answered? {
                    (of, event) if of == id => {
                        let event = event?;
                        if is_stream_end(&event) {
                            let by_us = cancelling.is_some() && shown.snapshot.state == "canceled";
                            return if interrupted || by_us { Ok(Exit::Interrupted) } else { shown.exit() };
                        }
                        show_event(shown, progress, &event)?;
                    }
                    // The error is of no use if standard output is closed.
                    (of, Err(why)) if Some(of) == cancelling && interrupted => {
                        shown.console().note(format!("cancel: {why}"));
                    }
                    _ => {}
                }
            }
            signal = signals.next() => {
                progress.clear();
                let asks = asks && !leaves && shown.snapshot.task.is_some();
                let ended = keep_until_end(client, id, &mut buffered);
                match decide(signal, asks, shown, &mut signals, ended).await? {
                    LeaveChoice::GoOn => continue,
                    LeaveChoice::Detach => return Ok(detached(shown)),
                    LeaveChoice::Cancel => again = std::mem::replace(&mut interrupted, true),
                }
                leaves = true;
            }
            () = &mut unread, if !shown.is_unread() => {
                if is_on_terminal {
                    return Ok(detached(shown));
                }
                shown.leave_unread();
                leaves = true;
            }
            () = progress.tick(), if !shown.in_line => progress.draw(),
        };
        if !leaves && !shown.is_unread() {
            continue;
        }
        if again || on_leave == OnLeave::LetBe {
            return Ok(Exit::Interrupted);
        }
        if let (Some(task), None) = (&shown.snapshot.task, cancelling) {
            if interrupted {
                shown.console().note("cancelling; press Ctrl-C again to leave at once");
            }
            cancelling = Some(client.ask("tasks/cancel", json!({ "id": task })).await?);
        }
    }
}

/// Prints an event: its part of the answer, and the agent's progress message.
pub(crate) fn show_event(
    shown: &mut TaskOutput,
    progress: &mut ProgressLine,
    event: &Value,
) -> io::Result<()> {
    let ended = shown.tool_calls.apply(event);
    let message = shown.event(event)?;
    // Where the line is not visible, the begin of each call was printed.
    if let Some(ended) = ended.filter(|_| progress.is_visible() && !progress.keeps_messages()) {
        shown.print_before_open_block(|| progress.add_line(&ended))?;
    }
    if let Some(step) = message
        .as_deref()
        .filter(|_| shown.is_flow && progress.is_visible() && !progress.keeps_messages())
    {
        shown.print_before_open_block(|| progress.add_line(step))?;
    }
    if message.is_some() && progress.keeps_messages() {
        return shown.print_before_open_block(|| progress.says(message));
    }
    progress.says(message);
    Ok(())
}

/// Next event: a kept one, or else one of the hub.
async fn next(
    buffered: &mut VecDeque<StreamAnswer>,
    client: &mut Client,
) -> anyhow::Result<StreamAnswer> {
    match buffered.pop_front() {
        Some(answered) => Ok(answered),
        None => client.next().await,
    }
}

/// Keeps the events that arrive, until the stream `id` ends. Cancel-safe.
async fn keep_until_end(
    client: &mut Client,
    id: u64,
    buffered: &mut VecDeque<StreamAnswer>,
) -> anyhow::Result<()> {
    while buffered.len() < MAX_BUFFERED {
        let answered = client.next().await?;
        let is_end = matches!(&answered, (of, Ok(event)) if *of == id && is_stream_end(event));
        let is_refused = matches!(&answered, (of, Err(_)) if *of == id);
        buffered.push_back(answered);
        if is_end || is_refused {
            return Ok(());
        }
    }
    std::future::pending().await
}

fn is_stream_end(event: &Value) -> bool {
    event["kind"] == "stream-end"
}

/// Agent that goes on with a task that was handed over, and its task. A note names them; the answer
/// of the first agent is left as it is.
pub(crate) fn follow_handoff(
    global: &Global,
    shown: &mut TaskOutput,
) -> anyhow::Result<Option<(String, String)>> {
    let Some((agent, next)) = shown.snapshot.handed_over() else { return Ok(None) };
    let (agent, next) = (agent.to_owned(), next.to_owned());
    if global.format == Format::Pretty {
        shown.end_piece()?;
        global.console().note(Text::styled(FAINT, format!("handed over to {agent}, task {next}")));
    }
    Ok(Some((agent, next)))
}
