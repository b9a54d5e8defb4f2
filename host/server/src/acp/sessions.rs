//! Open sessions of a connection, and the turn in progress of each.

use super::{
    options::Chosen,
    turn::Open,
    wire::{Refusal, no_session},
};
use parking_lot::Mutex;
use std::collections::HashMap;
use tokio_util::sync::CancellationToken;

/// Maximum number of open sessions of a client.
pub(super) const MAX_SESSIONS: usize = 100;

/// Maximum length of a session's title in characters.
pub(super) const MAX_TITLE: usize = 80;

/// Open sessions by id.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<String, Session>>);

/// A conversation with a working directory.
#[derive(Default)]
pub(super) struct Session {
    pub(super) directory: String,
    /// Directories in which the agent works besides the working directory.
    pub(super) additional: Vec<String>,
    /// Latest turn until its end; `None` between turns.
    turn: Option<BegunTurn>,
    /// Question that the next prompt answers.
    pub(super) open: Option<Open>,
    /// Names of the client's unused MCP servers, until a notification lists them.
    pub(super) mcp_servers: Vec<String>,
    /// Options that the client set.
    pub(super) chosen: Chosen,
    /// Names of the commands that the client knows.
    pub(super) commands: Vec<String>,
    /// True if the session still needs a title, which is its first prompt.
    pub(super) is_untitled: bool,
}

/// A turn that was begun.
#[derive(Clone, Default)]
pub(super) struct BegunTurn {
    /// Cancelled when the client cancels the turn.
    pub(super) off: CancellationToken,
    /// Cancelled at the end of the turn.
    pub(super) over: CancellationToken,
    /// End of the cancelled turn before, for which this one waits.
    pub(super) after: Option<CancellationToken>,
}

impl Sessions {
    /// Opens a session, or the open one of this id anew.
    pub(super) fn open(&self, id: &str, set_up: impl FnOnce(&mut Session)) -> Result<(), Refusal> {
        let mut sessions = self.0.lock();
        if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(id) {
            let why = format!(
                "{MAX_SESSIONS} sessions are open already; close one with `session/close`, or start another program for more"
            );
            return Err(Refusal::params(why));
        }
        set_up(sessions.entry(id.to_owned()).or_default());
        Ok(())
    }

    /// Reads or changes an open session.
    pub(super) fn with<T>(
        &self,
        id: &str,
        change: impl FnOnce(&mut Session) -> T,
    ) -> Result<T, Refusal> {
        self.0.lock().get_mut(id).map(change).ok_or_else(|| no_session(id))
    }

    /// Registers a turn; a session has at most one at a time, besides those that the client
    /// cancelled.
    pub(super) fn begin(&self, id: &str) -> Result<BegunTurn, Refusal> {
        self.with(id, |session| {
            let before = session.turn.as_ref();
            if before.is_some_and(|before| !before.off.is_cancelled()) {
                let why = "a turn of this session is under way; wait for its end, or call it off with `session/cancel`";
                return Err(Refusal::params(why));
            }
            let after = before.map(|before| before.over.clone());
            let turn = BegunTurn { after, ..BegunTurn::default() };
            session.turn = Some(turn.clone());
            Ok(turn)
        })?
    }

    /// Cancels the turn of a session, if it has one, and returns the signal of its end.
    pub(super) fn cancel(&self, id: &str) -> Option<CancellationToken> {
        let sessions = self.0.lock();
        let turn = sessions.get(id)?.turn.as_ref()?;
        turn.off.cancel();
        Some(turn.over.clone())
    }

    /// Cancels all turns.
    pub(super) fn cancel_all(&self) {
        for session in self.0.lock().values() {
            if let Some(turn) = &session.turn {
                turn.off.cancel();
            }
        }
    }

    /// Ends a turn, and unregisters it if no other follows.
    pub(super) fn end(&self, id: &str, over: &CancellationToken) {
        over.cancel();
        if let Some(session) = self.0.lock().get_mut(id)
            && session.turn.as_ref().is_some_and(|latest| latest.over.is_cancelled())
        {
            session.turn = None;
        }
    }

    /// Forgets a session; false if it is not open.
    pub(super) fn close(&self, id: &str) -> bool {
        self.0.lock().remove(id).is_some()
    }
}
