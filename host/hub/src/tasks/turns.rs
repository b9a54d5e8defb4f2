//! A task's turn: taken, given back while the task waits for its client, lent while its agent only waits for other agents.

use super::{
    actor::{Payload, TaskActor},
    run_queue::{Admitted, Asking, RunPermit},
};
use a2a_hub_core::lifecycle::Signal;
use a2a_hub_runtime::port::tasks::WaitsFor;
use tokio::sync::oneshot;

impl TaskActor {
    /// Asks for the task's turn again, which it gave back while it waited for its client.
    pub(super) fn come_back(&mut self, payload: &mut Payload) -> Option<Signal> {
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
            Admitted::Now(turn) => Some(self.take(turn)),
            Admitted::Later(ticket) => {
                self.ticket = Some(ticket);
                None
            }
        }
    }

    fn ask_for_turn(&self) -> Admitted {
        let task = self.recorder.task();
        let asking = Asking { agent: &self.agent, task: &task.id, context: &task.context_id };
        match self.lane {
            Some(_) => self.queue.go_on(asking),
            None => self.queue.take_up(asking),
        }
    }

    pub(super) fn give_turn_back(&mut self) {
        self.turn = None;
        // An agent that goes on waits for its turn all the same.
        if self.resuming.is_empty() {
            self.ticket = None;
        }
    }

    /// The agent, or a program of its, only waits for others: other tasks may have its turn.
    pub(super) fn rest(&mut self, waits_for: WaitsFor) -> Signal {
        // Also one that it came to beside a question of a child's.
        self.turn = None;
        self.rests += 1;
        self.awaits_client += usize::from(waits_for == WaitsFor::Client);
        Signal::Waits(true)
    }

    /// Who waited goes on: once it is the task's turn, unless another one of them waits still.
    pub(super) fn resume(
        &mut self,
        waits_for: WaitsFor,
        call: oneshot::Sender<()>,
    ) -> Option<Signal> {
        self.rests = self.rests.saturating_sub(1);
        let of_client = usize::from(waits_for == WaitsFor::Client);
        self.awaits_client = self.awaits_client.saturating_sub(of_client);
        if self.rests == 0 && self.turn.is_none() && self.ticket.is_none() {
            match self.ask_for_turn() {
                Admitted::Now(turn) => {
                    self.take(turn);
                }
                Admitted::Later(ticket) => self.ticket = Some(ticket),
            }
        }
        if self.ticket.is_some() {
            self.resuming.push(call);
        } else {
            // A guest that was ended meanwhile needs no turn.
            let _ = call.send(());
        }
        (self.rests == 0).then_some(Signal::Waits(false))
    }

    /// The task's turn has come. That which its agent had lent is nothing to the task itself, unless an answer waits for it, too.
    pub(super) fn called(&mut self, turn: RunPermit) -> Option<Signal> {
        let signal = self.take(turn);
        let was_lent = !self.resuming.is_empty();
        for resuming in self.resuming.drain(..) {
            let _ = resuming.send(());
        }
        (!was_lent || self.lifecycle.returns()).then_some(signal)
    }

    /// It is the task's turn; the lane that may come with that is the task's until its end.
    pub(super) fn take(&mut self, mut turn: RunPermit) -> Signal {
        self.lane = turn.take_lane().or_else(|| self.lane.take());
        (self.turn, self.ticket) = (Some(turn), None);
        Signal::Turn
    }
}
