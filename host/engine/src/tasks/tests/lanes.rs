//! Conversation locks, and withdrawn questions.

use super::*;
use crate::tests::scripted_agent::Journals;
use a2a_hub_protocol::{message::Metadata, question::Question};

impl Stand {
    async fn submit_in(&self, agent: &Arc<Agent>, context: &str, text: &str) -> TaskId {
        let mut message = Message::text(Role::User, text);
        message.context_id = Some(ContextId::new(context));
        self.submit_message(agent, message).await
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_of_one_context_run_sequentially() {
    for stand in Stand::each() {
        let fake = curious().one_per_context();
        let agent = fake.agent(config());
        let first = stand.submit_in(&agent, "c", "one").await;
        stand.until(&first, TaskState::InputRequired).await;
        let second = stand.submit_in(&agent, "c", "two").await;
        let other = stand.submit_in(&agent, "d", "three").await;
        stand.until(&other, TaskState::InputRequired).await;
        let waits = stand.tasks.get(&second).await.unwrap().task;
        assert_eq!(
            waits.status.state,
            TaskState::Submitted,
            "its conversation waits for an answer"
        );
        let told = waits.status.message.unwrap();
        assert_eq!(told.task_id.as_ref(), Some(&second));
        let told = told.joined_text();
        assert!(told.contains(&format!("when task `{first}` is over")), "{told}");

        stand.answer(&first, "left").await.unwrap();
        stand.until(&second, TaskState::InputRequired).await;
        let started = fake.seen.lock().unwrap().clone();
        let starts: Vec<_> = started.iter().filter(|seen| seen.starts_with("start")).collect();
        assert_eq!(starts, ["start: one", "start: three", "start: two"]);
    }
}

/// Two tenants may use the same id for a conversation: these are two conversations, with
/// independent locks.
#[tokio::test(start_paused = true)]
async fn tenants_have_separate_context_locks() {
    for stand in Stand::each() {
        let agent = curious().one_per_context().agent(config());
        let mut tasks = Vec::new();
        for tenant in ["", "acme"] {
            let tenant = TenantId::try_from(tenant.to_owned()).unwrap();
            let mut message = Message::text(Role::User, "one");
            message.context_id = Some(ContextId::new("c").of_tenant(&tenant));
            tasks.push(stand.submit_message(&agent, message).await);
        }
        for task in &tasks {
            stand.until(task, TaskState::InputRequired).await;
        }
        let told = stand.tasks.get(&tasks[1]).await.unwrap().task;
        assert_eq!((told.context_id.as_str(), told.context_id.tenant().as_str()), ("c", "acme"));
        assert!(stand.tasks.may_have_tenants());
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_task_frees_context_lock() {
    for stand in Stand::each() {
        let agent = curious().one_per_context().agent(config());
        let first = stand.submit_in(&agent, "c", "one").await;
        stand.until(&first, TaskState::InputRequired).await;
        let [gone, next] = [
            stand.submit_in(&agent, "c", "two").await,
            stand.submit_in(&agent, "c", "three").await,
        ];
        stand.tasks.cancel(&gone, Principal::Operator).await.unwrap();
        stand.tasks.cancel(&first, Principal::Operator).await.unwrap();
        stand.until(&next, TaskState::InputRequired).await;
    }
}

/// Both for a task that waits for its client, and for one that is replayed.
#[tokio::test(start_paused = true)]
async fn context_lock_is_kept_over_restart() {
    for replays in [false, true] {
        let stand = Stand::new();
        let fake = curious().one_per_context();
        let fake = match replays {
            true => fake.replayed(Journals::default()),
            false => fake.holding(Resumability::Session),
        };
        let agent = fake.agent(config());
        let first = stand.submit_in(&agent, "c", "one").await;
        stand.until(&first, TaskState::InputRequired).await;
        let second = stand.submit_in(&agent, "c", "two").await;
        let stand = stand.next_hub();
        stand.recover(move |_: &AgentId| Some(agent.clone())).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let waits = stand.tasks.get(&second).await.unwrap().task;
        assert_eq!(waits.status.state, TaskState::Submitted, "the lane is the first's");
        stand.answer(&first, "go on").await.unwrap();
        if !replays {
            // The fresh run of its agent asks as well.
            tokio::time::sleep(Duration::from_secs(5)).await;
            stand.answer(&first, "that one").await.unwrap();
        }
        stand.until(&first, TaskState::Completed).await;
        stand.until(&second, TaskState::InputRequired).await;
        stand.answer(&second, "done").await.unwrap();
        stand.until(&second, TaskState::Completed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn withdrawn_question_rejects_late_answer() {
    for stand in Stand::each() {
        let agent = Fake::new(|stage: Stage| async move {
            let asked = stage.ask("which one?", None);
            assert!(timeout(Duration::from_secs(5), asked).await.is_err());
            tokio::time::sleep(Duration::from_secs(5)).await;
            completed("never mind")
        });
        let task = stand.submit(&agent.agent(config()), "go").await;
        let asks = stand.until(&task, TaskState::InputRequired).await;
        let works = stand.until(&task, TaskState::Working).await;
        assert!(!a2a_hub_core::task::metadata::has(&works, "question"), "nobody is asked");
        let asked = Question::from_metadata(asks.metadata.as_ref()).unwrap();
        let late = Message {
            metadata: Some(Metadata::from_iter([("question".to_owned(), json!(asked.id))])),
            ..Message::text(Role::User, "left")
        };
        let client = ClientCapabilities::default();
        let answered = stand.tasks.answer(&task, late, client, None, Principal::Operator).await;
        let Err(refused) = answered else { panic!("nobody asks any more") };
        let refused = A2aError::from(refused).to_string();
        assert!(refused.contains("it is gone"), "{refused}");
        stand.until(&task, TaskState::Completed).await;
        let story =
            "created, working, input-required “which one?”, working, completed “never mind”";
        assert_eq!(stand.story(&task).await, story);
    }
}

/// A remote agent may complete its task while its question is open.
#[tokio::test(start_paused = true)]
async fn run_ending_with_open_question_continues() {
    for stand in Stand::each() {
        let fake = Fake::new(|stage: Stage| async move {
            if stage.work.message.joined_text() == "go" {
                tokio::time::sleep(Duration::from_secs(5)).await;
                let asked = stage.ask("which one?", None);
                let ended = tokio::time::sleep(Duration::from_secs(5));
                tokio::select! { _ = asked => {}, () = ended => {} }
            }
            completed(&stage.work.message.joined_text())
        });
        let agent = fake.agent(AgentConfig { max_running: Some(1), ..config() });
        let task = stand.submit(&agent, "go").await;
        stand.until(&task, TaskState::Working).await;
        stand.answer(&task, "more").await.unwrap();
        stand.until(&task, TaskState::Completed).await;
        let story = stand.story(&task).await;
        assert!(story.ends_with("working “go”, said “go”, completed “more”"), "{story}");
    }
}
