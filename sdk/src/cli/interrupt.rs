//! Interruption of a program whose task is cancelled, so that the next turn need not start another.
//!
//! ```text
//! the task is cancelled ─► Driver::interrupt ─► lines of the program ─► Action::End
//!   ─► silence ─► parked for the next turn, without the processes that it started for the task
//! any step fails or is late ─► the program is killed
//! ```

use std::time::Duration;

use super::{Action, Driver, Session};
use crate::artifact::now;
use crate::{Child, Failure, Line};

/// Time for a program to end its turn. Programs take 10 to 50 ms, and the hub ends a cancelled run
/// after half a second.
const LIMIT: Duration = Duration::from_millis(300);

/// Silence after the end of the turn: later output belongs to the cancelled turn.
const SILENCE: Duration = Duration::from_millis(40);

/// Interrupts the turn. Returns the session to be stored, which is empty if the driver names none;
/// `None` if the program cannot be reused.
pub(super) fn interrupt(child: &mut Child, driver: &mut impl Driver) -> Option<Session> {
    let mut actions = driver.interrupt();
    let (mut session, mut has_ended) = (Session::default(), false);
    let until = now() + LIMIT;
    if actions.is_empty() {
        return None;
    }
    loop {
        for action in actions {
            match action {
                Action::Send(line) => child.write_line(&line).ok()?,
                Action::Remember(named) => session = named,
                Action::End(_) => has_ended = true,
                // Nobody decides it any more.
                Action::Ask(_) | Action::EndInput => return None,
                // The task takes no more events.
                Action::Settled
                | Action::Restart
                | Action::Delta(_)
                | Action::Say(_)
                | Action::Report { .. }
                | Action::Commands(_)
                | Action::Retrying { .. }
                | Action::Withdrawn(_)
                | Action::Changed(_)
                | Action::Attach(_)
                | Action::AwaitQuiet { .. }
                | Action::Log(_) => {}
            }
        }
        let remaining = until.saturating_duration_since(now());
        if remaining.is_zero() {
            return has_ended.then_some(session);
        }
        let wait = if has_ended { SILENCE.min(remaining) } else { remaining };
        actions = match child.next_of_any(Some(wait)) {
            Ok(Some(Line::Output(line))) => driver.line(&line),
            Ok(Some(Line::Complaint(_))) => Vec::new(),
            Err(Failure::Timeout) if has_ended => return Some(session),
            Ok(None) | Err(_) => return None,
        };
    }
}
