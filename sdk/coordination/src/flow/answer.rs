//! Structured answers: the JSON in an agent's text.

use serde_json::Value;

use super::schema;

/// Most bytes of a structured answer. Those of a step with many items share a limit.
pub(super) const MAX_ANSWER: usize = 64 << 10;

/// Reads the JSON value of an answer and checks it.
///
/// # Errors
///
/// If the answer has no JSON value, or one that does not fit: a text for the agent.
pub(super) fn read(text: &str, data: Option<&Value>, schema: &Value) -> Result<Value, String> {
    let in_text = || candidates(text).find_map(|it| serde_json::from_str(it).ok());
    let value = data.cloned().or_else(in_text);
    let value: Value = value.ok_or("the answer has no JSON value")?;
    schema::check_value(&value, schema, "output")?;
    Ok(value)
}

/// Checks the size of a structured answer, which the flow keeps to its end.
///
/// # Errors
///
/// If the answer has more than `most` bytes: a text for the agent.
pub(super) fn bounded(answer: Value, most: usize) -> Result<Value, String> {
    match answer.to_string().len() {
        bytes if bytes <= most => Ok(answer),
        bytes => Err(format!("it has {bytes} bytes, and at most {most} are read; shorten it")),
    }
}

/// Parts of a text that may be JSON: all of it, its code blocks, from the first brace to the last.
fn candidates(text: &str) -> impl Iterator<Item = &str> {
    let blocks = text.split("```").skip(1).step_by(2);
    let blocks = blocks.map(|block| block.strip_prefix("json").unwrap_or(block));
    let between = |first, last| {
        let (from, to) = (text.find(first)?, text.rfind(last)?);
        text.get(from..=to)
    };
    let rest = [between('{', '}'), between('[', ']')].into_iter().flatten();
    std::iter::once(text).chain(blocks).chain(rest)
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
    fn json_is_found_in_prose() {
        let schema = json!({ "type": "object" });
        for text in [
            r#"{"a": 1}"#,
            "Here it is:\n```json\n{\"a\": 1}\n```\nDone {really}.",
            "I think {\"a\": 1} is right.",
        ] {
            assert_eq!(read(text, None, &schema), Ok(json!({ "a": 1 })), "{text}");
        }
        assert_eq!(read("no idea", None, &schema), Err("the answer has no JSON value".to_owned()));
        assert_eq!(read("", Some(&json!({ "b": 2 })), &schema), Ok(json!({ "b": 2 })));
    }
}
