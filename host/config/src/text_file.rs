//! Text files that a person wrote: errors name line and column, and how to write it right.

use a2a_hub_protocol::expected::plain;
use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

/// Most bytes of a configuration file.
pub(crate) const MAX_CONFIG: u64 = 8 << 20;

/// Beginnings of messages of the TOML parser, with their equivalents for authors.
const MESSAGES: &[(&str, &str)] = &[
    (
        "string values must be quoted",
        "a value is missing or cannot be read; write a text in quotes, such as `key = \"text\"`, a number, `true` or `false`",
    ),
    ("missing value", "a value is missing; write `key = value`"),
    ("key with no value", "a key without a value; write `key = value`"),
    ("missing assignment", "a key without `=`; write `key = value`, one on each line"),
    ("extra assignment", "a second `=` on the line; write one `key = value` on each line"),
    ("duplicate key", "a key or section that the file has already; leave one out"),
    ("unclosed array table", "the section's name is not closed; end it with `]]`"),
    ("unclosed array", "the list is not closed; end it with `]`"),
    ("unclosed inline table", "the table is not closed; end it with `}`"),
    ("unclosed table", "the section's name is not closed; end it with `]`"),
    (
        "missing comma between array elements",
        "the list lacks a comma between two values, or its `]`",
    ),
    ("missing comma between key-value pairs", "the table lacks a comma between two values"),
    (
        "invalid basic string",
        "the text is not closed, or has a wrong escape; end it with `\"`, and write `\\\\` for a backslash",
    ),
    ("missing escaped value", "the text has a wrong escape; write `\\\\` for a backslash"),
    ("invalid unquoted key", "a key has letters, digits, `_` and `-`; write another one in quotes"),
    (
        "unexpected key or value",
        "more than one value on the line; write one `key = value` on each line",
    ),
];

/// Describes an error of TOML `text`: line, column, and what to write.
pub fn toml_problem(text: &str, why: &toml::de::Error) -> String {
    let message = why.message().lines().next().unwrap_or_default();
    let known = MESSAGES.iter().find(|(begin, _)| message.starts_with(begin));
    let words = known.map_or_else(|| plain(message), |(_, words)| (*words).to_owned());
    match why.span() {
        Some(span) => format!("{}: {words}", line_and_column(text.as_bytes(), span.start)),
        None => words,
    }
}

/// Describes the first byte of a text that is not UTF-8; `None` if all of it is.
pub fn utf8_problem(bytes: &[u8]) -> Option<String> {
    let at = std::str::from_utf8(bytes).err()?.valid_up_to();
    let byte = bytes.get(at).copied().unwrap_or_default();
    Some(format!(
        "{}: the byte 0x{byte:02x} is not UTF-8; save the file as UTF-8, such as with `iconv -f ISO-8859-1 -t UTF-8`",
        line_and_column(bytes, at)
    ))
}

/// Reads a text of at most `max_bytes` bytes.
///
/// # Errors
///
/// Returns the error of the system, or one that says what is wrong with the text.
pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(max_bytes + 1).read_to_end(&mut bytes)?;
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    if bytes.len() as u64 > max_bytes {
        return Err(invalid(format!("it has more than {} KiB", max_bytes >> 10)));
    }
    if let Some(why) = utf8_problem(&bytes) {
        return Err(invalid(why));
    }
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// Line and column of a byte, in characters.
fn line_and_column(text: &[u8], at: usize) -> String {
    let before = text.get(..at).unwrap_or(text);
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let begin = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let column = String::from_utf8_lossy(&before[begin..]).chars().count() + 1;
    format!("line {line}, column {column}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn toml_problem_names_place_and_way_out() {
        let told =
            |text: &str| toml_problem(text, &toml::from_str::<toml::Table>(text).unwrap_err());
        let all = [
            "[http]\nport =",
            "[http]\nport = high",
            "port",
            "[http]\nport = 1\nport = 2",
            "[http]\n[http]",
            "a = [1, 2",
            "a = [1 2]",
            "[http",
            "a = \"b",
            "a = \"C:\\dir\"",
            "a = 1 b = 2",
            "é = 1\nö ö = 2",
            "a = { b = 1",
        ];
        let all = all.map(|text| format!("{}: {}", text.replace('\n', "⏎"), told(text)));
        insta::assert_snapshot!(all.join("\n"), @r#"
        [http]⏎port =: line 2, column 7: a value is missing or cannot be read; write a text in quotes, such as `key = "text"`, a number, `true` or `false`
        [http]⏎port = high: line 2, column 8: a value is missing or cannot be read; write a text in quotes, such as `key = "text"`, a number, `true` or `false`
        port: line 1, column 5: a key without a value; write `key = value`
        [http]⏎port = 1⏎port = 2: line 3, column 1: a key or section that the file has already; leave one out
        [http]⏎[http]: line 2, column 2: a key or section that the file has already; leave one out
        a = [1, 2: line 1, column 10: the list is not closed; end it with `]`
        a = [1 2]: line 1, column 6: a value is missing or cannot be read; write a text in quotes, such as `key = "text"`, a number, `true` or `false`
        [http: line 1, column 6: the section's name is not closed; end it with `]`
        a = "b: line 1, column 7: the text is not closed, or has a wrong escape; end it with `"`, and write `\\` for a backslash
        a = "C:\dir": line 1, column 9: the text has a wrong escape; write `\\` for a backslash
        a = 1 b = 2: line 1, column 9: more than one value on the line; write one `key = value` on each line
        é = 1⏎ö ö = 2: line 2, column 3: a key without a value; write `key = value`
        a = { b = 1: line 1, column 12: the table is not closed; end it with `}`
        "#);
    }

    #[test]
    fn unreadable_text_names_reason() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.toml");
        let told = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            read_text(&path, 1 << 10).map_err(|why| why.to_string())
        };
        assert_eq!(told("a = 'é'".as_bytes()), Ok("a = 'é'".to_owned()));
        let latin = told(b"# one\na = 'caf\xe9'").unwrap_err();
        assert!(latin.starts_with("line 2, column 9: the byte 0xe9 is not UTF-8; save"), "{latin}");
        assert_eq!(told(&[b'#'; 1025]).unwrap_err(), "it has more than 1 KiB");
        assert!(read_text(Path::new("/dev/zero"), 1 << 10).is_err(), "it has no end");
    }
}
