//! A child's question stays open while the agents above report progress, and after a restart that
//! replays them.

use super::*;
use crate::tests::scripted_agent::Journals;
use a2a_hub_core::task::replay::{CallIdentity, Entry, Recorded};
use a2a_hub_runtime::port::journal::JournalAnswer;
use tokio::sync::Semaphore;

/// Call of the only child; after a restart it joins the same one.
fn child() -> ChildRequest {
    let key = Some("child".to_owned());
    ChildRequest { key, ..ChildRequest::new("b", Message::text(Role::User, "child")) }
}

/// A parent that calls a child, which asks. Each step of the parent before that waits for a permit.
struct Replayed {
    journals: Journals,
    permits: Arc<Semaphore>,
    stand: Stand,
    root: TaskId,
}

impl Replayed {
    fn agents(&self, stand: &Stand) -> AgentIds {
        let (journals, permits) = (Arc::clone(&self.journals), Arc::clone(&self.permits));
        let fake = Fake::new(move |stage: Stage| {
            let (journals, permits) = (Arc::clone(&journals), Arc::clone(&permits));
            async move {
                if stage.text() == "child" {
                    let answer = stage.ask("may I?", None).await.unwrap();
                    return completed(&answer.message.joined_text());
                }
                permits.acquire().await.unwrap().forget();
                let journal = journals.lock().unwrap().get(&stage.work.task.id).cloned().unwrap();
                // As if the agent saw the child's own status.
                let heard = JournalAnswer::Ready(Ok(vec![0]));
                let entry = Entry::Answer(CallIdentity::new("ready", ""), heard);
                journal.record(Recorded { at_ms: 1, entry }).await.unwrap();
                stage.report_working("I have heard of it").await.unwrap();
                permits.acquire().await.unwrap().forget();
                let ended = stage.outcome_of(child()).await.unwrap();
                completed(&told(&ended))
            }
        });
        agents_of(stand, &config(), &fake.replayed(Arc::clone(&self.journals)))
    }

    /// Starts until child and parent ask; then the hub is killed, and the next one replays the
    /// parent.
    async fn begin() -> Self {
        let permits = Arc::new(Semaphore::new(2));
        let (journals, stand, root) = (Journals::default(), Stand::new(), TaskId::new("none"));
        let mut this = Self { journals, permits, stand, root };
        let agents = this.agents(&this.stand);
        this.root = this.stand.submit(agents.named("a"), "parent").await;
        this.stand.until(&this.root, TaskState::InputRequired).await;
        let next = this.stand.next_hub();
        let agents = this.agents(&next);
        next.recover(move |id: &AgentId| agents.0.get(id).cloned()).await;
        this.stand = next;
        this
    }

    async fn completed(&self) {
        let done = self.stand.until(&self.root, TaskState::Completed).await;
        assert_eq!(said(&done), "yes");
        let child = self.stand.only_child(&self.root).await;
        let answers = child.history.iter().filter(|it| it.joined_text() == "yes").count();
        assert_eq!((answers, child.status.state), (1, TaskState::Completed));
    }
}

#[tokio::test(start_paused = true)]
async fn restored_question_is_answerable_throughout_replay() {
    // Before the agent has begun, once it has continued, and once the question was relayed again.
    for permits in 0..3 {
        let replayed = Replayed::begin().await;
        replayed.permits.add_permits(permits);
        tokio::time::sleep(Duration::from_secs(1)).await;
        replayed.stand.answer(&replayed.root, "yes").await.unwrap();
        replayed.permits.add_permits(2);
        replayed.completed().await;
    }
}

#[tokio::test(start_paused = true)]
async fn question_answered_at_child_is_withdrawn_above() {
    let replayed = Replayed::begin().await;
    let child = replayed.stand.only_child(&replayed.root).await;
    replayed.stand.answer(&child.id, "yes").await.unwrap();
    replayed.stand.until(&child.id, TaskState::Completed).await;
    let root = replayed.stand.tasks.get(&replayed.root).await.unwrap().task;
    assert_eq!(root.status.state, TaskState::InputRequired, "its agent has heard nothing");
    replayed.permits.add_permits(1);
    replayed.stand.until(&replayed.root, TaskState::Working).await;
    replayed.permits.add_permits(1);
    replayed.completed().await;
}

/// Each agent above waits for its own child.
#[tokio::test(start_paused = true)]
async fn childs_question_survives_ancestors_progress() {
    let fake = Fake::new(|stage: Stage| async move {
        if stage.text() != "above" && stage.text() != "between" {
            return follow_script(stage).await;
        }
        let (called, script) = match stage.text().as_str() {
            "above" => ("b", "between".to_owned()),
            _ => ("c", json!({"ask": "may I?"}).to_string()),
        };
        let request = ChildRequest::new(called, Message::text(Role::User, script));
        let progress = async {
            for part in 0..3 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                assert!(
                    stage.port.extra_status_bytes() > 0,
                    "the status of the question follows it"
                );
                stage.report_working(&format!("{part} of 3")).await.unwrap();
            }
        };
        let (ended, ()) = tokio::join!(stage.outcome_of(request), progress);
        assert_eq!(stage.port.extra_status_bytes(), 0, "it is answered");
        completed(&told(&ended.unwrap()))
    });
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &fake);
    let root = stand.submit(agents.named("a"), "above").await;
    let asks = stand.until(&root, TaskState::InputRequired).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let still = stand.tasks.get(&root).await.unwrap().task;
    assert_eq!((still.status.state, said(&still)), (TaskState::InputRequired, said(&asks)));
    assert_eq!(fact(&still, "question"), fact(&asks, "question"));
    let story = stand.story(&root).await;
    assert!(story.contains("working “2 of 3”"), "{story}");
    let question = Question::from_metadata(still.metadata.as_ref()).unwrap().id;
    stand.answer_to(&still, &question, "yes").await.unwrap();
    let done = stand.until(&root, TaskState::Completed).await;
    assert_eq!(said(&done), "yes");
    let questions = done.history.iter().filter(|it| it.joined_text().ends_with("may I?")).count();
    assert_eq!(questions, 1, "{:?}", done.history);
}
