//! Streaming operations that an agent offers: its card declares streaming as a whole, and some
//! servers refuse single operations of it nevertheless.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Streaming operations that an agent offers. A refused operation is not requested again by this
/// client: its tasks are polled.
#[derive(Debug)]
pub(crate) struct Streaming {
    is_declared: bool,
    new_tasks_refused: AtomicBool,
    follow_ups_refused: AtomicBool,
    subscriptions_refused: AtomicBool,
}

/// A streaming operation. The first message of a task and later ones differ: the official
/// JavaScript SDK 1.3.0 streams new tasks, and refuses most follow-up messages, namely where the
/// agent's first event is not the whole task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamingOperation {
    /// `SendStreamingMessage` that begins a task.
    NewTask,
    /// `SendStreamingMessage` to an existing task.
    FollowUp,
    /// `SubscribeToTask`.
    Subscription,
}

impl Streaming {
    /// Creates the state of an agent whose card declares streaming, or does not.
    pub(crate) fn new(is_declared: bool) -> Self {
        Self {
            is_declared,
            new_tasks_refused: AtomicBool::new(false),
            follow_ups_refused: AtomicBool::new(false),
            subscriptions_refused: AtomicBool::new(false),
        }
    }

    /// True unless the card declares no streaming, or the agent has refused the operation.
    pub(crate) fn offers(&self, operation: StreamingOperation) -> bool {
        self.is_declared && !self.refusal(operation).load(Relaxed)
    }

    /// Remembers that the agent refuses the operation.
    pub(crate) fn refuse(&self, operation: StreamingOperation) {
        self.refusal(operation).store(true, Relaxed);
    }

    fn refusal(&self, operation: StreamingOperation) -> &AtomicBool {
        match operation {
            StreamingOperation::NewTask => &self.new_tasks_refused,
            StreamingOperation::FollowUp => &self.follow_ups_refused,
            StreamingOperation::Subscription => &self.subscriptions_refused,
        }
    }
}
