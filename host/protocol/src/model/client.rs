//! Client capabilities: activated extensions and accepted media types.

use serde::{Deserialize, Serialize};

/// Capabilities of the client that sent a message. They are not part of the message, so the task's
/// history does not hold them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientCapabilities {
    /// URIs of the activated extensions (A2A 1.0, section 4.6.1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// Media types that the client accepts (`acceptedOutputModes`); all types, if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub output_modes: Vec<String>,
}

impl ClientCapabilities {
    /// True if the client declared no capability.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_capabilities_serialize_to_empty_object() {
        assert_eq!(serde_json::to_string(&ClientCapabilities::default()).unwrap(), "{}");
        let client =
            ClientCapabilities { extensions: vec!["urn:x".to_owned()], output_modes: Vec::new() };
        let written = serde_json::to_string(&client).unwrap();
        assert_eq!(written, r#"{"extensions":["urn:x"]}"#);
        assert_eq!(serde_json::from_str::<ClientCapabilities>(&written).unwrap(), client);
        assert!(!client.is_empty());
    }
}
