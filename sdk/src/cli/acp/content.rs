//! Content of the program's messages beside text: pictures, sound, files and links (ACP, content
//! blocks `image`, `audio`, `resource` and `resource_link`) as parts of artifacts.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use crate::cli::cut;
use crate::{Artifact, Part, PartContent, foreign};

/// Maximum number of artifacts with such content in a turn.
const MAX_ATTACHED: usize = 100;

/// Maximum length of a file's name, in characters.
const MAX_NAME: usize = 120;

/// Decoder of base64 (RFC 4648) with or without padding: programs write both.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Content of a chunk: its text, and everything else in its order.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Content {
    /// Text; `None` if the chunk has none.
    pub(super) text: Option<String>,
    /// Other blocks: a part, or the reason why it cannot be read.
    pub(super) others: Vec<Result<Attached, String>>,
}

/// Picture, sound, file or link of a message.
#[derive(Debug, PartialEq)]
pub(super) struct Attached {
    part: Part,
    description: Option<String>,
}

impl Content {
    /// Reads the content of a chunk: a block, or a list of blocks.
    pub(super) fn new(content: &Value) -> Self {
        let blocks = content.as_array().map_or(std::slice::from_ref(content), Vec::as_slice);
        let mut read = Self::default();
        for block in blocks {
            match attached(block) {
                Some(other) => read.others.push(other),
                None => {
                    if let Some(text) = foreign::text(block) {
                        read.text.get_or_insert_default().push_str(&text);
                    }
                }
            }
        }
        read
    }
}

impl Attached {
    /// Artifact with the part, as the `number`th of its turn from zero; `None` beyond the limit.
    pub(super) fn artifact(self, number: usize) -> Option<Artifact> {
        let name = self.part.filename.clone();
        let mut artifact = Artifact::new(format!("content:{}", number + 1), vec![self.part]);
        artifact.name = name;
        artifact.description = self.description;
        (number < MAX_ATTACHED).then_some(artifact)
    }
}

/// Part of a block that is no text; `None` for text and unknown blocks.
fn attached(block: &Value) -> Option<Result<Attached, String>> {
    let text = |value: &Value| foreign::text(value).map(|text| text.into_owned());
    let uri = |of: &Value| text(&of["uri"]).filter(|uri| !uri.is_empty());
    let kind = block["type"].as_str()?;
    let (content, holder) = match kind {
        "image" | "audio" => (data(&block["data"], uri(block)), block),
        "resource" => {
            let resource = &block["resource"];
            let content = match text(&resource["text"]) {
                Some(text) => Ok(PartContent::Text(text)),
                None => data(&resource["blob"], uri(resource)),
            };
            (content, resource)
        }
        "resource_link" => {
            (uri(block).map(PartContent::Url).ok_or_else(|| "it has no URI".to_owned()), block)
        }
        _ => return None,
    };
    let media_type = text(&holder["mimeType"]).filter(|it| !it.is_empty()).map(|it| cut(&it));
    let named = ["name", "title"].iter().find_map(|member| text(&block[*member]));
    let name = named.or_else(|| uri(holder)).and_then(|it| file_name(&it));
    let name = name.or_else(|| Some(default_name(kind, media_type.as_deref()?)));
    Some(content.map_err(|why| format!("sent a block `{kind}` that cannot be read: {why}")).map(
        |content| {
            let description = ["description", "title"].iter().find_map(|it| text(&block[*it]));
            let part = Part { filename: name, media_type, ..Part::new(content) };
            Attached { part, description: description.map(|text| cut(&text)) }
        },
    ))
}

/// Bytes in base64, or else the URI of the bytes.
fn data(base64: &Value, uri: Option<String>) -> Result<PartContent, String> {
    let Some(text) = base64.as_str().filter(|text| !text.is_empty()) else {
        return uri.map(PartContent::Url).ok_or_else(|| "it has no data".to_owned());
    };
    // MIME's base64 is broken into lines (RFC 2045, section 6.8).
    let text: String = text.split_ascii_whitespace().collect();
    BASE64.decode(text).map(PartContent::Raw).map_err(|why| format!("no base64: {why}"))
}

/// Last segment of a path or URI, as a name for a file; `None` if nothing is left of it.
fn file_name(path: &str) -> Option<String> {
    let path = path.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = name.chars().filter(|char| !char.is_control()).take(MAX_NAME).collect();
    (!name.is_empty() && !path.starts_with("data:") && name != "." && name != "..").then_some(name)
}

/// Name of a file that the program does not name, such as `image.png`.
fn default_name(kind: &str, media_type: &str) -> String {
    let subtype = media_type.split([';', ' ']).next().unwrap_or_default();
    let subtype = subtype.rsplit('/').next().unwrap_or_default();
    let extension = match subtype {
        "jpeg" => "jpg",
        "svg+xml" => "svg",
        "mpeg" => "mp3",
        "x-wav" | "wave" => "wav",
        "plain" => "txt",
        "markdown" => "md",
        other if other.chars().all(|char| char.is_ascii_alphanumeric()) => other,
        _ => "bin",
    };
    let kind = if kind == "resource" || kind == "resource_link" { "file" } else { kind };
    format!("{kind}.{extension}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn other_content_becomes_named_parts() {
        let png = b"\x89PNG\r\n\x1a\n".to_vec();
        for (block, name, media_type, content) in [
            (
                json!({ "type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo=" }),
                "image.png",
                Some("image/png"),
                PartContent::Raw(png.clone()),
            ),
            (
                json!({ "type": "image", "mimeType": "image/jpeg", "uri": "https://a.b/c.jpg?x" }),
                "c.jpg",
                Some("image/jpeg"),
                PartContent::Url("https://a.b/c.jpg?x".into()),
            ),
            (
                json!({ "type": "audio", "mimeType": "audio/wav", "data": "UklG\nRiQA" }),
                "audio.wav",
                Some("audio/wav"),
                PartContent::Raw(b"RIFF$\0".to_vec()),
            ),
            (
                json!({ "type": "resource", "resource": { "uri": "file:///x/notes.md",
                    "mimeType": "text/markdown", "text": "NOTES" } }),
                "notes.md",
                Some("text/markdown"),
                PartContent::Text("NOTES".into()),
            ),
            (
                json!({ "type": "resource", "resource": { "uri": "a.pdf", "blob": "QUJD" } }),
                "a.pdf",
                None,
                PartContent::Raw(b"ABC".to_vec()),
            ),
            (
                json!({ "type": "resource_link", "uri": "file:///x/report.pdf", "name": "../r.pdf" }),
                "r.pdf",
                None,
                PartContent::Url("file:///x/report.pdf".into()),
            ),
        ] {
            let Content { text: None, others } = Content::new(&block) else { panic!("{block}") };
            let [Ok(attached)] = others.as_slice() else { panic!("{others:?}") };
            let part = &attached.part;
            assert_eq!(part.filename.as_deref(), Some(name), "{block}");
            assert_eq!((part.media_type.as_deref(), &part.content), (media_type, &content));
        }
    }

    #[test]
    fn list_mixes_text_and_content() {
        let link = json!({ "type": "resource_link", "uri": "https://a.b" });
        let list = json!([{ "type": "text", "text": "see " }, link, "there", { "type": "new" }]);
        let read = Content::new(&list);
        assert_eq!((read.text.as_deref(), read.others.len()), (Some("see there"), 1));
        assert_eq!(Content::new(&json!({ "type": "new" })), Content::default());
    }

    #[test]
    fn unreadable_content_has_reason() {
        for block in [
            json!({ "type": "image", "data": "no base64!" }),
            json!({ "type": "image" }),
            json!({ "type": "resource" }),
            json!({ "type": "resource_link", "name": "x" }),
        ] {
            let read = Content::new(&block);
            assert!(matches!(read.others.as_slice(), [Err(_)]), "{read:?}");
        }
    }

    #[test]
    fn artifacts_of_turn_are_limited() {
        let attached = || Attached { part: Part::text("x"), description: None };
        let artifact = attached().artifact(MAX_ATTACHED - 1).unwrap();
        assert_eq!(artifact.id, format!("content:{MAX_ATTACHED}"));
        assert_eq!(attached().artifact(MAX_ATTACHED), None);
    }
}
