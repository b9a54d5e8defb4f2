//! A prompt as the author of a skill declares it: the member `prompts` of a skill.
//!
//! ```json
//! { "name": "review", "title": "Review", "description": "Reviews a branch",
//!   "arguments": [{ "name": "branch", "required": true, "values": ["main", "next"] }],
//!   "parts": [{ "text": "Review {{branch}}." },
//!             { "raw": "iVBORw0…", "mediaType": "image/png" }] }
//! ```

use crate::mcp::model::skill_tools::is_name;
use a2a_hub_core::text::{plain_text, terminal};
use a2a_hub_protocol::card::Skill;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rmcp::model::{ContentBlock, JsonObject, ResourceContents};
use serde::Deserialize;
use serde_json::Value;

/// Member of a skill that holds its prompts.
const PROMPTS: &str = "prompts";

/// Maximum number of prompts of a skill, of arguments and parts of a prompt, and of the values that
/// an argument proposes.
const MAX_PROMPTS: usize = 8;
const MAX_ARGUMENTS: usize = 16;
const MAX_PARTS: usize = 16;
const MAX_VALUES: usize = 100;

/// Maximum length of the name of a prompt or an argument.
const MAX_NAME: usize = 64;

/// Maximum size of a prompt's texts with the values of its arguments, in bytes.
const MAX_TEXT: usize = 1 << 20;

/// A declared prompt.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct DeclaredPrompt {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) title: Option<String>,
    #[serde(default)]
    pub(crate) description: Option<String>,
    #[serde(default)]
    pub(crate) arguments: Vec<DeclaredArgument>,
    parts: Vec<DeclaredPart>,
}

/// An argument of a declared prompt.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct DeclaredArgument {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: Option<String>,
    #[serde(default)]
    pub(crate) required: bool,
    /// Values that a client may propose; others are allowed as well.
    #[serde(default)]
    pub(crate) values: Vec<String>,
}

/// A part of a declared prompt, as A2A 1.0 writes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeclaredPart {
    text: Option<String>,
    raw: Option<String>,
    media_type: Option<String>,
}

/// Usable prompts of a skill.
pub(crate) fn of_skill(skill: &Skill) -> Vec<DeclaredPrompt> {
    let all = skill.other.get(PROMPTS).and_then(Value::as_array).into_iter().flatten();
    let read = |one: &Value| DeclaredPrompt::deserialize(one).ok();
    all.filter_map(read).filter(DeclaredPrompt::is_usable).take(MAX_PROMPTS).collect()
}

impl DeclaredPrompt {
    fn is_usable(&self) -> bool {
        let is_named =
            |name: &str| (1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_name);
        let are_named = self.arguments.iter().all(|argument| is_named(&argument.name));
        let has_blocks = self.parts.iter().all(|part| part.block("", &JsonObject::new()).is_some());
        let is_short = self.arguments.len() <= MAX_ARGUMENTS
            && (1..=MAX_PARTS).contains(&self.parts.len())
            && self.arguments.iter().all(|argument| argument.values.len() <= MAX_VALUES);
        is_named(&self.name) && are_named && has_blocks && is_short
    }

    /// Content with these arguments, a block for each part; `None` if it is too long. Files of text
    /// are resources below `uri`.
    pub(crate) fn blocks(&self, uri: &str, arguments: &JsonObject) -> Option<Vec<ContentBlock>> {
        let mut length = 0_usize;
        let mut blocks = Vec::new();
        for (n, part) in self.parts.iter().enumerate() {
            length = length.saturating_add(part.length(arguments));
            if length > MAX_TEXT {
                return None;
            }
            blocks.push(part.block(&format!("{uri}/{n}"), arguments)?);
        }
        Some(blocks)
    }
}

impl DeclaredPart {
    /// Maximum length of the text with these arguments.
    fn length(&self, arguments: &JsonObject) -> usize {
        let text = self.text.as_deref().unwrap_or_default();
        let in_text = |(name, value): (&String, &Value)| {
            let length = value.as_str().map_or(0, str::len);
            text.matches(&format!("{{{{{name}}}}}")).count().saturating_mul(length)
        };
        arguments.iter().map(in_text).fold(text.len(), usize::saturating_add)
    }

    fn block(&self, uri: &str, arguments: &JsonObject) -> Option<ContentBlock> {
        match (&self.text, &self.raw) {
            (Some(text), None) => Some(ContentBlock::text(filled(text, arguments))),
            (None, Some(raw)) => {
                let media =
                    self.media_type.as_deref().filter(|it| plain_text::is_plain_line(it))?;
                let bytes = STANDARD.decode(raw).ok()?;
                Some(match media.split_once('/')?.0 {
                    "image" => ContentBlock::image(raw, media),
                    "audio" => ContentBlock::audio(raw, media),
                    _ => {
                        let text = String::from_utf8(bytes).ok()?;
                        let file = ResourceContents::text(terminal::clean(&text), uri);
                        ContentBlock::resource(file.with_mime_type(media))
                    }
                })
            }
            (Some(_), Some(_)) | (None, None) => None,
        }
    }
}

/// Text with the values of its arguments in place of `{{name}}`. A missing argument is empty; a
/// value is not searched for names.
fn filled(text: &str, arguments: &JsonObject) -> String {
    let mut rest = text;
    let mut filled = String::new();
    while let Some((before, after)) = rest.split_once("{{") {
        filled += &terminal::clean(before);
        match after.split_once("}}").filter(|(name, _)| name.chars().all(is_name)) {
            Some((name, after)) => {
                filled += arguments.get(name).and_then(Value::as_str).unwrap_or_default();
                rest = after;
            }
            None => {
                filled += "{{";
                rest = after;
            }
        }
    }
    filled + &terminal::clean(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn prompts(declared: &Value) -> Vec<DeclaredPrompt> {
        let skill = json!({ "id": "s", "name": "S", "description": "d", "prompts": declared });
        of_skill(&serde_json::from_value(skill).unwrap())
    }

    fn arguments(value: &Value) -> JsonObject {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn values_replace_names_once() {
        for (text, told) in [
            ("a {{a}} b", "a {{b}} b"),
            ("{{a}}{{a}}", "{{b}}{{b}}"),
            ("{{none}}.", "."),
            ("{{a b}} {{", "{{a b}} {{"),
            ("{{{{a}}}}", "{{{{b}}}}"),
            ("\u{1b}[2J", "\\u{1b}[2J"),
        ] {
            assert_eq!(filled(text, &arguments(&json!({ "a": "{{b}}", "b": "x" }))), told);
        }
    }

    #[test]
    fn parts_become_blocks() {
        let parts = json!([
            { "text": "Look at {{what}}." },
            { "raw": STANDARD.encode(b"png"), "mediaType": "image/png" },
            { "raw": STANDARD.encode(b"wav"), "mediaType": "audio/wav" },
            { "raw": STANDARD.encode(b"# Rules"), "mediaType": "text/markdown" },
        ]);
        let of = prompts(&json!([{ "name": "p", "parts": parts }])).remove(0);
        let told = json!(of.blocks("a2a-hub://x", &arguments(&json!({ "what": "it" }))).unwrap());
        assert_eq!(told[0], json!({ "type": "text", "text": "Look at it." }));
        assert_eq!((&told[1]["type"], &told[2]["type"]), (&json!("image"), &json!("audio")));
        let file =
            json!({ "uri": "a2a-hub://x/3", "mimeType": "text/markdown", "text": "# Rules" });
        assert_eq!(told[3], json!({ "type": "resource", "resource": file }));
    }

    #[test]
    fn unusable_prompt_is_left_out() {
        let good = json!({ "name": "p", "parts": [{ "text": "t" }] });
        let with = |name: &str, value: Value| {
            let mut other = good.clone();
            other[name] = value;
            other
        };
        for wrong in [
            json!("text"),
            json!({}),
            with("name", json!("a b")),
            with("name", json!("")),
            with("name", json!("x".repeat(65))),
            with("parts", json!([])),
            with("parts", json!([{}])),
            with("parts", json!([{ "text": "t", "raw": "" }])),
            with("parts", json!([{ "raw": "%", "mediaType": "image/png" }])),
            with("parts", json!([{ "raw": "/w==", "mediaType": "text/plain" }])),
            with("parts", json!([{ "raw": "" }])),
            with("parts", vec![json!({ "text": "t" }); 17].into()),
            with("arguments", json!([{ "name": "a}}" }])),
            with("arguments", json!([{ "name": "a", "values": [7] }])),
            with("arguments", vec![json!({ "name": "a" }); 17].into()),
        ] {
            assert_eq!(prompts(&json!([wrong, good])).len(), 1, "{wrong}");
        }
        assert_eq!(prompts(&vec![good; 20].into()).len(), MAX_PROMPTS);
        assert!(prompts(&json!("none")).is_empty());
    }

    #[test]
    fn repeated_argument_is_bounded() {
        let text = "{{a}}".repeat(1_000);
        let of = prompts(&json!([{ "name": "p", "parts": [{ "text": text }] }])).remove(0);
        let given = |length: usize| arguments(&json!({ "a": "x".repeat(length) }));
        assert!(of.blocks("u", &given(1_000)).is_some());
        assert!(of.blocks("u", &given(2_000)).is_none());
    }

    proptest::proptest! {
        #[test]
        fn any_text_without_names_is_kept(text in "[a-z{} ]{0,60}", value in ".{0,9}") {
            let told = filled(&text, &arguments(&json!({ "UPPER": value })));
            if !text.contains("}}") {
                proptest::prop_assert_eq!(told, text);
            }
        }
    }
}
