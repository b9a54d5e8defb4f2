//! Questions asked while another is open, and work of an agent while its own is.

use super::*;
use a2a_hub_core::grant::Resume;

fn asked(task: &Task) -> QuestionId {
    Question::from_metadata(task.metadata.as_ref()).unwrap().id
}

impl Stand {
    /// Waits until a task asks this question in this state.
    async fn asks(&self, task: &TaskId, state: TaskState, what: &str) -> Task {
        loop {
            let now = self.until(task, state).await;
            if said(&now).contains(what) {
                return now;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Each question sets its own state; an answer names its question, and reaches the agent that asked
/// it.
#[tokio::test(start_paused = true)]
async fn parent_and_child_questions_are_answered_separately() {
    for (own, childs, child_first) in [
        (Need::Input, Need::Input, true),
        (Need::Input, Need::Input, false),
        (Need::Auth, Need::Input, true),
        (Need::Auth, Need::Input, false),
        (Need::Input, Need::Auth, true),
        (Need::Input, Need::Auth, false),
    ] {
        let fake = Fake::new(move |stage: Stage| async move {
            let ask = async |need: Need, text: &str, secs: u64| {
                tokio::time::sleep(Duration::from_secs(secs)).await;
                let answer = stage.port.ask(need, Message::text(Role::Agent, text), None).await;
                answer.unwrap().message.joined_text()
            };
            if stage.text() == "child" {
                return completed(&ask(childs, "which child?", u64::from(!child_first)).await);
            }
            let request = ChildRequest::new("b", Message::text(Role::User, "child"));
            let (ended, own) = tokio::join!(
                stage.outcome_of(request),
                ask(own, "which parent?", u64::from(child_first))
            );
            completed(&format!("{own}, {}", told(&ended.unwrap())))
        });
        let stand = Stand::new();
        let agents = agents_of(&stand, &config(), &fake);
        let root = stand.submit(agents.named("a"), "parent").await;
        let (of_child, of_parent) =
            (("which child?", childs, "the child"), ("which parent?", own, "the parent"));
        let order = if child_first { [of_child, of_parent] } else { [of_parent, of_child] };
        let mut before = None;
        for (what, need, answer) in order {
            let now = stand.asks(&root, need.state(), what).await;
            tokio::time::sleep(Duration::from_secs(10)).await;
            let still = stand.tasks.get(&root).await.unwrap().task;
            assert_eq!((said(&still), asked(&still)), (said(&now), asked(&now)), "it stands");
            if let Some(before) = before.replace(asked(&now)) {
                assert!(stand.answer_to(&now, &before, "late").await.is_err(), "{what}");
            }
            stand.answer_to(&now, &asked(&now), answer).await.unwrap();
        }
        let done = stand.until(&root, TaskState::Completed).await;
        assert_eq!(said(&done), "the parent, the child");
    }
}

/// A question that is withdrawn while another one is open is never asked.
#[tokio::test(start_paused = true)]
async fn withdrawn_queued_question_is_never_asked() {
    let fake = Fake::new(|stage: Stage| async move {
        let pose =
            |text: &str| stage.port.pose(Need::Input, Message::text(Role::Agent, text), None);
        let short = tokio::time::timeout(Duration::from_secs(1), pose("withdrawn?"));
        let (first, withdrawn, third) = tokio::join!(pose("first?"), short, pose("third?"));
        assert!(withdrawn.is_err(), "nobody was asked");
        let heard = [first, third].map(|answer| answer.unwrap().message.joined_text());
        completed(&heard.join(", "))
    });
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &fake);
    let root = stand.submit(agents.named("a"), "pose").await;
    for (what, answer) in [("first?", "one"), ("third?", "three")] {
        let now = stand.asks(&root, TaskState::InputRequired, what).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        stand.answer_to(&now, &asked(&now), answer).await.unwrap();
    }
    assert_eq!(said(&stand.until(&root, TaskState::Completed).await), "one, three");
    assert!(!stand.story(&root).await.contains("withdrawn?"));
}

/// An open question of a working agent stops neither its task's time limit nor the use of its run
/// permit.
#[tokio::test(start_paused = true)]
async fn posed_question_keeps_permit_and_timeout() {
    let fake = Fake::new(|stage: Stage| async move {
        let posed = stage.port.pose(Need::Input, Message::text(Role::Agent, "well?"), None);
        let secs = stage.text().parse().unwrap();
        let work = tokio::time::sleep(Duration::from_secs(secs));
        tokio::select! {
            _ = posed => completed("answered"),
            () = work => completed("done"),
        }
    });
    let stand = Stand::new();
    let config = AgentConfig { max_running: Some(1), timeout_ms: 60_000, ..config() };
    let agents = agents_of(&stand, &config, &fake);
    let long = stand.submit(agents.named("a"), "3600").await;
    stand.asks(&long, TaskState::InputRequired, "well?").await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let next = stand.submit(agents.named("a"), "1").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(stand.tasks.get(&next).await.unwrap().task.status.state, TaskState::Submitted);
    let late = stand.until(&long, TaskState::Failed).await;
    assert!(said(&late).contains("exceeded its time limit"), "{late:?}");
    assert_eq!(said(&stand.until(&next, TaskState::Completed).await), "done");
}

/// Only an agent that waits for its client and nothing else is evicted.
#[tokio::test(start_paused = true)]
async fn working_agent_with_question_is_not_evicted() {
    async fn pose(what: &str, stage: &Stage) -> Ended {
        let posed = stage.port.pose(Need::Input, Message::text(Role::Agent, what), None).await;
        completed(&posed.unwrap().message.joined_text())
    }
    let fake = Fake::new(|stage: Stage| async move {
        match stage.text().as_str() {
            "child" => pose("child?", &stage).await,
            "parent" => {
                let request = ChildRequest::new("b", Message::text(Role::User, "child"));
                completed(&told(&stage.outcome_of(request).await.unwrap()))
            }
            "poses" => pose("posed?", &stage).await,
            "asks" => match stage.ask("asked?", None).await {
                Ok(answer) => completed(&answer.message.joined_text()),
                Err(why) => Ended::Failed(why),
            },
            _ => completed("begun"),
        }
    });
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &fake.clone().resuming(Resume::Session));
    let full = agents_of(&stand, &config(), &fake.in_room_for(0));
    for (text, what, is_let_go) in
        [("asks", "asked?", true), ("poses", "posed?", false), ("parent", "child?", false)]
    {
        let root = stand.submit(agents.named("a"), text).await;
        stand.asks(&root, TaskState::InputRequired, what).await;
        let begun = stand.submit(full.named("c"), "begin").await;
        stand.until(&begun, TaskState::Completed).await;
        let now = stand.asks(&root, TaskState::InputRequired, what).await;
        assert_eq!(said(&now).contains("made room"), is_let_go, "{text}: {now:?}");
        if !is_let_go {
            stand.answer_to(&now, &asked(&now), "yes").await.unwrap();
            assert_eq!(said(&stand.until(&root, TaskState::Completed).await), "yes", "{text}");
        }
    }
}

/// The client sees the status, and answers the question.
#[tokio::test(start_paused = true)]
async fn question_stays_open_beside_status_updates() {
    let fake = Fake::new(|stage: Stage| async move {
        let posed = stage.port.pose(Need::Input, Message::text(Role::Agent, "well?"), None);
        let tell = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(stage.port.extra_status_bytes() > 0, "the status of the question follows it");
            stage.report_working("half done").await.unwrap();
        };
        let (answer, ()) = tokio::join!(posed, tell);
        completed(&answer.unwrap().message.joined_text())
    });
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &fake);
    let root = stand.submit(agents.named("a"), "pose").await;
    let asks = stand.asks(&root, TaskState::InputRequired, "well?").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let still = stand.tasks.get(&root).await.unwrap().task;
    assert_eq!((said(&still), asked(&still)), (said(&asks), asked(&asks)));
    let story = stand.story(&root).await;
    assert!(story.contains("working “half done”, input-required “well?”"), "{story}");
    stand.answer_to(&still, &asked(&still), "yes").await.unwrap();
    assert_eq!(said(&stand.until(&root, TaskState::Completed).await), "yes");
}

/// A program of the earlier run may have left a child at work that nobody waits for.
#[tokio::test(start_paused = true)]
async fn question_of_earlier_runs_child_is_relayed() {
    let fake = Fake::new(|stage: Stage| async move {
        match stage.text().as_str() {
            "child" => {
                tokio::time::sleep(Duration::from_secs(10)).await;
                completed(&stage.ask("child?", None).await.unwrap().message.joined_text())
            }
            "first" => {
                let request = ChildRequest::new("b", Message::text(Role::User, "child"));
                drop(stage.call(request).await.unwrap());
                tokio::time::sleep(Duration::from_secs(2)).await;
                completed("first")
            }
            _ => {
                tokio::time::sleep(Duration::from_secs(20)).await;
                completed("second")
            }
        }
    });
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &fake);
    let root = stand.submit(agents.named("a"), "first").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    stand.answer(&root, "second").await.unwrap();
    let asks = stand.asks(&root, TaskState::InputRequired, "child?").await;
    stand.answer_to(&asks, &asked(&asks), "yes").await.unwrap();
    let child = stand.only_child(&root).await;
    assert_eq!(said(&stand.until(&child.id, TaskState::Completed).await), "yes");
    assert_eq!(said(&stand.until(&root, TaskState::Completed).await), "second");
}

/// The call would deadlock: an ancestor ends only after its descendants.
#[tokio::test(start_paused = true)]
async fn call_into_ancestors_locked_context_is_refused() {
    let fake = Fake::new(|stage: Stage| async move {
        let text = stage.text();
        let own = stage.work.task.context_id.as_str();
        let (agent, then, context_id) = match text.split_once(' ') {
            None if text == "top" => ("b", "middle".to_owned(), None),
            None if text == "middle" => ("a", format!("bottom {own}"), None),
            Some(("bottom", middle)) => ("b", "again".to_owned(), Some(middle.to_owned())),
            _ => return completed("reached"),
        };
        let request = ChildRequest::new(agent, Message::text(Role::User, then));
        match stage.outcome_of(ChildRequest { context_id, ..request }).await {
            Ok(ended) => completed(&told(&ended)),
            Err(why) => completed(&why.to_string()),
        }
    })
    .one_per_context();
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &fake);
    let root = stand.submit(agents.named("a"), "top").await;
    let done = stand.until(&root, TaskState::Completed).await;
    assert!(said(&done).contains("one task of a conversation at a time"), "{done:?}");
}
