//! Whose turn it is: calls those whom `core::quota` names.

use crate::agents::Agent;
use a2a_hub_core::quota::{self, Busy, Limits, Quota};
use a2a_hub_protocol::id::AgentId;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::oneshot;

/// The turns of all agents' tasks. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Turns(Arc<Mutex<HashMap<AgentId, Line>>>);

/// The tasks of one agent.
struct Line {
    quota: Quota<u64>,
    /// As the agent's latest version has it.
    limits: Limits,
    next_ticket: u64,
    waiting: HashMap<u64, oneshot::Sender<()>>,
}

/// A task's turn. Dropping it lets another run.
pub(super) struct Turn {
    turns: Turns,
    agent: AgentId,
}

/// A task's place among those who wait. Dropping it gives it up.
pub(super) struct Place {
    turns: Turns,
    agent: AgentId,
    ticket: u64,
    called: oneshot::Receiver<()>,
    /// Whether the turn was handed out, and has an owner of its own.
    taken: bool,
}

/// What a task is told that asks for its turn.
pub(super) enum Admitted {
    Now(Turn),
    Later(Place),
}

impl Turns {
    /// The turn of a new task, or its place in the queue if that is not full.
    pub(super) fn ask(&self, agent: &Agent) -> Result<Admitted, Busy> {
        self.admit(&agent.id, agent.quota(), Quota::ask)
    }

    /// The turn of a task that was admitted before.
    pub(super) fn come_back(&self, agent: &Agent) -> Admitted {
        let come_back = |quota: &mut Quota<u64>, key, limits| Ok(quota.come_back(key, limits));
        match self.admit::<std::convert::Infallible>(&agent.id, agent.quota(), come_back) {
            Ok(admitted) => admitted,
        }
    }

    fn admit<E>(
        &self,
        agent: &AgentId,
        limits: Limits,
        ask: impl FnOnce(&mut Quota<u64>, u64, Limits) -> Result<quota::Turn, E>,
    ) -> Result<Admitted, E> {
        let mut lines = self.lines();
        let line = lines.entry(agent.clone()).or_insert_with(|| Line::new(limits));
        line.limits = limits;
        let ticket = line.next_ticket;
        line.next_ticket += 1;
        let (turns, agent) = (self.clone(), agent.clone());
        Ok(match ask(&mut line.quota, ticket, limits)? {
            quota::Turn::Now => Admitted::Now(Turn { turns, agent }),
            quota::Turn::Later => {
                let (call, called) = oneshot::channel();
                line.waiting.insert(ticket, call);
                Admitted::Later(Place { turns, agent, ticket, called, taken: false })
            }
        })
    }

    /// Changes who runs or waits, and calls who is next.
    fn change(&self, agent: &AgentId, change: impl FnOnce(&mut Line)) {
        let mut lines = self.lines();
        let Some(line) = lines.get_mut(agent) else { return };
        change(line);
        while let Some(ticket) = line.quota.next(line.limits) {
            // Whoever waits is in both; one that goes away takes itself out of both.
            if let Some(call) = line.waiting.remove(&ticket) {
                let _ = call.send(());
            }
        }
        if line.quota.is_idle() {
            lines.remove(agent);
        }
    }

    fn lines(&self) -> std::sync::MutexGuard<'_, HashMap<AgentId, Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn new(limits: Limits) -> Self {
        Self { quota: Quota::default(), limits, next_ticket: 0, waiting: HashMap::new() }
    }
}

impl Place {
    /// The turn, once it comes. May be dropped and called again until then.
    pub(super) async fn turn(&mut self) -> Turn {
        if self.taken || (&mut self.called).await.is_err() {
            // Nobody is called twice, and nobody is forgotten.
            return std::future::pending().await;
        }
        self.taken = true;
        Turn { turns: self.turns.clone(), agent: self.agent.clone() }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.change(&self.agent, |line| line.quota.leave());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.taken {
            return;
        }
        self.turns.change(&self.agent, |line| {
            line.waiting.remove(&self.ticket);
            if !line.quota.give_up(&self.ticket) {
                // It was called and did not hear it.
                line.quota.leave();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    const LIMITS: Limits = Limits { max_running: 1, max_queued: 2 };

    fn ask(turns: &Turns) -> Result<Admitted, Busy> {
        turns.admit(&AgentId::parse("a").unwrap(), LIMITS, Quota::ask)
    }

    fn place(turns: &Turns) -> Place {
        match ask(turns) {
            Ok(Admitted::Later(place)) => place,
            Ok(Admitted::Now(_)) | Err(_) => panic!("there is no place"),
        }
    }

    #[test]
    fn whoever_ends_calls_the_next() {
        let turns = Turns::default();
        let Ok(Admitted::Now(first)) = ask(&turns) else { panic!("there is room") };
        let (mut second, mut third) = (place(&turns), place(&turns));
        assert!(ask(&turns).is_err());
        assert!(second.turn().now_or_never().is_none());
        drop(first);
        let turn = second.turn().now_or_never().unwrap();
        assert!(third.turn().now_or_never().is_none());
        drop(second);
        assert!(third.turn().now_or_never().is_none(), "only the turn counts by then");
        drop(turn);
        drop(third.turn().now_or_never().unwrap());
        drop(third);
        assert!(turns.lines().is_empty());
    }

    #[test]
    fn a_turn_that_nobody_takes_is_passed_on() {
        let turns = Turns::default();
        let first = ask(&turns);
        let (second, gone, mut third) = (place(&turns), place(&turns), None::<Place>);
        drop(gone);
        third.replace(place(&turns));
        drop(first);
        drop(second);
        assert!(third.unwrap().turn().now_or_never().is_some());
        assert!(turns.lines().is_empty());
    }
}
