//! Contract tests for requests that began tasks.

use super::{at, created, status};
use crate::{BegunRequest, Storage};
use a2a_hub_protocol::{event::TaskEvent, id::TaskId, task::TaskState};
use std::sync::Arc;

/// Creation of a task at that time, by a request with this fingerprint.
fn asked(task: &TaskId, ms: u64, request: Option<&str>) -> Arc<TaskEvent> {
    let mut event = Arc::unwrap_or_clone(created(task, "here"));
    if let TaskEvent::Created(created) = &mut event {
        created.task.status.timestamp = at(ms);
        created.request = request.map(str::to_owned);
    }
    Arc::new(event)
}

pub(super) async fn requests_are_found_by_time(storage: &impl Storage) {
    let ids: Vec<_> = (0..5).map(|_| TaskId::fresh()).collect();
    let made =
        [(1, Some("old")), (2, Some("begun before")), (5, Some("a")), (6, None), (7, Some("b"))];
    for (id, (ms, request)) in ids.iter().zip(made) {
        storage.append(id, 0, vec![asked(id, ms, request)]).await.unwrap();
    }
    // A task that changed since then is searched, but only one that began since then is returned.
    let later = status(TaskState::Working, 9, None);
    storage.append(&ids[1], 1, vec![later]).await.unwrap();
    let found = |n: usize, fingerprint: &str, ms| BegunRequest {
        fingerprint: fingerprint.to_owned(),
        task: ids[n].clone(),
        by: None,
        created: at(ms),
    };
    let both = [found(2, "a", 5), found(4, "b", 7)];
    assert_eq!(storage.requests(&at(5), 10).await.unwrap(), both);
    assert_eq!(storage.requests(&at(5), 2).await.unwrap(), both[1..], "of the latest two tasks");
    assert_eq!(storage.requests(&at(7), 10).await.unwrap(), both[1..]);
    assert_eq!(storage.requests(&at(8), 10).await.unwrap(), []);
}
