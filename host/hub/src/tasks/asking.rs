//! What a task asks its client: one question after the other, for its record shows one at a time; and what becomes of its agent
//! meanwhile.

use super::{
    actor::{Payload, TaskActor},
    parking::Room,
    port::{GuestRequest, Question},
};
use a2a_hub_clock as clock;
use a2a_hub_core::{facts, grant::Resume, lifecycle::Signal};
use a2a_hub_runtime::Failure;

impl TaskActor {
    /// The agent asks, or a child of its. What the client has answered before a restart is heard at once; what is asked beside another
    /// question waits until that one is done with.
    pub(super) fn ask(&mut self, question: Box<Question>, payload: &mut Payload) -> Option<Signal> {
        let is_beside = self.guest.as_ref().is_some_and(|guest| guest.asked.is_some());
        let Some(question) = self.answered_before(question) else {
            // The task goes on, although its log says that it waits.
            let is_told = !is_beside && self.recorder.task().status.state.is_interrupted();
            return is_told.then_some(Signal::WentOn);
        };
        if is_beside {
            let waits = question.waits;
            self.guest.as_mut()?.questions.push_back(question);
            if waits && self.lifecycle.asks() {
                self.turn = None;
            }
            return waits.then_some(Signal::Waits(true));
        }
        let Question { need, prompt, patience, answer, of_child, waits } = *question;
        let (state, task, now) = (need.state(), self.recorder.task(), clock::now());
        let is_childs = of_child.is_some();
        payload.events = match of_child {
            // It stands in the record since the hub was restarted.
            Some(asked) if facts::asks_for_child(task, &asked) => Vec::new(),
            Some(asked) => vec![facts::asked_for_child(task, state, &asked, prompt, now)],
            None => vec![facts::asked(task, state, prompt, now)],
        };
        if let Some(guest) = &mut self.guest {
            (guest.asked, guest.answer, guest.asks_for_child) = (Some(answer), None, is_childs);
        }
        Some(Signal::Asked { state, patience, waits: waits || self.rests > 0 })
    }

    /// Whether the agent waits for the answer to a question of its own, whatever else it does.
    pub(super) fn own_question_stands(&self) -> bool {
        let guest = self.guest.as_ref().filter(|guest| !guest.asks_for_child);
        let asked = guest.and_then(|guest| guest.asked.as_ref());
        self.lifecycle.asks() && asked.is_some_and(|asked| !asked.is_closed())
    }

    /// What is asked next, once nothing is asked any more. Whoever has gone meanwhile asks nothing.
    pub(super) fn next_question(&mut self) -> Option<GuestRequest> {
        let guest = self.guest.as_mut().filter(|guest| guest.asked.is_none())?;
        while let Some(question) = guest.questions.pop_front() {
            if !question.answer.is_closed() {
                return Some(GuestRequest::Ask(question));
            }
        }
        None
    }

    /// Lets the agent hear what it waits for: the answer, or that there was none in time.
    pub(super) fn answer(&mut self) {
        let Some(guest) = &mut self.guest else { return };
        let answer = guest.answer.take().ok_or(Failure::Timeout);
        if let Some(asked) = guest.asked.take() {
            // A guest that was ended meanwhile needs no answer.
            let _ = asked.send(answer);
        }
        // What was asked was a child's question, and the agent waits for others still.
        if self.rests > self.awaits_client {
            self.turn = None;
        }
    }

    /// Offers the room of an agent that waits for its client, or counts it; takes that back once it goes on.
    pub(super) fn see_to_room(&mut self) {
        // What only looks after children takes up no room.
        let has_agent = self.guest.as_ref().is_some_and(|guest| !guest.tends);
        let waits = has_agent && self.lifecycle.only_waits();
        let is_free = waits && self.can_be_let_go();
        match (&self.room, &self.own) {
            (_, _) if !waits => self.room = None,
            (Some(Room::Offered { .. }), _) if is_free => {}
            (_, Some(own)) if is_free => {
                let offer = self.parking.offer(own.clone());
                self.room = Some(Room::Offered { _offer: offer });
            }
            (Some(Room::Counted { .. }), _) => {}
            (_, _) => self.room = Some(Room::Counted { _wait: self.queue.wait(&self.agent) }),
        }
    }

    /// Whether the agent may be let go, to be started again with the answer: it waits for its own client and for nothing else, and
    /// nobody is at work for it.
    pub(super) fn can_be_let_go(&self) -> bool {
        let asks_itself = self.guest.as_ref().is_some_and(|guest| !guest.asks_for_child);
        let has_children =
            self.tasks.as_ref().is_some_and(|tasks| tasks.has_children(&self.recorder.task().id));
        asks_itself
            && self.lifecycle.only_waits()
            && self.rests == self.awaits_client
            && self.agent.resume() == Resume::Session
            && !has_children
    }
}
