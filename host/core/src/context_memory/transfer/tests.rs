//! Tests of the inherited parts in each scope, and of the parts that are never inherited.

use super::*;
use crate::context_memory::{model::Decision, utilisation::MemoryBudget};
use proptest::prelude::*;

fn from() -> Giver {
    Giver { agent: AgentId::parse("planner").unwrap(), task: TaskId::new("t-1") }
}

fn item(id: &str, data: Value, metadata: &Value) -> Item {
    Item { id: id.to_owned(), kind: semantic(), data, metadata: metadata.as_object().cloned() }
}

fn mind() -> (WorkingMemory, Vec<Item>) {
    let thought =
        |content: &str, private| Thought { content: content.to_owned(), private, at: None };
    let decision = |key: &str, value: Value, private| Decision {
        key: key.to_owned(),
        value,
        private,
        ..Decision::default()
    };
    let memory = WorkingMemory {
        goal: Some("Ship the parser".to_owned()),
        thoughts: vec![thought("The grammar is small", false), thought("My key is hunter2", true)],
        decisions: vec![
            decision("database", json!("sqlite"), false),
            decision("salary", json!("hunter2"), true),
            decision("language", json!("rust"), false),
        ],
        variables: [
            ("apiVersion".to_owned(), json!(2)),
            ("apiKey".to_owned(), json!("hunter2")),
            ("depth".to_owned(), Value::Null),
        ]
        .into(),
        private_variables: ["apiKey".to_owned()].into(),
    };
    let items = vec![
        item("fact1", json!({"info": "details"}), &json!({"score": 0.9, "tags": ["parser"]})),
        item("said", json!({"metadata": {"private": true}, "text": "hunter2"}), &Value::Null),
        item("eventA", json!({"action": "interacted"}), &Value::Null),
    ];
    (memory, items)
}

fn asked(scope: Scope, names: &[&str]) -> Inherit {
    let names = names.iter().map(|&name| name.to_owned()).collect();
    Inherit { working_memory: true, memory: true, scope, names, ..Inherit::default() }
}

fn handed(asked: &Inherit, message: &str) -> (WorkingMemory, Vec<Item>, Inherited) {
    let (memory, items) = mind();
    let transfer = transfer(from(), memory, items, asked, message);
    let (mut received, mut items) = (WorkingMemory::default(), Vec::new());
    // Applying the changes twice has the same effect as once.
    for change in transfer.changes().into_iter().chain(transfer.changes()) {
        received.apply(&change);
        if let Change::Remember(item) = change {
            items.retain(|known: &Item| known.id != item.id);
            items.push(item);
        }
    }
    (received, items, transfer.fact)
}

#[test]
fn full_scope_hands_over_non_private_unchanged() {
    let (received, mut items, fact) = handed(&asked(Scope::Full, &[]), "anything");
    let (mut memory, mut own) = mind();
    memory.thoughts.truncate(1);
    memory.decisions.remove(1);
    memory.variables.remove("apiKey");
    memory.private_variables.clear();
    assert_eq!(received, memory);
    own.remove(1);
    items.reverse();
    assert_eq!(items, own, "an item arrives as it left");
    insta::assert_snapshot!(fact.line(), @"the goal, 2 decisions, 2 variables, 2 items, 1 thought from planner (t-1), scope full: language, database, apiVersion, depth, fact1, eventA; stayed, for it is private: 1 decision, 1 variable, 1 item, 1 thought");
    let told = serde_json::to_value(&fact).unwrap();
    assert_eq!(serde_json::from_value::<Inherited>(told.clone()).unwrap(), fact);
    assert!(!told.to_string().contains("salary") && !told.to_string().contains("apiKey"));
}

#[test]
fn minimal_scope_hands_over_named_parts() {
    let (received, items, fact) =
        handed(&asked(Scope::Minimal, &[]), "Write the parser for the API version in our database");
    assert_eq!(received.goal, None);
    assert!(received.thoughts.is_empty());
    assert_eq!(received.decisions.iter().map(|it| &*it.key).collect::<Vec<_>>(), ["database"]);
    assert_eq!(received.variables.keys().collect::<Vec<_>>(), ["apiVersion"]);
    assert_eq!(items.iter().map(|it| &*it.id).collect::<Vec<_>>(), ["fact1"]);
    insta::assert_snapshot!(fact.line(), @"1 decision, 1 variable, 1 item from planner (t-1), scope minimal: database, apiVersion, fact1; stayed, for it is private: 1 decision, 1 variable, 1 item, 1 thought; stayed, for the task does not name: the goal, 1 decision, 1 variable, 1 item, 1 thought");

    let (received, items, _) =
        handed(&asked(Scope::Minimal, &["goal", "eventA", "salary", "apiKey"]), "");
    assert_eq!(received.goal.as_deref(), Some("Ship the parser"));
    assert_eq!(items.iter().map(|it| &*it.id).collect::<Vec<_>>(), ["eventA"]);
    assert!(
        received.decisions.is_empty() && received.variables.is_empty(),
        "no list names what is private"
    );
}

#[test]
fn summary_scope_hands_over_only_insights() {
    let (received, items, fact) = handed(&asked(Scope::Summary, &[]), "anything");
    assert!(received.is_empty());
    let [insights] = &items[..] else { panic!("one item") };
    assert_eq!(insights.id, "insights/t-1");
    let told = json!({
        "goal": "Ship the parser", "decided": ["language: rust", "database: sqlite"], "open": ["depth"], "knows": {"semantic": 2},
    });
    assert_eq!(insights.data, told);
    insta::assert_snapshot!(fact.line(), @"insights from planner (t-1), scope summary; stayed, for it is private: 1 decision, 1 variable, 1 item, 1 thought; stayed, for it is told as insights only: the goal, 2 decisions, 2 variables, 2 items, 1 thought");
}

#[test]
fn unrequested_memory_is_not_handed_over() {
    let only_memory = Inherit { working_memory: false, ..asked(Scope::Full, &[]) };
    let (received, items, _) = handed(&only_memory, "");
    assert!(received.is_empty() && items.len() == 2);
    let only_working = Inherit { memory: false, ..asked(Scope::Full, &[]) };
    let (received, items, _) = handed(&only_working, "");
    assert!(!received.is_empty() && items.is_empty());
}

#[test]
fn parts_beyond_budget_stay_and_are_reported() {
    let budget = MemoryBudget { bytes: Some(60), tokens: None };
    let (received, _, fact) = handed(&Inherit { budget, ..asked(Scope::Full, &[]) }, "");
    assert_eq!(received.goal.as_deref(), Some("Ship the parser"), "the goal comes first");
    assert!(fact.bytes <= 60 && fact.stayed.iter().any(|stayed| stayed.rule == Rule::Budget));
}

#[test]
fn description_lists_few_names_counts_rest() {
    let items = (0..1_000).map(|n| item(&format!("i{n}"), json!(n), &Value::Null)).collect();
    let asked = asked(Scope::Full, &[]);
    let fact = transfer(from(), WorkingMemory::default(), items, &asked, "").fact;
    assert!(fact.went.items > MAX_LISTED && fact.went.names.len() == MAX_LISTED);
}

proptest! {
    #[test]
    fn private_parts_stay_in_any_scope(
        scope in prop_oneof![Just(Scope::Full), Just(Scope::Minimal), Just(Scope::Summary)],
        message in "[a-z ]{0,40}",
        names in prop::collection::vec("goal|thoughts|salary|apiKey|said|database", 0..4),
    ) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let message = format!("{message} api key salary said hunter2");
        let (received, items, fact) = handed(&asked(scope, &names), &message);
        let told = serde_json::to_string(&(received, items, fact)).unwrap();
        prop_assert!(!told.contains("hunter2") && !told.contains("salary"));
    }

    #[test]
    fn inherited_size_is_within_budget(bytes in 0usize..400) {
        let budget = MemoryBudget { bytes: Some(bytes), tokens: None };
        let (memory, items) = mind();
        let asked = Inherit { budget, ..asked(Scope::Full, &[]) };
        let transfer = transfer(from(), memory, items, &asked, "");
        prop_assert!(transfer.fact.bytes <= bytes);
    }
}
