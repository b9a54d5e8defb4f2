//! Callbacks that receive the events of tasks. Each has a thread and a separate cursor in the
//! task's log: one that blocks delays no task, no other callback and not the hub's shutdown; one
//! that panics receives no more events.

use super::event::TaskEventValue;
use a2a_hub_core::{access_control::Principal, task::fold::TaskFold};
use a2a_hub_engine::{Reply, ReplyStream};
use a2a_hub_protocol::{
    error::ErrorKind,
    event::{SequencedEvent, TaskEvent},
    id::TaskId,
    operation::Operation,
};
use futures::future::join_all;
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::{Notify, mpsc},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Maximum number of callbacks, each of which has a thread.
const MAX_CALLBACKS: usize = 1_024;

/// Capacity of a callback's channel; further events stay in the log.
const WAITING: usize = 16;

/// Time that a call waits for its task's callbacks to process the final event; fast ones do so
/// before the call returns.
const FINAL_EVENT_TIMEOUT: Duration = Duration::from_millis(100);

/// Function that is called with each event.
pub(super) type Callback = Box<dyn FnMut(TaskEventValue) + Send>;

/// Error: too many callbacks are registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("subscribe to a task: {MAX_CALLBACKS} callbacks wait or listen already")]
pub struct CallbackLimitError;

/// Callbacks of all tasks. Cheap to clone.
#[derive(Clone)]
pub(super) struct Callbacks {
    engine: a2a_hub_engine::Hub,
    running: TaskTracker,
    stop: CancellationToken,
    handle: Handle,
    all: Arc<Mutex<HashMap<TaskId, Vec<Listening>>>>,
}

/// Shared state of one callback.
#[derive(Clone)]
struct Listening {
    /// Notified when the task of its id is created or continued.
    begun: Arc<Notify>,
    /// Cancelled when the callback has processed the final event, or stopped.
    over: CancellationToken,
}

impl Callbacks {
    pub(super) fn new(
        engine: a2a_hub_engine::Hub,
        running: TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        Self { engine, running, stop, handle: Handle::current(), all: Arc::default() }
    }

    /// True if a callback of that task is registered.
    pub(super) fn has(&self, task: &TaskId) -> bool {
        self.all.lock().contains_key(task)
    }

    /// Notifies the task's callbacks that it was created or continued.
    pub(super) fn begun(&self, task: &TaskId) {
        self.listeners(task).iter().for_each(|listening| listening.begun.notify_one());
    }

    /// Waits until the task's callbacks have processed its final event, at most for
    /// [`FINAL_EVENT_TIMEOUT`].
    pub(super) async fn wait_until_processed(&self, task: &TaskId) {
        let all = self.listeners(task);
        let over = join_all(all.iter().map(|listening| listening.over.cancelled()));
        // A slow callback processes it later.
        let _ = timeout(FINAL_EVENT_TIMEOUT, over).await;
    }

    fn listeners(&self, task: &TaskId) -> Vec<Listening> {
        self.all.lock().get(task).cloned().unwrap_or_default()
    }

    pub(super) fn add(&self, task: TaskId, callback: Callback) -> Result<(), CallbackLimitError> {
        let listening = Listening { begun: Arc::default(), over: CancellationToken::new() };
        {
            let mut all = self.all.lock();
            if all.values().map(Vec::len).sum::<usize>() >= MAX_CALLBACKS {
                return Err(CallbackLimitError);
            }
            all.entry(task.clone()).or_default().push(listening.clone());
        }
        let (events, receiver) = mpsc::channel(WAITING);
        let (over, of) = (listening.over.clone(), task.clone());
        let begun = thread::Builder::new()
            .name("callback".to_owned())
            .spawn(move || call(callback, receiver, &of, &over));
        if let Err(why) = begun {
            tracing::warn!(%task, %why, "cannot start the callback's thread, events are dropped");
            listening.over.cancel();
        }
        let (this, stop) = (self.clone(), self.stop.clone());
        let listen = async move {
            let over = listening.over.clone();
            let processed = async {
                tokio::select! {
                    () = this.listen(&task, &listening.begun, events) => {
                        // The callback's thread reports when it has processed the final event.
                        listening.over.cancelled().await;
                    }
                    () = over.cancelled() => {}
                }
            };
            stop.run_until_cancelled(Box::pin(processed)).await;
            let mut all = this.all.lock();
            if let Some(others) = all.get_mut(&task) {
                others.retain(|other| !Arc::ptr_eq(&other.begun, &listening.begun));
                if others.is_empty() {
                    all.remove(&task);
                }
            }
        };
        self.running.spawn_on(listen, &self.handle);
        Ok(())
    }

    /// Reads all events of the task, once it exists, and passes them on.
    async fn listen(&self, task: &TaskId, begun: &Notify, events: mpsc::Sender<TaskEventValue>) {
        let mut after = 0;
        let mut fold: Option<TaskFold> = None;
        loop {
            let resubscribe = Operation::Resubscribe { id: task.clone(), after: Some(after) };
            let mut stream = match self.engine.handle(&Principal::Operator, None, resubscribe).await
            {
                Ok(Reply::Stream(ReplyStream::Task(stream))) => stream,
                Ok(Reply::Stream(ReplyStream::Hub(_)) | Reply::One(_)) => return,
                Err(why) if why.kind == ErrorKind::TaskNotFound => {
                    begun.notified().await;
                    continue;
                }
                Err(why) => {
                    tracing::warn!(%task, %why, "callback stopped: cannot subscribe to the task");
                    return;
                }
            };
            let mut is_over = false;
            while let Some(Ok(event)) = stream.next().await {
                after = event.seq;
                take_in(&mut fold, &event);
                let task = fold.as_ref().map(TaskFold::task);
                is_over = task.is_none_or(|task| task.status.state.is_final());
                // Only the last event has the artifacts: a copy for each would cost the square of
                // their number.
                let artifacts =
                    task.filter(|_| is_over).map(|task| task.artifacts.as_slice().into());
                let value = TaskEventValue::new(event, artifacts.unwrap_or_default());
                if events.send(value).await.is_err() {
                    return;
                }
            }
            if is_over || fold.is_none() {
                return;
            }
            // The task waits for its client; a call with its id continues it.
            begun.notified().await;
        }
    }
}

/// Applies the event to the state of the task, which the final event reports.
fn take_in(fold: &mut Option<TaskFold>, event: &SequencedEvent) {
    match (&event.event, fold) {
        (TaskEvent::Created(created), fold) => *fold = Some(TaskFold::new(created.task.clone())),
        (event, Some(task)) => {
            // Events of the log are valid transitions.
            let _ = task.apply(event);
        }
        (_, None) => {}
    }
}

/// Body of a callback's thread.
fn call(
    mut callback: Callback,
    mut receiver: mpsc::Receiver<TaskEventValue>,
    task: &TaskId,
    over: &CancellationToken,
) {
    let _over = over.clone().drop_guard();
    while let Some(event) = receiver.blocking_recv() {
        if catch_unwind(AssertUnwindSafe(|| callback(event))).is_err() {
            tracing::warn!(%task, "callback panicked, further events are dropped");
            return;
        }
    }
}
