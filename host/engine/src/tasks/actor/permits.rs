//! Run permit of a task: acquired, released while the task waits for its client, lent while its
//! agent only waits for other agents.

use crate::tasks::run_queue::{
    Asking, ClientWait, ContextLock, PermitRequest, QueueTicket, RunPermit, RunQueue,
};
use a2a_hub_agents::Agent;
use a2a_hub_core::task::lifecycle::Signal;
use a2a_hub_runtime::port::tasks::WaitsFor;
use std::future::pending;
use tokio::sync::oneshot;

/// A task's run permit or its ticket in the run queue, and its conversation's lock. The permit is
/// lent while the agent and its programs only wait for other tasks.
pub(in crate::tasks) struct Permits {
    queue: RunQueue,
    /// The run permit, while the task holds one.
    turn: Option<RunPermit>,
    /// The conversation's lock, held from the task's first permit to its end.
    context_lock: Option<ContextLock>,
    /// Ticket in the run queue, while the task waits for a permit.
    ticket: Option<QueueTicket>,
    /// Number of callers (the agent and its programs) that only wait for other tasks.
    rests: usize,
    /// Number of those that wait for their client's answer.
    awaits_client: usize,
    /// Waiters for the permit to be reacquired.
    resuming: Vec<oneshot::Sender<()>>,
}

impl Permits {
    /// Begins with the conversation's lock, if it is already held, and with the result of the
    /// task's first request for a permit, if it made one.
    pub(in crate::tasks) fn new(
        queue: RunQueue,
        context_lock: Option<ContextLock>,
        admitted: Option<PermitRequest>,
    ) -> Self {
        let (turn, ticket) = match admitted {
            Some(PermitRequest::Now(turn)) => (Some(turn), None),
            Some(PermitRequest::Later(ticket)) => (None, Some(ticket)),
            None => (None, None),
        };
        Self { queue, turn, context_lock, ticket, rests: 0, awaits_client: 0, resuming: Vec::new() }
    }

    /// True if the task holds the permit.
    pub(in crate::tasks) fn has_permit(&self) -> bool {
        self.turn.is_some()
    }

    /// True if one of the callers only waits for other tasks.
    pub(in crate::tasks) fn is_lent(&self) -> bool {
        self.rests > 0
    }

    /// True if no caller waits for the work of another task: at most for their client's answer.
    pub(in crate::tasks) fn waits_for_no_work(&self) -> bool {
        self.rests == self.awaits_client
    }

    /// Permit with which the task begins.
    pub(in crate::tasks) fn take_first(&mut self) -> Option<RunPermit> {
        self.turn.take()
    }

    /// Waits for the permit; forever, if the task has no ticket.
    pub(in crate::tasks) async fn granted(&mut self) -> RunPermit {
        match &mut self.ticket {
            Some(ticket) => ticket.turn().await,
            None => pending().await,
        }
    }

    /// Requests the permit that the task released while it waited for its client.
    pub(in crate::tasks) fn request(&mut self, asking: Asking<'_>) -> Option<Signal> {
        if self.turn.is_some() {
            return Some(Signal::Turn);
        }
        if self.ticket.is_some() {
            return None;
        }
        match self.ask(asking) {
            PermitRequest::Now(turn) => Some(self.accept(turn)),
            PermitRequest::Later(ticket) => {
                self.ticket = Some(ticket);
                None
            }
        }
    }

    fn ask(&self, asking: Asking<'_>) -> PermitRequest {
        match self.context_lock {
            Some(_) => self.queue.reacquire(asking),
            None => self.queue.readmit(asking),
        }
    }

    /// Releases the permit.
    pub(in crate::tasks) fn release(&mut self) {
        self.turn = None;
    }

    /// Releases the permit while the task waits for its client. An agent that continues still waits
    /// for the permit.
    pub(in crate::tasks) fn give_back(&mut self) {
        self.turn = None;
        if self.resuming.is_empty() {
            self.ticket = None;
        }
    }

    /// Releases the permit, and leaves the queue.
    pub(in crate::tasks) fn give_up(&mut self) {
        (self.turn, self.ticket) = (None, None);
    }

    /// Leaves the queue.
    pub(in crate::tasks) fn leave_queue(&mut self) {
        self.ticket = None;
    }

    /// Releases the permit while the agent, or one of its programs, only waits for others.
    pub(in crate::tasks) fn release_permit(&mut self, waits_for: WaitsFor) -> Signal {
        // Also a permit that was granted while a child's question was open.
        self.turn = None;
        self.rests += 1;
        self.awaits_client += usize::from(waits_for == WaitsFor::Client);
        Signal::Waits(true)
    }

    /// Releases the permit of a run that only relays for children, from its start to its end.
    pub(in crate::tasks) fn release_for_whole_run(&mut self) {
        (self.rests, self.turn) = (1, None);
    }

    /// Ends one wait of the agent or of a program: reacquires the permit, unless another of them
    /// still waits.
    pub(in crate::tasks) fn reacquire_permit(
        &mut self,
        asking: Asking<'_>,
        waits_for: WaitsFor,
        call: oneshot::Sender<()>,
    ) -> Option<Signal> {
        self.rests = self.rests.saturating_sub(1);
        let of_client = usize::from(waits_for == WaitsFor::Client);
        self.awaits_client = self.awaits_client.saturating_sub(of_client);
        if self.rests == 0 && self.turn.is_none() && self.ticket.is_none() {
            match self.ask(asking) {
                PermitRequest::Now(turn) => {
                    self.accept(turn);
                }
                PermitRequest::Later(ticket) => self.ticket = Some(ticket),
            }
        }
        if self.ticket.is_some() {
            self.resuming.push(call);
        } else {
            // A guest that has ended needs no permit.
            let _ = call.send(());
        }
        (self.rests == 0).then_some(Signal::Waits(false))
    }

    /// Forgets the waits of a run that has ended.
    pub(in crate::tasks) fn forget_waits(&mut self) {
        (self.rests, self.awaits_client) = (0, 0);
    }

    /// Takes the granted permit; true if the agent had lent it.
    pub(in crate::tasks) fn take_granted(&mut self, turn: RunPermit) -> (Signal, bool) {
        let signal = self.accept(turn);
        let was_lent = !self.resuming.is_empty();
        for resuming in self.resuming.drain(..) {
            let _ = resuming.send(());
        }
        (signal, was_lent)
    }

    /// Takes the permit; a conversation lock that comes with it stays with the task to its end.
    fn accept(&mut self, mut turn: RunPermit) -> Signal {
        self.context_lock = turn.take_context_lock().or_else(|| self.context_lock.take());
        (self.turn, self.ticket) = (Some(turn), None);
        Signal::Turn
    }

    /// Counts the task as one that waits for its client while its agent uses capacity.
    pub(in crate::tasks) fn count_wait(&self, agent: &Agent) -> ClientWait {
        self.queue.wait(agent)
    }

    /// The permit and the conversation's lock, at the end of the task.
    pub(in crate::tasks) fn into_parts(self) -> (Option<RunPermit>, Option<ContextLock>) {
        (self.turn, self.context_lock)
    }
}
