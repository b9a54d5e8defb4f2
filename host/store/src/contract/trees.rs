//! Contract tests for trees of delegated tasks.

use super::events::{chunk, created, status, working};
use crate::Storage;
use a2a_hub_protocol::{
    budget::Budget, event::TaskEvent, id::TaskId, parent::Parent, task::TaskState,
};
use std::sync::Arc;

/// Creates a task below the given one.
async fn begin_below(storage: &impl Storage, above: &TaskId, root: &TaskId) -> TaskId {
    let task = TaskId::fresh();
    let mut begin = TaskEvent::clone(&created(&task, "below"));
    if let TaskEvent::Created(created) = &mut begin {
        let (key, budget) = (Some("draft".to_owned()), Budget::default());
        let parent = Parent { task: above.clone(), root: root.clone(), depth: 1, key, budget };
        created.parent = Some(parent);
    }
    storage.append(&task, 0, vec![Arc::new(begin), working()]).await.unwrap();
    task
}

/// An unfinished task counts its descendants, and rejoins its children by key.
pub(super) async fn descendants_of_live_task_are_kept(storage: &impl Storage) {
    let (root, other) = (TaskId::fresh(), TaskId::fresh());
    for task in [&root, &other] {
        storage.append(task, 0, vec![created(task, "c"), working()]).await.unwrap();
    }
    let child = begin_below(storage, &root, &root).await;
    let grandchild = begin_below(storage, &child, &root).await;
    let of_other = begin_below(storage, &other, &other).await;
    let end = async |task: &TaskId| {
        let done = vec![chunk("x"), status(TaskState::Completed, 2, None)];
        storage.append(task, 2, done).await.unwrap();
    };
    for task in [&grandchild, &child, &of_other, &other] {
        end(task).await;
    }
    let all =
        vec![root.clone(), other.clone(), child.clone(), grandchild.clone(), of_other.clone()];
    let gone = [other, of_other];
    assert_eq!(storage.finished(None, 100).await.unwrap(), gone);
    assert_eq!(storage.forget_tasks(all.clone()).await, Ok(2));
    for task in [&root, &child, &grandchild] {
        assert!(storage.head(task).await.unwrap().is_some());
        assert!(!storage.events(task, 0, 9).await.unwrap().is_empty());
    }
    end(&root).await;
    assert_eq!(storage.finished(None, 100).await.unwrap(), [root, child, grandchild]);
    assert_eq!(storage.forget_tasks(all).await, Ok(3));
}
