//! Contract tests for reviews.

use super::{at, created, status};
use crate::Storage;
use a2a_hub_core::review::Review;
use a2a_hub_protocol::{id::TaskId, task::TaskState};

pub(super) async fn reviews_belong_to_owner_and_task(storage: &impl Storage) {
    let [task, other] = [TaskId::fresh(), TaskId::fresh()];
    for task in [&task, &other] {
        let events = vec![
            created(task, "c"),
            status(TaskState::Working, 1, None),
            status(TaskState::Completed, 2, None),
        ];
        storage.append(task, 0, events).await.unwrap();
    }
    let draft = |task: &TaskId, owner: &str| Review::draft(task.clone(), owner.to_owned(), at(0));
    let (mut first, second) = (draft(&task, "person:ada"), draft(&task, "person:ada"));
    let (of_bob, elsewhere) = (draft(&task, "person:bob"), draft(&other, "person:ada"));
    for review in [&second, &first, &of_bob, &elsewhere] {
        storage.set_review(review).await.unwrap();
    }
    first.add(vec![(None, "\"quoted\"\n".to_owned())]).unwrap();
    storage.set_review(&first).await.unwrap();
    assert_eq!(storage.reviews(&task, "person:ada").await.unwrap(), [first.clone(), second]);
    assert_eq!(storage.reviews(&task, "person:bob").await.unwrap(), [of_bob]);
    assert_eq!(storage.reviews(&task, "operator").await.unwrap(), []);
    storage.forget_review(&first).await.unwrap();
    storage.forget_review(&first).await.unwrap();
    assert_eq!(storage.reviews(&task, "person:ada").await.unwrap().len(), 1);

    storage.forget_tasks(vec![task.clone()]).await.unwrap();
    storage.set_review(&first).await.unwrap();
    assert_eq!(storage.reviews(&task, "person:ada").await.unwrap(), [], "its task is gone");
    assert_eq!(storage.reviews(&other, "person:ada").await.unwrap(), [elsewhere]);
}
