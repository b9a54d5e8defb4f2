//! Helpers for Markdown that text from a repository cannot break.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// Escapes text for a line of prose or a table cell: removes line ends, and escapes characters that
/// would begin a link, a tag or a cell.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !c.is_control()) {
        if matches!(c, '<' | '[' | '|' | '\\' | '*') {
            plain.push('\\');
        }
        plain.push(c);
    }
    plain
}

/// Formats text as code, within more backticks than it has in a row.
pub(crate) fn code(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// Formats text as code in a table cell, where a bar would end the cell even inside code.
pub(crate) fn code_cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// Formats a message as a quotation.
pub(crate) fn quote(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("> {}", plain(line))).collect();
    lines.join("\n")
}

/// Formats a table. The first column is text, the others are figures or short.
pub(crate) fn table<const N: usize>(
    head: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    let mut rule = ["--:"; N];
    rule[0] = "---";
    let mut lines = vec![format!("| {} |", head.join(" | ")), format!("| {} |", rule.join(" | "))];
    lines.extend(rows.map(|row| format!("| {} |", row.join(" | "))));
    lines.join("\n")
}

/// Number with a noun: "1 commit", "2 commits", "1,234 commits".
pub(crate) fn count(number: usize, noun: &str) -> String {
    let number = grouped(number);
    let plural = match noun {
        _ if number == "1" => noun.to_owned(),
        "person" => "people".to_owned(),
        _ => format!("{noun}s"),
    };
    format!("{number} {plural}")
}

/// Number with commas between thousands.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Day (UTC) of a time in seconds since 1970.
pub(crate) fn day(seconds: i64) -> Date {
    let time = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
    TimeZone::UTC.to_datetime(time).date()
}

/// Abbreviated hash.
pub(crate) fn short(hash: &str) -> &str {
    hash.get(..8).unwrap_or(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_escaped() {
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`a`"), "`` `a` ``");
        assert_eq!(code_cell("a|b"), "`a\\|b`");
        assert_eq!(plain("<img> [x](y) | a\nb"), "\\<img> \\[x](y) \\| ab");
        assert_eq!(quote("a\n\n# b"), "> a\n> \n> # b");
    }

    #[test]
    fn numbers_and_days_are_formatted() {
        assert_eq!(count(1, "commit"), "1 commit");
        assert_eq!(count(1_234_567, "person"), "1,234,567 people");
        assert_eq!(day(1_767_225_600).to_string(), "2026-01-01");
        assert_eq!(short("0123456789"), "01234567");
    }
}
