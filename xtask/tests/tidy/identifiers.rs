//! Counts of identifiers that an engineer of the field would not search for: everyday words that
//! stand for a value, a mechanism or an action that has a name.

use crate::sources::{is_test, without_tests};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;

/// Everyday words. Each stood for something that has a name.
const WORDS: &str = "told heard said kept held asked patience place room lane stands standing trouble \
                     troubles kin seat door doors visit visits visited looked look seen beside plant \
                     fell adopt parked parking mind minds care custody happening happened hear hears \
                     unheard retold whole away gone given made left came own above below behind most \
                     least many how what who";

/// Identifiers in which such a word is the field's own.
const TERMS: &[&str] = &["parking_lot", "visit_map", "at_least", "at_most", "AtLeast", "AtMost"];

/// Names of functions that say nothing about what the function does.
const FUNCTIONS: &str = "of told take look hear keep shown whole said place";

/// Number of private words in identifiers outside tests.
pub(crate) fn private_words(tree: &[(String, String)]) -> usize {
    let words: BTreeSet<&str> = WORDS.split_whitespace().collect();
    let count = |name: String| {
        let is_term = TERMS.contains(&&*name) || name.starts_with("TooMany");
        let parts = parts(&name).into_iter().filter(|part| words.contains(part.as_str()));
        if is_term { 0 } else { parts.count() }
    };
    code(tree).flat_map(identifiers).map(count).sum()
}

/// Number of functions whose name is one of [`FUNCTIONS`].
pub(crate) fn vague_functions(tree: &[(String, String)]) -> usize {
    let vague: BTreeSet<&str> = FUNCTIONS.split_whitespace().collect();
    let is_vague = |pair: &&[String]| pair[0] == "fn" && vague.contains(&*pair[1]);
    code(tree).map(|text| identifiers(text).windows(2).filter(is_vague).count()).sum()
}

/// Texts of files without tests, each without its own tests.
fn code(tree: &[(String, String)]) -> impl Iterator<Item = &str> {
    tree.iter().filter(|(path, _)| !is_test(path)).map(|(_, text)| without_tests(text))
}

/// Identifiers and keywords of a text, in order.
fn identifiers(text: &str) -> Vec<String> {
    fn walk(tokens: TokenStream, found: &mut Vec<String>) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => walk(group.stream(), found),
                TokenTree::Ident(name) => found.push(name.to_string()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
    let mut found = Vec::new();
    let tokens: Result<TokenStream, _> = text.parse();
    walk(tokens.unwrap_or_else(|error| panic!("{error}: {text}")), &mut found);
    found
}

/// Words of an identifier in lower case: `is_heldBack` has `is`, `held` and `back`.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut last = '_';
    for character in name.chars() {
        if character == '_' || (character.is_uppercase() && !last.is_uppercase()) {
            parts.push(String::new());
        }
        if character != '_' {
            let part = parts.last_mut().unwrap();
            part.extend(character.to_lowercase());
        }
        last = character;
    }
    parts
}

#[test]
fn private_words_are_counted_by_part() {
    let tree = |path: &str, text: &str| [(path.to_owned(), text.to_owned())];
    let text = "// told\nfn told(heldBack: What) { \"said\"; at_most; }\n#[cfg(test)]\nmod tests { fn of() {} }";
    let of_code = tree("host/a/src/b.rs", text);
    assert_eq!((private_words(&of_code), vague_functions(&of_code)), (3, 1));
    let of_tests = tree("host/a/tests/b.rs", text);
    assert_eq!((private_words(&of_tests), vague_functions(&of_tests)), (0, 0));
}
