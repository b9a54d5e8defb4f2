//! Events of a signal in the task's log.

use super::{SignalPayload, TaskActor};
use a2a_hub_clock as clock;
use a2a_hub_core::task::{
    lifecycle::{Fault, Record},
    metadata,
};
use a2a_hub_protocol::{event::TaskEvent, id::MessageId, task::TaskState};
use std::mem;
use tokio::task::yield_now;

/// Number of events that are applied before other tasks get the thread: less than a millisecond of
/// work. An agent may emit tens of thousands in one call.
pub(in crate::tasks) const EVENTS_AT_ONCE: usize = 256;

impl TaskActor {
    /// Records the events of a log entry.
    pub(super) async fn record(&mut self, record: Record, payload: &mut SignalPayload) {
        let (task, now) = (self.recorder.task(), clock::now());
        let pending_messages = self.pending_messages();
        let event = match record {
            Record::Itself if payload.events.len() > EVENTS_AT_ONCE => {
                // Boxed, as it is rare: a future reserves space for all that it may await.
                let events = mem::take(&mut payload.events);
                return Box::pin(self.record_batch(events, pending_messages)).await;
            }
            Record::Itself | Record::Waits => {
                for event in payload.events.drain(..) {
                    self.recorder.record(metadata::with_pending_messages(event, &pending_messages));
                }
                return;
            }
            Record::Working => metadata::working(task, now),
            Record::Interim => {
                // The first of them is the input of the next run.
                let still_pending = pending_messages.get(1..).unwrap_or_default();
                let ends = payload.events.drain(..);
                let run_events: Vec<_> = ends
                    .flat_map(|end| metadata::end_of_run_events(task, end, still_pending, &now))
                    .collect();
                run_events.into_iter().for_each(|event| self.recorder.record(event));
                return;
            }
            Record::Canceled => metadata::canceled(task, payload.facts.take(), now),
            Record::Failed(fault) => {
                self.was_cut |= fault == Fault::HubStopped;
                let text = fault.text(self.lifecycle.timeouts());
                metadata::failed(task, fault.reason(), &text, now)
            }
            Record::Again => return self.record_again(),
            Record::Continues => return self.record_continuation(),
            Record::Evicted => {
                let evicted = metadata::evicted(task, &self.agent.card.name, now);
                self.question_marks.inherit(task, &evicted);
                evicted
            }
            Record::Stranded => {
                metadata::interrupted(task, &self.agent.card.name, TaskState::InputRequired, now)
            }
            Record::Interrupted => {
                self.was_cut = true;
                metadata::interrupted(task, &self.agent.card.name, TaskState::InputRequired, now)
            }
        };
        self.recorder.record(metadata::with_pending_messages(event, &pending_messages));
    }

    /// Records many events, which are still stored together, with pauses for other tasks.
    async fn record_batch(&mut self, events: Vec<TaskEvent>, pending_messages: Vec<MessageId>) {
        for (number, event) in (1..).zip(events) {
            self.recorder.record(metadata::with_pending_messages(event, &pending_messages));
            if number % EVENTS_AT_ONCE == 0 {
                yield_now().await;
            }
        }
    }
}
