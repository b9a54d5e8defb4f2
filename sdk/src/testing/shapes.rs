//! JSON of unexpected shapes, as a program's next release or its vendor may send it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::recording::fed;
use crate::cli::{Action, Decision, Driver, End};
use crate::{Message, Part};

/// One value of each shape that JSON has.
pub fn shapes() -> [Value; 8] {
    [json!(null), json!(true), json!(1), json!(1.5), json!("x"), json!([]), json!([1]), json!({})]
}

/// Variants of `value` in which it, or one member or item at any depth, is replaced by each shape.
pub fn reshaped(value: &Value) -> Vec<Value> {
    let mut pointers = vec![String::new()];
    find(value, "", &mut pointers);
    let each = pointers.iter().flat_map(|pointer| shapes().map(|shape| (pointer, shape)));
    each.map(|(pointer, shape)| {
        let mut other = value.clone();
        if let Some(place) = other.pointer_mut(pointer) {
            *place = shape;
        }
        other
    })
    .collect()
}

/// JSON pointers (RFC 6901) to everything within `value`, which is at `at`.
fn find(value: &Value, at: &str, pointers: &mut Vec<String>) {
    let members = value.as_object().into_iter().flatten();
    let members = members.map(|(name, value)| (name.replace('~', "~0").replace('/', "~1"), value));
    let items = value.as_array().into_iter().flatten().enumerate();
    let items = items.map(|(n, value)| (n.to_string(), value));
    for (step, value) in members.chain(items) {
        let pointer = format!("{at}/{step}");
        find(value, &pointer, pointers);
        pointers.push(pointer);
    }
}

/// Feeds drivers a recording with one line reshaped at a time, and answers each of their questions
/// in every way. A driver that panics fails the test; any actions are accepted. Returns the number
/// of reshaped lines.
pub fn feed_reshaped<D: Driver>(recording: &str, driver: impl Fn() -> D) -> usize {
    let lines: Vec<&str> = recording.lines().filter_map(of_program).collect();
    let (mut known, mut count) = (BTreeSet::new(), 0);
    for (at, line) in lines.iter().enumerate() {
        let Ok(value) = serde_json::from_str::<Value>(line) else { continue };
        // Lines that differ only in their values are read alike.
        let mut pointers = Vec::new();
        find(&value, "", &mut pointers);
        let kind = (value["type"].to_string(), value["method"].to_string(), pointers);
        if !known.insert(kind) {
            continue;
        }
        for other in reshaped(&value) {
            let mut driver = driver();
            driver.greet();
            driver.begin();
            for before in &lines[..at] {
                fed(&mut driver, before);
            }
            let other = other.to_string();
            for action in fed(&mut driver, &other) {
                answer(&mut driver, &action);
            }
            for after in &lines[at + 1..] {
                fed(&mut driver, after);
            }
            count += 1;
        }
    }
    count
}

/// Members that decide whether a recorded answer completes: each shape of JSON takes the place of
/// one member of one line at a time. A member is named by its line's kind and its JSON pointer.
pub fn deciding_members<D: Driver>(recording: &str, driver: impl Fn() -> D) -> Vec<String> {
    let lines: Vec<&str> = recording.lines().filter_map(of_program).collect();
    let mut deciding = BTreeSet::new();
    for (at, line) in lines.iter().enumerate() {
        let Ok(value) = serde_json::from_str::<Value>(line) else { continue };
        let mut pointers = vec![String::new()];
        find(&value, "", &mut pointers);
        for pointer in pointers {
            let completes = |shape: Value| {
                let mut other = value.clone();
                if let Some(place) = other.pointer_mut(&pointer) {
                    *place = shape;
                }
                let other = other.to_string();
                let mut driver = driver();
                driver.greet();
                driver.begin();
                let after = lines[at + 1..].iter().copied();
                let all = lines[..at].iter().copied().chain([&*other]).chain(after);
                let mut actions = all.flat_map(|line| fed(&mut driver, line));
                let end = actions.find(|action| matches!(action, Action::End(_)));
                matches!(end, Some(Action::End(End::Completed { .. })))
            };
            if !shapes().into_iter().all(completes) {
                deciding.insert(format!("{}{pointer}", kind(&value)));
            }
        }
    }
    deciding.into_iter().collect()
}

/// Members of a recorded program's requests without which a request is neither asked nor answered,
/// named as in [`deciding_members`]. All other shapes of a request must get an answer.
pub fn unanswered_members<D: Driver>(recording: &str, driver: impl Fn() -> D) -> Vec<String> {
    let lines: Vec<&str> = recording.lines().filter_map(of_program).collect();
    let mut unanswered = BTreeSet::new();
    for (at, line) in lines.iter().enumerate() {
        let Ok(value) = serde_json::from_str::<Value>(line) else { continue };
        let is_request = value["method"].is_string() && !value["id"].is_null();
        if !is_request && value["type"] != "control_request" {
            continue;
        }
        let mut pointers = vec![String::new()];
        find(&value, "", &mut pointers);
        for pointer in pointers {
            let is_answered = |shape: Value| {
                let mut other = value.clone();
                if let Some(place) = other.pointer_mut(&pointer) {
                    *place = shape;
                }
                let mut driver = driver();
                driver.greet();
                driver.begin();
                for before in &lines[..at] {
                    fed(&mut driver, before);
                }
                let actions = driver.line(&other.to_string());
                actions.iter().any(|action| matches!(action, Action::Ask(_) | Action::Send(_)))
            };
            if !shapes().into_iter().all(is_answered) {
                unanswered.insert(format!("{}{pointer}", kind(&value)));
            }
        }
    }
    unanswered.into_iter().collect()
}

/// Kind of a line: its method or type, or the request that it answers.
fn kind(line: &Value) -> String {
    let of = |member: &str| line[member].as_str();
    match of("method").or_else(|| of("subtype").filter(|_| of("type") == Some("system"))) {
        Some(kind) => kind.to_owned(),
        None => of("type").map_or_else(|| format!("answer {}", line["id"]), ToOwned::to_owned),
    }
}

/// Line of the program in a recording; lines of its client begin with `> `.
fn of_program(line: &str) -> Option<&str> {
    (!line.starts_with("> ")).then(|| line.strip_prefix("< ").unwrap_or(line))
}

fn answer(driver: &mut impl Driver, action: &Action) {
    let Action::Ask(question) = action else { return };
    let said = |part| Decision::Answer(Box::new(Message::user(vec![part])));
    let named = json!({ "answers": { "Which?": "a" }, "decision": "allow" });
    let data = shapes().into_iter().chain([named]).map(|data| said(Part::data(&data)));
    let plain = [
        Decision::Allow,
        Decision::AllowForSession,
        Decision::Deny("no".to_owned()),
        said(Part::text("a")),
    ];
    for decision in plain.into_iter().chain(data) {
        driver.decided(question, &decision);
    }
}
