//! Deadlines of questions, for people.

use crate::ui::{render::ahead, table::Cell, text::style_of};
use jiff::Timestamp;
use serde_json::Value;

/// Text about the deadline of a question.
pub(super) fn deadline(question: &Value) -> String {
    let word = if question["kind"] == "permission" { "denied" } else { "given up" };
    let expires = &question["expiresAt"];
    if expires.is_null() {
        return "no deadline is known".to_owned();
    }
    format!("{word} {}", ahead(expires, Timestamp::now()))
}

/// Time until the deadline of a question; a near one is highlighted.
pub(super) fn deadline_cell(question: &Value, now: Timestamp) -> Cell {
    match (&question["expiresAt"], question["expiring"] == true) {
        (Value::Null, _) => "".into(),
        (expires, false) => ahead(expires, now).into(),
        (expires, true) => Cell::styled(style_of("warn"), format!("soon, {}", ahead(expires, now))),
    }
}
