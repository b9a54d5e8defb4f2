//! Interfaces that authors of agents depend on: the contract in `wit/` and the public items of the
//! three SDKs. A change breaks their agents, so `wit.txt` and `sdk-*.txt` beside this file record
//! the interfaces; comments and documentation are not recorded.
//!
//! `SURFACE_SNAPSHOT=write cargo test -p xtask --test surface` writes these files anew, after an
//! intended change.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

#[test]
fn contract_matches_snapshot() {
    let mut out = String::new();
    for (path, text) in files("wit", "wit") {
        out.push_str(&format!("== {path}\n"));
        let lines = text.lines().map(|line| line.split("//").next().unwrap().trim());
        for line in lines.filter(|line| !line.is_empty()) {
            out.push_str(line);
            out.push('\n');
        }
    }
    is_kept("wit.txt", &out);
}

#[test]
fn rust_sdk_surface_matches_snapshot() {
    let mut out = String::new();
    for (path, text) in files("sdk/src", "rs") {
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        let items = public_items(text);
        if !items.is_empty() {
            out.push_str(&format!("== {path}\n{}\n", items.join("\n")));
        }
    }
    is_kept("sdk-rust.txt", &out);
}

#[test]
fn python_sdk_surface_matches_snapshot() {
    let mut names = BTreeSet::new();
    for (path, text) in files("sdk-python/a2a_hub", "py") {
        let mut class = String::new();
        for line in text.lines() {
            let depth = line.len() - line.trim_start().len();
            let line = line.trim().trim_start_matches("async ");
            let Some((kind, rest)) = line.split_once(' ') else { continue };
            let name = rest.split(['(', ':']).next().unwrap();
            match kind {
                _ if name.starts_with('_') => {}
                "class" if depth == 0 => {
                    name.clone_into(&mut class);
                    names.insert(format!("{path}: class {name}"));
                }
                "def" if depth == 0 => {
                    names.insert(format!("{path}: {}", signature(rest)));
                }
                "def" if depth == 4 => {
                    names.insert(format!("{path}: {class}.{}", signature(rest)));
                }
                _ => {}
            }
        }
    }
    is_kept("sdk-python.txt", &names.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn javascript_sdk_surface_matches_snapshot() {
    let mut out = String::new();
    for name in ["index.d.ts", "testing.d.ts"] {
        let text = fs::read_to_string(root().join("sdk-js").join(name)).unwrap();
        out.push_str(&format!("== {name}\n"));
        let mut in_comment = false;
        for line in text.lines().map(str::trim) {
            in_comment |= line.starts_with("/*");
            if !in_comment && !line.is_empty() && !line.starts_with("//") {
                out.push_str(line);
                out.push('\n');
            }
            in_comment &= !line.ends_with("*/");
        }
    }
    is_kept("sdk-javascript.txt", &out);
}

/// Head of a Python function: its name and its parameters on the first line.
fn signature(rest: &str) -> &str {
    rest.split(" ->").next().unwrap().trim_end_matches(':')
}

/// Public items of a file: the text from `pub` to a body, one item per line, including variants of
/// public enums and members of public traits.
fn public_items(text: &str) -> Vec<String> {
    let mut items = Vec::new();
    let (mut item, mut inside) = (String::new(), 0_i32);
    for line in text.lines() {
        let code = line.trim();
        if code.starts_with("//") || code.starts_with("#[") || code.is_empty() {
            continue;
        }
        let begins =
            ["pub ", "impl ", "impl<", "macro_rules! "].iter().any(|word| code.starts_with(word));
        let is_member = inside > 0 && line.starts_with("    ") && !line.starts_with("     ");
        let is_inside = is_member && !code.starts_with('}');
        if item.is_empty() && !begins && !is_inside {
            if line.starts_with('}') {
                inside = 0;
            }
            continue;
        }
        item.push_str(code);
        item.push(' ');
        if code.ends_with(['{', ';', '}', ',']) || code.ends_with(")") && is_member {
            let whole = item.trim_end_matches([' ', '{', ';', ',']).to_owned();
            if (whole.starts_with("pub enum") || whole.starts_with("pub trait"))
                && code.ends_with('{')
            {
                inside = 1;
            }
            items.push(whole);
            item.clear();
        }
    }
    items
}

/// Files below `dir` with this extension, by relative path.
fn files(dir: &str, ending: &str) -> Vec<(String, String)> {
    let top = root().join(dir);
    let (mut found, mut pending) = (Vec::new(), vec![top.clone()]);
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|it| it == ending) {
                let name = path.strip_prefix(&top).unwrap().display().to_string();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn is_kept(name: &str, now: &str) {
    let path = root().join("xtask/tests/surface").join(name);
    if env::var_os("SURFACE_SNAPSHOT").is_some_and(|it| it == "write") {
        fs::write(&path, now).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let (now, kept): (BTreeSet<&str>, BTreeSet<&str>) =
        (now.lines().collect(), kept.lines().collect());
    let gone: Vec<_> = kept.difference(&now).collect();
    let new: Vec<_> = now.difference(&kept).collect();
    assert!(gone.is_empty() && new.is_empty(), "{name} differs.\ngone: {gone:#?}\nnew: {new:#?}");
}

fn root() -> PathBuf {
    let xtask = env::var_os("CARGO_MANIFEST_DIR").unwrap();
    Path::new(&xtask).parent().unwrap().to_owned()
}
