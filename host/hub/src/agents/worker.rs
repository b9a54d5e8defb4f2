//! Who does a task's work: a component of this hub, or an agent elsewhere.

use crate::remote::RemoteRun;
use a2a_hub_sandbox::{Ended, Guest};

/// Somebody at work on a task. Dropping it ends the work here.
#[derive(Debug)]
pub enum Worker {
    /// An instance of a component.
    Guest(Guest),
    /// An agent elsewhere.
    Remote(RemoteRun),
}

impl Worker {
    /// How it ended. May be dropped and called again; after the end it waits for ever.
    pub async fn ended(&mut self) -> Ended {
        match self {
            Self::Guest(guest) => guest.ended().await,
            Self::Remote(run) => run.ended().await,
        }
    }

    /// Asks it to stop.
    pub fn cancel(&self) {
        match self {
            Self::Guest(guest) => guest.cancel(),
            Self::Remote(run) => run.cancel(),
        }
    }

    /// Stops listening to it, and tells whether it goes on all the same, so that the next hub can listen again.
    pub async fn leave(&mut self) -> bool {
        match self {
            Self::Guest(_) => false,
            Self::Remote(run) => run.leave().await,
        }
    }

    /// Ends it now, wherever it is.
    pub async fn end(&mut self) {
        match self {
            Self::Guest(guest) => guest.end().await,
            Self::Remote(run) => run.end().await,
        }
    }
}
