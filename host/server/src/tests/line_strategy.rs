//! Lines of a client for property tests: messages with odd members, other JSON, and any bytes.

use proptest::{collection, prelude::*};
use serde_json::{Map, Value, json};

/// Any JSON, with names and texts of the protocols.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        ".{0,8}".prop_map(Value::from),
        Just(json!("2025-06-18")),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        let name = "(name|arguments|cursor|uri|_meta|clientInfo|capabilities|protocolVersion|sessionId|.{0,3})";
        prop_oneof![
            collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            collection::btree_map(name, inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn methods() -> impl Strategy<Value = Value> {
    prop_oneof![
        "(initialize|ping|tools/list|tools/call|resources/read|resources/list|session/prompt|session/new)"
            .prop_map(Value::from),
        "notifications/(initialized|cancelled|progress|x)".prop_map(Value::from),
        values(),
    ]
}

/// Messages in which each member may be missing or odd.
fn messages() -> impl Strategy<Value = Value> {
    let member = || proptest::option::of(values());
    let method = proptest::option::of(methods());
    (member(), method, member(), member(), member(), member()).prop_map(
        |(id, method, params, result, error, version)| {
            let members = [
                ("id", id),
                ("method", method),
                ("params", params),
                ("result", result),
                ("error", error),
                ("jsonrpc", version),
            ];
            let members =
                members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            Value::Object(members.collect::<Map<_, _>>())
        },
    )
}

/// Lines of any kind.
pub(crate) fn lines() -> impl Strategy<Value = Vec<u8>> {
    let cut = (messages(), any::<proptest::sample::Index>()).prop_map(|(message, at)| {
        let text = message.to_string().into_bytes();
        let end = at.index(text.len() + 1);
        text[..end].to_vec()
    });
    prop_oneof![
        6 => messages().prop_map(|message| message.to_string().into_bytes()),
        1 => collection::vec(messages(), 0..4).prop_map(|all| Value::from(all).to_string().into_bytes()),
        1 => values().prop_map(|value| value.to_string().into_bytes()),
        1 => cut,
        1 => collection::vec(any::<u8>(), 0..64),
    ]
}
