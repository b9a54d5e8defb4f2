//! Compiles the book's examples in Rust, which `examples.rs` holds, and runs their tests.

/// The agent of `examples/`, with its tests, compiled as a part of this test.
#[expect(unreachable_pub, reason = "it is a library of its own, where it is at home")]
#[path = "../../../examples/agent/src/lib.rs"]
mod notebook;

#[rustfmt::skip]
#[allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    clippy::needless_pass_by_value,
    clippy::unwrap_used,
    reason = "examples are read and compiled"
)]
mod examples;

const EXAMPLES: &str = include_str!("examples.rs");
const EXAMPLES_PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/guide/examples.rs");
const HEAD: &str = "//! Examples in Rust of the book, one a module. This file is generated:\n//! `A2A_HUB_BOOK=write cargo nextest run -p a2a-hub-sdk` writes it.\n";

const README: &str = include_str!("../../../README.md");
const REFERENCE: &str = include_str!("../../../docs/reference/sdk-rust.md");
const TUTORIAL: &str = include_str!("../../../docs/guide/first-agent-rust.md");
const TESTING: &str = include_str!("../../../docs/how-to/test-your-agent.md");
const TOGETHER: &str = include_str!("../../../docs/how-to/let-agents-work-together.md");
const MANIFEST: &str = include_str!("../../../docs/reference/manifest.md");

#[test]
#[expect(clippy::disallowed_methods, reason = "the developer says whether to write the file")]
fn book_examples_compile() {
    let expected = rendered();
    if std::env::var("A2A_HUB_BOOK").is_ok_and(|what| what == "write") {
        std::fs::write(EXAMPLES_PATH, &expected).expect("write the examples");
    } else {
        assert!(
            EXAMPLES == expected,
            "sdk/tests/guide/examples.rs is not what the book shows: run `A2A_HUB_BOOK=write cargo nextest run -p a2a-hub-sdk`"
        );
    }
}

#[test]
fn reference_examples_need_only_the_prelude() {
    for block in blocks(REFERENCE, "rust") {
        let imports = block.lines().filter(|line| line.starts_with("use a2a_hub_sdk"));
        let imports: Vec<_> = imports.collect();
        assert_eq!(imports, ["use a2a_hub_sdk::prelude::*;"], "{block}");
    }
}

/// Pages about the crate `a2a-hub`, which the tests of that crate cover.
const OF_OTHER_CRATES: [&str; 2] = ["how-to/embed.md", "reference/in-process.md"];

#[test]
fn each_page_with_rust_is_compiled() {
    let compiled = [REFERENCE, TUTORIAL, TESTING, TOGETHER];
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");
    let folders = ["explanation", "guide", "how-to", "reference"];
    let pages = folders.iter().flat_map(|folder| std::fs::read_dir(format!("{docs}/{folder}")));
    for page in pages.flatten().map(|entry| entry.expect("a page").path()) {
        let text = std::fs::read_to_string(&page).expect("text");
        let known = compiled.contains(&text.as_str())
            || OF_OTHER_CRATES.iter().any(|other| page.ends_with(other));
        assert!(
            known || !text.contains("```rust"),
            "add {} to the pages whose examples are compiled",
            page.display()
        );
    }
}

#[test]
fn manifest_example_matches_embedded_manifest() {
    let manifest = blocks(MANIFEST, "toml").next().expect("an example");
    assert_eq!(manifest, include_str!("../manifest.toml"));
}

/// The text of `examples.rs`.
fn rendered() -> String {
    let reference: Vec<_> = blocks(REFERENCE, "rust").collect();
    assert!(reference.len() >= 22, "{} examples; are they still marked as Rust?", reference.len());
    let [tutorial, update] = all(blocks(TUTORIAL, "rust"));
    let before = "            (\"forget\", \"\") =>";
    assert!(tutorial.contains(before), "where does the new arm belong?");
    let updated = tutorial.replace(before, &format!("{update}{before}"));
    let [together] = all(blocks(TOGETHER, "rust"));
    let [readme] = all(blocks(README, "rust"));
    let [tested] = all(blocks(TESTING, "rust"));
    let others = [
        ("readme", readme.to_owned()),
        ("tutorial", tutorial.to_owned()),
        ("tutorial_updated", updated),
        ("testing", tested.to_owned()),
        ("together", together.to_owned()),
    ];
    let reference = reference.into_iter().enumerate();
    let reference =
        reference.map(|(at, block)| (format!("reference_{}", at + 1), block.to_owned()));
    let others = others.map(|(name, block)| (name.to_owned(), block));
    let modules = reference.chain(others);
    modules.fold(HEAD.to_owned(), |text, (name, block)| {
        text + &format!("\nmod {name} {{\n{block}}}\n")
    })
}

/// Collects the blocks, and checks that their number is the expected one.
fn all<const N: usize>(blocks: impl Iterator<Item = &'static str>) -> [&'static str; N] {
    let blocks: Vec<_> = blocks.collect();
    let count = blocks.len();
    blocks.try_into().unwrap_or_else(|_| panic!("{count} blocks in place of {N}"))
}

/// A page's blocks of this language.
fn blocks(page: &'static str, language: &str) -> impl Iterator<Item = &'static str> {
    let fence = format!("```{language}\n");
    page.match_indices("```").filter_map(move |(at, _)| {
        let text = page.get(at..)?.strip_prefix(&fence)?;
        text.split_once("```").map(|(block, _)| block)
    })
}
