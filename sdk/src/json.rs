//! Values as the JSON text that the contract carries.

use serde::Serialize;
use serde_json::Value;

/// JSON text of anything serializable; maps with keys that are no strings become null.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_value(value).unwrap_or(Value::Null).to_string()
}
