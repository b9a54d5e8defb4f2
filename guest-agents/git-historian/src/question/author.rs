//! Finds the author in a sentence: "commits by Ada Moss", "what did Bo do?".

use super::form::{is_name, looks_like_path};
use crate::words::Word;

/// Auxiliary verbs before an author who is the subject.
const AUXILIARIES: [&str; 5] = ["did", "does", "has", "have", "had"];

/// Words after an auxiliary or "by" that name no single person.
const NOBODY: [&str; 32] = [
    "we",
    "you",
    "they",
    "he",
    "she",
    "it",
    "people",
    "everyone",
    "everybody",
    "anyone",
    "anybody",
    "someone",
    "somebody",
    "anything",
    "something",
    "nothing",
    "what",
    "which",
    "change",
    "changed",
    "been",
    "happened",
    "author",
    "authors",
    "person",
    "kind",
    "area",
    "date",
    "month",
    "week",
    "day",
    "year",
];

/// Words for what a person did.
const WORK: [&str; 4] = ["changes", "commit", "commits", "work"];

/// Name of the one author that the sentence is about, as the user wrote it.
pub(super) fn find(words: &[Word]) -> Option<String> {
    let at = words.iter().position(|word| {
        !word.quoted && (word.lower == "by" || AUXILIARIES.contains(&word.lower.as_str()))
    });
    let at = at.or_else(|| of_person(words))?;
    let names_person = |word: &&Word| {
        word.quoted
            || (is_name(word)
                && !looks_like_path(&word.text)
                && !NOBODY.contains(&word.lower.as_str())
                && word.text.chars().any(char::is_alphabetic))
    };
    let first = words.get(at + 1).filter(names_person)?;
    // A person is the subject of a verb: "did x.rs change" is excluded above, "did Bo do" is not.
    let capital = |word: &Word| word.text.starts_with(char::is_uppercase);
    let more = words[at + 2..].iter().take_while(|word| !first.quoted && capital(word));
    let name: Vec<&str> = [first].into_iter().chain(more).map(|word| word.text.as_str()).collect();
    Some(name.join(" "))
}

/// Place of "of" in "commits of Ada". Folders are seldom capitalised, and files such as `README`
/// have no small letter.
fn of_person(words: &[Word]) -> Option<usize> {
    let is_of_person = |words: &[Word]| {
        let [work, of, name] = words else { return false };
        WORK.contains(&work.lower.as_str())
            && of.lower == "of"
            && name.text.starts_with(char::is_uppercase)
            && name.text.contains(char::is_lowercase)
    };
    words.windows(3).position(is_of_person).map(|at| at + 1)
}

/// True if a person's name contains all words of `query`, ignoring case.
pub(crate) fn is_called(name: &str, query: &str) -> bool {
    let name = name.to_lowercase();
    let mut query = query.split_whitespace().map(str::to_lowercase);
    name == query.clone().collect::<Vec<_>>().join(" ")
        || query.all(|word| name.split_whitespace().any(|part| part == word))
}
