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

/// Whether a media type lies in a range, such as `image/*`. Case and parameters do not count (RFC 9110, section 8.3.1).
pub fn is_in_range(media: &str, range: &str) -> bool {
    let essence = |text: &str| {
        let essence = text.split(';').next().unwrap_or_default();
        essence.trim().to_ascii_lowercase()
    };
    let (media, range) = (essence(media), essence(range));
    match range.strip_suffix('*') {
        Some("" | "*/") => true,
        Some(kind) if kind.ends_with('/') => media.starts_with(kind),
        Some(_) | None => media == range,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_what_it_says() {
        for (media, range) in [
            ("text/plain", "text/plain"),
            ("Text/Plain; charset=utf-8", "text/plain"),
            ("text/plain", "TEXT/PLAIN;q=0.5"),
            ("image/png", "image/*"),
            ("image/png", "*/*"),
            ("image/png", "*"),
        ] {
            assert!(is_in_range(media, range), "{media} in {range}");
        }
        for (media, range) in [
            ("text/markdown", "text/plain"),
            ("imagery/png", "image/*"),
            ("image/png", "image/p*"),
            ("", "text/plain"),
        ] {
            assert!(!is_in_range(media, range), "{media} in {range}");
        }
    }

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
