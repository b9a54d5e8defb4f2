//! JSON of unexpected shapes, as a program's next release or its vendor may send it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::cli::{Action, Decision, Driver};
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
    let (mut known, mut fed) = (BTreeSet::new(), 0);
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
                driver.line(before);
            }
            let other = other.to_string();
            for action in driver.line(&other) {
                answer(&mut driver, &action);
            }
            for after in &lines[at + 1..] {
                driver.line(after);
            }
            fed += 1;
        }
    }
    fed
}

/// Line of the program in a recording; lines of its client begin with `> `.
fn of_program(line: &str) -> Option<&str> {
    (!line.starts_with("> ")).then(|| line.strip_prefix("< ").unwrap_or(line))
}

fn answer(driver: &mut impl Driver, action: &Action) {
    let Action::Ask(question) = action else { return };
    let said = |part| Decision::Said(Box::new(Message::user(vec![part])));
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
