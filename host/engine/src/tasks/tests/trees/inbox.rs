//! Questions of all tasks: listed, answered by their ids in any order, set aside, and remembered.

use super::*;
use crate::tasks::Questions;
use a2a_hub_core::access_control::Caller;
use a2a_hub_protocol::{
    hub::event::HubEventKind,
    id::TenantId,
    operation::{
        OpenQuestion, PastQuestion, QuestionAnswer, QuestionQuery, QuestionRequest, QuestionResult,
    },
    question::QuestionKind,
};
use futures::future::join3;

impl Stand {
    pub(super) async fn questions(&self, request: QuestionRequest) -> QuestionAnswer {
        let by = Caller::from(Principal::Operator);
        Questions(&self.tasks, None).perform(&by, request).await.unwrap()
    }

    pub(super) async fn open(&self) -> Vec<OpenQuestion> {
        let query = QuestionQuery { kind: None, agent: None, limit: 100, offset: 0 };
        let QuestionAnswer::List(open) = self.questions(QuestionRequest::List(query)).await else {
            panic!("it is another answer")
        };
        open.questions
    }

    /// Waits until this many questions are open.
    pub(super) async fn open_count(&self, count: usize) -> Vec<OpenQuestion> {
        loop {
            let open = self.open().await;
            if open.len() == count {
                return open;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(super) async fn reply(&self, ids: &[&QuestionId], answer: &str) -> Vec<QuestionResult> {
        let ids = ids.iter().map(|id| (*id).clone()).collect();
        let QuestionAnswer::Answered(results) = self
            .questions(QuestionRequest::Answer { ids, answer: answer.to_owned(), always: None })
            .await
        else {
            panic!("it is another answer")
        };
        results
    }

    pub(super) async fn past(&self) -> Vec<PastQuestion> {
        let QuestionAnswer::History(past) =
            self.questions(QuestionRequest::History { limit: 100, before: None }).await
        else {
            panic!("it is another answer")
        };
        past.questions
    }
}

pub(super) fn permission(text: &str) -> Message {
    let kind = json!({ "kind": QuestionKind::Permission });
    let facts = Metadata::from_iter([("question".to_owned(), kind)]);
    Message { metadata: Some(facts), ..Message::text(Role::Agent, text) }
}

fn texts(open: &[OpenQuestion]) -> Vec<(&str, bool)> {
    open.iter().map(|question| (question.text.as_str(), question.queued)).collect()
}

/// Agent that asks three questions at once, and completes with the answers.
fn three_questions() -> Fake {
    Fake::new(|stage: Stage| async move {
        let pose = |text: &str| stage.port.pose(Need::Input, permission(text), None);
        let answers = join3(pose("one?"), pose("two?"), pose("three?")).await;
        let text = |answer: Result<a2a_hub_runtime::port::tasks::ClientAnswer, Failure>| {
            answer.map_or_else(|why| why.to_string(), |answer| answer.message.joined_text())
        };
        completed(&format!("{}, {}, {}", text(answers.0), text(answers.1), text(answers.2)))
    })
}

/// A queued question is answered by its id; the one before it stays open under its own.
#[tokio::test(start_paused = true)]
async fn queued_question_is_answered_before_its_turn() {
    for stand in Stand::each() {
        let agents = agents_of(&stand, &config(), &three_questions());
        let root = stand.submit(agents.named("a"), "go").await;
        let open = stand.open_count(3).await;
        assert_eq!(texts(&open), [("one?", false), ("two?", true), ("three?", true)]);
        let [one, two, three] = [0, 1, 2].map(|at| open[at].id.clone());
        assert!(open[0].expires_at.is_some());

        let mut changes = stand.tasks.events.subscribe(&TenantId::default());
        let later = QuestionRequest::Postpone { id: three.clone(), for_ms: 60_000 };
        stand.questions(later).await;
        loop {
            let event = changes.next().await.unwrap();
            if let HubEventKind::QuestionsChanged { task_id, .. } = &event.what {
                assert_eq!(*task_id, root);
                break;
            }
        }

        let results = stand.reply(&[&two], "second").await;
        assert!(results[0].answered, "{results:?}");
        let open = stand.open_count(2).await;
        assert_eq!(texts(&open), [("one?", false), ("three?", true)]);
        assert_eq!((&open[0].id, &open[1].id), (&one, &three));
        let told = stand.tasks.get(&root).await.unwrap().task;
        assert_eq!(said(&told), "one?", "the task still asks it");
        assert!(open[0].opened_at <= open[1].opened_at, "it is as old as before");
        // An answer to a question that is over changes nothing, and says who was first.
        let results = stand.reply(&[&two], "again").await;
        assert!(!results[0].answered);
        assert!(results[0].error.as_ref().unwrap().contains("“second”"), "{results:?}");

        let results = stand.reply(&[&three, &QuestionId::new("none"), &one], "rest").await;
        let answered: Vec<_> = results.iter().map(|result| result.answered).collect();
        assert_eq!(answered, [true, false, true], "{results:?}");
        assert!(results[1].error.as_ref().unwrap().contains("hub/questions/list"), "{results:?}");
        let done = stand.until(&root, TaskState::Completed).await;
        assert_eq!(said(&done), "rest, second, rest");
        assert_eq!(stand.open().await, []);

        let past = stand.past().await;
        let mut told: Vec<_> = past
            .iter()
            .map(|it| (it.text.as_str(), it.answer.as_deref(), it.answered_by.as_deref()))
            .collect();
        told.sort_unstable();
        let by = Some("operator");
        let rest = Some("rest");
        assert_eq!(told, [("one?", rest, by), ("three?", rest, by), ("two?", Some("second"), by)]);
        assert!(past.iter().all(|it| it.outcome == "answered"), "{past:?}");
    }
}

/// A message that names no question cannot allow the next one by mistake.
#[tokio::test(start_paused = true)]
async fn late_unnamed_yes_reaches_no_other_question() {
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &three_questions());
    let root = stand.submit(agents.named("a"), "go").await;
    let open = stand.open_count(3).await;
    assert!(stand.reply(&[&open[0].id], "named").await[0].answered);
    stand.open_count(2).await;
    let why = stand.answer(&root, "late").await.unwrap_err();
    assert!(A2aError::from(why).to_string().contains("two seconds"), "it names the next one");
    tokio::time::sleep(Duration::from_secs(2)).await;
    stand.answer(&root, "unnamed").await.unwrap();
    stand.open_count(1).await;
    // Nobody answers by name, so nothing is uncertain.
    stand.answer(&root, "unnamed, too").await.unwrap();
    let done = stand.until(&root, TaskState::Completed).await;
    assert_eq!(said(&done), "named, unnamed, unnamed, too");
}

/// A child's question is listed once, with the way to it, and answered wherever it is asked.
#[tokio::test(start_paused = true)]
async fn childs_question_is_listed_once() {
    let fake = Fake::new(|stage: Stage| async move {
        if stage.text() == "child" {
            let answer = stage.port.ask(Need::Input, permission("may I?"), None).await;
            return completed(&answer.unwrap().message.joined_text());
        }
        let request = ChildRequest::new("b", Message::text(Role::User, "child"));
        completed(&told(&stage.outcome_of(request).await.unwrap()))
    });
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &fake);
    let root = stand.submit(agents.named("a"), "parent").await;
    stand.until(&root, TaskState::InputRequired).await;
    let open = stand.open_count(1).await;
    let question = &open[0];
    let path: Vec<_> = question.path.iter().map(AgentId::as_str).collect();
    assert_eq!((path, question.agent_id.as_str()), (vec!["a", "b"], "b"));
    assert_eq!((&question.root_task_id, question.request.as_str()), (&root, "child"));
    assert_ne!(question.task_id, root);
    assert_eq!(question.text, "may I?");
    assert!(stand.reply(&[&question.id], "yes").await[0].answered);
    assert!(said(&stand.until(&root, TaskState::Completed).await).contains("yes"));
    assert_eq!(stand.past().await.len(), 1, "the relay is no question");
}

/// `later` moves the deadline of a question and of all tasks that relay it, up to the limit.
#[tokio::test(start_paused = true)]
async fn postponed_question_outlives_its_deadline() {
    let fake = Fake::new(|stage: Stage| async move {
        let asked = stage.port.ask(Need::Input, permission("may I?"), Some(Duration::from_mins(1)));
        match asked.await {
            Ok(answer) => completed(&answer.message.joined_text()),
            Err(why) => completed(&why.to_string()),
        }
    });
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &fake);
    let [kept, lost] =
        [stand.submit(agents.named("a"), "go").await, stand.submit(agents.named("b"), "go").await];
    let open = stand.open_count(2).await;
    let question = open.iter().find(|question| question.task_id == kept).unwrap();
    let postpone = |id: QuestionId, secs: u64| {
        stand.questions(QuestionRequest::Postpone { id, for_ms: secs * 1_000 })
    };
    let QuestionAnswer::Postponed(postponed) = postpone(question.id.clone(), 3_600).await else {
        panic!("it was listed")
    };
    assert!(postponed.set_aside);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(
        said(&stand.until(&lost, TaskState::Completed).await),
        "it took longer than it was given"
    );
    assert_eq!(stand.open_count(1).await[0].task_id, kept, "it waits");
    tokio::time::sleep(Duration::from_secs(3_000)).await;
    stand.until(&kept, TaskState::Completed).await;
    let past = stand.past().await;
    assert!(past.iter().all(|past| past.outcome == "expired" && past.answer.is_none()), "{past:?}");
    let by = Caller::from(Principal::Operator);
    let gone = QuestionRequest::Postpone { id: question.id.clone(), for_ms: 1_000 };
    assert!(Questions(&stand.tasks, None).perform(&by, gone).await.is_err());
}

/// Three clients of different kinds race for every question: one wins, and the others get errors.
#[tokio::test(start_paused = true)]
async fn racing_answers_reach_their_questions_only() {
    let fake = Fake::new(|stage: Stage| async move {
        // A message between two questions is further input, and begins another run at the end.
        let rounds = if stage.text() == "go" { 200 } else { 0 };
        for round in 0..rounds {
            let text = format!("question {round}?");
            let answer = stage.port.ask(Need::Input, permission(&text), None).await;
            let answer = answer.unwrap().message.joined_text();
            let meant = answer.strip_prefix("to ").unwrap_or_default();
            if !meant.is_empty() && meant != text {
                return completed(&format!("{text} got {answer}"));
            }
        }
        completed("all")
    });
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &fake);
    let root = stand.submit(agents.named("a"), "go").await;
    let (mut wins, mut losses) = (0, 0);
    for round in 0..200 {
        let question = loop {
            let open = stand.open_count(1).await.remove(0);
            if open.text == format!("question {round}?") {
                break open;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        let answer = format!("to {}", question.text);
        let mut named = Message::text(Role::User, &answer);
        named.metadata = Some(a2a_hub_core::task::open_questions::answer_metadata(&question.id));
        let client = ClientCapabilities::default;
        let by = Principal::OperatorToken;
        let (by_id, by_message, unnamed) = join3(
            stand.reply_from(&question.id, &answer),
            stand.tasks.answer(&root, named, client(), None, by),
            stand.answer(&root, &answer),
        )
        .await;
        // What names no question may also have been taken as further input.
        drop(unnamed);
        let named = [by_id, by_message.is_ok()].into_iter().filter(|won| *won).count();
        assert!(named <= 1, "{round}: both were told that they had answered");
        wins += named;
        losses += 2 - named;
    }
    let done = stand.until(&root, TaskState::Completed).await;
    assert_eq!(said(&done), "all", "no answer reached another question");
    assert!(wins > 0 && losses >= 200, "{wins} {losses}");
    let past = stand.past_all().await;
    assert_eq!(past.len(), 200);
    assert!(past.iter().all(|past| past.outcome == "answered"));
}

impl Stand {
    async fn reply_from(&self, id: &QuestionId, answer: &str) -> bool {
        self.reply(&[id], answer).await[0].answered
    }

    /// All earlier questions, page by page.
    async fn past_all(&self) -> Vec<PastQuestion> {
        let (mut all, mut before) = (Vec::new(), None);
        loop {
            let QuestionAnswer::History(page) =
                self.questions(QuestionRequest::History { limit: 30, before }).await
            else {
                panic!("it is a history")
            };
            all.extend(page.questions);
            before = page.next;
            if before.is_none() {
                return all;
            }
        }
    }
}

/// While an answer waits for a run permit, queued questions are listed, and answered afterwards.
#[tokio::test(start_paused = true)]
async fn queued_questions_wait_for_earlier_answer() {
    let stand = Stand::new();
    let busy = Fake::new(|stage: Stage| async move {
        if stage.text() != "go" {
            tokio::time::sleep(Duration::from_secs(60)).await;
            return completed("busy");
        }
        let pose = |text: &str| stage.port.pose(Need::Input, permission(text), None);
        stage.port.release_permit(a2a_hub_runtime::port::tasks::WaitsFor::Client).await;
        let answers = join3(pose("one?"), pose("two?"), pose("three?")).await;
        let text = |answer: Result<a2a_hub_runtime::port::tasks::ClientAnswer, Failure>| {
            answer.map_or_else(|why| why.to_string(), |answer| answer.message.joined_text())
        };
        completed(&format!("{}, {}, {}", text(answers.0), text(answers.1), text(answers.2)))
    });
    let config = AgentConfig { max_running: Some(1), ..config() };
    let agents = agents_of(&stand, &config, &busy);
    let root = stand.submit(agents.named("a"), "go").await;
    let open = stand.open_count(3).await;
    let other = stand.submit(agents.named("a"), "other").await;
    stand.until(&other, TaskState::Working).await;
    let ids: Vec<_> = open.iter().map(|question| &question.id).collect();
    let results = stand.reply(&ids[..1], "first").await;
    assert!(results[0].answered);
    let listed = stand.open().await;
    assert_eq!(texts(&listed), [("two?", true), ("three?", true)], "it waits for its permit");
    let results = stand.reply(&ids[1..], "all").await;
    assert!(results.iter().all(|result| !result.answered), "{results:?}");
    assert!(results[0].error.as_ref().unwrap().contains("once it goes on"), "{results:?}");
    stand.until(&other, TaskState::Completed).await;
    stand.until(&root, TaskState::InputRequired).await;
    let results = stand.reply(&ids[1..], "all").await;
    assert!(results.iter().all(|result| result.answered), "{results:?}");
    assert_eq!(said(&stand.until(&root, TaskState::Completed).await), "first, all, all");
}

/// A store that takes no answer leaves the question open, and its answer to others.
#[tokio::test(start_paused = true)]
async fn unstorable_answer_leaves_queue_alone() {
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &three_questions());
    let root = stand.submit(agents.named("a"), "go").await;
    let open = stand.open_count(3).await;
    let [one, two, three] = [0, 1, 2].map(|at| open[at].id.clone());
    stand.storage.refuse(true);
    let refused = stand.reply(&[&two], "lost").await;
    assert!(!refused[0].answered, "{refused:?}");
    stand.storage.refuse(false);
    let open = stand.open_count(3).await;
    assert_eq!(texts(&open), [("one?", false), ("two?", true), ("three?", true)]);
    let results = stand.reply(&[&three], "three").await;
    assert!(results[0].answered, "{results:?}");
    let results = stand.reply(&[&two], "two").await;
    assert!(results[0].answered, "{results:?}");
    assert!(stand.reply(&[&one], "one").await[0].answered);
    let done = stand.until(&root, TaskState::Completed).await;
    assert_eq!(said(&done), "one, two, three");
}

/// A message that means a question which its agent withdrew cannot allow the next one.
#[tokio::test(start_paused = true)]
async fn unnamed_yes_to_withdrawn_question_is_refused() {
    let fake = Fake::new(|stage: Stage| async move {
        let first = stage.port.pose(Need::Input, permission("one?"), None);
        assert!(tokio::time::timeout(Duration::from_secs(5), first).await.is_err());
        let second = stage.port.pose(Need::Input, permission("two?"), None).await;
        completed(&second.unwrap().message.joined_text())
    });
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &fake);
    let root = stand.submit(agents.named("a"), "go").await;
    while stand.open().await.first().is_none_or(|open| open.text != "two?") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(stand.answer(&root, "meant for one").await.is_err());
    tokio::time::sleep(Duration::from_secs(2)).await;
    stand.answer(&root, "meant for two").await.unwrap();
    assert_eq!(said(&stand.until(&root, TaskState::Completed).await), "meant for two");
}

/// A message that names no question cannot allow the open one just after a queued one was answered.
#[tokio::test(start_paused = true)]
async fn unnamed_yes_after_queued_answer_is_refused() {
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &three_questions());
    let root = stand.submit(agents.named("a"), "go").await;
    let open = stand.open_count(3).await;
    assert!(stand.reply(&[&open[1].id], "two").await[0].answered);
    assert!(stand.answer(&root, "meant for two").await.is_err());
    let history = stand.tasks.get(&root).await.unwrap().task.history;
    let repeated = history.iter().filter(|message| message.joined_text() == "one?").count();
    assert_eq!(repeated, 1, "a repeated question is one question");
}

/// A child's queued answer leaves the question open that its parent relays.
#[tokio::test(start_paused = true)]
async fn relayed_question_survives_queued_answer() {
    let fake = Fake::new(|stage: Stage| async move {
        if stage.text() == "child" {
            let pose = |text: &str| stage.port.pose(Need::Input, permission(text), None);
            let (one, two) = tokio::join!(pose("one?"), pose("two?"));
            let [one, two] = [one, two].map(|answer| answer.unwrap().message.joined_text());
            return completed(&format!("{one}, {two}"));
        }
        let request = ChildRequest::new("b", Message::text(Role::User, "child"));
        completed(&told(&stage.outcome_of(request).await.unwrap()))
    });
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &fake);
    let root = stand.submit(agents.named("a"), "parent").await;
    let asks = stand.until(&root, TaskState::InputRequired).await;
    let open = stand.open_count(2).await;
    assert_eq!(texts(&open), [("one?", false), ("two?", true)]);
    let before = stand.story(&root).await;
    assert!(stand.reply(&[&open[1].id], "second").await[0].answered);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(stand.story(&root).await, before, "its client sees nothing of it");
    assert!(said(&asks).contains("one?"));
    stand.answer(&root, "first").await.unwrap();
    let done = stand.until(&root, TaskState::Completed).await;
    assert!(said(&done).contains("first, second"), "{}", said(&done));
}
