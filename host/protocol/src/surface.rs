//! Snapshot of the Local Hub's public interface: methods, schemas, errors and interpreted metadata.
//! A change breaks clients. Descriptions are excluded.

use crate::{error::ErrorKind, hub::openrpc, hub_metadata};
use serde_json::Value;
use std::fmt::Write as _;

#[test]
fn hub_dialect_matches_snapshot() {
    let mut described = openrpc::discover("0.0.0");
    leave_texts_out(&mut described);
    let mut out = String::new();
    for method in described["methods"].as_array().into_iter().flatten() {
        writeln!(out, "{method}").unwrap();
    }
    for (name, schema) in described["components"]["schemas"].as_object().into_iter().flatten() {
        writeln!(out, "{name}: {schema}").unwrap();
    }
    insta::assert_snapshot!("discover", out);
}

#[test]
fn error_codes_match_snapshot() {
    let mut out = String::new();
    for kind in ErrorKind::ALL {
        writeln!(out, "{} {}", kind.hub_code(), kind.reason()).unwrap();
    }
    insta::assert_snapshot!("errors", out);
}

#[test]
fn metadata_names_match_snapshot() {
    let names: Vec<_> = hub_metadata::names().collect();
    insta::assert_snapshot!("metadata", names.join("\n"));
}

/// Removes descriptions, titles and summaries, except properties with these names.
fn leave_texts_out(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for name in ["description", "title", "summary"] {
                if members.get(name).is_some_and(Value::is_string) {
                    members.remove(name);
                }
            }
            members.values_mut().for_each(leave_texts_out);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_texts_out),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
