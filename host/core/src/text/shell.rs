//! Words of a shell, for commands that people copy.

/// Quotes `word` as one word of a shell command.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/@%+=,".contains(c);
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
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
