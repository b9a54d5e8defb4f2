//! Plain words for errors of the TOML parser.

/// Beginnings of the parser's messages, with their equivalents for authors.
const MESSAGES: [(&str, &str); 14] = [
    (
        "string values must be quoted",
        "a value is missing or cannot be read; write a text in quotes, such as `key = \"text\"`, a number, `true` or `false`",
    ),
    ("missing value", "a value is missing; write `key = value`"),
    ("key with no value", "a key without a value; write `key = value`"),
    ("missing assignment", "a key without `=`; write `key = value`, one on each line"),
    ("duplicate key", "a key or section that the file has already; leave one out"),
    ("missing comma between array", "the list lacks a comma between two values, or its `]`"),
    ("unclosed array table", "the section's name is not closed; end it with `]]`"),
    ("unclosed array", "the list is not closed; end it with `]`"),
    ("unclosed inline table", "the table is not closed; end it with `}`"),
    ("unclosed table", "the section's name is not closed; end it with `]`"),
    ("invalid multi-line basic string", "the text is not closed; end it with `\"\"\"`"),
    (
        "invalid basic string",
        "the text is not closed; end it with `\"`, or write a longer one in `\"\"\"`",
    ),
    ("missing escaped value", "the text has a wrong escape; write `\\\\` for a backslash"),
    (
        "unexpected key or value",
        "more than one value on the line; write one `key = value` on each line",
    ),
];

/// Describes an error of the parser.
pub(super) fn plain(message: &str) -> String {
    let known = MESSAGES.iter().find(|(begin, _)| message.starts_with(begin));
    known.map_or_else(|| message.replace('\n', " "), |(_, words)| (*words).to_owned())
}
