//! Documents: conversion of HTML to text, and splitting of text into passages and sentences.

/// Maximum size of a document's text in bytes; the rest is cut.
const MAX_TEXT: usize = 200_000;

/// Approximate size of a passage in bytes.
const PASSAGE: usize = 700;

/// Maximum size of a character reference in bytes.
const MAX_REFERENCE: usize = 10;

/// Elements whose content is skipped.
const UNREAD: [&str; 5] = ["script", "style", "noscript", "template", "svg"];

/// Elements that begin a new line.
const LINES: [&str; 18] = [
    "p", "div", "br", "li", "ul", "ol", "h1", "h2", "h3", "h4", "h5", "h6", "tr", "table",
    "section", "article", "header", "pre",
];

/// Document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Document {
    /// URL or path of the document.
    pub(crate) source: String,
    /// Title, if the document has one.
    pub(crate) title: Option<String>,
    /// Text.
    pub(crate) text: String,
}

impl Document {
    /// Creates a document from plain text.
    pub(crate) fn plain(source: &str, text: &str) -> Self {
        Self { source: source.to_owned(), title: None, text: cut(text).to_owned() }
    }

    /// Creates a document from HTML.
    pub(crate) fn html(source: &str, html: &str) -> Self {
        let text = text_of(html);
        let title = element(html, "title").map(text_of).filter(|title| !title.is_empty());
        Self { source: source.to_owned(), title, text: cut(&text).to_owned() }
    }

    /// Passages of limited size. A passage breaks a line only if the line alone is too long.
    pub(crate) fn passages(&self) -> Vec<String> {
        let mut passages: Vec<String> = Vec::new();
        let mut open = String::new();
        for line in self.text.lines().map(str::trim) {
            if line.is_empty() || open.len() + line.len() > PASSAGE {
                passages.push(std::mem::take(&mut open));
            }
            for (n, sentence) in sentences(line).into_iter().enumerate() {
                if open.len() + sentence.len() > PASSAGE {
                    passages.push(std::mem::take(&mut open));
                }
                if !open.is_empty() {
                    open.push(if n == 0 { '\n' } else { ' ' });
                }
                open.push_str(sentence);
            }
        }
        passages.push(open);
        passages.retain(|passage| !passage.is_empty());
        passages
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

/// Sentences of a text: each ends with a punctuation mark followed by white space.
pub(crate) fn sentences(text: &str) -> Vec<&str> {
    let (mut sentences, mut begin) = (Vec::new(), 0);
    let mut chars = text.char_indices().peekable();
    while let Some((_, c)) = chars.next() {
        let is_end = matches!(c, '.' | '!' | '?' | '…' | '\n');
        if let (true, Some((next, after))) = (is_end, chars.peek())
            && (after.is_whitespace() || c == '\n')
        {
            sentences.push(text[begin..*next].trim());
            begin = *next;
        }
    }
    sentences.push(text[begin..].trim());
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

/// Visible text of HTML. The HTML may be invalid: anything that is not a tag is text.
fn text_of(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        text.push_str(&in_a_line(&rest[..at]));
        rest = &rest[at..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        let Some(end) = rest.find('>') else { break };
        let tag = rest[1..end].trim_start_matches('/');
        let name = tag
            .split(|c: char| !c.is_ascii_alphanumeric())
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        let is_closing = rest.starts_with("</");
        rest = &rest[end + 1..];
        if UNREAD.contains(&name.as_str()) && !is_closing {
            rest = after_element(rest, &name);
        } else if LINES.contains(&name.as_str()) {
            text.push('\n');
        }
    }
    if !rest.starts_with('<') {
        text.push_str(&in_a_line(rest));
    }
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Text after the end tag of the element that `rest` is in.
fn after_element<'a>(rest: &'a str, name: &str) -> &'a str {
    let end = format!("</{name}");
    let at =
        rest.as_bytes().windows(end.len()).position(|it| it.eq_ignore_ascii_case(end.as_bytes()));
    let after = at.and_then(|at| rest[at..].find('>').map(|more| at + more + 1));
    after.map_or("", |after| &rest[after..])
}

/// Content of the first element with that name.
fn element<'a>(html: &'a str, name: &str) -> Option<&'a str> {
    let begin = format!("<{name}");
    let at = html
        .as_bytes()
        .windows(begin.len())
        .position(|it| it.eq_ignore_ascii_case(begin.as_bytes()))?;
    let (_, content) = html[at..].split_once('>')?;
    content.split_once("</").map(|(content, _)| content)
}

/// Text between tags; a newline in it is a space.
fn in_a_line(text: &str) -> String {
    unescaped(text).replace('\n', " ")
}

/// Replaces the most common character references.
fn unescaped(text: &str) -> String {
    let mut output = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        output.push_str(&rest[..at]);
        rest = &rest[at..];
        let near = rest.as_bytes().iter().take(MAX_REFERENCE);
        let end = near.enumerate().find_map(|(n, byte)| (*byte == b';').then_some(n));
        let known = end.and_then(|end| Some((end, character(&rest[1..end])?)));
        let (end, c) = known.unwrap_or((0, '&'));
        output.push(c);
        rest = &rest[end + 1..];
    }
    output + rest
}

fn character(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        "ndash" => Some('–'),
        "mdash" => Some('—'),
        "hellip" => Some('…'),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code).filter(|c| !c.is_control())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_is_converted_to_visible_text() {
        let html = "<html><head><title>Tea &amp; milk</title><STYLE>p { color: red }</STYLE></head><body>\n\
            <!-- <p>not this</p> --><h1>Tea</h1><p>Black&nbsp;tea,\n &#8220;hot&#x201D;.</p><script>if (a<b) alert('x')</script >\
            <p>5 &lt; 6 &unknown; <b>bold</b></p><p>cut <a href";
        let read = Document::html("u", html);
        assert_eq!(read.title.as_deref(), Some("Tea & milk"));
        assert_eq!(read.text, "Tea & milk\nTea\nBlack tea, “hot”.\n5 < 6 &unknown; bold\ncut");
        for odd in
            ["", "<", "&", "&#0;", "<script>", "<title>", "a < b", "ü<ß>é&ä;", "&äääääääääää"]
        {
            let _ = Document::html("u", odd);
        }
        assert_eq!(Document::html("u", &"<p>ü".repeat(100_000)).text.len(), MAX_TEXT);
    }

    #[test]
    fn text_splits_into_sentences_and_passages() {
        assert_eq!(
            sentences("One. Two is 3.5 long! Three?\nFour e.g"),
            ["One.", "Two is 3.5 long!", "Three?", "Four e.g"]
        );
        let long = format!("{}\n\nlast", "A sentence of some words. ".repeat(100));
        let passages = Document::plain("u", &long).passages();
        assert!(passages.len() >= 4 && passages.iter().all(|passage| passage.len() <= PASSAGE + 1));
        assert_eq!(passages.last().unwrap(), "last");
        assert_eq!(
            Document::plain("u", "Tea\nIt is hot. It is black.").passages(),
            ["Tea\nIt is hot. It is black."]
        );
        assert!(Document::plain("u", " \n ").passages().is_empty());
    }
}
