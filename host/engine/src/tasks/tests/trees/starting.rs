//! Delegation calls of recorded runs in a hub that is starting, stopping, or whose store fails: no
//! such hub's result is recorded.

use super::*;
use crate::{tasks::command::ActorCommand, tests::scripted_agent::Journals};
use a2a_hub_store::{StoreHealth as _, memory::MemoryStorage};
use parking_lot::Mutex;

/// Results of an agent's calls.
type Heard = Arc<Mutex<Vec<Result<String, Failure>>>>;

fn keyed(agent: &str, text: &str) -> ChildRequest {
    let key = Some(text.to_owned());
    ChildRequest { key, ..ChildRequest::new(agent, Message::text(Role::User, text)) }
}

/// Agents of one hub, each with one run permit and no queue. A `root` calls `b` for a `middle`,
/// which calls `a` for a `leaf`, unless its hub is to be killed before.
fn recorded(stand: &Stand, is_killed: bool, heard: &Heard) -> AgentIds {
    let heard = Arc::clone(heard);
    let fake = Fake::new(move |stage: Stage| {
        let heard = Arc::clone(&heard);
        async move {
            let call = match stage.text().as_str() {
                "root" => keyed("b", "middle"),
                "middle" if is_killed => std::future::pending().await,
                "middle" => keyed("a", "leaf"),
                other => return completed(other),
            };
            let came = stage.outcome_of(call).await.map(|ended| told(&ended));
            heard.lock().push(came.clone());
            completed(&came.unwrap_or_else(|why| format!("refused: {why}")))
        }
    });
    let narrow = AgentConfig { max_running: Some(1), max_queued: 0, ..config() };
    agents_of(stand, &narrow, &fake.replayed(Journals::default()))
}

/// Before recovery is complete, it is unknown which ancestors run and lend a permit, and which
/// agents are busy.
#[tokio::test(start_paused = true)]
async fn call_waits_for_end_of_recovery() {
    let storage = Arc::new(MemoryStorage::default());
    let (stand, heard) = (Stand::starting(storage.clone(), storage), Heard::default());
    let agents = recorded(&stand, false, &heard);
    let root = stand.submit(agents.named("a"), "root").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(stand.tasks.get(&root).await.unwrap().task.status.state, TaskState::Working);
    assert_eq!(stand.below(&root).await, []);
    stand.tasks.phase.up();
    assert_eq!(said(&stand.until(&root, TaskState::Completed).await), "leaf");
}

/// The agent compiles, or its card is being loaded.
#[tokio::test(start_paused = true)]
async fn recorded_call_waits_for_loading_agent() {
    let (stand, heard) = (Stand::new(), Heard::default());
    let agents = recorded(&stand, false, &heard);
    stand.know(|_| None);
    stand.known.on_their_way.send_replace(1);
    let root = stand.submit(agents.named("a"), "root").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(stand.tasks.get(&root).await.unwrap().task.status.state, TaskState::Working);
    let known = agents.0.clone();
    stand.know(move |id| known.get(id).cloned());
    stand.known.on_their_way.send_replace(0);
    assert_eq!(said(&stand.until(&root, TaskState::Completed).await), "leaf");

    // An unknown agent is a result once all agents are loaded.
    stand.know(|_| None);
    let root = stand.submit(agents.named("a"), "root").await;
    let done = said(&stand.until(&root, TaskState::Completed).await);
    assert_eq!(done, "refused: call `b`: it has left");
}

#[tokio::test(start_paused = true)]
async fn recorded_call_gets_no_result_during_shutdown() {
    let (stand, heard) = (Stand::new(), Heard::default());
    let agents = recorded(&stand, true, &heard);
    let root = stand.submit(agents.named("a"), "root").await;
    let child = stand.only_child(&root).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    stand.tasks.phase.stop();
    // The child is shut down first, and is gone before its parent is.
    let running = stand.tasks.find(&child.id).unwrap();
    running.commands.send(ActorCommand::Shutdown).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(*heard.lock(), []);
    stand.tasks.shutdown().await;
    assert_eq!(*heard.lock(), []);

    let next = stand.next_hub();
    let _agents = recorded(&next, false, &heard);
    next.tasks.recover().await.unwrap();
    assert_eq!(said(&next.until(&root, TaskState::Completed).await), "leaf");
}

#[tokio::test(start_paused = true)]
async fn recorded_call_waits_for_failing_store() {
    let stand = Stand::new();
    let fake = Fake::new(|stage: Stage| async move {
        if stage.text() == "child" {
            return completed("done");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let came = stage.outcome_of(keyed("b", "child")).await;
        completed(&came.map_or_else(|why| format!("refused: {why}"), |ended| told(&ended)))
    });
    let fake = fake.replayed(Journals::default());
    let agents = agents_of(&stand, &config(), &fake);
    let root = stand.submit(agents.named("a"), "root").await;
    stand.until(&root, TaskState::Working).await;
    stand.storage.refuse(true);
    tokio::time::sleep(Duration::from_secs(10)).await;
    stand.storage.refuse(false);
    // As the store monitor does.
    stand.storage.probe().await.unwrap();
    assert_eq!(said(&stand.until(&root, TaskState::Completed).await), "done");
    stand.only_child(&root).await;
}
