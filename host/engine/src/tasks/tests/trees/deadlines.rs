//! Deadlines of open questions: postponed ones over restarts and evictions, and their warnings.

use super::{inbox::permission, *};
use crate::{observability::hub_events::Listener, tasks::Questions};
use a2a_hub_clock as clock;
use a2a_hub_core::{access_control::Caller, grant::Resume};
use a2a_hub_protocol::{
    hub::event::HubEventKind,
    id::TenantId,
    operation::{OpenQuestion, QuestionAnswer, QuestionRequest},
};
use a2a_hub_store::QuestionPostponements as _;
use futures::FutureExt as _;

impl Stand {
    async fn set_aside(&self, id: &QuestionId, secs: u64) -> OpenQuestion {
        let request = QuestionRequest::Postpone { id: id.clone(), for_ms: secs * 1_000 };
        let answer = self.questions(request).await;
        let QuestionAnswer::Postponed(question) = answer else {
            panic!("it was listed: {answer:?}")
        };
        *question
    }

    /// The next process, after this one was killed; it has recovered its tasks.
    async fn killed(&self, config: &AgentConfig, fake: &Fake) -> (Self, AgentIds) {
        let next = self.next_hub();
        let agents = agents_of(&next, config, fake);
        next.tasks.recover().await.unwrap();
        (next, agents)
    }

    fn expiring_count(&self) -> u64 {
        self.tasks.events.metrics().expiring_questions().count()
    }
}

/// Events so far about questions whose deadlines are near.
fn warnings(events: &mut Listener) -> Vec<(QuestionId, TaskId, String)> {
    let mut found = Vec::new();
    while let Some(event) = events.next().now_or_never() {
        if let HubEventKind::QuestionExpiring { question_id, task_id, expires_at, .. } =
            &event.unwrap().what
        {
            found.push((question_id.clone(), task_id.clone(), expires_at.clone()));
        }
    }
    found
}

async fn secs(secs: u64) {
    tokio::time::sleep(Duration::from_secs(secs)).await;
}

/// Agent that asks again and again, and of which a fresh run goes on after a restart.
fn asks_on() -> Fake {
    let fake = Fake::new(|stage: Stage| async move {
        loop {
            let asked = stage.port.ask(Need::Input, permission("may I?"), None).await;
            match asked {
                Ok(answer) if answer.message.joined_text() == "enough" => return completed("done"),
                Ok(_) => {}
                Err(why) => return Ended::Failed(why),
            }
        }
    });
    fake.resuming(Resume::Session).holding(Resumability::Session)
}

/// The question that replaces a postponed one is set aside as long, until it is answered.
#[tokio::test(start_paused = true)]
async fn postponed_question_survives_kills() {
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &asks_on());
    let root = stand.submit(agents.named("a"), "go").await;
    let first = stand.open_count(1).await.remove(0);
    let postponed = stand.set_aside(&first.id, 400).await;
    assert!(postponed.set_aside && !first.set_aside);

    let (second, _) = stand.killed(&config(), &asks_on()).await;
    let asked = second.open_count(1).await.remove(0);
    assert!(asked.id != first.id && asked.interrupted && asked.set_aside, "{asked:?}");
    assert!(asked.expires_at >= postponed.expires_at, "{asked:?} {postponed:?}");
    let longest = clock::after(Duration::from_secs(601));
    assert!(asked.expires_at.unwrap() < longest, "it is at most the time for an answer");

    // The time that the store has counts, and no other.
    let shorter = clock::after(Duration::from_secs(100));
    assert!(second.storage.postpone_question(&root, &asked.id, &shorter).await.unwrap());
    let (third, _) = second.killed(&config(), &asks_on()).await;
    let again = third.open_count(1).await.remove(0);
    assert_eq!((&again.id, again.set_aside), (&asked.id, true), "it is the same question");
    secs(90).await;
    assert!(third.open_count(1).await[0].set_aside);
    secs(20).await;
    assert!(!third.open_count(1).await[0].set_aside, "its time is over, and it waits on");
    third.set_aside(&again.id, 400).await;
    assert!(third.open_count(1).await[0].set_aside);

    // Neither the next question nor the one that replaces it has anything of an answered one.
    assert!(third.reply(&[&again.id], "go on").await[0].answered);
    let fresh = loop {
        let open = third.open_count(1).await.remove(0);
        if open.id != again.id {
            break open;
        }
    };
    assert!(!fresh.set_aside && !fresh.interrupted, "{fresh:?}");
    let (last, _) = third.killed(&config(), &asks_on()).await;
    assert!(!last.open_count(1).await[0].set_aside);
}

/// A time that the store does not take is refused, and changes nothing.
#[tokio::test(start_paused = true)]
async fn unstorable_postponement_is_refused() {
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &asks_on());
    stand.submit(agents.named("a"), "go").await;
    let open = stand.open_count(1).await.remove(0);
    stand.storage.refuse(true);
    let later = QuestionRequest::Postpone { id: open.id.clone(), for_ms: 1_000 };
    let by = Caller::from(Principal::Operator);
    let refused = Questions(&stand.tasks, None).perform(&by, later).await;
    let refused = A2aError::from(refused.err().unwrap()).to_string();
    assert!(refused.contains("cannot use its store"), "{refused}");
    stand.storage.refuse(false);
    let now = stand.open_count(1).await.remove(0);
    assert!(!now.set_aside, "{now:?}");
    secs(500).await;
    stand.open_count(1).await;
}

/// An agent that is evicted while its question is set aside leaves that to the replacing question.
#[tokio::test(start_paused = true)]
async fn postponed_question_survives_eviction() {
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &asks_on());
    let full = Fake::new(|_| async { completed("begun") }).in_room_for(0);
    let full = agents_of(&stand, &config(), &full);
    stand.submit(agents.named("a"), "go").await;
    let first = stand.open_count(1).await.remove(0);
    stand.set_aside(&first.id, 400).await;
    let begun = stand.submit(full.named("c"), "begin").await;
    stand.until(&begun, TaskState::Completed).await;
    let evicted = stand.open_count(1).await.remove(0);
    assert!(evicted.id != first.id && evicted.interrupted && evicted.set_aside, "{evicted:?}");
    let (next, _) = stand.killed(&config(), &asks_on()).await;
    let now = next.open_count(1).await.remove(0);
    assert_eq!((&now.id, now.set_aside), (&evicted.id, true), "{now:?}");
}

/// A question that was set aside while it was queued is stored as such once it is asked.
#[tokio::test(start_paused = true)]
async fn postponed_queued_question_survives_kill() {
    let fake = Fake::new(|stage: Stage| async move {
        let pose = |text: &str| stage.port.pose(Need::Input, permission(text), None);
        let _ = tokio::join!(pose("one?"), pose("two?"));
        completed("done")
    });
    let fake = fake.resuming(Resume::Session).holding(Resumability::Session);
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &fake);
    stand.submit(agents.named("a"), "go").await;
    let open = stand.open_count(2).await;
    assert!(stand.set_aside(&open[1].id, 400).await.set_aside);
    assert!(stand.reply(&[&open[0].id], "yes").await[0].answered);
    while stand.open().await.first().is_none_or(|open| open.queued || open.text != "two?") {
        secs(1).await;
    }
    assert!(stand.open_count(1).await[0].set_aside);
    let (next, _) = stand.killed(&config(), &asks_on()).await;
    let now = next.open_count(1).await.remove(0);
    assert!(now.interrupted && now.set_aside, "{now:?}");
}

/// The task that asks warns before each deadline, once, and those that relay its question do not.
#[tokio::test(start_paused = true)]
async fn each_deadline_is_warned_of_once() {
    let fake = Fake::new(|stage: Stage| async move {
        if stage.text() == "child" {
            let answer = stage.port.ask(Need::Input, permission("may I?"), None).await;
            return completed(&answer.map_or_else(|why| why.to_string(), |_| "yes".to_owned()));
        }
        let request = ChildRequest::new("b", Message::text(Role::User, "child"));
        completed(&told(&stage.outcome_of(request).await.unwrap()))
    });
    let stand = Stand::new();
    let config = AgentConfig { timeout_ms: 10_000_000, ..config() };
    let agents = agents_of(&stand, &config, &fake);
    let mut events = stand.tasks.events.subscribe(&TenantId::default());
    let mut foreign = stand.tasks.events.subscribe(&TenantId::parse("acme").unwrap());
    let root = stand.submit(agents.named("a"), "parent").await;
    stand.until(&root, TaskState::InputRequired).await;
    let open = stand.open_count(1).await.remove(0);
    assert!(!open.expiring);

    // A tenth of ten minutes before the deadline.
    secs(535).await;
    assert_eq!((warnings(&mut events), stand.expiring_count()), (Vec::new(), 0));
    secs(10).await;
    let told = warnings(&mut events);
    assert_eq!(told.len(), 1, "the task above relays the question only: {told:?}");
    assert_eq!((&told[0].0, &told[0].1), (&open.id, &open.task_id));
    assert_ne!(told[0].1, root);
    assert!(stand.open_count(1).await[0].expiring);
    assert_eq!(stand.expiring_count(), 1);

    // Set aside, it has another deadline, which is warned of in its time.
    let postponed = stand.set_aside(&open.id, 300).await;
    assert!(postponed.set_aside && !postponed.expiring, "{postponed:?}");
    assert_eq!(stand.expiring_count(), 0);
    secs(230).await;
    assert_eq!(warnings(&mut events), []);
    secs(20).await;
    let told = warnings(&mut events);
    assert_eq!((told.len(), &told[0].0), (1, &open.id));
    secs(40).await;
    assert_eq!((warnings(&mut events), stand.expiring_count()), (Vec::new(), 1));
    let done = stand.until(&root, TaskState::Completed).await;
    assert!(said(&done).contains("longer than it was given"), "{done:?}");
    assert_eq!((warnings(&mut events), stand.expiring_count()), (Vec::new(), 0));
    assert_eq!(warnings(&mut foreign), [], "another tenant hears nothing of it");
}

/// An answered question is not warned of, and neither is one that nobody can answer in time.
#[tokio::test(start_paused = true)]
async fn closed_question_is_not_warned_of() {
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &asks_on());
    let mut events = stand.tasks.events.subscribe(&TenantId::default());
    let root = stand.submit(agents.named("a"), "go").await;
    let open = stand.open_count(1).await.remove(0);
    secs(550).await;
    assert_eq!((warnings(&mut events).len(), stand.expiring_count()), (1, 1));
    assert!(stand.reply(&[&open.id], "enough").await[0].answered);
    stand.until(&root, TaskState::Completed).await;
    assert_eq!(stand.expiring_count(), 0);

    let short = AgentConfig { answer_timeout_ms: 500, ..config() };
    let hasty = agents_of(&stand, &short, &asks_on());
    let root = stand.submit(hasty.named("b"), "go").await;
    stand.until(&root, TaskState::Failed).await;
    secs(600).await;
    assert_eq!((warnings(&mut events), stand.expiring_count()), (Vec::new(), 0));
}
