//! Words of a shell, for commands that people copy.

/// Quotes `word` as one word of a shell command. An option is quoted, so that it shows as a value.
pub fn shell_word(word: &str) -> String {
    if word.starts_with('-') { single_quoted(word) } else { quoted_word(word, "") }
}

/// Quotes `word`, unless it has only plain characters and those of `unquoted`.
pub fn quoted_word(word: &str, unquoted: &str) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || "-_.:/@%+=,".contains(c) || unquoted.contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        single_quoted(word)
    }
}

fn single_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_word_quotes_special_characters() {
        let words =
            ["01a1fc8f-a111", "https://x.org:1/a?b=1", "", "-rf", "a; rm -rf ~", "it's $(id)"];
        let line = words.map(shell_word).join(" ");
        assert_eq!(
            line,
            r"01a1fc8f-a111 'https://x.org:1/a?b=1' '' '-rf' 'a; rm -rf ~' 'it'\''s $(id)'"
        );
    }
}
