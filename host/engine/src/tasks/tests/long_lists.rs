//! Tasks whose agents make their lists long.

use super::*;
use a2a_hub_protocol::{id::ArtifactId, message::Part, task::Artifact};

fn chunk(id: usize, append: bool) -> Emitted {
    let artifact = Artifact::new(ArtifactId::new(format!("artifact {id}")), vec![Part::text("x")]);
    Emitted::Artifact { artifact, append, last_chunk: false }
}

/// Waits until the task is over, and returns its last state.
async fn end_of(stand: &Stand, task: &TaskId) -> TaskState {
    let mut events = stand.tasks.subscribe_after_input(task).await.unwrap();
    let mut last = TaskState::Unknown;
    while let Some(event) = events.next().await {
        match &event.unwrap().event {
            TaskEvent::Created(created) => last = created.task.status.state,
            TaskEvent::Status(update) => last = update.status.state,
            TaskEvent::Reply(_) => last = TaskState::Completed,
            TaskEvent::Artifact(_) | TaskEvent::Input(_) => {}
        }
    }
    last
}

/// Counts events instead of time: on this runtime of one thread, another task gets no turn while a
/// call is recorded without a pause.
#[tokio::test(start_paused = true)]
async fn flood_of_artifacts_delays_no_other_task() {
    const ARTIFACTS: usize = 9_000;
    const CHUNKS: usize = 20_000;
    const CALLS: usize = 4;
    let stand = Stand::new();
    let flood = Fake::new(|stage: Stage| async move {
        let artifacts = (0..ARTIFACTS).map(|id| chunk(id, false)).collect();
        stage.port.emit(artifacts).await.unwrap();
        for _ in 0..CALLS {
            let chunks = (0..CHUNKS).map(|n| chunk(n % ARTIFACTS, true)).collect();
            stage.port.emit(chunks).await.unwrap();
        }
        completed("done")
    });
    let flood = stand.submit(&flood.agent(config()), "go").await;
    let quick = Fake::new(|stage: Stage| async move {
        stage.report_working("at it").await.unwrap();
        completed("done")
    });
    let quick = stand.submit(&quick.agent(config()), "go").await;
    assert_eq!(end_of(&stand, &quick).await, TaskState::Completed);
    let recorded = stand.tasks.get(&flood).await.unwrap().seq;
    assert!(recorded <= (ARTIFACTS + CHUNKS + 2) as u64, "{recorded} events came first");
    assert_eq!(end_of(&stand, &flood).await, TaskState::Completed);
    let stored = stand.tasks.get(&flood).await.unwrap();
    assert!(stored.seq > (ARTIFACTS + CALLS * CHUNKS) as u64);
    assert_eq!(stored.task.artifacts.len(), ARTIFACTS);
    let parts: usize = stored.task.artifacts.iter().map(|made| made.parts.len()).sum();
    assert_eq!(parts, ARTIFACTS, "chunks of text are one part");
}

#[tokio::test(start_paused = true)]
async fn artifact_limit_counts_all_runs() {
    const MOST: usize = 10_000;
    let refused = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen = Arc::clone(&refused);
    let agent = Fake::new(move |stage: Stage| {
        let seen = Arc::clone(&seen);
        async move {
            let begin = if stage.text() == "go" { 0 } else { MOST - 1 };
            let many = (begin..MOST - 1).map(|id| chunk(id, false)).collect();
            stage.port.emit(many).await.unwrap();
            // All or none.
            let two = vec![chunk(MOST, false), chunk(MOST + 1, false)];
            let why = stage.port.emit(two).await.unwrap_err();
            seen.lock().push(why);
            if stage.text() == "go" {
                // The next run begins with a further message.
                tokio::time::sleep(Duration::from_secs(5)).await;
            } else {
                stage.port.emit(vec![chunk(MOST, false), chunk(MOST, true)]).await.unwrap();
                let why = stage.port.emit(vec![chunk(MOST + 1, false)]).await.unwrap_err();
                seen.lock().push(why);
            }
            completed("done")
        }
    });
    let stand = Stand::new();
    let task = stand.submit(&agent.agent(config()), "go").await;
    stand.until(&task, TaskState::Working).await;
    stand.answer(&task, "more").await.unwrap();
    let over = stand.until(&task, TaskState::Completed).await;
    assert_eq!(over.artifacts.len(), MOST);
    let refused = refused.lock();
    assert_eq!(refused.len(), 3, "{refused:?}");
    for why in refused.iter() {
        let Failure::Exhausted(why) = why else { panic!("{why:?}") };
        assert!(
            why.contains("the task has 10000 artifacts, the most that one task may have"),
            "{why}"
        );
    }
}

/// Each question without an answer is one message of the history, here of 4 MiB.
#[tokio::test(start_paused = true)]
async fn full_history_refuses_questions_and_messages() {
    let refused = Arc::new(parking_lot::Mutex::new(None));
    let seen = Arc::clone(&refused);
    let agent = Fake::new(move |stage: Stage| {
        let seen = Arc::clone(&seen);
        async move {
            let why = loop {
                match stage.ask(&"?".repeat(4 << 20), Some(Duration::ZERO)).await {
                    Err(Failure::Timeout) => {}
                    other => break other,
                }
            };
            *seen.lock() = Some(why);
            tokio::time::sleep(Duration::from_secs(5)).await;
            completed("done")
        }
    });
    let stand = Stand::new();
    let task = stand.submit(&agent.agent(config()), "go").await;
    while refused.lock().is_none() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let why = refused.lock().take();
    let Some(Err(Failure::Exhausted(why))) = why else { panic!("{why:?}") };
    assert!(why.starts_with("ask: the task has 17 messages of "), "{why}");
    let message = stand.answer(&task, "this one").await.unwrap_err();
    let message = A2aError::from(message).to_string();
    assert!(message.contains("and one task may have 10000 of "), "{message}");
    let over = stand.until(&task, TaskState::Completed).await;
    assert_eq!(over.history.len(), 17);
}
