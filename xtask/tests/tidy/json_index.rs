//! Mutable indexing of JSON (`value["key"] = …`, `value["key"].take()`, `&mut value["key"]`):
//! `serde_json::Value` panics there if it has another shape, and external JSON may have any. Clippy
//! has no lint for it: `clippy::indexing_slicing` covers slices only, and `disallowed-methods` no
//! operators.

use crate::sources::{is_test, root, sources, without_tests};
use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use std::collections::BTreeSet;

/// Folders whose code may read external JSON. `model-server` only plays a vendor's API for tests.
const READERS: [&str; 6] =
    ["host", "sdk", "guest-agents", "examples", "templates", "tests/in-process"];

/// Test support, which may panic.
const FOR_TESTS: &str = "sdk/src/testing/";

/// Methods that change the value, or return it mutably.
const CHANGING: &str = "take replace as_array_mut as_object_mut get_mut pointer_mut push insert remove extend clear retain \
    append entry iter_mut values_mut pop drain truncate sort sort_all_objects swap_remove";

/// Names of variables that are numeric indices into arrays and vectors.
const NUMBERS: &str = "at i index item n end number optional plane step widest";

/// Keywords after which a bracket begins an array, not an index.
const KEYWORDS: &str = "in return break match if else while mut move ref let for";

#[test]
fn json_is_never_index_assigned() {
    let mut read = 0;
    let mut found = Vec::new();
    for (path, text) in READERS.iter().flat_map(|folder| sources(folder)) {
        if is_test(&path) || path.starts_with(FOR_TESTS) {
            continue;
        }
        read += 1;
        found.extend(offences(without_tests(&text)).iter().map(|what| format!("{path}: {what}")));
    }
    assert!(read > 400, "{read} files of {} are read", root().display());
    let way_out = "take members with `get_mut`, put them with `insert` on the object, or begin with `let mut x = json!({ … })`";
    assert!(
        found.is_empty(),
        "JSON of another shape panics here; {way_out}:\n{}",
        found.join("\n")
    );
}

#[test]
fn every_form_of_mutable_index_is_found() {
    for code in [
        r#"fn f(mut v: Value) { v["a"] = json!(1); }"#,
        r#"fn f(mut v: Value) { let id = v["a"].take(); }"#,
        r#"fn f(v: &mut Value) { v["a"]["b"] = 1.into(); }"#,
        r#"fn f(v: &mut Value) { g(&mut v["a"]); }"#,
        r#"fn f(v: &mut Value) { self.known["a"][0]["b"].as_object_mut(); }"#,
        r#"fn f() { let x = from_str(line).unwrap_or_default()["error"].take(); }"#,
        r#"fn f(v: &mut Value, name: &str) { v[name] = 1.into(); }"#,
        r#"fn f(v: &mut Value) { v[NAME] = 1.into(); }"#,
        r#"fn f(v: &mut Value) { v[name.as_str()] = 1.into(); }"#,
        r#"fn f(v: &mut Value) { v["a"] += 1; }"#,
        r#"fn f(v: &mut Value) { v[0]["a"] = 1.into(); }"#,
        r#"fn f() { let mut v = json!({}); v["a"]["b"] = 1.into(); }"#,
        r#"fn f() { let mut v = json!({}); v = heard(); v["a"] = 1.into(); }"#,
        r#"fn f() { let mut v = json!({}); } fn g(v: &mut Value) { v["a"] = 1.into(); }"#,
        r#"fn f() { let mut v = json!({}); each(|v| v["a"] = 1.into()); }"#,
        r#"fn f() { let mut v = json!({}); if let Some(mut v) = heard() { v["a"] = 1.into(); } }"#,
        r#"fn f() { let mut v = json!({}); if x { v = heard(); } v["a"] = 1.into(); }"#,
        r#"fn f() { if x { let mut v = json!({}); } v["a"] = 1.into(); }"#,
        r#"fn f() { let mut v = json!(heard); v["a"] = 1.into(); }"#,
    ] {
        assert_eq!(offences(code).len(), 1, "{code}");
    }
}

#[test]
fn safe_indices_are_accepted() {
    for code in [
        r#"fn f(v: &Value) { if v["a"] == 1 { return v["b"].as_str(); } }"#,
        r#"fn f(v: &Value) { match v["a"] { _ => v["b"].clone() } }"#,
        r#"fn f() { let mut v = json!({ "a": 1 }); if x { v["b"] = json!(2); } }"#,
        r#"fn f(v: &mut Vec<u8>) { v[at] = 1; v[at + 1] = 2; v[3] = 1; v[..4].sort(); }"#,
        r#"const WORDS: &[&str] = &["a", "b"]; fn f() { let [a, b] = &mut pair; }"#,
    ] {
        assert_eq!(offences(code), Vec::<String>::new(), "{code}");
    }
}

/// Mutable indices in `code` that may apply to JSON of another shape.
fn offences(code: &str) -> Vec<String> {
    let tokens: TokenStream = code.parse().unwrap_or_else(|why| panic!("{why}: {code}"));
    let mut found = Vec::new();
    look(tokens, &mut BTreeSet::new(), &mut found);
    found
}

/// Scans the tokens of one scope; `built` has the variables that hold an object which the code just
/// made.
fn look(tokens: TokenStream, built: &mut BTreeSet<String>, found: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Ident(word) if word == "fn" => built.clear(),
            TokenTree::Ident(word) if word == "mut" => {
                if let Some(TokenTree::Ident(name)) = tokens.get(at + 1) {
                    built.remove(&name.to_string());
                    if makes_an_object(&tokens[at + 2..]) {
                        built.insert(name.to_string());
                    }
                }
            }
            TokenTree::Ident(name) if is_assigned(&tokens[at + 1..]) && !is_let(&tokens[..at]) => {
                built.remove(&name.to_string());
            }
            TokenTree::Punct(bar) if bar.as_char() == '|' => {
                let names = tokens[at + 1..].iter();
                let names = names.take_while(|it| !is_punct(Some(it), '|'));
                for name in names.filter_map(|it| ident(Some(it))) {
                    built.remove(&name.to_string());
                }
            }
            TokenTree::Group(index) if is_index(&tokens[..at], index) => {
                let end = end_of_indices(&tokens, at);
                let levels = end - at;
                let is_built = levels == 1
                    && ident(tokens.get(at.wrapping_sub(1)))
                        .is_some_and(|name| built.contains(&name.to_string()))
                    && !is_punct(tokens.get(at.wrapping_sub(2)), '.');
                let indices = tokens[at..end].iter().filter_map(|it| group(it));
                let is_json = indices.into_iter().any(is_key);
                if is_json && !is_built && is_changed(&tokens, at, end) {
                    let shown = tokens[at.saturating_sub(1)..end].iter().map(ToString::to_string);
                    found.push(shown.collect());
                }
                for inner in tokens[at..end].iter().filter_map(group) {
                    look(inner.stream(), &mut built.clone(), found);
                }
                at = end;
                continue;
            }
            // A variable made in a block ends with it; one invalidated in the block stays so after
            // it.
            TokenTree::Group(block) if block.delimiter() == Delimiter::Brace => {
                let mut within = built.clone();
                look(block.stream(), &mut within, found);
                built.retain(|name| within.contains(name));
            }
            TokenTree::Group(inner) => look(inner.stream(), built, found),
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
        at += 1;
    }
}

/// True if `= json!({ … })` follows a name.
fn makes_an_object(after: &[TokenTree]) -> bool {
    let [equals, json, bang, made, ..] = after else { return false };
    let TokenTree::Group(made) = made else { return false };
    let first = made.stream().into_iter().next();
    is_punct(Some(equals), '=')
        && ident(Some(json)).is_some_and(|it| it == "json")
        && is_punct(Some(bang), '!')
        && first.and_then(|it| group(&it).map(Group::delimiter)) == Some(Delimiter::Brace)
}

/// True if a plain `=` follows.
fn is_assigned(after: &[TokenTree]) -> bool {
    is_punct(after.first(), '=') && !is_punct(after.get(1), '=') && !is_punct(after.get(1), '>')
}

fn is_let(before: &[TokenTree]) -> bool {
    let words = before.iter().rev().map_while(|it| ident(Some(it)));
    words.take(2).any(|word| word == "let")
}

/// True if the brackets index an expression, rather than begin an array, a type or an attribute.
fn is_index(before: &[TokenTree], brackets: &Group) -> bool {
    brackets.delimiter() == Delimiter::Bracket
        && match before.last() {
            Some(TokenTree::Ident(word)) => !is_among(word, KEYWORDS),
            Some(TokenTree::Group(of)) => of.delimiter() != Delimiter::Brace,
            Some(TokenTree::Punct(mark)) => mark.as_char() == '?',
            Some(TokenTree::Literal(_)) | None => false,
        }
}

/// End of the sequence of indices that begins at `at`.
fn end_of_indices(tokens: &[TokenTree], at: usize) -> usize {
    let rest = tokens[at..].iter();
    at + rest
        .take_while(|it| group(it).is_some_and(|it| it.delimiter() == Delimiter::Bracket))
        .count()
}

/// True if an index may be a member's name: not a number and not a range.
fn is_key(index: &Group) -> bool {
    let inner: Vec<_> = index.stream().into_iter().collect();
    if let [TokenTree::Literal(literal)] = &inner[..] {
        return literal.to_string().contains('"');
    }
    let is_number = |word: &Ident| word == "usize" || is_among(word, NUMBERS);
    let is_range = inner.windows(2).any(|two| two.iter().all(|it| is_punct(Some(it), '.')));
    let first = inner.iter().find_map(|it| ident(Some(it)));
    first.is_some_and(|first| !is_number(first)) && !is_range && !inner.iter().any(is_arithmetic)
}

fn is_arithmetic(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(mark) if "+-/%<>".contains(mark.as_char()))
}

/// True if the indexed value is assigned, borrowed mutably, or changed by a method.
fn is_changed(tokens: &[TokenTree], begin: usize, end: usize) -> bool {
    let after = &tokens[end..];
    let by_method = is_punct(after.first(), '.')
        && ident(after.get(1)).is_some_and(|name| is_among(name, CHANGING));
    let by_operator = after.first().is_some_and(is_operator) && is_punct(after.get(1), '=');
    by_method || by_operator || is_assigned(after) || is_lent(&tokens[..begin])
}

fn is_operator(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(mark) if "+-*/%^&|".contains(mark.as_char()))
}

/// True if `&mut` precedes the expression that ends here.
fn is_lent(before: &[TokenTree]) -> bool {
    let mut at = before.len();
    while at > 0 {
        let of_path = match &before[at - 1] {
            TokenTree::Ident(word) => word != "mut",
            TokenTree::Group(of) => of.delimiter() != Delimiter::Brace,
            TokenTree::Punct(mark) => ".?:".contains(mark.as_char()),
            TokenTree::Literal(_) => false,
        };
        if !of_path {
            break;
        }
        at -= 1;
    }
    let [.., and, word] = &before[..at] else { return false };
    is_punct(Some(and), '&') && ident(Some(word)).is_some_and(|word| word == "mut")
}

fn ident(token: Option<&TokenTree>) -> Option<&Ident> {
    let Some(TokenTree::Ident(word)) = token else { return None };
    Some(word)
}

fn is_among(word: &Ident, words: &str) -> bool {
    words.split_whitespace().any(|one| word == one)
}

fn group(token: &TokenTree) -> Option<&Group> {
    let TokenTree::Group(group) = token else { return None };
    Some(group)
}

fn is_punct(token: Option<&TokenTree>, mark: char) -> bool {
    matches!(token, Some(TokenTree::Punct(it)) if it.as_char() == mark)
}
