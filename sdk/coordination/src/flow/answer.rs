//! Structured answers: the JSON in an agent's text.

use serde_json::Value;

use super::schema;

/// Most bytes of a structured answer. Those of a step with many items share a limit.
pub(super) const MAX_ANSWER: usize = 64 << 10;

/// Most places of a text at which JSON may begin that are tried.
const MAX_BEGINNINGS: usize = 1_000;

/// Tags around the thoughts of a model, which are no part of its answer.
const THOUGHTS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// Reads the JSON value of an answer and checks it: of several values, the last one that fits. A
/// model may repeat its input or an example first.
///
/// # Errors
///
/// If the answer has no JSON value, or none that fits: a text for the agent.
pub(super) fn read(text: &str, data: Option<&Value>, schema: &Value) -> Result<Value, String> {
    let found = match data {
        Some(data) => vec![data.clone()],
        None => values(&replace_lone_surrogates(&without_thoughts(text))),
    };
    let mut why = "the answer has no JSON value".to_owned();
    for value in found.into_iter().rev() {
        match schema::check_value(&value, schema, "output") {
            Ok(()) => return Ok(value),
            // The last value counts if none fits.
            Err(first) if why.starts_with("the answer") => why = first,
            Err(_) => {}
        }
    }
    Err(why)
}

/// Checks the size of a structured answer, which the flow keeps to its end.
///
/// # Errors
///
/// If the answer has more than `max_bytes` bytes: a text for the agent.
pub(super) fn bounded(answer: Value, max_bytes: usize) -> Result<Value, String> {
    match answer.to_string().len() {
        bytes if bytes <= max_bytes => Ok(answer),
        bytes => Err(format!("it has {bytes} bytes, and at most {max_bytes} are read; shorten it")),
    }
}

/// JSON values in a text, in their order: all of it, or the objects and lists in it.
fn values(text: &str) -> Vec<Value> {
    if let Ok(value) = serde_json::from_str(text) {
        return vec![value];
    }
    let mut found = Vec::new();
    let mut at = 0;
    for _ in 0..MAX_BEGINNINGS {
        let Some(begin) = text[at..].find(['{', '[']).map(|begin| at + begin) else { break };
        let mut read = serde_json::Deserializer::from_str(&text[begin..]).into_iter();
        at = match read.next() {
            Some(Ok(value)) => {
                found.push(value);
                begin + read.byte_offset()
            }
            Some(Err(_)) | None => begin + 1,
        };
    }
    // A block of code may be a text or a number.
    if found.is_empty() {
        let blocks = text.split("```").skip(1).step_by(2);
        let blocks = blocks.map(|block| block.strip_prefix("json").unwrap_or(block));
        found.extend(blocks.filter_map(|block| serde_json::from_str::<Value>(block).ok()));
    }
    found
}

/// The text behind a model's thoughts, and between them.
fn without_thoughts(text: &str) -> String {
    let mut remaining = text.to_owned();
    for (begin, end) in THOUGHTS {
        while let Some(to) = remaining.find(end) {
            // The beginning may be missing: some models' templates write it into the prompt.
            let from = remaining[..to].rfind(begin).unwrap_or(0);
            remaining.replace_range(from..to + end.len(), "");
        }
    }
    remaining
}

/// The text with halves of surrogate pairs replaced: JavaScript writes `\ud83d` when it cuts an
/// emoji, and a parser refuses the whole value for it (RFC 8259, section 8.2).
fn replace_lone_surrogates(text: &str) -> String {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut mended = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(next) = text[at..].find('\\').map(|next| at + next) {
        mended.push_str(&text[at..next]);
        let (length, is_half) = match unit(next) {
            Some(0xd800..=0xdbff) => match unit(next + 6) {
                Some(0xdc00..=0xdfff) => (12, false),
                _ => (6, true),
            },
            Some(0xdc00..=0xdfff) => (6, true),
            Some(_) => (6, false),
            // An escaped character, such as a backslash.
            None => (1 + text[next + 1..].chars().next().map_or(0, char::len_utf8), false),
        };
        let piece = text.get(next..next + length).unwrap_or_default();
        mended.push_str(if is_half { "\\ufffd" } else { piece });
        at = next + length;
    }
    mended.push_str(&text[at..]);
    mended
}

/// Request for JSON, appended to a prompt.
pub(super) fn request(schema: &Value) -> String {
    format!(
        "\n\nAnswer with one JSON value and nothing else. It has to fit this JSON schema:\n{schema}\n"
    )
}

/// Request to correct an answer, appended to the prompt.
pub(super) fn correction(why: &str) -> String {
    format!(
        "\nYour last answer could not be used: {why}. Answer again, with the JSON value only.\n"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hostile_text_is_read_in_bounded_time() {
        let schema = json!({ "type": "object" });
        for text in [
            "{\"a\":".repeat(50_000),
            "[".repeat(200_000),
            "\\u".repeat(50_000),
            "</think>".repeat(2_000),
        ] {
            assert!(read(&text, None, &schema).is_err());
        }
    }

    #[test]
    fn json_is_found_in_prose() {
        let schema = json!({ "type": "object" });
        for text in [
            r#"{"a": 1}"#,
            "Here it is:\n```json\n{\"a\": 1}\n```\nDone {really}.",
            "I think {\"a\": 1} is right.",
        ] {
            assert_eq!(read(text, None, &schema), Ok(json!({ "a": 1 })), "{text}");
        }
        // The last value that fits is the answer.
        let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"] });
        for text in [
            "The form is\n```json\n{\"a\": \"...\"}\n```\nMine:\n```json\n{\"a\": 1}\n```",
            "You gave\n```json\n{\"x\": 1}\n```\n\n```\n{\"a\": 1}\n```",
            "<think>{\"a\": 2}</think>\n{\"a\": 1}",
            "{\"a\": 2} I begin again.</think>{\"a\": 1}",
            "In {module} and [x] all is well.\n{\"a\": 1}",
            "First {\"a\": 2}, no: {\"a\": 1}",
            "{\"a\": 1} as {you} said",
        ] {
            assert_eq!(read(text, None, &schema), Ok(json!({ "a": 1 })), "{text}");
        }
        let why = read("{\"a\": true} {\"a\": \"x\"}", None, &schema).unwrap_err();
        assert!(why.contains("output.a") || why.contains("`a`"), "{why}");
        let half = read(r#"{"a": 1, "b": "x \ud83d \\ud83d \ud83d\ude00"}"#, None, &schema);
        assert_eq!(half, Ok(json!({ "a": 1, "b": "x \u{fffd} \\ud83d \u{1f600}" })));
        let schema = json!({ "type": "object" });
        assert_eq!(read("no idea", None, &schema), Err("the answer has no JSON value".to_owned()));
        assert_eq!(read("", Some(&json!({ "b": 2 })), &schema), Ok(json!({ "b": 2 })));
    }
}
