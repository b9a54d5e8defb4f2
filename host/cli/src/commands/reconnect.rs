//! A hub that ends under a command at a terminal: the command waits until the hub runs again.

use crate::{
    Format, Global,
    client::{hub_client::Client, signals::LeaveSignals},
    ui::{
        failure::{CONNECTION_LOST, CommandError, STREAM_ENDED},
        text::{FAINT, Text},
    },
};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Timeout until a hub that ended runs again.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// Time between two attempts to connect.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Most times that one command connects again.
pub(crate) const MAX_RECONNECTS: usize = 20;

/// Connects again after the error `why`, if it is the end of the hub's connection and a user at a
/// terminal waits for `task`. Returns `None` for other errors, in scripts, if the user leaves, and
/// if the hub does not run again in time.
pub(crate) async fn reconnect(
    global: &Global,
    why: &anyhow::Error,
    task: Option<&str>,
) -> Option<Client> {
    let task = task.filter(|_| is_lost(why))?;
    if global.format == Format::Json || global.console().stderr_columns().is_none() {
        return None;
    }
    let note = format!(
        "the hub ended or restarts; waiting for it. Ctrl-C ends the waiting: a2a-hub task watch {task}"
    );
    global.console().note(Text::styled(FAINT, note));
    let mut signals = LeaveSignals::new().ok()?;
    tokio::select! {
        client = connect(global) => client,
        _ = signals.next() => None,
    }
}

/// Tries to connect until the hub answers, for a limited time.
async fn connect(global: &Global) -> Option<Client> {
    let until = Instant::now() + RECONNECT_TIMEOUT;
    while Instant::now() < until {
        sleep(RETRY_INTERVAL).await;
        if let Ok(client) = Client::connect_within(global, RECONNECT_TIMEOUT).await {
            return Some(client);
        }
    }
    None
}

/// True for the end of a connection or of a stream.
pub(crate) fn is_lost(why: &anyhow::Error) -> bool {
    let error = CommandError::from_error(why);
    error.is(CONNECTION_LOST) || error.is(STREAM_ENDED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lost_connection_is_waited_for() {
        assert!(is_lost(&CommandError::new(CONNECTION_LOST, "closed").into()));
        assert!(is_lost(&CommandError::new(STREAM_ENDED, "ended").into()));
        assert!(!is_lost(&std::io::Error::from(std::io::ErrorKind::StorageFull).into()));
        assert!(!is_lost(&CommandError::new("TASK_NOT_FOUND", "no task").into()));
    }
}
