//! Run permit of a task: acquired, released while the task waits for its client, lent while its
//! agent only waits for other agents.

use super::{SignalPayload, TaskActor};
use crate::tasks::run_queue::{Asking, PermitRequest, RunPermit};
use a2a_hub_core::task::lifecycle::Signal;
use a2a_hub_runtime::port::tasks::WaitsFor;
use tokio::sync::oneshot;

impl TaskActor {
    /// Requests the run permit that the task released while it waited for its client.
    pub(in crate::tasks) fn come_back(&mut self, payload: &mut SignalPayload) -> Option<Signal> {
        match (&mut self.guest, payload.start.take()) {
            (Some(guest), _) => guest.answer = payload.answer.take(),
            (None, Some(start)) => self.start = Some(self.recorded(start)),
            (None, None) => {}
        }
        if self.turn.is_some() {
            return Some(Signal::Turn);
        }
        if self.ticket.is_some() {
            return None;
        }
        match self.ask_for_turn() {
            PermitRequest::Now(turn) => Some(self.take(turn)),
            PermitRequest::Later(ticket) => {
                self.ticket = Some(ticket);
                None
            }
        }
    }

    fn ask_for_turn(&self) -> PermitRequest {
        let task = self.recorder.task();
        let asking = Asking { agent: &self.agent, task: &task.id, context: &task.context_id };
        match self.lane {
            Some(_) => self.queue.go_on(asking),
            None => self.queue.take_up(asking),
        }
    }

    pub(in crate::tasks) fn give_turn_back(&mut self) {
        self.turn = None;
        // An agent that continues still waits for the permit.
        if self.resuming.is_empty() {
            self.ticket = None;
        }
    }

    /// Releases the permit while the agent, or one of its programs, only waits for others.
    pub(in crate::tasks) fn rest(&mut self, waits_for: WaitsFor) -> Signal {
        // Also a permit that was granted while a child's question was open.
        self.turn = None;
        self.rests += 1;
        self.awaits_client += usize::from(waits_for == WaitsFor::Client);
        Signal::Waits(true)
    }

    /// Ends one wait of the agent or of a program: reacquires the permit, unless another of them
    /// still waits.
    pub(in crate::tasks) fn resume(
        &mut self,
        waits_for: WaitsFor,
        call: oneshot::Sender<()>,
    ) -> Option<Signal> {
        self.rests = self.rests.saturating_sub(1);
        let of_client = usize::from(waits_for == WaitsFor::Client);
        self.awaits_client = self.awaits_client.saturating_sub(of_client);
        if self.rests == 0 && self.turn.is_none() && self.ticket.is_none() {
            match self.ask_for_turn() {
                PermitRequest::Now(turn) => {
                    self.take(turn);
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

    /// Takes the granted permit. A permit that the agent had lent is no signal to the lifecycle,
    /// unless an answer waits for the permit as well.
    pub(in crate::tasks) fn called(&mut self, turn: RunPermit) -> Option<Signal> {
        let signal = self.take(turn);
        let was_lent = !self.resuming.is_empty();
        for resuming in self.resuming.drain(..) {
            let _ = resuming.send(());
        }
        (!was_lent || self.lifecycle.returns()).then_some(signal)
    }

    /// Takes the permit; a conversation lock that comes with it stays with the task to its end.
    pub(in crate::tasks) fn take(&mut self, mut turn: RunPermit) -> Signal {
        self.lane = turn.take_lane().or_else(|| self.lane.take());
        (self.turn, self.ticket) = (Some(turn), None);
        Signal::Turn
    }
}
