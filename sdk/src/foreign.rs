//! Tolerant reader of JSON that other programs write.
//!
//! `serde_json` refuses a whole line for one character. This reader mends the common faults first,
//! so that they cost no more than that character: half of a surrogate pair (JavaScript writes
//! `\ud83d` when it cuts an emoji), a byte order mark, unescaped control characters, a backslash
//! that escapes nothing, Python's `NaN`, numbers out of range, and values nested too deeply. JSON
//! without these faults is parsed unchanged.
//!
//! [`text`], [`number`] and their siblings read members of another type than expected.

mod member;

use std::fmt;
use std::fmt::Write as _;

use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, Visitor};
use serde_json::{Map, Value};

pub use member::{
    integer, lenient_integer, lenient_list, lenient_number, lenient_string, lenient_text, number,
    text, truth,
};

/// Nesting beyond which a value becomes null; `serde_json` refuses a text with 128 levels.
const MAX_NESTING: usize = 100;

/// Escape of U+FFFD, which replaces half of a surrogate pair.
const REPLACEMENT: &str = "\\ufffd";

/// Error: a line is not JSON, even after mending.
#[derive(Debug)]
pub struct NotJson {
    /// Fault that remains.
    pub why: serde_json::Error,
    /// Members before the fault, if the line is an object. A request's `id` may be among them.
    pub members: Map<String, Value>,
}

impl fmt::Display for NotJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

/// Reads JSON, mending it if necessary.
pub fn read(line: &str) -> Result<Value, NotJson> {
    JsonLines::default().read(line)
}

/// Reader of a program's lines. It also joins the halves of a surrogate pair that the program cut
/// between two chunks of a message.
#[derive(Debug, Default)]
pub struct JsonLines {
    /// Halves at the edges of the latest line's strings.
    halves: Halves,
    /// High half at the end of the latest chunk.
    pending_high: Option<u16>,
}

/// Halves of surrogate pairs at the edges of a line's strings.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Halves {
    /// Low half at the beginning of a string.
    low: Option<u16>,
    /// High half at the end of a string.
    high: Option<u16>,
}

impl JsonLines {
    /// Reads a line, mending it if necessary.
    pub fn read(&mut self, line: &str) -> Result<Value, NotJson> {
        let line = line.strip_prefix('\u{feff}').unwrap_or(line);
        self.halves = Halves::default();
        serde_json::from_str(line).or_else(|_| {
            let (line, halves) = mend(line);
            self.halves = halves;
            serde_json::from_str(&line)
                .map_err(|why| NotJson { why, members: members_before_fault(&line) })
        })
    }

    /// Text of a chunk in the latest line. The high half of a pair at its end is held back for the
    /// next chunk.
    pub fn chunk(&mut self, text: &str) -> String {
        let mut text = text;
        let mut joined = String::new();
        if let Some(high) = self.pending_high.take() {
            let low = self.halves.low.filter(|_| text.starts_with('\u{fffd}'));
            let pair = low.and_then(|low| char::decode_utf16([high, low]).next()?.ok());
            joined.push(pair.unwrap_or('\u{fffd}'));
            if pair.is_some() {
                text = &text['\u{fffd}'.len_utf8()..];
            }
        }
        if let Some(high) = self.halves.high
            && let Some(before) = text.strip_suffix('\u{fffd}')
        {
            self.pending_high = Some(high);
            text = before;
        }
        joined.push_str(text);
        joined
    }

    /// Ends a message: U+FFFD if the last chunk ended with half of a pair, and else nothing.
    pub fn end_of_message(&mut self) -> &'static str {
        if self.pending_high.take().is_some() { "\u{fffd}" } else { "" }
    }
}

/// Mends the faults that the module's documentation lists.
fn mend(text: &str) -> (String, Halves) {
    let mut mended = String::with_capacity(text.len());
    let mut halves = Halves::default();
    let mut rest = text;
    let mut depth = 0_usize;
    // Position of the value that is nested too deeply.
    let mut too_deep = None;
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            rest = copy_string(rest, &mut mended, &mut halves);
            continue;
        }
        if is_of_word(first) {
            let (word, after) =
                rest.split_at(rest.find(|char| !is_of_word(char)).unwrap_or(rest.len()));
            mended.push_str(if is_number_out_of_range(word) { "null" } else { word });
            rest = after;
            continue;
        }
        if matches!(first, '[' | '{') {
            if depth == MAX_NESTING {
                too_deep = Some(mended.len());
            }
            depth += 1;
        }
        mended.push(first);
        rest = &rest[first.len_utf8()..];
        if matches!(first, ']' | '}') {
            depth = depth.saturating_sub(1);
            if depth == MAX_NESTING
                && let Some(start) = too_deep.take()
            {
                mended.truncate(start);
                mended.push_str("null");
            }
        }
    }
    (mended, halves)
}

/// True for characters of numbers and of names such as `null` and `NaN`.
fn is_of_word(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '+' | '-' | '.')
}

/// True for numbers that JSON, or `f64`, cannot express.
fn is_number_out_of_range(word: &str) -> bool {
    word.parse::<f64>().is_ok_and(|number| !number.is_finite())
}

/// Copies the string at the beginning of `text`, and returns the rest of the text.
fn copy_string<'a>(text: &'a str, to: &mut String, halves: &mut Halves) -> &'a str {
    to.push('"');
    let mut rest = &text[1..];
    if let Some(low @ 0xDC00..=0xDFFF) = code_unit(rest) {
        halves.low = Some(low);
    }
    while let Some(at) = rest.find(|char| matches!(char, '"' | '\\') || char < ' ') {
        let (plain, special) = rest.split_at(at);
        to.push_str(plain);
        let mut chars = special.chars();
        match chars.next() {
            Some('"') => {
                to.push('"');
                return chars.as_str();
            }
            Some('\\') => {
                rest = copy_escape(special, to);
                if let Some(high @ 0xD800..=0xDBFF) = code_unit(special)
                    && rest.starts_with('"')
                    && to.ends_with(REPLACEMENT)
                {
                    halves.high = Some(high);
                }
            }
            control => {
                // Writing to a string cannot fail.
                let _ = write!(to, "\\u{:04x}", control.map(u32::from).unwrap_or_default());
                rest = chars.as_str();
            }
        }
    }
    to.push_str(rest);
    ""
}

/// Copies the escape at the beginning of `text`, and returns the rest of the text.
fn copy_escape<'a>(text: &'a str, to: &mut String) -> &'a str {
    let length = match (code_unit(text), text.get(6..).and_then(code_unit)) {
        (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
        (Some(0xD800..=0xDFFF), _) => {
            to.push_str(REPLACEMENT);
            return &text[6..];
        }
        (Some(_), _) => 6,
        (None, _) if text[1..].starts_with(['"', '\\', '/', 'b', 'f', 'n', 'r', 't']) => 2,
        (None, _) => {
            to.push_str("\\\\");
            return &text[1..];
        }
    };
    let (escape, rest) = text.split_at(length);
    to.push_str(escape);
    rest
}

/// UTF-16 code unit of an escape such as `\ud83d` at the beginning of `text`.
fn code_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

/// Members that precede the fault of an object.
fn members_before_fault(text: &str) -> Map<String, Value> {
    let mut members = Map::new();
    // Fails at the fault; the members before it were inserted.
    let _ = Collector(&mut members).deserialize(&mut serde_json::Deserializer::from_str(text));
    members
}

/// Inserts members while they are parsed.
struct Collector<'a>(&'a mut Map<String, Value>);

impl<'de> DeserializeSeed<'de> for Collector<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Collector<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<(), A::Error> {
        while let Some((name, value)) = from.next_entry()? {
            self.0.insert(name, value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn faulty_json_loses_only_the_fault() {
        let cases: [(&str, Value); 11] = [
            (r#"{"t":"cut \ud83d"}"#, json!({ "t": "cut \u{fffd}" })),
            (r#"{"t":"\ude00 cut"}"#, json!({ "t": "\u{fffd} cut" })),
            (r#"["\ud83d\ude00\uD83D\\ude00"]"#, json!(["😀\u{fffd}\\ude00"])),
            (r#"["\ud83d\ud83d\ude00","\ud83dx"]"#, json!(["\u{fffd}😀", "\u{fffd}x"])),
            (r#"{"\udc00":1}"#, json!({ "\u{fffd}": 1 })),
            ("\u{feff}{\"a\":1}\r", json!({ "a": 1 })),
            ("[\"a\tb\u{1b}[0m\"]", json!(["a\tb\u{1b}[0m"])),
            (r#"["C:\dir\new", "\u12", "\'"]"#, json!(["C:\\dir\new", "\\u12", "\\'"])),
            (r#"[NaN,-Infinity,1e999,-1,"NaN"]"#, json!([null, null, null, -1, "NaN"])),
            (r#"{"a":"\"}\ud83d","b":[1]}"#, json!({ "a": "\"}\u{fffd}", "b": [1] })),
            (r#"["\ud83d","\\"]"#, json!(["\u{fffd}", "\\"])),
        ];
        for (line, value) in cases {
            assert_eq!(read(line).expect(line), value, "{line}");
        }
    }

    #[test]
    fn deeply_nested_value_becomes_null() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let read = read(&format!(r#"{{"id":1,"deep":{deep},"b":"}}"}}"#)).unwrap();
        assert_eq!((&read["id"], &read["b"]), (&json!(1), &json!("}")));
        let mut deepest = &read["deep"];
        while deepest.is_array() {
            deepest = &deepest[0];
        }
        assert_eq!(*deepest, Value::Null);
    }

    #[test]
    fn not_json_keeps_members_before_fault() {
        for (line, before) in [
            (r#"{"id":7,"method":"m","params":{"a":"#, json!({ "id": 7, "method": "m" })),
            (r#"{"id":"\ud83d","x":}"#, json!({ "id": "\u{fffd}" })),
            ("warning: no", json!({})),
            ("[1,", json!({})),
            ("", json!({})),
            ("\"\\", json!({})),
            ("{\"a\\", json!({})),
        ] {
            assert_eq!(Value::Object(read(line).unwrap_err().members), before, "{line}");
        }
    }

    /// Text of a message from chunks, each of which is the JSON of a string.
    fn joined(chunks: &[&str]) -> String {
        let mut lines = JsonLines::default();
        let mut text = String::new();
        for chunk in chunks {
            let message = lines.read(&format!(r#"{{"text":"{chunk}"}}"#)).unwrap();
            text.push_str(&lines.chunk(message["text"].as_str().unwrap()));
        }
        text.push_str(lines.end_of_message());
        text
    }

    #[test]
    fn halves_in_successive_chunks_are_joined() {
        assert_eq!(
            joined(&[r"party \ud83c", r"\udf89 time", r"\ud83d", r"\ude00"]),
            "party 🎉 time😀"
        );
        assert_eq!(joined(&[r"\ud83d", r"\ude00\ud83d", r"\ude00"]), "😀😀");
        assert_eq!(joined(&[r"a\ud83d", "b", r"\ude00c"]), "a\u{fffd}b\u{fffd}c");
        assert_eq!(joined(&[r"a\ud83d", r"\ud83d", r"\ude00"]), "a\u{fffd}😀");
        assert_eq!(joined(&[r"a\ud83d", "", "b\u{fffd}"]), "a\u{fffd}b\u{fffd}");
        assert_eq!(joined(&[r"end \ud83d"]), "end \u{fffd}");
        assert_eq!(joined(&["", r"\ude00", r"\ud83d\ude00"]), "\u{fffd}😀");
    }
}
