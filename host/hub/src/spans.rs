//! Where the spans of tasks go that are over, if anywhere: to a bounded queue, from which whoever sends them takes them. A task waits
//! for none of that, and a span that finds no room is lost (load shedding).

use a2a_hub_core::task_span::TaskSpan;
use a2a_hub_protocol::{id::AgentId, task::Task};
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How many spans wait to be sent: those of some minutes of a busy hub.
const QUEUE: usize = 2_048;

/// The spans of tasks. Cheap to clone; without anybody who sends them, none are made.
#[derive(Clone, Default)]
pub struct Spans(Arc<Shared>);

#[derive(Default)]
struct Shared {
    to: Mutex<Option<mpsc::Sender<TaskSpan>>>,
    lost: AtomicU64,
    /// Why none can be sent now.
    trouble: Mutex<Option<String>>,
    closed: CancellationToken,
}

impl Spans {
    /// Spans that are made, and where they are taken from to be sent.
    pub fn queue() -> (Self, mpsc::Receiver<TaskSpan>) {
        let (to, from) = mpsc::channel(QUEUE);
        (Self(Arc::new(Shared { to: Mutex::new(Some(to)), ..Shared::default() })), from)
    }

    /// A task is where it is now: its span is sent, once the task is over.
    pub(crate) fn of(&self, agent: &AgentId, task: &Task) {
        let to = self.0.to.lock();
        let Some(to) = &*to else { return };
        if let Some(span) = TaskSpan::of(agent, task)
            && to.try_send(span).is_err()
        {
            self.lose(1);
        }
    }

    /// So many spans could not be sent.
    pub fn lose(&self, spans: u64) {
        self.0.lost.fetch_add(spans, Ordering::Relaxed);
    }

    /// How many were lost since the hub began.
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Notes why spans cannot be sent, or that they can; returns whether that is new.
    pub fn note(&self, trouble: Option<String>) -> bool {
        let mut known = self.0.trouble.lock();
        let is_new = known.is_some() != trouble.is_some();
        *known = trouble;
        is_new
    }

    /// Why spans cannot be sent now, and how many were lost, if that is so.
    pub(crate) fn trouble(&self) -> Option<String> {
        let trouble = self.0.trouble.lock().clone()?;
        Some(format!("{trouble}; {} spans were lost so far", self.lost()))
    }

    /// Makes no more: who sends them comes to an end with those that are left.
    pub fn close(&self) {
        *self.0.to.lock() = None;
        self.0.closed.cancel();
    }

    /// Waits until no more are made.
    pub async fn closed(&self) {
        self.0.closed.cancelled().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::{ContextId, TaskId},
        task::{TaskState, TaskStatus},
    };

    fn over() -> Task {
        let state = TaskState::Completed;
        Task {
            id: TaskId::fresh(),
            context_id: ContextId::fresh(),
            status: TaskStatus { state, message: None, timestamp: String::new() },
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: None,
        }
    }

    #[tokio::test]
    async fn what_finds_no_room_is_lost_and_counted() {
        let agent = AgentId::parse("echo").unwrap();
        let (spans, mut from) = Spans::queue();
        for _ in 0..QUEUE + 3 {
            spans.of(&agent, &over());
        }
        assert_eq!(spans.lost(), 3);
        assert_eq!(spans.trouble(), None, "a burst is no trouble");
        assert!(spans.note(Some("down".to_owned())) && !spans.note(Some("still down".to_owned())));
        assert_eq!(spans.trouble().as_deref(), Some("still down; 3 spans were lost so far"));
        assert!(spans.note(None) && spans.trouble().is_none());
        spans.close();
        spans.of(&agent, &over());
        let mut taken = 0;
        while from.recv().await.is_some() {
            taken += 1;
        }
        assert_eq!((taken, spans.lost()), (QUEUE, 3), "what was there is still sent, and no more");
        Spans::default().of(&agent, &over());
    }
}
