//! Splits a sentence into words: quoted text stays whole, punctuation around words is removed.

/// Word as written, and in lower case for comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) lower: String,
    pub(crate) quoted: bool,
}

/// Splits a sentence. Control characters count as spaces.
pub(crate) fn split(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while let Some(first) = rest.chars().next() {
        let (word, after) = quoted(first, rest).unwrap_or_else(|| plain(rest));
        words.extend(word);
        rest = after.trim_start_matches(is_space);
    }
    words
}

fn is_space(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

/// Quoted text at the beginning, if the quotation ends.
fn quoted(first: char, rest: &str) -> Option<(Option<Word>, &str)> {
    let close = match first {
        '"' | '`' | '\'' => first,
        '“' => '”',
        '‘' => '’',
        '«' => '»',
        _ => return None,
    };
    let inner = &rest[first.len_utf8()..];
    // An apostrophe inside a word does not end the quotation.
    let ends = |at: &usize| {
        let after = inner[at + close.len_utf8()..].chars().next();
        close != '\'' || after.is_none_or(|c| !c.is_alphanumeric())
    };
    let end = inner.match_indices(close).map(|(at, _)| at).find(ends)?;
    let text: String = inner[..end].chars().filter(|c| !c.is_control()).collect();
    let word = Word { lower: text.to_lowercase(), text, quoted: true };
    Some(((!word.text.trim().is_empty()).then_some(word), &inner[end + close.len_utf8()..]))
}

fn plain(rest: &str) -> (Option<Word>, &str) {
    let end = rest.find(is_space).unwrap_or(rest.len());
    let text = rest[..end]
        .trim_start_matches(['(', '[', '"', '“', '\'', '‘', ','])
        .trim_end_matches(['?', '!', ',', ';', ':', '.', ']', '"', '”', '\'', '’']);
    // A call such as `parse()` keeps its parentheses, "(see above)" loses them.
    let text = if text.contains('(') { text } else { text.trim_end_matches(')') };
    let lower = text.to_lowercase().replace('’', "'");
    let word = Word { lower, text: text.to_owned(), quoted: false };
    ((!text.is_empty()).then_some(word), &rest[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotations_stay_whole_without_punctuation() {
        let words = split("Why's \"let x = 1;\" in `a b.rs`, or 'don't' (really)? f() ../x. \0");
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let expected =
            ["Why's", "let x = 1;", "in", "a b.rs", "or", "don't", "really", "f()", "../x"];
        assert_eq!(texts, expected);
    }
}
