//! Checks that no crate has a cycle of files: to read a file, one needs to read only files below
//! it.
//!
//! An edge is a use of an item that another file *defines*, by any path: `mod` and re-exports are
//! not edges. Methods, which are called without a path, and tests are not considered.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod uses;

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
};
use uses::{Edges, Files, edges};

/// Beginning of a file's own tests.
const TESTS: &str = "#[cfg(test)]\nmod tests {";

#[test]
fn files_have_no_use_cycles() {
    let crates = crates();
    assert!(crates.len() > 30, "{} crates are found", crates.len());
    let mut wrong = Vec::new();
    for krate in &crates {
        let files = files(krate);
        let edges = edges(&files);
        assert!(!edges.is_empty() || files.len() < 6, "{krate}: no file uses another");
        let circles: Vec<_> = circles(&edges).iter().map(|it| describe(it, &edges)).collect();
        if !circles.is_empty() {
            let why = "move the items that both sides use to a file below them";
            wrong.push(format!("{krate}: {why}:\n{}", circles.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Cycles, each as the set of files that reach each other.
fn circles(edges: &Edges) -> Vec<BTreeSet<&str>> {
    let mut found: Vec<BTreeSet<&str>> = Vec::new();
    for file in edges.keys() {
        let file = file.as_str();
        if found.iter().any(|circle| circle.contains(file)) {
            continue;
        }
        let below = reached(edges, file);
        let circle = below.iter().copied().filter(|other| reached(edges, other).contains(file));
        let circle: BTreeSet<_> = circle.collect();
        if !circle.is_empty() {
            found.push(circle);
        }
    }
    found
}

/// Files that `file` uses, directly or transitively.
fn reached<'a>(edges: &'a Edges, file: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut pending: Vec<&str> = used(edges, file);
    while let Some(next) = pending.pop() {
        if found.insert(next) {
            pending.extend(used(edges, next));
        }
    }
    found
}

fn used<'a>(edges: &'a Edges, file: &str) -> Vec<&'a str> {
    edges.get(file).into_iter().flatten().map(|(used, _)| used.as_str()).collect()
}

/// Text of a cycle: each use with its items.
fn describe(circle: &BTreeSet<&str>, edges: &Edges) -> String {
    let mut lines = Vec::new();
    for file in circle {
        for (used, names) in edges.get(*file).into_iter().flatten() {
            if circle.contains(used.as_str()) {
                let names: Vec<_> = names.iter().map(String::as_str).collect();
                lines.push(format!("  {file} -> {used}: {}", names.join(", ")));
            }
        }
    }
    lines.join("\n")
}

/// Top directory of the repository.
fn root() -> PathBuf {
    Path::new(&env::var_os("CARGO_MANIFEST_DIR").unwrap()).parent().unwrap().to_owned()
}

/// Files below a directory, except in build output and hidden directories.
fn files_below(dir: PathBuf) -> Vec<PathBuf> {
    let (mut pending, mut found) = (vec![dir], Vec::new());
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy();
            if !path.is_dir() {
                found.push(path);
            } else if !name.starts_with('.') && name != "target" && name != "node_modules" {
                pending.push(path);
            }
        }
    }
    found
}

/// Folders of all crates of the repository that have sources, relative to its root.
fn crates() -> Vec<String> {
    let root = root();
    let manifests =
        files_below(root.clone()).into_iter().filter(|path| path.ends_with("Cargo.toml"));
    let folders = manifests.map(|manifest| manifest.parent().unwrap().to_owned());
    let with_sources = folders.filter(|folder| folder.join("src").is_dir());
    with_sources.map(|it| it.strip_prefix(&root).unwrap().to_str().unwrap().to_owned()).collect()
}

/// Sources of a crate, by path below its `src`.
fn files(krate: &str) -> Files {
    let src = root().join(krate).join("src");
    let mut files = BTreeMap::new();
    for path in files_below(src.clone()) {
        if path.extension().is_some_and(|it| it == "rs") {
            let name = path.strip_prefix(&src).unwrap().to_str().unwrap().to_owned();
            let mut text = fs::read_to_string(&path).unwrap();
            // No code follows a file's own tests (`clippy::items_after_test_module`), and they are
            // half of the text.
            text.truncate(text.find(TESTS).unwrap_or(text.len()));
            files.insert(name, text);
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> String {
        let files: Files =
            files.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect();
        let edges = edges(&files);
        let lines = edges.iter().flat_map(|(file, uses)| {
            uses.iter().map(move |(used, names)| {
                let names: Vec<_> = names.iter().map(String::as_str).collect();
                format!("{file} -> {used}: {}", names.join(", "))
            })
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    const ROOT: (&str, &str) = ("lib.rs", "mod a; mod b;");

    #[test]
    fn imports_paths_and_macros_are_uses() {
        let used = [
            "use crate::b::B;",
            "use super::b::{self, B as C};",
            "use crate::b; fn f() -> b::B { todo!() }",
            "fn f() { crate::b::B::new(); }",
            "fn f() { println!(\"{}\", super::b::B) }",
            "fn f() { use crate::b::{B, none::Such}; }",
            "use crate::b::*; struct A(B);",
            "mod inner { use super::super::b::B; }",
            "impl crate::b::B { fn f() {} }",
        ];
        for text in used {
            let told = of(&[ROOT, ("a.rs", text), ("b.rs", "pub struct B;")]);
            assert_eq!(told, "a.rs -> b.rs: B", "{text}");
        }
    }

    #[test]
    fn reexports_and_tests_are_no_edges() {
        let unused = [
            "pub use crate::b::B;",
            "pub(crate) use crate::b::{B, B as C};",
            "use crate::b; fn f(b: u8) -> u8 { x.b; b }",
            "#[cfg(test)] mod tests { use crate::b::B; }",
            "#[cfg(test)] use crate::b::B; #[test] #[cfg(test)] fn f() { crate::b::B; }",
            "// crate::b::B\n/// crate::b::B\nconst B: &str = \"crate::b::B\";",
            "use std::b::B; use other::B as C;",
        ];
        for text in unused {
            let told = of(&[ROOT, ("a.rs", text), ("b.rs", "pub struct B;")]);
            assert_eq!(told, "", "{text}");
        }
    }

    #[test]
    fn use_resolves_to_defining_file() {
        let told = of(&[
            ("lib.rs", "mod a; mod b; pub use b::{c, deep::E}; #[path = \"odd.rs\"] mod d;"),
            ("a.rs", "use crate::{E, c::C, d::D, b::K}; fn f() { crate::b::C2; crate::b::f(); }"),
            (
                "b/mod.rs",
                "pub mod c; pub mod deep; pub use c::C as C2; pub use self::deep::*; fn f() {}",
            ),
            ("b/c.rs", "pub enum C { X }"),
            ("b/deep.rs", "pub mod more; pub struct E; pub const K: u8 = more::K;"),
            ("b/deep/more.rs", "use super::super::c::C; pub const K: u8 = C::X;"),
            ("odd.rs", "pub trait D {}"),
        ]);
        let expected = "a.rs -> b/c.rs: C\na.rs -> b/deep.rs: E, K\na.rs -> b/mod.rs: f\na.rs -> odd.rs: D\n\
            b/deep.rs -> b/deep/more.rs: K\nb/deep/more.rs -> b/c.rs: C";
        assert_eq!(told, expected);
    }

    #[test]
    fn function_and_module_may_share_name() {
        let told = of(&[
            ROOT,
            ("a.rs", "use crate::b::task; fn f() { task(); task::g(); }"),
            ("b.rs", "pub mod task; pub fn task() {}"),
            ("b/task.rs", "pub fn g() {}"),
        ]);
        assert_eq!(told, "a.rs -> b.rs: task\na.rs -> b/task.rs: g");
    }

    #[test]
    fn cycles_are_found_and_printed() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; mod d;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "use crate::c::C; pub struct B;"),
            ("c.rs", "pub struct C(crate::a::A);"),
            ("d.rs", "use crate::a::A;"),
        ];
        let files: Files =
            files.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect();
        let edges = edges(&files);
        let circles = circles(&edges);
        assert_eq!(circles, [BTreeSet::from(["a.rs", "b.rs", "c.rs"])]);
        let lines = "  a.rs -> b.rs: B\n  b.rs -> c.rs: C\n  c.rs -> a.rs: A";
        assert_eq!(describe(&circles[0], &edges), lines);
    }
}
