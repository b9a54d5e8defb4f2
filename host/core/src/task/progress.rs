//! Progress of an agent's work: the member `{"progress": {"percent": 40}}` of a status's metadata,
//! and its text for people.

use a2a_hub_protocol::message::Metadata;

/// Metadata member with the progress.
const PROGRESS: &str = "progress";

/// Progress in per cent; `None` if the agent reports none, or an invalid one.
pub fn percent(facts: Option<&Metadata>) -> Option<f64> {
    let percent = facts.and_then(|facts| facts.get(PROGRESS)?.get("percent")?.as_f64());
    percent.filter(|percent| (0.0..=100.0).contains(percent))
}

/// Text of a status with its progress, such as `40 % · compiles`; `None` if the agent reports
/// neither.
pub fn status_text(facts: Option<&Metadata>, text: Option<String>) -> Option<String> {
    let percent = percent(facts);
    let text = text.filter(|said| !said.trim().is_empty());
    match (percent, text) {
        (Some(percent), Some(text)) => Some(format!("{percent:.0} % · {text}")),
        (Some(percent), None) => Some(format!("{percent:.0} %")),
        (None, text) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn progress_precedes_status_text() {
        let told = |percent: Value, said: Option<&str>| {
            let facts = json!({ "progress": { "percent": percent } });
            status_text(facts.as_object(), said.map(str::to_owned))
        };
        assert_eq!(told(json!(40), Some("compiles")).unwrap(), "40 % · compiles");
        assert_eq!(told(json!(99.6), None).unwrap(), "100 %");
        for none in [json!("40"), json!(-1), json!(1e9), Value::Null] {
            assert_eq!(told(none.clone(), Some("compiles")).unwrap(), "compiles");
            assert_eq!(told(none, Some(" ")), None);
        }
        assert_eq!(status_text(None, None), None);
    }
}
