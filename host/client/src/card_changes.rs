//! Differences between two cards, for the operator who approves the newer one.

use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
};

/// Maximum number of characters of a shown text.
const MAX_SHOWN: usize = 80;

/// Describes the differences, one text for each member, without signatures. Values of the cards are
/// quoted, because they may contain terminal escapes.
pub fn changes(before: &Value, now: &Value) -> Vec<String> {
    let (none, signatures) = (Map::new(), "signatures");
    let [before, now] = [before, now].map(|card| card.as_object().unwrap_or(&none));
    let members: BTreeSet<_> = before.keys().chain(now.keys()).collect();
    let changed = members.into_iter().filter(|member| *member != signatures).filter_map(|member| {
        let (was, is) = (before.get(member), now.get(member));
        (was != is).then(|| change(member, was.unwrap_or(&Value::Null), is.unwrap_or(&Value::Null)))
    });
    changed.collect()
}

fn change(member: &str, was: &Value, is: &Value) -> String {
    let simple = |value: &Value| !value.is_array() && !value.is_object();
    let member = if is_plain(member) { member.to_owned() } else { quoted(member) };
    if simple(was) && simple(is) {
        return match (was, is) {
            (Value::Null, is) => format!("{member} is new: {}", render(is)),
            (was, Value::Null) => format!("{member} is gone: {}", render(was)),
            (was, is) => format!("{member} was {} and is {}", render(was), render(is)),
        };
    }
    let (was, is) = (items(was), items(is));
    let removed = was.keys().filter(|key| !is.contains_key(*key)).map(|key| format!("-{key}"));
    let new = is.keys().filter(|key| !was.contains_key(*key)).map(|key| format!("+{key}"));
    let other = is.iter().filter(|(key, is)| was.get(*key).is_some_and(|was| was != *is));
    let other = other.map(|(key, _)| format!("{key} changed"));
    let all: Vec<_> = removed.chain(new).chain(other).collect();
    if all.is_empty() {
        return format!("{member} is in another order");
    }
    format!("{member}: {}", all.join(", "))
}

/// Items of a list or object, keyed by a name for people.
fn items(value: &Value) -> BTreeMap<String, &Value> {
    match value {
        Value::Object(members) => members.iter().map(|(name, it)| (quoted(name), it)).collect(),
        Value::Array(items) => items.iter().map(|it| (known_by(it), it)).collect(),
        Value::Null => BTreeMap::new(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            BTreeMap::from([(render(value), value)])
        }
    }
}

/// Name of an item: a skill's id, or an interface's binding, version and URL.
fn known_by(item: &Value) -> String {
    let text = |member: &str| item.get(member).and_then(Value::as_str);
    let words = ["protocolBinding", "transport", "protocolVersion", "url", "tenant"];
    let words: Vec<_> = words.into_iter().filter_map(text).collect();
    match text("id") {
        Some(id) => quoted(id),
        None if words.is_empty() => render(item),
        None => quoted(words.join(" ")),
    }
}

fn render(value: &Value) -> String {
    value.as_str().map_or_else(|| clipped(&value.to_string()), quoted)
}

/// Quotes a text and escapes terminal control characters.
fn quoted(text: impl Display) -> String {
    format!("{:?}", clipped(&text.to_string()))
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn is_plain(member: &str) -> bool {
    member.len() <= MAX_SHOWN && member.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::reshaped;
    use serde_json::json;

    #[test]
    fn card_changes_are_listed_by_member() {
        let interface =
            |url: &str| json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
        let before = json!({
            "name": "weather", "version": "1", "iconUrl": "http://x/i", "signatures": [1],
            "supportedInterfaces": [interface("https://x/a2a")],
            "skills": [{"id": "rain", "tags": []}, {"id": "sun"}, {"id": "wind"}],
            "capabilities": {"streaming": true}, "defaultInputModes": ["a", "b"],
        });
        let now = json!({
            "name": "we\u{1b}[2Jather", "version": "1", "x\n": 1, "signatures": [2],
            "supportedInterfaces": [interface("https://y/a2a")],
            "skills": [{"id": "sun"}, {"id": "rain", "tags": ["wet"]}, {"id": "hail"}],
            "capabilities": {"streaming": false}, "defaultInputModes": ["b", "a"],
            "securitySchemes": {"key": {"apiKeySecurityScheme": {}}}, "description": "d".repeat(200),
        });
        insta::assert_snapshot!(changes(&before, &now).join("\n"), @r#"
        capabilities: "streaming" changed
        defaultInputModes is in another order
        description is new: "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd…"
        iconUrl is gone: "http://x/i"
        name was "weather" and is "we\u{1b}[2Jather"
        securitySchemes: +"key"
        skills: -"wind", +"hail", "rain" changed
        supportedInterfaces: -"JSONRPC 1.0 https://x/a2a", +"JSONRPC 1.0 https://y/a2a"
        "x\n" is new: 1
        "#);
        assert!(changes(&now, &now).is_empty());
    }

    #[test]
    fn reshaped_cards_are_compared_without_panic() {
        let card = json!({
            "name": "n", "version": "1", "capabilities": { "extensions": [{ "uri": "urn:x" }] },
            "skills": [{ "id": "s", "tags": ["t"] }], "signatures": [{ "signature": "AA" }],
            "supportedInterfaces": [{ "url": "http://a/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }],
        });
        for other in reshaped(&card) {
            assert_eq!(changes(&card, &other).len(), changes(&other, &card).len(), "{other}");
        }
    }
}
