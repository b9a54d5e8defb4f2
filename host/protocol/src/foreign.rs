//! Tolerant reader of JSON that other programs write.
//!
//! `serde_json` refuses a whole text for one character. This reader mends the common faults first,
//! so that they cost no more than that character: half of a surrogate pair (JavaScript writes
//! `\ud83d` when it cuts an emoji), bytes that are not UTF-8, a byte order mark, unescaped control
//! characters, a backslash that escapes nothing, Python's `NaN`, numbers out of range, and values
//! nested too deeply. JSON without these faults is parsed unchanged.

use serde::{
    Deserializer,
    de::{DeserializeOwned, DeserializeSeed, MapAccess, Visitor},
};
use serde_json::{Map, Value};
use std::{borrow::Cow, fmt, fmt::Write as _};

/// Nesting beyond which a value becomes null; `serde_json` refuses a text with 128 levels.
const MAX_NESTING: usize = 100;

/// Escape of U+FFFD, which replaces half of a surrogate pair.
const REPLACEMENT: &str = "\\ufffd";

/// Error: a text is not JSON, even after mending.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct NotJson {
    /// Fault that remains.
    #[source]
    pub why: serde_json::Error,
    /// Members before the fault, if the text is an object. A request's `id` may be among them.
    pub members: Map<String, Value>,
}

/// Reads JSON, mending it if necessary.
pub fn read(text: &[u8]) -> Result<Value, NotJson> {
    let text = without_mark(text);
    serde_json::from_slice(text).or_else(|_| {
        let text = mend(&String::from_utf8_lossy(text));
        serde_json::from_str(&text)
            .map_err(|why| NotJson { why, members: members_before_fault(&text) })
    })
}

/// Reads JSON of a type, mending it if necessary.
pub fn read_as<T: DeserializeOwned>(text: &[u8]) -> serde_json::Result<T> {
    let text = without_mark(text);
    serde_json::from_slice(text)
        .or_else(|_| serde_json::from_str(&mend(&String::from_utf8_lossy(text))))
}

/// Mends JSON for another parser. Only the byte order mark is removed from text that needs no
/// mending, or that is not JSON at all.
pub fn mended(text: &[u8]) -> Cow<'_, [u8]> {
    let text = without_mark(text);
    if serde_json::from_slice::<Value>(text).is_ok() {
        return text.into();
    }
    let mended = mend(&String::from_utf8_lossy(text));
    match serde_json::from_str::<Value>(&mended) {
        Ok(_) => mended.into_bytes().into(),
        Err(_) => text.into(),
    }
}

/// Id of a request that is not understood, for the error response; `None` for responses, for
/// notifications, and if the text ends or breaks before the id.
pub fn request_id(text: &[u8]) -> Option<Value> {
    let mut members = match read(text) {
        Ok(Value::Object(members)) => members,
        Ok(_) => return None,
        Err(NotJson { members, .. }) => members,
    };
    let id = members.remove("id").filter(|id| id.is_string() || id.is_number());
    id.filter(|_| members.contains_key("method"))
}

/// Removes a byte order mark.
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text)
}

/// Mends the faults that the module's documentation lists.
fn mend(text: &str) -> String {
    let mut mended = String::with_capacity(text.len());
    let mut rest = text;
    let mut depth = 0_usize;
    // Position of the value that is nested too deeply.
    let mut too_deep = None;
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            rest = copy_string(rest, &mut mended);
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
    mended
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
fn copy_string<'a>(text: &'a str, to: &mut String) -> &'a str {
    to.push('"');
    let mut rest = &text[1..];
    while let Some(at) = rest.find(|char| matches!(char, '"' | '\\') || char < ' ') {
        let (plain, special) = rest.split_at(at);
        to.push_str(plain);
        let mut chars = special.chars();
        match chars.next() {
            Some('"') => {
                to.push('"');
                return chars.as_str();
            }
            Some('\\') => rest = copy_escape(special, to),
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
    use proptest::prelude::*;
    use serde_json::json;

    fn nested(levels: usize) -> String {
        format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn faulty_json_loses_only_the_fault() {
        let cases: [(&[u8], Value); 14] = [
            (br#"{"t":"cut \ud83d"}"#, json!({ "t": "cut \u{fffd}" })),
            (br#"{"t":"\ude00 cut"}"#, json!({ "t": "\u{fffd} cut" })),
            (br#"["\ud83d\ude00\uD83D\\ude00"]"#, json!(["😀\u{fffd}\\ude00"])),
            (br#"["\ud83d\ud83d\ude00","\ud83dx"]"#, json!(["\u{fffd}😀", "\u{fffd}x"])),
            (br#"{"\udc00":1}"#, json!({ "\u{fffd}": 1 })),
            (b"[\"caf\xe9\", 1]", json!(["caf\u{fffd}", 1])),
            (b"\xef\xbb\xbf{\"a\":1}\r\n", json!({ "a": 1 })),
            (b"\xef\xbb\xbf[\"\\ud83d\"]", json!(["\u{fffd}"])),
            (b"[\"a\tb\x1b[0m\"]", json!(["a\tb\u{1b}[0m"])),
            (br#"["C:\dir\new", "\u12", "\'"]"#, json!(["C:\\dir\new", "\\u12", "\\'"])),
            (br#"[NaN,-Infinity,1e999,-1,"NaN"]"#, json!([null, null, null, -1, "NaN"])),
            (br#"{"a":"\"}\ud83d","b":[1]}"#, json!({ "a": "\"}\u{fffd}", "b": [1] })),
            (br#""\ud83d\u0041""#, json!("\u{fffd}A")),
            (br#"["\ud83d","\\"]"#, json!(["\u{fffd}", "\\"])),
        ];
        for (text, value) in cases {
            let shown = String::from_utf8_lossy(text);
            assert_eq!(read(text).expect(&shown), value, "{shown}");
            assert_eq!(read_as::<Value>(text).expect(&shown), value, "{shown}");
            let again: Value = serde_json::from_slice(&mended(text)).expect(&shown);
            assert_eq!(again, value, "{shown}");
        }
    }

    #[test]
    fn deeply_nested_value_becomes_null() {
        let text = format!(r#"{{"id":1,"deep":{},"b":"}}"}}"#, nested(100_000));
        let read = read(text.as_bytes()).unwrap();
        assert_eq!((&read["id"], &read["b"]), (&json!(1), &json!("}")));
        let mut deepest = &read["deep"];
        while deepest.is_array() {
            deepest = &deepest[0];
        }
        assert_eq!(*deepest, Value::Null);
    }

    #[test]
    fn not_json_keeps_members_before_fault() {
        let members = |text: &str| Value::Object(read(text.as_bytes()).unwrap_err().members);
        for (text, before) in [
            (r#"{"id":7,"method":"m","params":{"a":"#, json!({ "id": 7, "method": "m" })),
            (r#"{"id":"\ud83d","x":}"#, json!({ "id": "\u{fffd}" })),
            (r#"{"method":"m","#, json!({ "method": "m" })),
            ("warning: no", json!({})),
            ("[1,", json!({})),
            ("", json!({})),
            ("\"\\", json!({})),
            ("{\"a\\", json!({})),
        ] {
            assert_eq!(members(text), before, "{text}");
            assert_eq!(*mended(text.as_bytes()), *text.as_bytes());
        }
    }

    #[test]
    fn misunderstood_request_yields_its_id() {
        for (text, id) in [
            (r#"{"id":7,"method":"m","params":{"a":"#, Some(json!(7))),
            (r#"{"id":"a","method":[]}"#, Some(json!("a"))),
            (r#"{"id":7,"result":{"a":"#, None),
            (r#"{"id":{},"method":"m"}"#, None),
            (r#"{"id":null,"method":"m"}"#, None),
            (r#"{"method":"m","params":{},"id":"#, None),
            ("[]", None),
        ] {
            assert_eq!(request_id(text.as_bytes()), id, "{text}");
        }
    }

    proptest! {
        #[test]
        fn mending_keeps_valid_json(text in ".*", number: f64, flag: bool) {
            let value = json!({ "t": [text, number, flag, null], text.clone(): {} });
            let written = value.to_string();
            prop_assert_eq!(mend(&written), written.as_str());
            prop_assert_eq!(&*mended(written.as_bytes()), written.as_bytes());
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>, text in r#"[\[\]{}",:\\udDc83 0-9N]*"#) {
            for text in [&bytes[..], text.as_bytes()] {
                let _ = (read(text), read_as::<Value>(text), mended(text));
            }
        }
    }
}
