//! Follows a task of the hub until it ends: prints its events and handles Ctrl-C and a closed
//! standard output.

use super::task::output::TaskOutput;
use crate::{
    Exit, Format, Global,
    client::{hub_client::Client, signals::Leaving},
    ui::{
        interactive::ProgressLine,
        text::{FAINT, Text},
    },
};
use serde_json::json;
use std::pin::pin;

/// Action if the user leaves, by Ctrl-C or by closing standard output, before the task ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnLeave {
    /// Cancels the task; a second Ctrl-C exits at once.
    Cancel,
    /// Leaves the task running.
    LetBe,
}

/// Prints events until the task ends or waits for its client. Fails if the stream ends before that.
pub(crate) async fn follow(
    client: &mut Client,
    id: u64,
    shown: &mut TaskOutput,
    progress: &mut ProgressLine,
    on_leave: OnLeave,
) -> anyhow::Result<Exit> {
    let mut interrupt = Leaving::new()?;
    let mut unread = pin!(shown.console().unread());
    let (mut interrupted, mut cancelling) = (false, None);
    loop {
        let again = tokio::select! {
            answered = client.next() => {
                progress.clear();
                match answered? {
                    (of, event) if of == id => {
                        let event = event?;
                        if event["kind"] == "stream-end" {
                            let by_us = cancelling.is_some() && shown.told.state == "canceled";
                            return if interrupted || by_us { Ok(Exit::Interrupted) } else { shown.exit() };
                        }
                        progress.says(shown.event(&event)?);
                    }
                    // The error is of no use if standard output is closed.
                    (of, Err(why)) if Some(of) == cancelling && interrupted => {
                        shown.console().note(format!("cancel: {why}"));
                    }
                    _ => {}
                }
                false
            }
            _ = interrupt.recv() => {
                progress.clear();
                std::mem::replace(&mut interrupted, true)
            }
            () = &mut unread, if !shown.is_unread() => {
                shown.leave_unread();
                false
            }
            () = progress.tick(), if !shown.in_line => {
                progress.draw();
                false
            }
        };
        if !interrupted && !shown.is_unread() {
            continue;
        }
        if again || on_leave == OnLeave::LetBe {
            return Ok(Exit::Interrupted);
        }
        if let (Some(task), None) = (&shown.told.task, cancelling) {
            if interrupted {
                shown.console().note("cancelling; press Ctrl-C again to leave at once");
            }
            cancelling = Some(client.ask("tasks/cancel", json!({ "id": task })).await?);
        }
    }
}

/// Agent that goes on with a task that was handed over, and its task. A note names them; the answer
/// of the first agent is left as it is.
pub(crate) fn follow_handoff(
    global: &Global,
    shown: &mut TaskOutput,
) -> anyhow::Result<Option<(String, String)>> {
    let Some((agent, next)) = shown.told.handed_over() else { return Ok(None) };
    let (agent, next) = (agent.to_owned(), next.to_owned());
    if global.format == Format::Pretty {
        shown.end_piece()?;
        global.console().note(Text::styled(FAINT, format!("handed over to {agent}, task {next}")));
    }
    Ok(Some((agent, next)))
}
