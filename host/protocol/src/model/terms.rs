//! On what terms a client asks: which extensions it activates, and what it takes in return.

use serde::{Deserialize, Serialize};

/// The terms of a message. They are not part of it: history does not tell them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Terms {
    /// URIs of the extensions that are active (A2A 1.0, section 4.6.1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// Media types that the client takes, its `acceptedOutputModes`; any, if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub output_modes: Vec<String>,
}

impl Terms {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_asked_is_not_written() {
        assert_eq!(serde_json::to_string(&Terms::default()).unwrap(), "{}");
        let terms = Terms { extensions: vec!["urn:x".to_owned()], output_modes: Vec::new() };
        let written = serde_json::to_string(&terms).unwrap();
        assert_eq!(written, r#"{"extensions":["urn:x"]}"#);
        assert_eq!(serde_json::from_str::<Terms>(&written).unwrap(), terms);
        assert!(!terms.is_empty());
    }
}
