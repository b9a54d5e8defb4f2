//! Sources of documents: URLs that the operator lists, and a folder.

use crate::document::Document;
use a2a_hub_sdk::{Request, Response, prelude::*};
use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// Placeholder for the percent-encoded topic in a source's URL.
const QUERY: &str = "{query}";

/// Maximum number of sources.
const MAX_SOURCES: usize = 20;

/// Maximum number of files.
const MAX_FILES: usize = 500;

/// Maximum size of a file in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Timeout for a source.
const TIMEOUT_MS: u32 = 20_000;

/// Extensions of document files.
const DOCUMENTS: [&str; 7] = ["txt", "md", "markdown", "rst", "adoc", "html", "htm"];

/// Source without a result, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missed {
    /// URL or path of the source.
    pub(crate) source: String,
    /// Reason.
    pub(crate) why: String,
}

/// URLs of a setting, separated by white space or commas, with the topic inserted.
pub(crate) fn listed(setting: &str, topic: &str) -> Vec<String> {
    let urls = setting.split(|c: char| c.is_whitespace() || c == ',').filter(|url| !url.is_empty());
    urls.take(MAX_SOURCES).map(|url| url.replace(QUERY, &encoded(topic))).collect()
}

/// Fetches a document. The outer error is the task's cancellation.
pub(crate) fn fetch(ctx: &Context, url: &str) -> Result<Result<Document, Missed>, Failure> {
    let request = Request::get(url)
        .header("accept", "text/html, text/plain, text/markdown, application/json");
    let answer = ctx.fetch(&Request { timeout_ms: Some(TIMEOUT_MS), ..request });
    let missed = |why: String| Missed { source: url.to_owned(), why };
    Ok(match answer {
        Ok(answer) => read(url, &answer).map_err(missed),
        Err(Failure::Cancelled) => return Err(Failure::Cancelled),
        Err(why) => Err(missed(why.text().to_owned())),
    })
}

fn read(url: &str, answer: &Response) -> Result<Document, String> {
    match answer.status {
        200 => {}
        status @ 300..=399 => {
            let location = answer.header("location").unwrap_or("somewhere else");
            return Err(format!("it answered {status}: name {location} in `sources` instead"));
        }
        status => return Err(format!("it answered {status}")),
    }
    let media = answer.header("content-type").unwrap_or("text/plain");
    let essence = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "text/html" | "application/xhtml+xml" => Ok(Document::html(url, &answer.text())),
        "application/json" => Ok(Document::plain(url, &answer.text())),
        text if text.starts_with("text/") => Ok(Document::plain(url, &answer.text())),
        other => Err(format!("it is of type {other}, and text and HTML are read")),
    }
}

/// Documents below a folder with relative paths, in a stable order. Unreadable files are left out;
/// `None` if the folder does not exist.
pub(crate) fn folder(root: &Path) -> Option<Vec<Document>> {
    fs::read_dir(root).ok()?;
    let (mut files, mut open) = (Vec::new(), vec![root.to_owned()]);
    while let Some(dir) = open.pop() {
        let Ok(entries) = fs::read_dir(dir) else { continue };
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            if kind.is_dir() && !is_hidden && open.len() < MAX_FILES {
                open.push(entry.path());
            } else if kind.is_file() && !is_hidden && is_document(&entry.path()) {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    files.truncate(MAX_FILES);
    Some(files.iter().filter_map(|path| document(root, path)).collect())
}

fn is_document(path: &PathBuf) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    DOCUMENTS.iter().any(|known| ending.eq_ignore_ascii_case(known))
        && fs::metadata(path).is_ok_and(|meta| meta.len() <= MAX_FILE)
}

fn document(root: &Path, path: &Path) -> Option<Document> {
    let bytes = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let source = path.strip_prefix(root).unwrap_or(path).display().to_string();
    let is_html = path
        .extension()
        .is_some_and(|ending| ending.to_string_lossy().to_ascii_lowercase().starts_with("htm"));
    Some(if is_html { Document::html(&source, &text) } else { Document::plain(&source, &text) })
}

/// Percent-encodes a query's value (RFC 3986, section 2.3).
fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_urls_contain_encoded_topic() {
        let all = listed(" https://a.example/?q={query}\n,https://b.example/x ", "tea & ü");
        assert_eq!(all, ["https://a.example/?q=tea%20%26%20%C3%BC", "https://b.example/x"]);
        assert_eq!(listed(&"https://a.example ".repeat(50), "x").len(), MAX_SOURCES);
    }

    #[test]
    fn unusable_responses_are_reported_with_reason() {
        let answer = |status, media: &str| {
            let headers = vec![("Content-Type".to_owned(), media.to_owned())];
            read("u", &Response { status, headers, body: b"<p>hi".to_vec() })
        };
        assert_eq!(answer(200, "Text/HTML; charset=utf-8").unwrap().text, "hi");
        assert_eq!(answer(200, "text/markdown").unwrap().text, "<p>hi");
        let why = [answer(200, "image/png"), answer(301, "text/html"), answer(500, "text/html")];
        let why = why.map(Result::unwrap_err);
        assert_eq!(why[0], "it is of type image/png, and text and HTML are read");
        assert_eq!(why[1], "it answered 301: name somewhere else in `sources` instead");
        assert_eq!(why[2], "it answered 500");
    }
}
