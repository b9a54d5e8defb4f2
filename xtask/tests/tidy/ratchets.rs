//! Counts of constructs that are hard to read, which may only fall. A change that lowers a count
//! lowers its limit here too, so that the count stays low.

use crate::{
    identifiers::{private_words, vague_functions},
    sources::{read, sources},
};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};

/// Difference between a count and its limit from which on the limit must be lowered.
const SLACK: usize = 15;

/// Name, limit, aim, and the count itself.
type Ratchet = (&'static str, usize, usize, fn(&Tree) -> usize);

const RATCHETS: &[Ratchet] = &[
    ("item docs that open with What, Who, How …", 10, 0, |tree| opening_badly(tree, "///")),
    ("module heads that open with What, Who, How …", 0, 0, |tree| opening_badly(tree, "//!")),
    ("doc blocks with an idiom", 12, 0, idioms),
    ("comment lines over 100 columns", 12, 0, |tree| {
        lines(tree).filter(|line| is_comment(line) && line.chars().count() > 100).count()
    }),
    ("Rust files in the fullest folder", 31, 20, fullest_folder),
    ("lines of Rust in the fullest folder", 5_900, 4_000, longest_folder),
    ("type names that host/ defines twice", 20, 20, |tree| twice_defined(tree, &["host/"])),
    ("type names that sdk/ and guest-agents/ define twice", 8, 8, |tree| {
        twice_defined(tree, &["sdk/", "guest-agents/"])
    }),
    ("files over which one type's impl spreads", 15, 4, widest_impl),
    ("private words in identifiers", 850, 850, private_words),
    ("functions with a vague name", 40, 40, vague_functions),
    ("test names over 7 words", 33, 100, long_test_names),
    ("lines of README.md", 189, 220, |_| read("README.md").lines().count()),
    ("lines of docs/ARCHITECTURE.md", 301, 300, |_| read("docs/ARCHITECTURE.md").lines().count()),
    ("changelog entries over 200 characters", 0, 0, long_entries),
];

/// Paths of the product's Rust files, with their texts.
type Tree = [(String, String)];

#[test]
fn each_count_only_falls() {
    let tree: Vec<_> = ["host", "sdk", "guest-agents", "xtask", "tests", "examples"]
        .into_iter()
        .flat_map(sources)
        .collect();
    let mut wrong = Vec::new();
    for (name, limit, aim, count) in RATCHETS {
        let now = count(&tree);
        let allowed = limit.max(aim);
        if now > *allowed {
            wrong.push(format!(
                "{name}: {now}, and at most {allowed} are allowed; mend what is new"
            ));
        } else if now + SLACK < *limit && limit > aim {
            wrong.push(format!("{name}: {now}; lower the limit of {limit} in {}", file!()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn counters_count_what_they_name() {
    let tree = [("host/a/src/b.rs".to_owned(), "//! What it is.\n\n/// How it goes.\nfn a() {}\n/// The whoever idiom.\nstruct A;\nimpl A {}\n#[test]\nfn a_b_c_d_e_f_g_h() {}\n".to_owned())];
    let counted: Vec<_> = RATCHETS.iter().map(|(name, .., count)| (*name, count(&tree))).collect();
    for name in
        ["item docs", "module heads", "doc blocks", "test names", "Rust files", "files over"]
    {
        assert!(
            counted.iter().any(|(of, count)| of.starts_with(name) && *count == 1),
            "{name}: {counted:?}"
        );
    }
}

fn lines(tree: &Tree) -> impl Iterator<Item = &str> {
    tree.iter().flat_map(|(_, text)| text.lines())
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// Blocks of comments of one kind (`///`, `//!`), each as one line of text.
fn blocks(tree: &Tree, kind: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    for (_, text) in tree {
        let mut block = String::new();
        for line in text.lines().chain([""]) {
            match line.trim_start().strip_prefix(kind) {
                Some(words) => {
                    block.push_str(words);
                    block.push(' ');
                }
                None if !block.is_empty() => blocks.push(std::mem::take(&mut block)),
                None => {}
            }
        }
    }
    blocks
}

fn opening_badly(tree: &Tree, kind: &str) -> usize {
    let bad = Regex::new(r"^\s*(What|Who|Whose|Where|Which|How|Why|Whoever|Whatever)\b").unwrap();
    blocks(tree, kind).iter().filter(|block| bad.is_match(block)).count()
}

/// Phrases that stood for the product's private style.
fn idioms(tree: &Tree) -> usize {
    let idiom = r"(?i)\b(whoever|is told|are told|is heard|in mind|of its own|so many|so long|elsewhere|comes? to nothing|but for|stands still|the hub before|there is|there are)\b";
    let idiom = Regex::new(idiom).unwrap();
    let all = ["///", "//!"].into_iter().flat_map(|kind| blocks(tree, kind));
    all.filter(|block| idiom.is_match(block)).count()
}

fn fullest_folder(tree: &Tree) -> usize {
    let mut folders = BTreeMap::<&str, usize>::new();
    for (path, _) in tree {
        if let Some((folder, _)) = path.rsplit_once('/') {
            *folders.entry(folder).or_default() += 1;
        }
    }
    folders.into_values().max().unwrap_or(0)
}

/// Files of folders below it do not count.
fn longest_folder(tree: &Tree) -> usize {
    let mut folders = BTreeMap::<&str, usize>::new();
    for (path, text) in tree {
        if let Some((folder, _)) = path.rsplit_once('/') {
            *folders.entry(folder).or_default() += text.lines().count();
        }
    }
    folders.into_values().max().unwrap_or(0)
}

fn twice_defined(tree: &Tree, folders: &[&str]) -> usize {
    let defined =
        Regex::new(r"(?m)^(?:pub(?:\([a-z: ]+\))? )?(?:struct|enum|trait|type|union) (\w+)");
    let defined = defined.unwrap();
    let mut names = BTreeMap::<&str, usize>::new();
    for (path, text) in tree {
        if folders.iter().any(|folder| path.starts_with(folder)) && path.contains("/src/") {
            for found in defined.captures_iter(text) {
                *names.entry(found.get(1).unwrap().as_str()).or_default() += 1;
            }
        }
    }
    names.into_values().filter(|times| *times > 1).count()
}

/// Counts only types that the crate defines once: others of the same name are other types.
fn widest_impl(tree: &Tree) -> usize {
    let defined = Regex::new(r"(?m)^(?:pub(?:\([a-z: ]+\))? )?(?:struct|enum) (\w+)").unwrap();
    let implemented = Regex::new(r"(?m)^impl(?:<[^>]*>)? (\w+)(?:<[^>]*>)? \{").unwrap();
    let mut definitions = BTreeMap::<(&str, &str), usize>::new();
    let mut files = BTreeMap::<(&str, &str), BTreeSet<&str>>::new();
    for (path, text) in tree {
        let Some((krate, _)) = path.split_once("/src/") else { continue };
        for found in defined.captures_iter(text) {
            *definitions.entry((krate, found.get(1).unwrap().as_str())).or_default() += 1;
        }
        for found in implemented.captures_iter(text) {
            files.entry((krate, found.get(1).unwrap().as_str())).or_default().insert(path);
        }
    }
    let once = files.iter().filter(|(name, _)| definitions.get(name) == Some(&1));
    once.map(|(_, files)| files.len()).max().unwrap_or(0)
}

fn long_test_names(tree: &Tree) -> usize {
    let test = r"#\[(?:tokio::)?test[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:async )?fn (\w+)\(";
    let test = Regex::new(test).unwrap();
    let names = tree.iter().flat_map(|(_, text)| test.captures_iter(text));
    names.filter(|found| found[1].split('_').count() > 7).count()
}

fn long_entries(_: &Tree) -> usize {
    let text = read("CHANGELOG.md").replace("\n  ", " ");
    text.lines().filter(|line| line.starts_with("- ") && line.chars().count() > 200).count()
}
