//! Contract tests for context memories.

use super::events::{created, status, working};
use crate::{MemoryShare, Search, Storage, StorageError};
use a2a_hub_core::{
    access_control::Principal,
    context_memory::model::{Change, Decision, Item, MemoryCapacity, MemoryKey, Thought},
    plugin::installation::InstallationId,
    scheduling::{
        memory_shares::MemoryHolder,
        resources::{ShareReached, SharedResource},
        shares::ShareLimit,
    },
};
use a2a_hub_protocol::{
    id::{AgentId, ContextId, TaskId, TenantId},
    task::TaskState,
};
use serde_json::{Value, json};

const ROOM: MemoryCapacity = MemoryCapacity { max_bytes: 1 << 20, max_items: 1_000 };

fn place(context: &str, agent: &str) -> MemoryKey {
    let owner = InstallationId::from(&AgentId::parse(agent).unwrap());
    MemoryKey { context: ContextId::new(context), owner }
}

fn item(id: &str, data: Value) -> Item {
    let metadata = json!({"score": 0.9}).as_object().cloned();
    Item { id: id.to_owned(), kind: "semantic".to_owned(), data, metadata }
}

fn remember(id: &str, data: Value) -> Change {
    Change::Remember(item(id, data))
}

fn search(query: &str) -> Search {
    Search { query: query.to_owned(), limit: 10, is_use: false }
}

async fn found(storage: &impl Storage, place: &MemoryKey, query: &str) -> Vec<String> {
    let found = storage.search(place, search(query)).await.unwrap();
    found.into_iter().map(|item| item.id).collect()
}

pub(super) async fn context_memory_is_separate_by_place(storage: &impl Storage) {
    let here = place("c", "echo");
    assert!(storage.working(&here).await.unwrap().is_empty());
    let decision = Decision { key: "db".to_owned(), value: json!("sqlite"), ..Decision::default() };
    let thought = Thought { content: "\u{0}é\n".to_owned(), at: None, private: true };
    let name = "v".to_owned();
    let changes = vec![
        Change::Goal(Some("ship".to_owned())),
        Change::Thought(thought.clone()),
        Change::Decide(decision.clone()),
        Change::Variable { name, value: Some(json!({"a": [1, null]})), private: false },
        remember("fact", json!({"info": "details"})),
    ];
    storage.change(&here, changes.clone(), ROOM).await.unwrap();
    let kept = storage.working(&here).await.unwrap();
    assert_eq!(
        (kept.goal.as_deref(), &kept.thoughts[..], &kept.decisions[..]),
        (Some("ship"), &[thought][..], &[decision][..])
    );
    assert_eq!(found(storage, &here, "details").await, ["fact"]);
    let whole = storage.named(&here, vec!["none".to_owned(), "fact".to_owned()]).await.unwrap();
    assert_eq!(whole, [item("fact", json!({"info": "details"}))]);

    // The changes are idempotent.
    storage.change(&here, changes, ROOM).await.unwrap();
    assert_eq!(storage.working(&here).await.unwrap(), kept);
    assert_eq!(found(storage, &here, "").await, ["fact"]);

    let acme = TenantId::parse("acme").unwrap();
    let of_tenant = MemoryKey { context: here.context.clone().of_tenant(&acme), ..here.clone() };
    let others = [place("d", "echo"), place("c", "other"), place("c", "ech"), of_tenant];
    for other in &others {
        assert!(storage.working(other).await.unwrap().is_empty());
        assert_eq!(found(storage, other, "details").await, [""; 0]);
        assert_eq!(found(storage, other, "").await, [""; 0]);
        assert!(storage.named(other, vec!["fact".to_owned()]).await.unwrap().is_empty());
        let forget = vec![Change::Forget("fact".to_owned()), Change::Goal(None)];
        storage.change(other, forget, ROOM).await.unwrap();
    }
    assert_eq!(found(storage, &here, "details").await, ["fact"]);
    storage.change(&here, vec![Change::Forget("fact".to_owned())], ROOM).await.unwrap();
    assert_eq!(found(storage, &here, "details").await, [""; 0]);
    assert_eq!(found(storage, &here, "").await, [""; 0]);
}

pub(super) async fn context_memory_change_is_atomic_within_limits(storage: &impl Storage) {
    let (here, there) = (place("c", "echo"), place("d", "echo"));
    let some = MemoryCapacity { max_bytes: 2_000, max_items: 3 };
    storage
        .change(&here, vec![remember("a", json!("x")), remember("b", json!("x"))], some)
        .await
        .unwrap();
    let over =
        vec![remember("c", json!(1)), remember("d", json!(1)), Change::Goal(Some("g".to_owned()))];
    let full = storage.change(&there, over, some).await.unwrap_err();
    assert!(
        matches!(full, StorageError::FullOfItems { would_hold: 4, max_items: 3, .. }),
        "{full}"
    );
    assert!(storage.working(&there).await.unwrap().is_empty());
    assert_eq!(found(storage, &there, "").await, [""; 0]);
    // A replacement fits, and a reduction always does.
    storage.change(&here, vec![remember("a", json!("y"))], some).await.unwrap();
    let less = MemoryCapacity { max_bytes: 0, max_items: 0 };
    storage.change(&here, vec![Change::Forget("b".to_owned())], less).await.unwrap();
    let large = storage.change(&here, vec![remember("e", json!("x".repeat(2_000)))], some).await;
    assert!(matches!(large, Err(StorageError::Full { max_bytes: 2_000, .. })));
    let goal = Change::Goal(Some("x".repeat(1_900)));
    let large = storage.change(&there, vec![goal], some).await;
    assert!(
        matches!(large, Err(StorageError::Full { .. })),
        "another conversation has no other room"
    );

    // Values by key share the capacity, both ways round.
    storage.remember(&here.owner, "k", vec![0; 1_500], 2_000).await.unwrap();
    let goal = Change::Goal(Some("x".repeat(400)));
    let large = storage.change(&there, vec![goal.clone()], some).await;
    assert!(matches!(large, Err(StorageError::Full { .. })));
    storage.remember(&here.owner, "k", vec![0; 500], 2_000).await.unwrap();
    storage.change(&there, vec![goal], some).await.unwrap();
    let full = storage.remember(&here.owner, "k", vec![0; 1_500], 2_000).await;
    assert!(matches!(full, Err(StorageError::Full { .. })));

    // Empty items are charged as well.
    let nothing = (0..100).map(|n| remember(&n.to_string(), Value::Null)).collect();
    let many = MemoryCapacity { max_bytes: 6_400, max_items: 1_000 };
    let rows = storage.change(&place("c", "rows"), nothing, many).await;
    assert!(matches!(rows, Err(StorageError::Full { .. })), "a row counts for more than 64 bytes");
}

pub(super) async fn items_are_found_by_words(storage: &impl Storage) {
    let here = place("c", "echo");
    for n in 0..60 {
        let filler = vec![remember(&format!("filler-{n}"), json!(format!("common number{n}")))];
        storage.change(&here, filler, ROOM).await.unwrap();
    }
    let facts = vec![
        remember("cache", json!("the cache is warm")),
        remember("Rate' OR 1=1 --\\\"", json!({"limit": "rate of the cache cache cache"})),
        remember("common", json!("common")),
    ];
    storage.change(&here, facts, ROOM).await.unwrap();
    let cache = ["Rate' OR 1=1 --\\\"", "cache"];
    assert_eq!(found(storage, &here, "which cache limit?").await, cache);
    assert_eq!(found(storage, &here, "number7").await, ["filler-7"]);
    assert_eq!(found(storage, &here, "common").await.len(), 10);
    assert_eq!(found(storage, &here, "unheard").await, [""; 0]);
    assert_eq!(found(storage, &here, "").await[..3], ["common", cache[0], "cache"], "the newest");
    // A rewritten item is found by its new words only, and is the newest.
    storage.change(&here, vec![remember("filler-7", json!("owl"))], ROOM).await.unwrap();
    assert_eq!(found(storage, &here, "number7").await, [""; 0]);
    assert_eq!(found(storage, &here, "owl").await, ["filler-7"]);
    assert_eq!(found(storage, &here, "").await[0], "filler-7");
}

pub(super) async fn items_used_together_are_associated(storage: &impl Storage) {
    let here = place("c", "echo");
    let facts = vec![
        remember("red", json!("red fox")),
        remember("blue", json!("blue fox")),
        remember("owl", json!("owl")),
    ];
    storage.change(&here, facts, ROOM).await.unwrap();
    assert_eq!(found(storage, &here, "red").await, ["red"]);
    let used = Search { is_use: true, ..search("fox") };
    for _ in 0..3 {
        storage.search(&here, used.clone()).await.unwrap();
    }
    // The association is stored at the latest with the next write.
    storage.change(&here, vec![Change::Goal(None)], ROOM).await.unwrap();
    assert_eq!(found(storage, &here, "red").await, ["red", "blue"]);
    storage.change(&here, vec![remember("blue", json!("whale"))], ROOM).await.unwrap();
    assert_eq!(
        found(storage, &here, "red").await,
        ["red", "blue"],
        "it is the same, in other words"
    );
    storage.change(&here, vec![Change::Forget("blue".to_owned())], ROOM).await.unwrap();
    assert_eq!(found(storage, &here, "red").await, ["red"]);
}

pub(super) async fn context_memory_is_deleted_with_context(storage: &impl Storage) {
    let (one, other) = (place("one", "echo"), place("other", "echo"));
    let tasks = [TaskId::fresh(), TaskId::fresh(), TaskId::fresh()];
    for (task, context) in tasks.iter().zip(["one", "one", "other"]) {
        storage.append(task, 0, vec![created(task, context), working()]).await.unwrap();
        storage.append(task, 2, vec![status(TaskState::Completed, 3, None)]).await.unwrap();
    }
    let full = MemoryCapacity { max_bytes: 1_200, max_items: 100 };
    for place in [&one, &other] {
        let goal = Change::Goal(Some("x".repeat(100)));
        storage.change(place, vec![goal, remember("fact", json!("x"))], full).await.unwrap();
    }
    storage.abandon(&one).await.unwrap();
    assert_eq!(found(storage, &one, "fact").await, ["fact"], "its conversation has tasks");
    storage.forget_tasks(vec![tasks[0].clone()]).await.unwrap();
    assert_eq!(found(storage, &one, "fact").await, ["fact"], "one of its tasks is there");
    storage.forget_tasks(vec![tasks[1].clone()]).await.unwrap();
    assert_eq!(found(storage, &one, "fact").await, [""; 0]);
    assert!(storage.working(&one).await.unwrap().is_empty());
    assert_eq!(found(storage, &other, "fact").await, ["fact"]);
    storage.forget_context_memories(&place("x", "nobody").owner).await.unwrap();
    assert_eq!(found(storage, &other, "fact").await, ["fact"]);
    storage.forget_context_memories(&other.owner).await.unwrap();
    assert_eq!(found(storage, &other, "fact").await, [""; 0]);
    // The freed capacity is available, and a new conversation of that id has no memory.
    let goal = Change::Goal(Some("x".repeat(400)));
    storage.change(&place("new", "echo"), vec![goal], full).await.unwrap();
    storage.abandon(&place("new", "echo")).await.unwrap();
    assert!(storage.working(&place("new", "echo")).await.unwrap().is_empty());
}

/// Resource and limit of a refusal.
fn refused(done: Result<(), StorageError>) -> Option<(SharedResource, ShareLimit)> {
    match done {
        Err(StorageError::Share(ShareReached { resource, limit, .. })) => Some((resource, limit)),
        Ok(()) => None,
        Err(why) => panic!("{why}"),
    }
}

pub(super) async fn holders_have_shares_of_memory(storage: &impl Storage) {
    let capacity = MemoryCapacity { max_bytes: 10_000, max_items: 20 };
    let owner = InstallationId::from(&AgentId::parse("echo").unwrap());
    let shared = MemoryKey { context: ContextId::new("c"), owner };
    let agent = |name: &str| Principal::of_tree(AgentId::parse(name).unwrap(), "1");
    let holder = |tenant: &str, by: &Principal| {
        MemoryHolder::new(&TenantId::try_from(tenant.to_owned()).unwrap(), Some(by))
    };
    let greedy = holder("", &agent("greedy"));
    let operator = holder("", &Principal::Operator);
    let set = async |holder: &MemoryHolder, key: &str, bytes: usize| {
        refused(storage.remember_for(&shared.owner, key, vec![0; bytes - 1], holder, 10_000).await)
    };
    let change = async |holder: &MemoryHolder, context: &str, change: Change| {
        let share = MemoryShare { holder: holder.clone(), capacity };
        let scope = MemoryKey { context: ContextId::new(context), ..shared.clone() };
        refused(storage.change_for(&scope, vec![change], &share, capacity).await)
    };
    let bytes = |limit| Some((SharedResource::MemoryBytes, ShareLimit::PerHolder(limit)));

    // Values: half of what is not reserved. A smaller value is accepted, and frees its bytes.
    assert_eq!(set(&greedy, "a", 4_000).await, None);
    assert_eq!(set(&greedy, "b", 501).await, bytes(4_500));
    assert_eq!(set(&greedy, "b", 500).await, None);
    assert_eq!(set(&greedy, "a", 100).await, None);
    assert_eq!(set(&greedy, "a", 4_000).await, None);
    // Context memory is in the same share, and a reduction is never refused.
    let goal = |bytes: usize| Change::Goal(Some("x".repeat(bytes)));
    assert_eq!(change(&greedy, "c", goal(1)).await, bytes(4_500));
    storage.forget(&shared.owner, "a").await.unwrap();
    assert_eq!(change(&greedy, "c", goal(3_500)).await, None);
    assert_eq!(set(&greedy, "a", 400).await, bytes(4_500));
    assert_eq!(change(&greedy, "c", Change::Goal(None)).await, None);
    assert_eq!(set(&greedy, "a", 3_900).await, None);

    // An item that grows under another holder is in the share of that one.
    assert_eq!(set(&operator, "o", 100).await, None);
    assert_eq!(set(&greedy, "o", 101).await, bytes(4_500));
    assert_eq!(set(&operator, "a", 4_000).await, None);
    assert_eq!(set(&greedy, "b", 4_400).await, None);
    let shared_limit = Some((SharedResource::MemoryBytes, ShareLimit::Shared(9_000)));
    let other = holder("", &agent("other"));
    assert_eq!(set(&other, "d", 1_000).await, None);
    let acme = holder("acme", &Principal::Client("acme".to_owned()));
    assert_eq!(set(&other, "d", 1_400).await, None);
    assert_eq!(set(&operator, "a", 10).await, None);
    assert_eq!(set(&acme, "e", 3_201).await, shared_limit);
    assert_eq!(set(&acme, "e", 3_200).await, None);
    // The reserve is the operator's.
    assert_eq!(set(&operator, "a", 900).await, None);

    // Items are divided as well.
    for key in ["a", "b", "d", "e", "o"] {
        storage.forget(&shared.owner, key).await.unwrap();
    }
    for n in 0..9 {
        assert_eq!(change(&greedy, "c", remember(&n.to_string(), Value::Null)).await, None);
    }
    let items = Some((SharedResource::MemoryItems, ShareLimit::PerHolder(9)));
    assert_eq!(change(&greedy, "d", remember("more", Value::Null)).await, items);
    assert_eq!(change(&acme, "e", remember("one", Value::Null)).await, None);
    storage.forget_context_memories(&shared.owner).await.unwrap();
    assert_eq!(change(&greedy, "d", remember("more", Value::Null)).await, None);
}
