//! Contract tests for the questions that tasks asked.

use super::{at, created, status};
use crate::{ClosedQuestionFilter, Storage};
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::{
    event::TaskEvent,
    id::{QuestionId, TaskId},
    message::{Message, Metadata, Role},
    question::{Question, QuestionKind},
    task::TaskState,
};
use std::sync::Arc;

/// Status that asks the question with this id.
fn asks(id: &str, ms: u64, relayed_for: Option<&TaskId>) -> Arc<TaskEvent> {
    posed(id, ms, relayed_for, None)
}

/// Status that asks the question with this id in place of one that is lost.
fn asks_again(id: &str, ms: u64) -> Arc<TaskEvent> {
    posed(id, ms, None, Some(QuestionKind::Permission))
}

fn posed(
    id: &str,
    ms: u64,
    relayed_for: Option<&TaskId>,
    replaces: Option<QuestionKind>,
) -> Arc<TaskEvent> {
    let mut event = Arc::unwrap_or_clone(status(TaskState::InputRequired, ms, Some("May I?")));
    if let TaskEvent::Status(update) = &mut event {
        let fresh = Question::fresh(QuestionKind::Permission);
        let (id, task) = (QuestionId::new(id), relayed_for.cloned());
        let question = Question { id, task, replaces, ..fresh };
        update.metadata = Some(Metadata::from_iter([question.member()]));
    }
    Arc::new(event)
}

pub(super) async fn questions_are_listed_once_closed(storage: &impl Storage) {
    let [one, two] = [(); 2].map(|()| TaskId::fresh());
    let working = |ms| status(TaskState::Working, ms, None);
    let closed = async |filter: ClosedQuestionFilter| {
        let found = storage.closed_questions(filter).await.unwrap();
        let outcomes = found.iter().map(|it| (it.id.to_string(), it.outcome.clone()));
        (outcomes.collect::<Vec<_>>(), found)
    };
    let all = || ClosedQuestionFilter { limit: 10, ..ClosedQuestionFilter::default() };
    let list = |pairs: &[(&str, &str)]| {
        pairs
            .iter()
            .map(|(id, outcome)| ((*id).to_owned(), (*outcome).to_owned()))
            .collect::<Vec<_>>()
    };

    storage
        .append(&one, 0, vec![created(&one, "c"), working(0), asks("a", 1, None)])
        .await
        .unwrap();
    assert_eq!(closed(all()).await.0, list(&[]), "it is open");
    let yes = Arc::new(TaskEvent::Input(Message::text(Role::User, "yes")));
    storage.append_by(&one, 3, vec![yes.clone()], Some(&Principal::Operator)).await.unwrap();
    storage.append(&one, 4, vec![working(2)]).await.unwrap();
    let (_, found) = closed(all()).await;
    assert_eq!((found[0].opened, found[0].answered), (3, Some(4)));
    assert_eq!(
        (found[0].by.clone(), found[0].task.clone()),
        (Some(Principal::Operator), one.clone())
    );
    assert_eq!((found[0].kind, found[0].opened_at.clone()), (QuestionKind::Permission, at(1)));

    // One that its agent withdrew, one that another replaced, and one that the end closed.
    storage
        .append(&one, 5, vec![asks("b", 3, None), working(4), asks("c", 5, None)])
        .await
        .unwrap();
    storage.append(&one, 8, vec![asks("d", 6, None), asks("d", 6, None)]).await.unwrap();
    // The relayed question is that of the other task.
    storage
        .append(&two, 0, vec![created(&two, "c"), working(0), asks("d", 6, Some(&one))])
        .await
        .unwrap();
    // A question that is asked again is open again.
    storage.append(&one, 10, vec![asks("c", 7, None)]).await.unwrap();
    let outcomes = [("d", "replaced"), ("b", "expired"), ("a", "answered")];
    assert_eq!(closed(all()).await.0, list(&outcomes));
    storage.append(&one, 11, vec![status(TaskState::Canceled, 8, None)]).await.unwrap();
    let outcomes = [("d", "replaced"), ("c", "canceled"), ("b", "expired"), ("a", "answered")];
    let (listed, found) = closed(all()).await;
    assert_eq!(listed, list(&outcomes));

    let page = ClosedQuestionFilter { before: Some(found[1].number), limit: 1, ..all() };
    assert_eq!(closed(page).await.0, list(&outcomes[2..3]));
    let named = ClosedQuestionFilter { id: Some(QuestionId::new("a")), ..all() };
    assert_eq!(closed(named).await.0, list(&outcomes[3..]));
    let other = a2a_hub_protocol::id::TenantId::parse("other").unwrap();
    assert_eq!(closed(ClosedQuestionFilter { tenant: other, ..all() }).await.0, list(&[]));
    storage.forget_tasks(vec![one]).await.unwrap();
    assert_eq!(closed(all()).await.0, list(&[]));
}

pub(super) async fn replacing_question_stays_postponed(storage: &impl Storage) {
    let [one, two] = [(); 2].map(|()| TaskId::fresh());
    let working = |ms| status(TaskState::Working, ms, None);
    let answer = |text: &str| Arc::new(TaskEvent::Input(Message::text(Role::User, text)));
    let postpone = async |id: &str, until: &str| {
        storage.postpone_question(&one, &QuestionId::new(id), until).await.unwrap()
    };
    let until = async |id: &str| {
        storage.postponed_until(&one, &QuestionId::new(id)).await.unwrap().unwrap_or_default()
    };
    let begun = vec![created(&one, "c"), working(0), asks("a", 1, None)];
    assert!(!postpone("a", "2030").await, "the task is unknown");
    storage.append(&one, 0, begun).await.unwrap();
    assert_eq!(until("a").await, "");
    assert!(!postpone("b", "2030").await, "the task asks another one");
    assert!(postpone("a", "2030").await && postpone("a", "2031").await);
    assert_eq!(until("a").await, "2031", "the later one counts");

    // One asked in its place, also after a status in between, and both asked again.
    storage.append(&one, 3, vec![asks_again("b", 2), asks_again("b", 2)]).await.unwrap();
    assert_eq!((until("a").await, until("b").await), (String::new(), "2031".to_owned()));
    assert!(!postpone("a", "2032").await, "it is closed");
    storage.append(&one, 5, vec![working(3), asks_again("c", 3)]).await.unwrap();
    assert_eq!(until("c").await, "2031");
    assert!(postpone("c", "2033").await);
    storage.append(&one, 7, vec![asks_again("d", 4)]).await.unwrap();
    assert_eq!(until("d").await, "2033");

    // An answered one leaves nothing to the next, and neither does one that its agent gave up.
    storage.append(&one, 8, vec![answer("yes"), working(5), asks_again("e", 5)]).await.unwrap();
    assert_eq!(until("e").await, "");
    assert!(postpone("e", "2034").await);
    storage.append(&one, 11, vec![working(6), asks("f", 6, None)]).await.unwrap();
    assert_eq!(until("f").await, "", "it replaces nothing");

    // Another task's question of the same id, and a relayed one, are others.
    let begun = vec![created(&two, "c"), working(0), asks("f", 6, None)];
    storage.append(&two, 0, begun).await.unwrap();
    assert!(postpone("f", "2035").await);
    let other = storage.postponed_until(&two, &QuestionId::new("f")).await;
    assert_eq!(other, Ok(None));
    storage.append(&one, 13, vec![asks("g", 7, Some(&two))]).await.unwrap();
    assert!(!postpone("g", "2036").await, "the other task asks it");
    storage.append(&one, 14, vec![status(TaskState::Canceled, 8, None)]).await.unwrap();
    assert!(!postpone("f", "2036").await);
    storage.forget_tasks(vec![one.clone()]).await.unwrap();
    assert_eq!(until("f").await, "");
}
