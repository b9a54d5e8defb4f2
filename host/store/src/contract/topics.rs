//! Contract tests for topics: order, patterns, retention, gaps, cursors and tenants.

use crate::{CursorUse, NewTopicMessage, Storage, StorageError, TopicQuery};
use a2a_hub_core::scheduling::{
    resources::{ShareReached, SharedResource},
    shares::{Holder, ShareLimit},
};
use a2a_hub_protocol::id::TenantId;
use a2a_hub_protocol::topics::{
    CursorName, TopicBody, TopicGap, TopicName, TopicPage, TopicPattern, TopicRules, TopicSource,
    TopicStart,
};
use serde_json::json;

const RULES: TopicRules =
    TopicRules { keep_messages: 100, keep_bytes: 1_000, keep_ms: 1_000, max_topics: 3 };

fn tenant(name: &str) -> TenantId {
    TenantId::try_from(name.to_owned()).unwrap()
}

fn name(topic: &str) -> TopicName {
    TopicName::parse(topic).unwrap()
}

fn message(topic: &str, text: &str, at_ms: u64) -> NewTopicMessage {
    let source = TopicSource { publisher: "operator".to_owned(), ..TopicSource::default() };
    NewTopicMessage { topic: name(topic), source, body: TopicBody::Text(text.to_owned()), at_ms }
}

fn query(pattern: &str, after: u64) -> TopicQuery {
    let pattern = TopicPattern::parse(pattern).unwrap();
    TopicQuery { pattern, after, limit: 100, max_bytes: usize::MAX }
}

async fn publish(
    storage: &impl Storage,
    topic: &str,
    text: &str,
    rules: TopicRules,
) -> Result<(u64, u64), StorageError> {
    publish_as(storage, "operator", topic, text, rules).await
}

async fn publish_as(
    storage: &impl Storage,
    owner: &str,
    topic: &str,
    text: &str,
    rules: TopicRules,
) -> Result<(u64, u64), StorageError> {
    let source = TopicSource { publisher: owner.to_owned(), ..TopicSource::default() };
    let message = NewTopicMessage { source, ..message(topic, text, 10) };
    let stored = storage.publish_message(&tenant(""), message, rules).await?;
    Ok((stored.sequence, stored.position))
}

/// Refusal of one more unit to this owner.
fn refusal(resource: SharedResource, owner: &str, limit: ShareLimit, most: u64) -> StorageError {
    ShareReached { resource, holder: Holder::of_identity(owner), limit, total: most }.into()
}

async fn read(storage: &impl Storage, query: TopicQuery) -> TopicPage {
    storage.read_topics(&tenant(""), query).await.unwrap()
}

/// Topics, numbers and texts of a page.
fn texts(page: &TopicPage) -> Vec<String> {
    let text = |body: &TopicBody| match body {
        TopicBody::Text(text) => text.clone(),
        TopicBody::Data(data) => data.to_string(),
    };
    let summary = |it: &a2a_hub_protocol::topics::TopicMessage| {
        format!("{} {} {}", it.topic, it.sequence, text(&it.body))
    };
    page.messages.iter().map(summary).collect()
}

pub(super) async fn topic_messages_are_read_in_order(storage: &impl Storage) {
    assert_eq!(read(storage, query("#", 7)).await, TopicPage::default());
    assert_eq!(storage.topic_position(&tenant("")).await, Ok(0));
    for (topic, text, stored) in
        [("a/b", "one", (1, 1)), ("a", "two", (1, 2)), ("a/b", "three\n\u{1b}\u{0}", (2, 3))]
    {
        assert_eq!(publish(storage, topic, text, RULES).await, Ok(stored));
    }
    let all = read(storage, query("#", 0)).await;
    assert_eq!(texts(&all), ["a/b 1 one", "a 1 two", "a/b 2 three\n\u{1b}\u{0}"]);
    assert_eq!((all.next, all.messages[0].position), (3, 1));
    assert_eq!(all.messages[0].time, "1970-01-01T00:00:00.010Z");
    assert_eq!(all.messages[0].source.publisher, "operator");
    for (pattern, after, expected, next) in [
        ("a/b", 0, vec!["a/b 1 one", "a/b 2 three\n\u{1b}\u{0}"], 3),
        ("a/b", 1, vec!["a/b 2 three\n\u{1b}\u{0}"], 3),
        ("a/+", 3, Vec::new(), 3),
        ("+", 0, vec!["a 1 two"], 3),
        ("b/#", 0, Vec::new(), 3),
        ("#", u64::MAX, Vec::new(), 3),
    ] {
        let page = read(storage, query(pattern, after)).await;
        assert_eq!(
            (texts(&page), page.next),
            (expected.into_iter().map(str::to_owned).collect(), next),
            "{pattern}"
        );
        assert_eq!(page.gaps, []);
    }
    // Pages by number and by size lead through all messages.
    for cut in
        [TopicQuery { limit: 1, ..query("#", 0) }, TopicQuery { max_bytes: 1, ..query("#", 0) }]
    {
        let (mut query, mut found) = (cut, Vec::new());
        for _ in 0..3 {
            let page = read(storage, query.clone()).await;
            assert_eq!(page.messages.len(), 1);
            query.after = page.next;
            found.extend(texts(&page));
        }
        assert_eq!(found, texts(&all));
    }
    let list = storage.list_topics(&tenant("")).await.unwrap();
    let topics = list.topics.iter().map(|it| (it.topic.as_str(), it.messages, it.sequence));
    assert_eq!(topics.collect::<Vec<_>>(), [("a", 1, 1), ("a/b", 2, 2)]);
    assert_eq!(
        (list.topics[0].bytes, list.topics[0].latest.as_str()),
        (3, "1970-01-01T00:00:00.010Z")
    );
    let data =
        NewTopicMessage { body: TopicBody::Data(json!({ "n": null })), ..message("a", "", 11) };
    storage.publish_message(&tenant(""), data, RULES).await.unwrap();
    assert_eq!(texts(&read(storage, query("a", 3)).await), ["a 2 {\"n\":null}"]);
}

pub(super) async fn retention_reports_unread_messages(storage: &impl Storage) {
    let three = TopicRules { keep_messages: 3, ..RULES };
    for n in 1..=5 {
        publish(storage, "a", &n.to_string(), three).await.unwrap();
    }
    publish(storage, "b", "x", three).await.unwrap();
    let gap = |topic: &str, through| TopicGap { topic: Some(name(topic)), through: Some(through) };
    for (after, first, gaps) in [
        (0, "a 3 3", vec![gap("a", 2)]),
        (1, "a 3 3", vec![gap("a", 2)]),
        (2, "a 3 3", vec![]),
        (4, "a 5 5", vec![]),
    ] {
        let page = read(storage, query("#", after)).await;
        assert_eq!((texts(&page)[0].as_str(), page.gaps), (first, gaps), "{after}");
    }
    assert_eq!(read(storage, query("b", 0)).await.gaps, []);
    // A gap is reported once, with the page that reaches it.
    publish(storage, "b", &"x".repeat(999), three).await.unwrap();
    publish(storage, "b", "yy", three).await.unwrap();
    let page = read(storage, TopicQuery { limit: 1, ..query("#", 2) }).await;
    assert_eq!((page.next, page.gaps), (3, vec![]));
    let page = read(storage, query("#", 3)).await;
    assert_eq!((texts(&page).last().unwrap().as_str(), &page.gaps), ("b 3 yy", &vec![gap("b", 2)]));
    assert_eq!(read(storage, query("#", page.next)).await.gaps, []);
    let list = storage.list_topics(&tenant("")).await.unwrap().topics;
    assert_eq!((list[1].messages, list[1].bytes, list[1].dropped), (1, 2, 2));

    // One message is kept, whatever its size; old ones are dropped by the next publication.
    let large =
        NewTopicMessage { body: TopicBody::Text("x".repeat(2_000)), ..message("a", "", 500) };
    storage.publish_message(&tenant(""), large, three).await.unwrap();
    assert_eq!(read(storage, query("a", 0)).await.messages.len(), 1);
    storage.expire_messages(500).await.unwrap();
    assert_eq!(read(storage, query("#", 0)).await.messages.len(), 1);
    storage.expire_messages(501).await.unwrap();
    let none = read(storage, query("#", 0)).await;
    assert_eq!((none.messages.len(), none.gaps), (0, vec![gap("a", 6), gap("b", 3)]));
    assert_eq!(publish(storage, "a", "next", three).await, Ok((7, 10)), "numbers go on");
}

pub(super) async fn topics_are_limited_in_number(storage: &impl Storage) {
    let full = || refusal(SharedResource::Topics, "operator", ShareLimit::All(3), 3);
    for topic in ["a", "b", "c"] {
        publish(storage, topic, "x", RULES).await.unwrap();
    }
    assert_eq!(publish(storage, "d", "x", RULES).await, Err(full()));
    assert_eq!(publish(storage, "a", "y", RULES).await, Ok((2, 4)), "known ones go on");
    assert_eq!(storage.delete_topic(&tenant(""), &name("d")).await, Ok(false));
    assert_eq!(storage.delete_topic(&tenant(""), &name("a")).await, Ok(true));
    assert_eq!(storage.delete_topic(&tenant(""), &name("a")).await, Ok(false));
    let gone = TopicGap { topic: None, through: None };
    assert_eq!(read(storage, query("a", 3)).await.gaps, std::slice::from_ref(&gone));
    assert_eq!(read(storage, query("a", 4)).await.gaps, []);
    assert_eq!(publish(storage, "d", "x", RULES).await, Ok((1, 5)));
    assert_eq!(publish(storage, "a", "x", RULES).await, Err(full()));
    // Topics whose messages are all too old make place.
    storage.expire_messages(11).await.unwrap();
    assert_eq!(publish(storage, "a", "x", RULES).await, Ok((1, 6)));
    let list = storage.list_topics(&tenant("")).await.unwrap().topics;
    assert_eq!(list.iter().map(|it| it.topic.as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(read(storage, query("b", 4)).await.gaps, [gone]);
}

pub(super) async fn cursors_keep_their_positions(storage: &impl Storage) {
    for n in 1..=4 {
        publish(storage, "a", &n.to_string(), RULES).await.unwrap();
    }
    let cursor = |owner: &str, after, start| CursorUse {
        owner: owner.to_owned(),
        name: CursorName::try_from("bot".to_owned()).unwrap(),
        pattern: TopicPattern::parse("a").unwrap(),
        after,
        start,
        at_ms: 7,
    };
    let default = tenant("");
    for (owner, after, start, position) in [
        ("operator", None, TopicStart::Stored, 0),
        ("operator", None, TopicStart::New, 0),
        ("operator", Some(3), TopicStart::New, 3),
        ("operator", Some(1), TopicStart::New, 3),
        ("operator", Some(99), TopicStart::New, 4),
        ("agent:x", None, TopicStart::New, 4),
        ("agent:y", Some(2), TopicStart::New, 2),
    ] {
        let used = storage.use_cursor(&default, cursor(owner, after, start)).await;
        assert_eq!(used, Ok(position), "{owner}");
    }
    let listed = storage.list_topics(&default).await.unwrap().cursors;
    let shown = listed.iter().map(|it| (it.owner.as_str(), it.position, it.behind));
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [("agent:x", 4, 0), ("agent:y", 2, 2), ("operator", 4, 0)]
    );
    assert_eq!(
        (listed[0].pattern.as_str(), listed[0].used.as_str()),
        ("a", "1970-01-01T00:00:00.007Z")
    );
    let (bot, other) = (listed[0].cursor.clone(), CursorName::try_from("x".to_owned()).unwrap());
    assert_eq!(storage.delete_cursors(&default, &other).await, Ok(false));
    assert_eq!(storage.delete_cursors(&tenant("acme"), &bot).await, Ok(false));
    assert_eq!(storage.delete_cursors(&default, &bot).await, Ok(true));
    assert_eq!(storage.list_topics(&default).await.unwrap().cursors, []);
    for n in 0..=SharedResource::Cursors.default_total() {
        let name = CursorName::try_from(n.to_string()).unwrap();
        let used = storage
            .use_cursor(&default, CursorUse { name, ..cursor("x", None, TopicStart::New) })
            .await;
        let most = SharedResource::Cursors.default_total();
        let full = Err(refusal(SharedResource::Cursors, "x", ShareLimit::All(most), most));
        assert_eq!(
            used,
            if n < SharedResource::Cursors.default_total() { Ok(4) } else { full },
            "{n}"
        );
    }
}

pub(super) async fn greedy_agent_gets_its_share_of_topics(storage: &impl Storage) {
    let rules = TopicRules { max_topics: 20, keep_messages: 40, keep_bytes: 100_000, ..RULES };
    let (greedy, other) = ("agent:greedy", "agent:other");
    // 2 of 20 are reserved, and an agent has a quarter of the rest.
    let own = refusal(SharedResource::Topics, greedy, ShareLimit::PerHolder(4), 20);
    for n in 0..6 {
        let stored = publish_as(storage, greedy, &format!("g/{n}"), "x", rules).await;
        assert_eq!(stored.is_ok(), n < 4, "{n}");
        assert_eq!(stored.err(), (n >= 4).then(|| own.clone()));
    }
    publish_as(storage, other, "o/1", "x", rules).await.unwrap();
    for n in 5..18 {
        publish_as(storage, "client:acme", &format!("c/{n}"), "x", rules).await.unwrap();
    }
    let shared = refusal(SharedResource::Topics, other, ShareLimit::Shared(18), 20);
    assert_eq!(publish_as(storage, other, "o/2", "x", rules).await, Err(shared));
    for topic in ["p/1", "p/2"] {
        publish(storage, topic, "x", rules).await.unwrap();
    }
    let all = refusal(SharedResource::Topics, "operator", ShareLimit::All(20), 20);
    assert_eq!(publish(storage, "p/3", "x", rules).await, Err(all));
    let list = storage.list_topics(&tenant("")).await.unwrap().topics;
    let of = |owner: &str| list.iter().filter(|it| it.owner == owner).count();
    assert_eq!([of(greedy), of(other), of("client:acme"), of("operator")], [4, 1, 13, 2]);
    // An own topic without messages makes room.
    storage.expire_messages(11).await.unwrap();
    publish_as(storage, greedy, "g/9", "x", rules).await.unwrap();

    let cursor = |owner: &str, name: String| CursorUse {
        owner: owner.to_owned(),
        name: CursorName::try_from(name).unwrap(),
        pattern: TopicPattern::parse("a").unwrap(),
        after: None,
        start: TopicStart::New,
        at_ms: 7,
    };
    let default = tenant("");
    for n in 0..225 {
        storage.use_cursor(&default, cursor(greedy, n.to_string())).await.unwrap();
    }
    let refused = storage.use_cursor(&default, cursor(greedy, "225".to_owned())).await;
    let most = SharedResource::Cursors.default_total();
    let own = refusal(SharedResource::Cursors, greedy, ShareLimit::PerHolder(225), most);
    assert_eq!(refused, Err(own));
    assert!(storage.use_cursor(&default, cursor(greedy, "7".to_owned())).await.is_ok());
    for owner in [other, "operator"] {
        assert!(storage.use_cursor(&default, cursor(owner, "225".to_owned())).await.is_ok());
    }
}

pub(super) async fn flood_drops_messages_of_its_publisher(storage: &impl Storage) {
    let owners = |page: &TopicPage| {
        let of = |owner: &str| {
            let its = page.messages.iter().filter(|it| it.source.publisher == owner);
            its.count()
        };
        ["operator", "agent:other", "agent:greedy"].map(of)
    };
    // Of 40 messages, 36 are not reserved, and an agent has 9 of them once the topic is full.
    let by_number = TopicRules { keep_messages: 40, keep_bytes: 100_000, ..RULES };
    let by_size = TopicRules { keep_messages: 1_000, keep_bytes: 40, ..RULES };
    for (topic, rules) in [("number", by_number), ("size", by_size)] {
        for owner in ["operator", "agent:other", "operator"] {
            publish_as(storage, owner, topic, "x", rules).await.unwrap();
        }
        for _ in 0..100 {
            publish_as(storage, "agent:greedy", topic, "x", rules).await.unwrap();
        }
        let page = read(storage, query(topic, 0)).await;
        assert_eq!(owners(&page), [2, 1, 37], "{topic}: the unread ones of others stay");
        let through = page.messages.iter().map(|it| it.sequence).nth(3).unwrap() - 1;
        let gap = TopicGap { topic: Some(name(topic)), through: Some(through) };
        assert_eq!(page.gaps, [gap], "{topic}");
        for _ in 0..20 {
            publish_as(storage, "operator", topic, "x", rules).await.unwrap();
            publish_as(storage, "agent:other", topic, "x", rules).await.unwrap();
        }
        let page = read(storage, query(topic, 0)).await;
        assert_eq!(owners(&page), [22, 9, 9], "{topic}: each agent keeps its share");
        // The latest message stays, even if it is larger than the share of its publisher.
        publish_as(storage, "agent:greedy", topic, &"y".repeat(39), by_size).await.unwrap();
        let last = read(storage, query(topic, 0)).await.messages.pop().unwrap();
        assert_eq!(last.body, TopicBody::Text("y".repeat(39)));
    }
}

pub(super) async fn tenants_do_not_see_topics_of_others(storage: &impl Storage) {
    let (acme, other) = (tenant("acme"), tenant("other"));
    let of_acme = || message("a", "secret", 10);
    storage.publish_message(&acme, of_acme(), RULES).await.unwrap();
    storage.publish_message(&acme, of_acme(), RULES).await.unwrap();
    for tenant in [&tenant(""), &other] {
        assert_eq!(storage.read_topics(tenant, query("#", 0)).await, Ok(TopicPage::default()));
        assert_eq!(storage.topic_position(tenant).await, Ok(0));
        assert_eq!(storage.list_topics(tenant).await, Ok(Default::default()));
        assert_eq!(storage.delete_topic(tenant, &name("a")).await, Ok(false));
    }
    let first = storage.publish_message(&other, of_acme(), RULES).await.unwrap();
    assert_eq!((first.sequence, first.position), (1, 1), "numbers tell nothing of others");
    assert_eq!(storage.read_topics(&acme, query("#", 0)).await.unwrap().messages.len(), 2);
}
