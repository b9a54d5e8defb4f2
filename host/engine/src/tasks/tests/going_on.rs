//! Stream of a client that has answered a task.

use super::*;

/// Everything in the stream: the initial task, and the states that follow.
async fn heard(mut stream: Subscription) -> (Task, Vec<TaskState>) {
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event.unwrap().event.clone());
    }
    let mut events = events.into_iter();
    let Some(TaskEvent::Created(first)) = events.next() else { panic!("no task comes first") };
    let states = events.filter_map(|event| match event {
        TaskEvent::Status(update) => Some(update.status.state),
        TaskEvent::Reply(_) => Some(TaskState::Completed),
        TaskEvent::Created(_) | TaskEvent::Artifact(_) | TaskEvent::Input(_) => None,
    });
    (first.task, states.collect())
}

#[tokio::test(start_paused = true)]
async fn resumed_stream_has_end_of_fast_task() {
    for stand in Stand::each() {
        let agent = curious().agent(config());
        let task = stand.submit(&agent, "go").await;
        stand.until(&task, TaskState::InputRequired).await;
        let (asks, states) = heard(stand.tasks.subscribe_after_input(&task).await.unwrap()).await;
        assert_eq!((asks.status.state, states), (TaskState::InputRequired, vec![]));

        stand.answer(&task, "left").await.unwrap();
        let over = stand.until(&task, TaskState::Completed).await;
        let (before, states) = heard(stand.tasks.subscribe_after_input(&task).await.unwrap()).await;
        assert_eq!(states, [TaskState::Completed], "its end is told behind it");
        assert_eq!(before.status.state, TaskState::Working);
        assert_eq!(before.history, over.history, "with all that was said before");
    }
}
