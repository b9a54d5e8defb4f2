//! Export queue for the spans of finished tasks: bounded, and read by an exporter if one is
//! configured. Tasks never wait for it; a span that finds the queue full is dropped (load
//! shedding).

use a2a_hub_core::task::span::TaskSpan;
use a2a_hub_protocol::{id::AgentId, task::Task};
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Capacity of the queue: some minutes of a busy hub.
const QUEUE: usize = 2_048;

/// Spans of tasks. Cheap to clone; without an exporter none are made.
#[derive(Clone, Default)]
pub struct Spans(Arc<SpanQueue>);

#[derive(Default)]
struct SpanQueue {
    to: Mutex<Option<mpsc::Sender<TaskSpan>>>,
    lost: AtomicU64,
    /// Reason why none can be exported now.
    failure: Mutex<Option<String>>,
    closed: CancellationToken,
}

impl Spans {
    /// Creates a queue, and its receiver for the exporter.
    pub fn queue() -> (Self, mpsc::Receiver<TaskSpan>) {
        let (to, from) = mpsc::channel(QUEUE);
        (Self(Arc::new(SpanQueue { to: Mutex::new(Some(to)), ..SpanQueue::default() })), from)
    }

    /// Queues the span of a task that is over.
    pub fn record(&self, agent: &AgentId, task: &Task) {
        let to = self.0.to.lock();
        let Some(to) = &*to else { return };
        if let Some(span) = TaskSpan::for_task(agent, task)
            && to.try_send(span).is_err()
        {
            self.lose(1);
        }
    }

    /// Counts dropped spans.
    pub fn lose(&self, spans: u64) {
        self.0.lost.fetch_add(spans, Ordering::Relaxed);
    }

    /// Number of spans dropped since the hub's start.
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Sets or clears the reason why spans cannot be exported; returns true if the status has
    /// changed.
    pub fn note(&self, failure: Option<String>) -> bool {
        let mut known = self.0.failure.lock();
        let is_new = known.is_some() != failure.is_some();
        *known = failure;
        is_new
    }

    /// Reason why spans cannot be exported now, with the number of dropped ones.
    pub fn failure(&self) -> Option<String> {
        let failure = self.0.failure.lock().clone()?;
        Some(format!("{failure}; {} spans were lost so far", self.lost()))
    }

    /// Closes the queue: the exporter ends after the spans that are left.
    pub fn close(&self) {
        *self.0.to.lock() = None;
        self.0.closed.cancel();
    }

    /// Waits until the queue is closed.
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
    async fn full_queue_drops_and_counts_spans() {
        let agent = AgentId::parse("echo").unwrap();
        let (spans, mut from) = Spans::queue();
        for _ in 0..QUEUE + 3 {
            spans.record(&agent, &over());
        }
        assert_eq!(spans.lost(), 3);
        assert_eq!(spans.failure(), None, "a burst is no trouble");
        assert!(spans.note(Some("down".to_owned())) && !spans.note(Some("still down".to_owned())));
        assert_eq!(spans.failure().as_deref(), Some("still down; 3 spans were lost so far"));
        assert!(spans.note(None) && spans.failure().is_none());
        spans.close();
        spans.record(&agent, &over());
        let mut taken = 0;
        while from.recv().await.is_some() {
            taken += 1;
        }
        assert_eq!((taken, spans.lost()), (QUEUE, 3), "what was there is still sent, and no more");
        Spans::default().record(&agent, &over());
    }
}
