//! JSON text of values, as the contract carries them.

use serde::Serialize;
use serde_json::Value;

/// Serializes any value to JSON text. A value that JSON cannot express, such as a map whose keys
/// are not strings, becomes null.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_value(value).unwrap_or(Value::Null).to_string()
}
