//! Contract tests for the search of tasks.

use super::{agent, chunk, created, status, working};
use crate::{FoundPage, Storage};
use a2a_hub_core::{
    access_control::Principal,
    search::{SearchTerms, excerpt},
};
use a2a_hub_protocol::{
    event::{Created, TaskEvent},
    id::{ContextId, TaskId, TenantId},
    message::{Message, Role},
    operation::SearchQuery,
    task::TaskState,
};
use std::{sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};

/// Time limit of the index: it follows after some milliseconds.
const FOLLOWS_WITHIN: Duration = Duration::from_secs(20);

pub(in crate::contract) fn all(query: &str) -> SearchQuery {
    SearchQuery { query: query.to_owned(), limit: 20, ..SearchQuery::default() }
}

/// Waits until the index has followed all changes.
pub(in crate::contract) async fn followed(storage: &impl Storage) {
    let follows = async {
        while storage.search_index().pending > 0 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(FOLLOWS_WITHIN, follows).await.expect("the index follows the logs");
}

async fn page(storage: &impl Storage, query: &SearchQuery) -> FoundPage {
    let terms = SearchTerms::parse(&query.query).unwrap();
    storage.search_tasks(&terms, query).await.unwrap()
}

/// Ids of the tasks that a search finds.
async fn found(storage: &impl Storage, query: &SearchQuery) -> Vec<TaskId> {
    page(storage, query).await.tasks.into_iter().map(|found| found.task).collect()
}

/// Creation of a task with this request.
fn request(task: &TaskId, text: &str, change: impl FnOnce(&mut Created)) -> Arc<TaskEvent> {
    let mut event = Arc::unwrap_or_clone(created(task, "c"));
    if let TaskEvent::Created(created) = &mut event {
        created.task.history = vec![Message::text(Role::User, text)];
        change(created);
        created.task.context_id = created.task.context_id.clone().of_tenant(&created.tenant);
    }
    Arc::new(event)
}

pub(super) async fn words_are_found_in_visible_tasks(storage: &impl Storage) {
    let first = TaskId::fresh();
    // Tasks of one millisecond are in no order.
    sleep(Duration::from_millis(2)).await;
    let [second, third] = [(); 2].map(|()| TaskId::fresh());
    let acme = TenantId::try_from("acme".to_owned()).unwrap();
    let log =
        vec![request(&first, "Why is the parser slow?", |_| ()), working(), chunk("Because of ")];
    storage.append_by(&first, 0, log, Some(&Principal::Operator)).await.unwrap();
    let rest = vec![chunk("quadratic retries"), status(TaskState::Completed, 2, Some("Fixed it."))];
    storage.append(&first, 3, rest).await.unwrap();
    let log =
        vec![request(&second, "make the parser fast", |of| of.agent = agent("codex")), working()];
    storage.append_by(&second, 0, log, Some(&Principal::Client("ci".to_owned()))).await.unwrap();
    let log = vec![request(&third, "parser of another tenant", |of| of.tenant = acme.clone())];
    storage.append(&third, 0, log).await.unwrap();
    followed(storage).await;

    let base = || SearchQuery { tenant: Some(TenantId::default()), ..all("parser") };
    let (one, two) = (vec![first.clone()], vec![second.clone()]);
    assert_eq!(found(storage, &base()).await, [second.clone(), first.clone()], "newest first");
    let other = SearchQuery { tenant: Some(acme), ..base() };
    assert_eq!(found(storage, &other).await, [third]);
    for (query, wanted) in [
        ("slow parser", &one),
        ("\"the parser slow\"", &one),
        ("\"parser the slow\"", &Vec::new()),
        ("\"the parser\" fast", &two),
        ("QUADRAT* fixed", &one),
        ("quadrat", &Vec::new()),
        ("unknown", &Vec::new()),
    ] {
        let query = SearchQuery { query: query.to_owned(), ..base() };
        assert_eq!(found(storage, &query).await, *wanted, "{}", query.query);
    }
    let context = |id: &str| Some(ContextId::new(id));
    for (query, wanted) in [
        (SearchQuery { agent: Some(agent("codex")), ..base() }, &two),
        (SearchQuery { state: Some(TaskState::Completed), ..base() }, &one),
        (SearchQuery { state: Some(TaskState::Failed), ..base() }, &Vec::new()),
        (SearchQuery { context: context("d"), ..base() }, &Vec::new()),
        (SearchQuery { since: Some("2026-01-01T00:00:00.002Z".to_owned()), ..base() }, &one),
        (SearchQuery { since: Some("2027".to_owned()), ..base() }, &Vec::new()),
        (SearchQuery { person: Some("operator".to_owned()), ..base() }, &one),
        (SearchQuery { person: Some("client:ci".to_owned()), ..base() }, &two),
        (SearchQuery { person: Some("ada".to_owned()), ..base() }, &Vec::new()),
    ] {
        assert_eq!(found(storage, &query).await, *wanted, "{}", query.query);
    }
    let marked = page(storage, &all("quadratic")).await.tasks.remove(0).excerpt;
    let hits: Vec<_> = excerpt(&marked).into_iter().filter(|part| part.hit).collect();
    assert_eq!(hits.iter().map(|part| part.text.as_str()).collect::<Vec<_>>(), ["quadratic"]);

    // A message of the client is found while the task goes on.
    let input = Arc::new(TaskEvent::Input(Message::text(Role::User, "use a trampoline")));
    storage.append(&second, 2, vec![input]).await.unwrap();
    followed(storage).await;
    assert_eq!(found(storage, &all("trampoline")).await, two);
}

pub(super) async fn pages_of_results_follow_cursor(storage: &impl Storage) {
    let mut ids: Vec<_> = (0..23).map(|_| TaskId::fresh()).collect();
    for (number, id) in ids.iter().enumerate() {
        let word = if number % 2 == 0 { "even" } else { "odd" };
        storage.append(id, 0, vec![request(id, &format!("{word} one"), |_| ())]).await.unwrap();
    }
    followed(storage).await;
    ids.reverse();
    for (query, wanted) in
        [("one", ids.clone()), ("even", ids.iter().step_by(2).cloned().collect())]
    {
        for limit in [1, 5, 12, 23, 100] {
            let (mut pages, mut after) = (Vec::new(), None);
            loop {
                let page = page(storage, &SearchQuery { after, limit, ..all(query) }).await;
                assert!(page.tasks.len() <= limit);
                pages.extend(page.tasks.into_iter().map(|found| found.task));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            let same = pages.iter().collect::<std::collections::BTreeSet<_>>();
            assert_eq!(same.len(), pages.len(), "each once");
            assert_eq!(same, wanted.iter().collect(), "{query} by {limit}");
        }
    }
}

pub(super) async fn deleted_tasks_are_not_found(storage: &impl Storage) {
    let [remaining, deleted] = [(); 2].map(|()| TaskId::fresh());
    for id in [&remaining, &deleted] {
        let log = vec![request(id, "remember", |_| ()), status(TaskState::Canceled, 1, None)];
        storage.append(id, 0, log).await.unwrap();
    }
    followed(storage).await;
    storage.forget_tasks(vec![deleted.clone()]).await.unwrap();
    assert_eq!(found(storage, &all("remember")).await, std::slice::from_ref(&remaining), "at once");
    followed(storage).await;
    assert_eq!(found(storage, &all("remember")).await, [remaining]);
}

pub(super) async fn any_query_is_text(storage: &impl Storage) {
    let id = TaskId::fresh();
    let text = "a AND NOT OR NEAR(b, 2) asked:x ^y {z} -w \"q\" c++ 翻訳してください l'été";
    storage.append(&id, 0, vec![request(&id, text, |_| ())]).await.unwrap();
    followed(storage).await;
    for query in [
        "AND",
        "NOT",
        "OR a",
        "NEAR(b",
        "asked:x",
        "facets : 7",
        "^y",
        "{z}",
        "-w",
        "\"q\"",
        "a\"",
        "c++",
        "(a OR",
        "a*b*",
        "b, 2)",
        "翻訳",
        "été",
        "L'ETE",
        "a;",
        "' OR 1=1 --",
        "{asked} : a",
        "a\u{0}b",
        "\u{93f}a",
        "\u{200b}a",
    ] {
        let found = found(storage, &all(query)).await;
        let is_other = ["facets", "' OR", "a\u{0}b", "\u{93f}a", "a*b*", "{asked}", "L'ETE"];
        if !is_other.iter().any(|other| query.starts_with(other)) {
            assert_eq!(found, std::slice::from_ref(&id), "{query}");
        }
    }
}
