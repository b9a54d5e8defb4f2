//! What a client can do with an answer: the extensions that it activated, and the media types that it takes.

use serde::{Deserialize, Serialize};

/// What the client of a message can do with the answer. It is not part of the message: history does not tell it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientCapabilities {
    /// URIs of the extensions that are active (A2A 1.0, section 4.6.1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// Media types that the client takes, its `acceptedOutputModes`; any, if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub output_modes: Vec<String>,
}

impl ClientCapabilities {
    /// Whether the client said nothing of it.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_asked_is_not_written() {
        assert_eq!(serde_json::to_string(&ClientCapabilities::default()).unwrap(), "{}");
        let client =
            ClientCapabilities { extensions: vec!["urn:x".to_owned()], output_modes: Vec::new() };
        let written = serde_json::to_string(&client).unwrap();
        assert_eq!(written, r#"{"extensions":["urn:x"]}"#);
        assert_eq!(serde_json::from_str::<ClientCapabilities>(&written).unwrap(), client);
        assert!(!client.is_empty());
    }
}
