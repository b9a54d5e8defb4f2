//! Conversion of parts other than text to ACP's content blocks: images, sound, files and links.

use a2a_hub_core::text::{media_type::media_type, plain_text};
use a2a_hub_protocol::{
    member,
    message::{Content, Part},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Value, json};
use std::path::Path;

/// Maximum size in bytes of a file in a block. A client reads a block as one line.
const MAX_BYTES: usize = 4 << 20;

/// Maximum length of a file's name and of a link in characters.
const MAX_NAME: usize = 120;
const MAX_LINK: usize = 2_000;

/// Characters that are encoded in a segment of a URI's path (RFC 3986, section 3.3).
const SEGMENT: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'/')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Blocks of a part; none of text and data. `owner` is the id of the message or artifact, which is
/// part of a file's URI.
///
/// Clients declare no kinds of blocks that they show, and editors leave out sound and binary files
/// (Zed's `acp_thread`), so a line of text with the name precedes these. A file that is too large
/// for a block is such a line alone.
pub(super) fn blocks(part: &Part, owner: &str) -> Vec<Value> {
    match &part.content {
        Content::Text(_) | Content::Data(_) => Vec::new(),
        Content::Url(url) => link(part, url),
        Content::Raw(bytes) => file(part, bytes, owner),
    }
}

fn file(part: &Part, bytes: &[u8], owner: &str) -> Vec<Value> {
    let name = plain_text::line(part.filename.as_deref().unwrap_or("a file"), MAX_NAME);
    let mention = || text(&format!("\n[{name}: {} bytes]\n", bytes.len()));
    if bytes.len() > MAX_BYTES {
        return vec![mention()];
    }
    let media = media_of(part, bytes);
    let uri = || {
        let name = utf8_percent_encode(&name, SEGMENT);
        format!("a2a-hub:///{}/{name}", utf8_percent_encode(owner, SEGMENT))
    };
    let data = || STANDARD.encode(bytes);
    let kind = media.split('/').next().unwrap_or_default();
    match (kind, std::str::from_utf8(bytes)) {
        ("image", _) => vec![json!({ "type": "image", "data": data(), "mimeType": media })],
        ("audio", _) => {
            vec![mention(), json!({ "type": "audio", "data": data(), "mimeType": media })]
        }
        (_, Ok(text)) => vec![resource(&json!({ "uri": uri(), "mimeType": media, "text": text }))],
        (_, Err(_)) => {
            let file = json!({ "uri": uri(), "mimeType": media, "blob": data() });
            vec![mention(), resource(&file)]
        }
    }
}

fn link(part: &Part, url: &str) -> Vec<Value> {
    let url = plain_text::line(url, MAX_LINK);
    let segment = url.split(['?', '#']).next().and_then(|path| path.rsplit('/').next());
    let name = part.filename.as_deref().or(segment).filter(|name| !name.is_empty());
    let name = plain_text::line(name.unwrap_or(&url), MAX_NAME);
    let mut link = json!({ "type": "resource_link", "uri": url, "name": name });
    if let Some(media) = &part.media_type {
        member::set(&mut link, "mimeType", plain_text::line(media, MAX_NAME));
    }
    vec![link]
}

/// Media type that the sender names, or else that of the name and the content.
fn media_of(part: &Part, bytes: &[u8]) -> String {
    let named = part.media_type.as_deref().filter(|media| media.contains('/'));
    let path = Path::new(part.filename.as_deref().unwrap_or_default());
    plain_text::line(named.unwrap_or_else(|| media_type(path, bytes)), MAX_NAME)
}

/// Block of a text.
pub(super) fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn resource(resource: &Value) -> Value {
    json!({ "type": "resource", "resource": resource })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::acp_schema::AcpSchema;

    fn file(name: Option<&str>, media: Option<&str>, bytes: &[u8]) -> Part {
        let (filename, media_type) = (name.map(str::to_owned), media.map(str::to_owned));
        Part { filename, media_type, ..Part::new(Content::Raw(bytes.to_vec())) }
    }

    #[test]
    fn files_and_links_become_content_blocks() {
        let link = |url: &str| Part::new(Content::Url(url.to_owned()));
        let uri = |name: &str| format!("a2a-hub:///t%2Fa/{name}");
        let (binary, png) =
            ([0xff, 0], json!({ "type": "image", "data": "iVA=", "mimeType": "image/png" }));
        for (part, wanted) in [
            (file(Some("pixel.png"), None, b"\x89P"), vec![png.clone()]),
            (file(None, Some("image/png"), b"\x89P"), vec![png]),
            (
                file(Some("s.wav"), None, &binary),
                vec![
                    text("\n[s.wav: 2 bytes]\n"),
                    json!({ "type": "audio", "data": "/wA=", "mimeType": "audio/wav" }),
                ],
            ),
            (
                file(Some("a b/c.md"), None, b"# c"),
                vec![resource(
                    &json!({ "uri": uri("a%20b%2Fc.md"), "mimeType": "text/markdown", "text": "# c" }),
                )],
            ),
            (
                file(None, Some("odd"), &binary),
                vec![
                    text("\n[a file: 2 bytes]\n"),
                    resource(
                        &json!({ "uri": uri("a%20file"), "mimeType": "application/octet-stream", "blob": "/wA=" }),
                    ),
                ],
            ),
            (
                file(Some("b.png"), None, &vec![0; MAX_BYTES + 1]),
                vec![text(&format!("\n[b.png: {} bytes]\n", MAX_BYTES + 1))],
            ),
            (
                link("https://x.test/d/p.pdf?v=1"),
                vec![
                    json!({ "type": "resource_link", "uri": "https://x.test/d/p.pdf?v=1", "name": "p.pdf" }),
                ],
            ),
            (
                link("https://x.test/"),
                vec![
                    json!({ "type": "resource_link", "uri": "https://x.test/", "name": "https://x.test/" }),
                ],
            ),
            (Part::text("t"), vec![]),
        ] {
            let shown = blocks(&part, "t/a");
            assert_eq!(shown, wanted);
            for block in shown {
                let update = json!({ "sessionUpdate": "agent_message_chunk", "content": block });
                let params = json!({ "sessionId": "s", "update": update });
                let line =
                    json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
                AcpSchema::default().check(&line);
            }
        }
    }
}
