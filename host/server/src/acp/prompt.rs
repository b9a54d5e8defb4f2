//! Conversion of a prompt's content blocks to message parts.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::{Value, json};

/// A content block of a prompt.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum Block {
    Text { text: String },
    Image { data: String, mime_type: String, uri: Option<String> },
    Audio { data: String, mime_type: String },
    ResourceLink { uri: String, name: Option<String> },
    Resource { resource: Resource },
}

/// An embedded file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    uri: String,
    text: Option<String>,
    blob: Option<String>,
}

/// Converts content blocks to message parts in the hub's dialect, or describes the invalid block.
pub(super) fn parts(blocks: Value) -> Result<Vec<Value>, String> {
    let blocks: Vec<Block> =
        serde_json::from_value(blocks).map_err(|why| format!("`prompt` cannot be read: {why}"))?;
    let parts: Vec<_> = blocks.into_iter().map(part).collect();
    if parts.is_empty() {
        Err("`prompt` is empty; say what is to be done".to_owned())
    } else {
        Ok(parts)
    }
}

fn part(block: Block) -> Value {
    let file = |file: Value| json!({ "kind": "file", "file": file });
    match block {
        Block::Text { text } => json!({ "kind": "text", "text": text }),
        Block::Image { data, mime_type, uri } => {
            let name = uri.as_deref().and_then(last);
            file(json!({ "bytes": data, "mimeType": mime_type, "name": name }))
        }
        Block::Audio { data, mime_type } => file(json!({ "bytes": data, "mimeType": mime_type })),
        Block::ResourceLink { uri, name } => {
            let name = name.as_deref().or_else(|| last(&uri));
            file(json!({ "uri": uri, "name": name }))
        }
        Block::Resource { resource: Resource { uri, text, blob } } => {
            let bytes = text.map(|text| STANDARD.encode(text)).or(blob).unwrap_or_default();
            file(json!({ "bytes": bytes, "name": last(&uri) }))
        }
    }
}

/// Last segment of a URI's path: a file name.
fn last(uri: &str) -> Option<&str> {
    uri.rsplit('/').next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_blocks_become_message_parts() {
        let blocks = json!([
            { "type": "text", "text": "look at" },
            { "type": "resource_link", "uri": "file:///w/a.rs", "name": "a.rs" },
            { "type": "resource_link", "uri": "file:///w/c.rs" },
            { "type": "resource", "resource": { "uri": "file:///w/b.txt", "text": "hi" } },
            { "type": "image", "data": "AA==", "mimeType": "image/png" },
            { "type": "audio", "data": "AA==", "mimeType": "audio/wav" },
        ]);
        let wanted = json!([
            { "kind": "text", "text": "look at" },
            { "kind": "file", "file": { "uri": "file:///w/a.rs", "name": "a.rs" } },
            { "kind": "file", "file": { "uri": "file:///w/c.rs", "name": "c.rs" } },
            { "kind": "file", "file": { "bytes": "aGk=", "name": "b.txt" } },
            { "kind": "file", "file": { "bytes": "AA==", "mimeType": "image/png", "name": null } },
            { "kind": "file", "file": { "bytes": "AA==", "mimeType": "audio/wav" } },
        ]);
        assert_eq!(json!(parts(blocks).unwrap()), wanted);
    }

    #[test]
    fn invalid_prompt_is_refused() {
        for (wrong, why) in [
            (json!([]), "is empty"),
            (json!("hi"), "cannot be read"),
            (
                json!([{ "type": "video", "data": "", "mimeType": "video/mp4" }]),
                "unknown variant `video`",
            ),
        ] {
            assert!(parts(wrong.clone()).unwrap_err().contains(why), "{wrong}");
        }
    }
}
