//! A task of the hub as it goes on: what it says and makes is shown, Ctrl-C is heard, and so is a reader who leaves.

use super::{Exit, client::Client, shown::Shown, signals::Leaving, terminal::Progress};
use serde_json::json;
use std::pin::pin;

/// What becomes of the task when whoever waits for it leaves: by Ctrl-C, or because nobody reads the answer any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnLeave {
    /// It is cancelled; a second Ctrl-C just leaves.
    Cancel,
    /// It goes on.
    LetBe,
}

/// Shows what comes until the task is over or waits for its client. A stream that ends before that is a failure.
pub(super) async fn follow(
    client: &mut Client,
    id: u64,
    shown: &mut Shown,
    progress: &mut Progress,
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
                    // Who does not read has no use for it.
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
