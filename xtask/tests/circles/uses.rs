//! Uses between the files of a crate: modules are found by their `mod`, and paths are resolved as
//! by the compiler, through imports and re-exports, to the item's definition.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};

/// Sources of a crate, by path below its `src`.
pub(crate) type Files = BTreeMap<String, String>;

/// Files that each file uses, with the used items.
pub(crate) type Edges = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Root files of a crate.
const ROOTS: [&str; 2] = ["lib.rs", "main.rs"];

/// Keywords that define an item with a path.
const ITEMS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];

/// Limit of re-exports on the way to an item; more would be a cycle.
const MAX_STEPS: usize = 32;

/// Name of a module, from the crate's root.
type Name = Vec<String>;

/// Contents of a module in a file.
#[derive(Default)]
struct Module {
    file: String,
    items: BTreeSet<String>,
    /// Target of each imported name.
    imports: BTreeMap<String, Name>,
    globs: Vec<Name>,
    /// Paths used here, including private imports.
    paths: BTreeSet<Name>,
}

/// Finds every use of an item that another file defines.
pub(crate) fn edges(files: &Files) -> Edges {
    let mut edges = Edges::new();
    for root in ROOTS.into_iter().filter(|root| files.contains_key(*root)) {
        let krate = Krate::read(files, root);
        for (name, module) in &krate.modules {
            for path in &module.paths {
                let Some((file, item)) = krate.resolve(name, path, 0) else { continue };
                if file != module.file {
                    let uses = edges.entry(module.file.clone()).or_default();
                    uses.entry(file).or_default().insert(item);
                }
            }
        }
    }
    edges
}

/// Modules of a crate.
struct Krate<'a> {
    files: &'a Files,
    modules: BTreeMap<Name, Module>,
}

impl<'a> Krate<'a> {
    fn read(files: &'a Files, root: &str) -> Self {
        let mut krate = Self { files, modules: BTreeMap::new() };
        krate.read_file(root, Vec::new());
        krate
    }

    fn read_file(&mut self, file: &str, name: Name) {
        let Some(text) = self.files.get(file) else { panic!("there is no {file} for {name:?}") };
        let tokens: TokenStream = text.parse().unwrap_or_else(|why| panic!("{file}: {why}"));
        self.read_module(file, name, &without_tests(tokens));
    }

    fn read_module(&mut self, file: &str, name: Name, tokens: &[TokenTree]) {
        let mut module = Module { file: file.to_owned(), ..Module::default() };
        let mut is_public = false;
        let mut at = 0;
        while at < tokens.len() {
            let word = ident(tokens.get(at));
            match word.as_deref() {
                Some("pub") => {
                    is_public = true;
                    at += 1 + usize::from(
                        group(tokens.get(at + 1), Delimiter::Parenthesis).is_some(),
                    );
                    continue;
                }
                Some("use") => {
                    let end = end_of_statement(tokens, at);
                    module.import(&tokens[at + 1..end], is_public);
                    at = end;
                }
                Some("mod") => {
                    let child = ident(tokens.get(at + 1)).unwrap_or_default();
                    let inner = [name.as_slice(), std::slice::from_ref(&child)].concat();
                    match group(tokens.get(at + 2), Delimiter::Brace) {
                        Some(body) => self.read_module(file, inner, &body),
                        None => {
                            let place = path_before(tokens, at, is_public)
                                .map(|path| beside(file, &path))
                                .unwrap_or_else(|| self.file_of(file, &child));
                            self.read_file(&place, inner);
                        }
                    }
                    at += 2;
                }
                Some(word) => {
                    if let (true, Some(item)) = (ITEMS.contains(&word), ident(tokens.get(at + 1))) {
                        module.items.insert(item);
                    } else if word == "macro_rules" {
                        module.items.extend(ident(tokens.get(at + 2)));
                    }
                }
                None => {}
            }
            is_public = false;
            at += 1;
        }
        module.paths.extend(paths(&without_imports(tokens)));
        self.modules.insert(name, module);
    }

    /// File of the module `child` of `file`.
    fn file_of(&self, file: &str, child: &str) -> String {
        let folder = match file.rsplit_once('/') {
            Some((folder, "mod.rs")) => format!("{folder}/"),
            _ if ROOTS.contains(&file) => String::new(),
            _ => format!("{}/", file.trim_end_matches(".rs")),
        };
        let plain = format!("{folder}{child}.rs");
        if self.files.contains_key(&plain) { plain } else { format!("{folder}{child}/mod.rs") }
    }

    /// File that defines the target of `path` in the module `at`, and the item's name. `None` for a
    /// module, and for a target outside of the crate.
    fn resolve(&self, at: &[String], path: &[String], steps: usize) -> Option<(String, String)> {
        let (first, rest) = path.split_first()?;
        if steps > MAX_STEPS {
            return None;
        }
        let next = |at: &[String], path: &[String]| self.resolve(at, path, steps + 1);
        match first.as_str() {
            "crate" => return next(&[], rest),
            "self" => return next(at, rest),
            "super" => return next(at.split_last()?.1, rest),
            _ => {}
        }
        let module = self.modules.get(at)?;
        let item = || module.items.contains(first).then(|| (module.file.clone(), first.clone()));
        let child = [at, std::slice::from_ref(first)].concat();
        if self.modules.contains_key(&child) && !rest.is_empty() {
            return next(&child, rest);
        }
        let imported = || {
            let means = module.imports.get(first).filter(|means| **means != [first.clone()])?;
            next(at, &[means.as_slice(), rest].concat())
        };
        let in_globs =
            || module.globs.iter().find_map(|glob| next(at, &[glob.as_slice(), path].concat()));
        item().or_else(imported).or_else(in_globs)
    }
}

impl Module {
    /// Adds the declarations of a `use`, given by its `tokens` without the semicolon.
    fn import(&mut self, tokens: &[TokenTree], is_public: bool) {
        for Leaf { path, name } in leaves(tokens, &[]) {
            match name {
                Some(name) => {
                    if !is_public {
                        self.paths.insert(path.clone());
                    }
                    self.imports.insert(name, path);
                }
                None => self.globs.push(path),
            }
        }
    }
}

/// One name that a `use` declares, or a glob without a name.
struct Leaf {
    path: Name,
    name: Option<String>,
}

fn leaves(tokens: &[TokenTree], before: &[String]) -> Vec<Leaf> {
    let mut path = before.to_vec();
    let mut name = None;
    let mut at = 0;
    while at < tokens.len() {
        if let Some(inner) = group(tokens.get(at), Delimiter::Brace) {
            let trees = inner.split(|token| is_punct(Some(token), ','));
            return trees.filter(|it| !it.is_empty()).flat_map(|it| leaves(it, &path)).collect();
        }
        if is_punct(tokens.get(at), '*') {
            return vec![Leaf { path, name: None }];
        }
        match ident(tokens.get(at)).as_deref() {
            Some("as") => {
                name = ident(tokens.get(at + 1));
                break;
            }
            // Within braces, `self` stands for the path before them.
            Some("self") if !path.is_empty() => {}
            Some(segment) => path.push(segment.to_owned()),
            None => {}
        }
        at += 1;
    }
    let name = name.or_else(|| path.last().cloned());
    vec![Leaf { path, name }]
}

/// Paths in `tokens`, also inside macros. Names of fields, methods and lifetimes are not paths.
fn paths(tokens: &[TokenTree]) -> BTreeSet<Name> {
    let mut found = BTreeSet::new();
    let mut at = 0;
    while at < tokens.len() {
        if let Some(TokenTree::Group(group)) = tokens.get(at) {
            let inner: Vec<_> = group.stream().into_iter().collect();
            found.extend(paths(&inner));
        }
        match ident(tokens.get(at)).as_deref() {
            Some("use") => {
                let end = end_of_statement(tokens, at);
                found.extend(leaves(&tokens[at + 1..end], &[]).into_iter().map(|leaf| leaf.path));
                at = end;
            }
            Some(_) if begins_path(tokens, at) => {
                let mut path = Vec::new();
                while let Some(segment) = ident(tokens.get(at)) {
                    path.push(segment);
                    let goes_on = is_punct(tokens.get(at + 1), ':')
                        && is_punct(tokens.get(at + 2), ':')
                        && ident(tokens.get(at + 3)).is_some();
                    if !goes_on {
                        break;
                    }
                    at += 3;
                }
                found.insert(path);
            }
            Some(_) | None => {}
        }
        at += 1;
    }
    found
}

/// True if the name at `at` begins a path: not a field, method or lifetime, and not after `::`.
fn begins_path(tokens: &[TokenTree], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).and_then(|at| tokens.get(at));
    let is_range = is_punct(before(1), '.') && is_punct(before(2), '.');
    !(is_punct(before(1), '\'') || is_punct(before(1), ':') && is_punct(before(2), ':'))
        && (is_range || !is_punct(before(1), '.'))
}

/// Tokens without test code, as a list.
fn without_tests(tokens: TokenStream) -> Vec<TokenTree> {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        if attribute(&tokens, at).is_some_and(|it| it == "cfg(test)") {
            at = end_of_item(&tokens, at) + 1;
            continue;
        }
        kept.push(match &tokens[at] {
            TokenTree::Group(group) => {
                let inner = without_tests(group.stream()).into_iter().collect();
                TokenTree::Group(proc_macro2::Group::new(group.delimiter(), inner))
            }
            other @ (TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_)) => {
                other.clone()
            }
        });
        at += 1;
    }
    kept
}

/// Tokens without `use` declarations and the bodies of inner modules, which are read separately.
fn without_imports(tokens: &[TokenTree]) -> Vec<TokenTree> {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        match ident(tokens.get(at)).as_deref() {
            Some("use") => at = end_of_statement(tokens, at),
            Some("mod") => at += 2,
            Some(_) | None => kept.push(tokens[at].clone()),
        }
        at += 1;
    }
    kept
}

/// Text of the attribute that begins at `at`, without spaces.
fn attribute(tokens: &[TokenTree], at: usize) -> Option<String> {
    is_punct(tokens.get(at), '#').then_some(())?;
    let said: TokenStream = group(tokens.get(at + 1), Delimiter::Bracket)?.into_iter().collect();
    Some(said.to_string().replace(' ', ""))
}

/// File of a `#[path]` attribute before the module at `at`.
fn path_before(tokens: &[TokenTree], at: usize, is_public: bool) -> Option<String> {
    let mod_or_pub = if is_public { tokens[..at].iter().rposition(is_pub)? } else { at };
    let said = attribute(tokens, mod_or_pub.checked_sub(2)?)?;
    Some(said.strip_prefix("path=\"")?.strip_suffix('"')?.to_owned())
}

fn is_pub(token: &TokenTree) -> bool {
    ident(Some(token)).is_some_and(|word| word == "pub")
}

/// File `path` relative to the folder of `file`.
fn beside(file: &str, path: &str) -> String {
    file.rsplit_once('/').map_or_else(|| path.to_owned(), |(folder, _)| format!("{folder}/{path}"))
}

/// End of the item whose attributes begin at `at`: its body, or a semicolon.
fn end_of_item(tokens: &[TokenTree], mut at: usize) -> usize {
    while is_punct(tokens.get(at), '#') {
        at += 2;
    }
    let words = tokens[at..].iter().map_while(|token| match token {
        TokenTree::Ident(word) => Some(word.to_string()),
        TokenTree::Group(_) => Some(String::new()),
        TokenTree::Punct(_) | TokenTree::Literal(_) => None,
    });
    let words: Vec<_> = words.take(4).collect();
    let has = |word: &str| words.iter().any(|it| it == word);
    let has_body = has("fn") || !["use", "const", "static", "type", "let"].iter().any(|it| has(it));
    let is_end = |token: &TokenTree| {
        let body = has_body && group(Some(token), Delimiter::Brace).is_some();
        body || is_punct(Some(token), ';')
    };
    tokens[at..].iter().position(is_end).map_or(tokens.len(), |end| at + end)
}

fn end_of_statement(tokens: &[TokenTree], at: usize) -> usize {
    let end = tokens[at..].iter().position(|token| is_punct(Some(token), ';'));
    end.map_or(tokens.len(), |end| at + end)
}

fn ident(token: Option<&TokenTree>) -> Option<String> {
    match token? {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => None,
    }
}

fn is_punct(token: Option<&TokenTree>, letter: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == letter)
}

fn group(token: Option<&TokenTree>, of: Delimiter) -> Option<Vec<TokenTree>> {
    match token? {
        TokenTree::Group(group) if group.delimiter() == of => {
            Some(group.stream().into_iter().collect())
        }
        TokenTree::Group(_) | TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {
            None
        }
    }
}
