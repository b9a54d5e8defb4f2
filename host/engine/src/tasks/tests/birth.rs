//! Deferred creation: the task of an agent that can only answer starts before it is stored; its
//! first event is stored together with the agent's first output.

use super::*;
use a2a_hub_store::TaskIndex as _;

fn greeting() -> Fake {
    Fake::new(|_: Stage| async { completed("hello") })
}

async fn seen(storage: &MemoryStorage, task: &TaskId) -> String {
    let events = storage.events(task, 0, usize::MAX).await.unwrap();
    format!("{} events", events.len())
}

#[tokio::test(start_paused = true)]
async fn pure_agent_task_is_stored_with_answer() {
    for (agent, later) in [(greeting(), 1), (greeting().enclosed(), 0)] {
        let storage = Arc::new(MemoryStorage::default());
        let distant = Arc::new(Distant::new(storage.clone()));
        let stand = Stand::up(distant.clone(), storage);
        let task = stand.submit(&agent.agent(config()), "go").await;
        stand.until(&task, TaskState::Completed).await;
        assert_eq!(distant.later_writes(), later);
        assert_eq!(stand.story(&task).await, "created, working, completed “hello”");
        let asked = [(1, Principal::Operator)];
        assert_eq!(
            stand.storage.askers(&task).await.unwrap(),
            asked,
            "the agent's words are its own"
        );
    }
}

/// For an agent with side effects, the task is in the log before it begins.
#[tokio::test(start_paused = true)]
async fn agent_with_capability_starts_after_creation_stored() {
    let stand = Stand::new();
    let storage = stand.storage.clone();
    let script = move |stage: Stage| {
        let storage = storage.clone();
        async move { completed(&seen(&storage, &stage.work.task.id).await) }
    };
    let agent = Fake::new(script.clone()).enclosed();
    for (agent, expected) in [(agent.clone(), "0 events"), (agent.remembering(10), "1 events")] {
        let agent = agent.agent(config());
        let task = stand.submit(&agent, "go").await;
        stand.until(&task, TaskState::Completed).await;
        let story = stand.story(&task).await;
        assert!(story.ends_with(&format!("completed “{expected}”")), "{story}");
    }
}

#[tokio::test(start_paused = true)]
async fn unstored_deferred_task_leaves_nothing() {
    let stand = Stand::new();
    let agent = greeting().enclosed().agent(config());
    stand.storage.refuse(true);
    let refused = stand.try_submit(&agent, Message::text(Role::User, "go")).await;
    assert!(matches!(refused, Err(SubmitError::Storage(_))), "{refused:?}");
    stand.storage.refuse(false);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let left = stand.tasks.running().len();
    let heads = stand.storage.heads(HeadFilter::default()).await.unwrap();
    assert_eq!((left, heads.len()), (0, 0), "nothing is left of it");
    let task = stand.submit(&agent, "again").await;
    stand.until(&task, TaskState::Completed).await;
}

#[tokio::test(start_paused = true)]
async fn slow_pure_agent_task_is_stored_early() {
    let stand = Stand::new();
    let agent = Fake::new(|_: Stage| pending()).enclosed().agent(config());
    let begun = Instant::now();
    let task = stand.submit(&agent, "go").await;
    assert!(begun.elapsed() < Duration::from_millis(200), "{:?}", begun.elapsed());
    assert_eq!(stand.story(&task).await, "created, working");
    stand.tasks.cancel(&task, Principal::Anonymous).await.unwrap();
    stand.until(&task, TaskState::Canceled).await;
}

/// The whole output of an agent whose client waits for the end is stored in one write, unless the
/// agent takes its time.
#[tokio::test(start_paused = true)]
async fn output_before_end_is_stored_at_once() {
    for (pause, response, is_one_write) in [
        (0, ResponseMode::AtEnd, true),
        (0, ResponseMode::Stream, false),
        (0, ResponseMode::AtEndOrLater, true),
        (30, ResponseMode::AtEnd, true),
        (60, ResponseMode::AtEnd, false),
    ] {
        let storage = Arc::new(MemoryStorage::default());
        let distant = Arc::new(Distant::new(storage.clone()));
        let stand = Stand::up(distant.clone(), storage);
        let agent = Fake::new(move |stage: Stage| async move {
            for text in ["one", "two"] {
                stage.report_working(text).await.unwrap();
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
            completed("done")
        });
        let agent = agent.enclosed().agent(config());
        let message = Message::text(Role::User, "go");
        let task = stand.submit_for(&agent, message, response).await.unwrap();
        stand.until(&task, TaskState::Completed).await;
        let expected = "created, working, working “one”, working “two”, completed “done”";
        assert_eq!(stand.story(&task).await, expected);
        assert_eq!(distant.later_writes() == 0, is_one_write, "{pause} ms, {response:?}");
    }
}

/// A client that streams, or that takes the task as it is, learns of it before the agent's first
/// output. Only an agent that declares direct messages has it wait.
#[tokio::test(start_paused = true)]
async fn followed_task_is_created_at_once() {
    let stand = Stand::new();
    let silent = Fake::new(|_: Stage| pending()).enclosed();
    let cases = [
        (silent.clone(), ResponseMode::Stream, 0),
        (silent.clone(), ResponseMode::TaskOnly, 0),
        (silent.clone(), ResponseMode::AtEnd, 100),
        (silent.clone(), ResponseMode::AtEndOrLater, 100),
        (silent.clone().direct_message(), ResponseMode::Stream, 100),
        (silent.direct_message(), ResponseMode::TaskOnly, 0),
    ];
    for (agent, response, expected) in cases {
        let (agent, begun) = (agent.agent(config()), Instant::now());
        let message = Message::text(Role::User, "go");
        let task = stand.submit_for(&agent, message, response).await.unwrap();
        let waited = begun.elapsed().as_millis();
        assert!((expected..expected + 20).contains(&waited), "{response:?}: {waited} ms");
        stand.tasks.cancel(&task, Principal::Anonymous).await.unwrap();
    }
}

/// The caller has its reply only after the failure is stored, so nothing is left for recovery.
#[tokio::test(start_paused = true)]
async fn immediate_failure_is_stored() {
    let stand = Stand::new();
    let broken = Fake::new(|_: Stage| async { Ended::Failed(Failure::Internal("oops".into())) });
    let task = stand.submit(&broken.enclosed().agent(config()), "go").await;
    let failed = stand.until(&task, TaskState::Failed).await;
    assert_eq!(failed.history.len(), 1);
}
