//! Contract tests for journals.

use super::events::{created, status, working};
use crate::{Storage, StorageError};
use a2a_hub_protocol::{id::TaskId, task::TaskState};

pub(super) async fn journal_is_kept_until_task_ends(storage: &impl Storage) {
    let (task, other) = (TaskId::fresh(), TaskId::fresh());
    let unknown = storage.record(&task, 0, "begun".to_owned()).await;
    assert_eq!(unknown, Err(StorageError::Uncreated(task.clone())));
    for task in [&task, &other] {
        storage.append(task, 0, vec![created(task, "c"), working()]).await.unwrap();
    }
    for (number, entry) in (0..).zip(["begun", "one", "two"]) {
        storage.record(&task, number, entry.to_owned()).await.unwrap();
    }
    let late = storage.record(&task, 2, "another two".to_owned()).await;
    let conflict = StorageError::Conflict { task: task.clone(), expected: 2, found: 3 };
    assert_eq!(late, Err(conflict));
    assert_eq!(storage.recorded(&task).await.unwrap(), ["begun", "one", "two"]);
    assert_eq!(storage.recorded(&other).await.unwrap(), [""; 0]);

    // Another run of the task has its own journal.
    storage.record(&task, 0, "begun again".to_owned()).await.unwrap();
    assert_eq!(storage.recorded(&task).await.unwrap(), ["begun again"]);

    storage.record(&other, 0, "begun".to_owned()).await.unwrap();
    storage.append(&task, 2, vec![status(TaskState::Completed, 3, None)]).await.unwrap();
    assert_eq!(storage.recorded(&task).await.unwrap(), [""; 0]);
    assert!(matches!(storage.record(&task, 0, String::new()).await, Err(StorageError::Illegal(_))));
    assert_eq!(storage.recorded(&other).await.unwrap(), ["begun"]);
}
