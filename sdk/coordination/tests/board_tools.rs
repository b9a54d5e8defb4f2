//! Blackboards of flows that agents change while they work.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod voters;

use a2a_hub_coordination::flow::{BoardChange, ChildEnd, FlowEvent, Id};
use serde_json::{Value, json};
use voters::Run;

const BOARD: &str = r#"
description = "x"
[[step]]
id = "work"
prompt = "Build it."
blackboard = { agents = ["a", "b"], rounds = 5, items = [{ id = "plan", text = "Which parts?" }, { id = "api", text = "Design it" }] }
[[step]]
id = "other"
agent = "c"
prompt = "Something else."
"#;

impl Run {
    fn id_of(&self, agent: &str) -> Id {
        self.calls.iter().find(|(_, name, ..)| name == agent).unwrap().0
    }

    /// Answer to a change by this child.
    fn change(&mut self, id: Id, name: &str, contribution: Value) -> Value {
        let change = BoardChange { id: name.to_owned(), contribution };
        self.step(FlowEvent::Changed(id, change));
        let mut answers = self.state.take_board_answers();
        assert_eq!(answers.len(), 1, "{answers:?}");
        answers.remove(0)
    }

    fn give(&mut self, agent: &str, contributions: &Value) {
        let text = json!({ "contributions": contributions }).to_string();
        self.end(agent, ChildEnd { completed: true, text, ..ChildEnd::default() });
    }

    /// Items of the latest report of the board.
    fn items(&mut self) -> Vec<Value> {
        let (step, board) = self.state.take_boards().pop().unwrap();
        assert_eq!(step, "work");
        board["items"].as_array().unwrap().clone()
    }
}

fn claim(id: &str, version: u64) -> Value {
    json!({ "do": "claim", "id": id, "version": version })
}

#[test]
fn claim_by_tool_keeps_others_away() {
    let mut run = Run::begin(BOARD, json!({}));
    assert!(run.text_of("a").contains("`claim_item`"), "the prompt names the tools");
    let (a, b) = (run.id_of("a"), run.id_of("b"));
    let claimed = run.change(a, "m1", claim("plan", 1));
    let facts = [&claimed["id"], &claimed["step"], &claimed["agent"], &claimed["do"]];
    assert_eq!(facts, ["m1", "work", "a", "claim"]);
    let item = &claimed["item"];
    let facts = [&item["id"], &item["state"], &item["by"], &item["version"], &item["until"]];
    let expected = [&json!("plan"), &json!("claimed"), &json!("a"), &json!(2), &json!(3)];
    assert_eq!(facts, expected);
    let late = run.change(b, "m2", claim("plan", 1));
    assert_eq!((&late["refused"], &late["item"]), (&json!("a claimed it"), &Value::Null));
    assert_eq!(run.items()[0]["by"], "a", "the report shows it before the round is over");
    let old = run.change(a, "m3", claim("api", 7));
    assert_eq!(old["refused"], "the item has version 1; look at it, and name this version");
    let added = run.change(
        b,
        "m4",
        json!({ "do": "add", "id": "docs", "text": "Write", "needs": ["api"] }),
    );
    assert_eq!(
        (&added["item"]["state"], &added["item"]["author"]),
        (&json!("waiting"), &json!("b"))
    );
    run.give("b", &json!([{ "do": "finish", "id": "plan", "version": 2, "text": "stolen" }]));
    let done =
        run.change(a, "m5", json!({ "do": "finish", "id": "plan", "version": 2, "text": "two" }));
    assert_eq!((&done["item"]["state"], &done["item"]["result"]), (&json!("done"), &json!("two")));
    run.give("a", &json!([]));
    let text = run.text_of("b");
    assert!(text.contains("| finish plan: it is done"), "{text}");
    assert!(
        text.contains("round 2 of at most 5") && text.contains("\"result\": \"two\""),
        "{text}"
    );
}

#[test]
fn child_without_turn_is_refused() {
    let mut run = Run::begin(BOARD, json!({}));
    let (a, c) = (run.id_of("a"), run.id_of("c"));
    let other = run.change(c, "m1", claim("plan", 1));
    assert_eq!(other["refused"], "the step `other`, in which you work, has no blackboard");
    run.give("a", &json!([]));
    let late = run.change(a, "m2", claim("plan", 1));
    assert_eq!(late["refused"], "your turn at the blackboard is over");
    let nowhere = run.change(Id { step: 9, ..a }, "m3", claim("plan", 1));
    assert!(nowhere["refused"].is_string(), "{nowhere}");
    run.end("c", ChildEnd { completed: true, ..ChildEnd::default() });
    let over = run.change(c, "m4", claim("plan", 1));
    assert!(over["refused"].is_string(), "{over}");
}

#[test]
fn flood_of_changes_is_refused() {
    let mut run = Run::begin(BOARD, json!({}));
    let a = run.id_of("a");
    for n in 0..32 {
        run.change(a, &n.to_string(), json!({ "do": "claim", "id": "\u{1b}[2J", "version": n }));
    }
    let refused = run.change(a, "more", claim("plan", 1));
    assert!(refused["refused"].as_str().unwrap().starts_with("at most 32 changes by tools"));
    let b = run.id_of("b");
    assert_eq!(run.change(b, "b1", claim("plan", 1))["item"]["by"], "b");
    run.step(FlowEvent::Changed(
        b,
        BoardChange { id: "b1".to_owned(), contribution: claim("api", 1) },
    ));
    assert_eq!(run.state.take_board_answers(), Vec::<Value>::new(), "a change is made once");
    for odd in [json!(null), json!([]), json!({ "do": 5 }), json!({ "do": "add", "id": {} })] {
        let id = format!("odd {odd}");
        let answer = run.change(b, &id, odd);
        assert!(answer["refused"].is_string(), "{answer}");
    }
}

#[test]
fn greedy_agent_leaves_changes_by_tools() {
    let mut run = Run::begin(&BOARD.replace("rounds = 5", "rounds = 20"), json!({}));
    let mut last = Value::Null;
    for round in 0..16 {
        assert!(!last.to_string().contains("one agent"), "{last}");
        if round > 0 {
            run.give("a", &json!([]));
            // What `b` adds keeps the board open.
            run.give("b", &json!([{ "do": "add", "id": format!("i{round}"), "text": "x" }]));
        }
        let a = run.id_of("a");
        for n in 0..32 {
            last = run.change(a, &format!("{round} {n}"), claim("nowhere", n));
        }
    }
    let why = last["refused"].as_str().unwrap();
    assert!(why.contains("of which one agent makes 500"), "{why}");
    let b = run.id_of("b");
    assert_eq!(run.change(b, "b1", claim("api", 1))["item"]["by"], "b");
}

/// The answers that agents got while they worked hold in the course that is replayed later.
#[test]
fn replay_with_changes_equals_course() {
    let change = |id: Id, name: &str, contribution: Value| {
        FlowEvent::Changed(id, BoardChange { id: name.to_owned(), contribution })
    };
    let answered = |id: Id, contributions: Value| {
        let text = json!({ "contributions": contributions }).to_string();
        FlowEvent::Ended(id, ChildEnd { completed: true, text, ..ChildEnd::default() })
    };
    let begun = Run::begin(BOARD, json!({}));
    let [a, b, c] = ["a", "b", "c"].map(|agent| begun.id_of(agent));
    let next = |id: Id| Id { item: id.item + 2, ..id };
    let finish =
        |id: &str, text: &str| json!({ "do": "finish", "id": id, "version": 2, "text": text });
    let events = [
        FlowEvent::Ended(c, ChildEnd { completed: true, ..ChildEnd::default() }),
        change(a, "1", claim("plan", 1)),
        answered(b, json!([claim("plan", 1), claim("api", 1)])),
        change(a, "2", claim("api", 1)),
        answered(a, json!([finish("plan", "planned")])),
        change(next(b), "3", json!({ "do": "release", "id": "api", "version": 2 })),
        change(next(a), "4", finish("api", "mine")),
        answered(next(b), json!([])),
        answered(next(a), json!([])),
    ];
    let run = |events: &[FlowEvent]| {
        let mut run = Run::begin(BOARD, json!({}));
        events.iter().for_each(|event| run.step(event.clone()));
        let (answers, boards) = (run.state.take_board_answers(), run.state.take_boards());
        (answers, boards, run.finish)
    };
    let (answers, boards, ended) = run(&events);
    let given: Vec<_> = answers.iter().map(|it| [&it["item"]["state"], &it["refused"]]).collect();
    let (claimed, none) = (json!("claimed"), Value::Null);
    let held = json!("a claimed it");
    let expected = [[&claimed, &none], [&claimed, &none], [&none, &held], [&json!("done"), &none]];
    assert_eq!(given, expected);
    assert_eq!(boards[0].1["outcome"], "goal");
    let items = boards[0].1["items"].as_array().unwrap();
    let by = |item: &Value| (item["by"].clone(), item["result"].clone());
    let expected = [(json!("a"), json!("planned")), (json!("a"), json!("mine"))];
    assert_eq!([by(&items[0]), by(&items[1])], expected);
    assert!(ended.as_ref().unwrap().completed);
    // A restart replays any prefix before it goes on.
    for restart in 0..events.len() {
        let before = run(&events[..restart]).0;
        assert_eq!(before[..], answers[..before.len()]);
    }
    assert_eq!(run(&events), (answers, boards, ended));
}
