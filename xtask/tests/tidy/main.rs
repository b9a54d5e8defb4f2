//! Rules for the code of this repository that the compiler does not check.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod book;
mod client;
mod crates;
mod identifiers;
mod json_index;
mod linux;
mod manifests;
mod ratchets;
mod selectors;
mod sources;

use crates::{BEHIND_THE_HUB, CRATES, FORBIDDEN, LAYERS, UNUSED_BELOW};
use sources::{files, is_test, lines_of_code, read, root, sources, without_tests};
use std::{collections::BTreeSet, fs, path::Path};

/// Folders that implement HTTP: the server and the client.
const HTTP: &[&str] = &["host/server/src", "host/client/src"];

/// Fragments of code, each with the only folders and files of the host that may contain it.
const ONLY: &[(&str, &[&str])] = &[
    ("axum::", &["host/server/src"]),
    ("hyper::", HTTP),
    ("hyper_util::", HTTP),
    ("tonic::", &["host/server/src"]),
    ("prost_reflect::", &["host/protocol/src/codec/protobuf.rs"]),
    ("opentelemetry", &["host/a2a-hub/src/otlp.rs"]),
    ("rusqlite::", &["host/store/src/sqlite.rs", "host/store/src/sqlite"]),
    ("wasmtime::", &["host/sandbox/src"]),
    ("wasmtime_wasi::", &["host/sandbox/src"]),
    ("bindgen!", &["host/sandbox/src/store/bindings.rs"]),
    ("env::var", &["host/config/src/environment.rs", "host/config/src/environment"]),
    ("io::stdout", &["host/terminal/src/console.rs", "host/terminal/src/system"]),
    (
        "io::stderr",
        &[
            "host/terminal/src/console.rs",
            "host/terminal/src/system",
            "host/cli/src/log_files/mod.rs",
        ],
    ),
    ("std::process::Command", &["host/process/src"]),
    ("tokio::process::Command", &["host/process/src"]),
    (
        "unsafe {",
        &[
            "host/process/src/mapped_file.rs",
            "host/process/src/proc.rs",
            "host/process/src/unused_memory.rs",
            "host/sandbox/src/compile/bundled_code.rs",
            "host/sandbox/src/compile/code_mmap.rs",
            "host/sandbox/src/compile/compiled_code.rs",
        ],
    ),
    // A panic there is an error whose text contains the panic's message: `run_blocking` keeps that
    // text out of answers to clients.
    (
        "spawn_blocking",
        &[
            "host/cli/src",
            "host/client/src/outbound.rs",
            "host/process/src",
            "host/store/src/sqlite/db/readers.rs",
            "host/tls/src/server.rs",
        ],
    ),
    ("unsafe fn", &["host/process/src/mapped_file.rs"]),
    ("unsafe impl", &[]),
    ("unsafe extern", &[]),
    ("#[unsafe(", &[]),
];

/// Files that may print a value in debug form (`{:?}`): those that quote text from outside, and a
/// suite of tests. Texts for people contain no `Some(..)` and no `0ns`; `core/text/duration.rs`
/// prints durations.
const DEBUG_FORM: (&str, &[&str]) = (
    ":?}",
    &[
        "host/client/src/card.rs",
        "host/client/src/card_changes.rs",
        "host/client/src/keys.rs",
        "host/client/src/signed_card.rs",
        "host/core/src/grant.rs",
        "host/core/src/grant/ask.rs",
        "host/core/src/task/idempotency.rs",
        "host/process/src/launch.rs",
        "host/store/src/contract.rs",
    ],
);

/// Paths that exist on one machine only. Each is in two pieces, because the rule covers this file
/// as well.
const ONE_MACHINE: &[&str] = &[concat!("/wor", "k/"), concat!("/roo", "t/")];

/// Hosts of package registries, which belong in each machine's own settings. In two pieces, as
/// above.
const REGISTRY_HOSTS: &[&str] = &[
    concat!("crates", ".io"),
    concat!("static.rust-", "lang.org"),
    concat!("npmjs", ".org"),
    concat!("npmjs", ".com"),
    concat!("pypi", ".org"),
    concat!("python", "hosted.org"),
    concat!("deb.", "debian.org"),
    concat!("node", "source.com"),
    concat!("proxy.", "golang.org"),
];

/// Vague names for modules.
const VAGUE: &[&str] = &["util", "utils", "helper", "helpers", "common", "misc", "manager", "imp"];

/// Maximum number of lines in a file: a longer one has a second subject. Tests at the end of a file
/// do not count.
const MAX_LINES: usize = 600;

/// Maximum number of lines of code in a crate, for readers and for compile times. Blank lines,
/// comments and tests do not count.
const MAX_CODE: usize = 18_000;

/// Folder of the tests that start the program.
const END_TO_END: &str = "host/cli/tests/e2e/";

/// Of a hundred lines of tests, fewer than these may start the program.
const MAX_END_TO_END: usize = 15;

/// Page that lists the rules of A2A, each with the tests that prove it.
const CONFORMANCE: &str = "docs/reference/conformance.md";

/// Tests that drive the hub with the official SDKs. A rule is proved there by a step of the test.
const DRIVERS: &str = "e2e::sdks";

#[test]
fn modules_use_only_lower_layers() {
    for (krate, layers) in LAYERS {
        let rank = |module: &str| layers.iter().position(|layer| *layer == module);
        for (module, path, text) in modules(krate) {
            let here = rank(&module).unwrap_or_else(|| panic!("{path}: give `{module}` a layer"));
            for there in uses(&text) {
                assert!(
                    rank(&there).is_none_or(|there| there <= here),
                    "{path}: `{module}` may not use `{there}`, which is above it"
                );
            }
        }
    }
}

/// The hub carries out every operation in `Hub::handle`: a transport that bypassed it would answer
/// differently.
#[test]
fn doors_reach_the_hub_by_its_one_entry() {
    for (path, text) in sources("host/server/src") {
        for behind in BEHIND_THE_HUB {
            let reached = format!("a2a_hub_engine::{behind}");
            assert!(
                !without_tests(&text).contains(&reached),
                "{path}: ask `Hub` instead of `{reached}`"
            );
        }
    }
}

#[test]
fn crates_depend_in_one_direction() {
    for (rank, krate) in CRATES.iter().enumerate() {
        for name in dependencies(&format!("host/{krate}")) {
            let folder = name.strip_prefix("a2a-hub-").unwrap_or(&name);
            let there = CRATES.iter().position(|it| *it == folder);
            assert!(
                there.is_none_or(|there| there < rank),
                "host/{krate} may not depend on {name}, which is above it"
            );
        }
    }
    let folders: BTreeSet<String> = fs::read_dir(root().join("host"))
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(
        folders,
        CRATES.iter().map(|name| (*name).to_owned()).collect(),
        "give each crate its rank"
    );
}

#[test]
fn crates_stay_free_of_what_they_were_split_from() {
    for (krate, forbidden) in FORBIDDEN {
        for name in dependencies(krate) {
            assert!(!forbidden.contains(&name.as_str()), "{krate} may not depend on {name}");
        }
    }
    for (folder, unused) in UNUSED_BELOW {
        let sources = sources(folder);
        assert!(!sources.is_empty(), "{folder} has no sources");
        for (path, text) in sources {
            let text = without_tests(&text);
            for word in *unused {
                assert!(!text.contains(word), "{path} may not use `{word}`");
            }
        }
    }
    for agent in guest_agents() {
        for name in dependencies(&format!("guest-agents/{agent}")) {
            let ours = name.starts_with("a2a-hub");
            let is_of_guests = ["a2a-hub-sdk", "a2a-hub-coordination"].contains(&name.as_str());
            assert!(!ours || is_of_guests, "{agent} may not depend on {name}");
        }
    }
}

#[test]
fn each_kind_of_knowledge_has_one_place() {
    for (path, text) in sources("host") {
        if !path.contains("/src/") || is_test(&path) {
            continue; // build scripts and tests are not the host
        }
        let text = without_tests(&text);
        for (word, places) in ONLY.iter().chain([&DEBUG_FORM]) {
            let here = places.iter().any(|place| Path::new(&path).starts_with(place));
            assert!(here || !text.contains(word), "{path}: only {places:?} may say `{word}`");
        }
    }
}

/// Each of these programs has one session for a conversation. Two tasks at once would both write to
/// that session.
#[test]
fn agents_that_drive_a_vendors_program_do_one_task_of_a_conversation_at_a_time() {
    let read = |agent: &str, file: &str| {
        fs::read_to_string(root().join("guest-agents").join(agent).join(file)).unwrap()
    };
    let drives = |agent: &String| read(agent, "src/lib.rs").contains("a2a_hub_sdk::cli");
    let driving: Vec<_> = guest_agents().into_iter().filter(drives).collect();
    assert_eq!(driving.len(), 5, "{driving:?}");
    for agent in driving {
        let manifest = read(&agent, "manifest.toml");
        assert!(manifest.contains("\none_per_context = true\n"), "{agent}: its manifest says so");
    }
}

#[test]
fn files_say_what_they_are() {
    for (path, text) in sources("") {
        assert!(text.starts_with("//! "), "{path}: begin with a `//!` sentence: what is it for?");
        let lines = without_tests(&text).lines().count();
        assert!(lines <= MAX_LINES, "{path}: {lines} lines; split it by subject");
        for name in Path::new(&path).with_extension("").iter() {
            let name = name.to_str().unwrap();
            assert!(!VAGUE.contains(&name), "{path}: name `{name}` after what it does");
        }
    }
}

#[test]
fn no_crate_of_the_host_has_grown_too_large() {
    for krate in CRATES {
        let lines: usize = sources(&format!("host/{krate}"))
            .iter()
            .filter(|(path, _)| !is_test(path))
            .map(|(_, text)| lines_of_code(without_tests(text)))
            .sum();
        let why = "split off what has a purpose of its own";
        assert!(lines <= MAX_CODE, "host/{krate}: {lines} lines of code; {why}");
    }
}

/// End-to-end tests take seconds and say least about the place of a fault. Most tests belong next
/// to the decision, or use an in-process hub (`docs/decisions/0014-three-levels-of-tests.md`).
#[test]
fn a_small_part_of_the_tests_is_end_to_end() {
    let (mut all, mut end_to_end) = (0, 0);
    for (path, text) in sources("") {
        let lines = match is_test(&path) {
            true => text.lines().count(),
            false => text[without_tests(&text).len()..].lines().count(),
        };
        all += lines;
        end_to_end += if path.starts_with(END_TO_END) { lines } else { 0 };
    }
    assert!(end_to_end > 1_000, "{end_to_end} lines are found in {END_TO_END}");
    let percent = end_to_end * 100 / all;
    assert!(
        percent < MAX_END_TO_END,
        "{end_to_end} of {all} lines of tests are in {END_TO_END}: {percent} %; see CONTRIBUTING.md for where else one may belong"
    );
}

#[test]
fn nothing_belongs_to_one_machine() {
    for (path, text) in files("") {
        for word in ONE_MACHINE {
            assert!(!says_path(&text, word), "{path}: `{word}` is a folder of one machine");
        }
        for host in REGISTRY_HOSTS {
            assert!(!text.contains(host), "{path}: leave `{host}` to each machine's settings");
        }
    }
}

#[test]
fn guest_agents_are_named_after_their_folders() {
    for agent in guest_agents() {
        let manifest = read(&format!("guest-agents/{agent}/Cargo.toml"));
        let name = format!("name = \"{agent}\"");
        assert!(manifest.lines().any(|line| line == name), "guest-agents/{agent}: say `{name}`");
    }
}

#[test]
fn each_wit_file_is_one_interface_of_its_name() {
    for (path, text) in files("wit") {
        let stem = Path::new(&path).file_stem().unwrap().to_str().unwrap();
        let expected = if stem == "world" { vec![] } else { vec![stem] };
        let interfaces: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("interface ")?.split([' ', '{']).next())
            .collect();
        assert_eq!(interfaces, expected, "{path}: one interface a file, of the file's name");
    }
}

#[test]
fn architecture_doc_names_every_module_that_has_a_layer() {
    let doc = read("docs/ARCHITECTURE.md");
    for module in LAYERS.iter().flat_map(|(krate, _)| modules(krate)).map(|(module, ..)| module) {
        assert!(doc.contains(&format!("`{module}`")), "docs/ARCHITECTURE.md: add `{module}`");
    }
}

#[test]
fn every_invariant_names_a_test_that_exists() {
    let functions = functions();
    let invariants = invariants(&read("docs/ARCHITECTURE.md"));
    assert!(!invariants.is_empty(), "docs/ARCHITECTURE.md: list the invariants");
    for (invariant, tests) in invariants {
        assert!(!tests.is_empty(), "say who holds it, `(test: ...)`: {invariant}");
        for test in tests {
            let name = test.rsplit("::").next().unwrap();
            assert!(functions.contains(name), "no test `{test}` holds: {invariant}");
        }
    }
}

#[test]
fn every_rule_of_a2a_names_a_test_that_exists() {
    let functions = functions();
    let drivers = read("host/cli/tests/e2e/sdks.rs");
    let rules = rules(&read(CONFORMANCE));
    assert!(!rules.is_empty(), "{CONFORMANCE}: list the rules");
    for Rule { row, tests, steps } in rules {
        assert!(!tests.is_empty(), "say which test holds it: {row}");
        for test in tests.iter().filter(|test| *test != DRIVERS) {
            let name = test.rsplit("::").next().unwrap();
            assert!(functions.contains(name), "no test `{test}` holds: {row}");
        }
        assert!(steps.is_empty() || tests.iter().any(|test| test == DRIVERS), "whose steps: {row}");
        for step in steps {
            assert!(drivers.contains(&format!("\"{step}\"")), "no step `{step}` holds: {row}");
        }
    }
}

#[test]
fn these_rules_read_what_they_should() {
    let text = "use crate::{a::{b, c}, d};\nuse crate::e;\n";
    assert_eq!(uses(text), ["a", "d", "e"].map(str::to_owned).into());

    let text = "//! What.\n\nfn a() {\n    // why\n    b(); // so\n}\n\n#[cfg(test)]\nmod tests {\n    fn c() {}\n}\n";
    assert_eq!(lines_of_code(without_tests(text)), 3);
    let tests = ["host/a/tests/b.rs", "host/a/src/b/tests.rs", "host/a/src/b/tests/c.rs"];
    assert!(tests.iter().all(|path| is_test(path)) && !is_test("host/a/src/testing.rs"));

    let home = ONE_MACHINE[1];
    assert!(says_path(&format!("see {home}notes"), home));
    assert!(!says_path(&format!("see ~{home}notes and x{home}"), home));

    let doc = "# Map\n1. not this\n## Invariants\n1. One\n   line. (test: `a::b`) More.\n   (tests: `e`)\n2. Two. (tests: `c`, `d`)\n3. None.\n## Next\n1. no\n";
    let tests: Vec<Vec<String>> = invariants(doc).into_iter().map(|(_, tests)| tests).collect();
    assert_eq!(tests, [vec!["a::b", "e"], vec!["c", "d"], vec![]]);

    let doc = "| section | must | tests |\n| --: | --- | --- |\n| 3.1 | do (`x`) | `a::b`, `e2e::sdks` (push, cancel) |\n| 3.2 | be | |\n";
    let told = rules(doc).into_iter().map(|Rule { tests, steps, .. }| (tests, steps));
    let told: Vec<_> = told.map(|(tests, steps)| (tests.join(" "), steps.join(" "))).collect();
    assert_eq!(
        told,
        [("a::b e2e::sdks", "push cancel"), ("", "")].map(|(a, b)| (a.to_owned(), b.to_owned()))
    );
}

/// Names of all functions without type parameters, which include all tests.
fn functions() -> BTreeSet<String> {
    let named = |line: &str| {
        let (_, rest) = line.split_once("fn ")?;
        Some(rest.split_once('(')?.0.to_owned())
    };
    sources("").iter().flat_map(|(_, text)| text.lines().filter_map(named)).collect()
}

/// The sources of a crate of the host below its root, each with its top-level module, its path and
/// its text.
fn modules(krate: &str) -> Vec<(String, String, String)> {
    let src = format!("host/{krate}/src/");
    let module = |(path, text): (String, String)| {
        let module = path.strip_prefix(&src)?.split('/').next()?.trim_end_matches(".rs").to_owned();
        (module != "lib").then_some((module, path, text))
    };
    sources(&src).into_iter().filter_map(module).collect()
}

/// The sibling modules that `text` names as `crate::a` or `crate::{a::b, c}`.
fn uses(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for tail in text.split("crate::").skip(1) {
        let names = match tail.strip_prefix('{') {
            Some(group) => top_level(group),
            None => vec![tail],
        };
        for name in names {
            let name = name.trim_start();
            let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
            found.insert(name[..end].to_owned());
        }
    }
    found
}

/// Splits `a::{b, c}, d}...` at the commas that are not inside inner braces.
fn top_level(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (i, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                parts.push(&group[start..i]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&group[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    parts
}

/// Items under the heading "Invariants", each with the tests in it: `(test: `path::name`)`.
fn invariants(doc: &str) -> Vec<(String, Vec<String>)> {
    let is_heading = |line: &&str| line.starts_with('#');
    let is_item =
        |line: &str| line.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    let section = doc
        .lines()
        .skip_while(|line| !(is_heading(line) && line.contains("Invariants")))
        .skip(1)
        .take_while(|line| !is_heading(line));
    let mut items: Vec<String> = Vec::new();
    for line in section {
        if is_item(line) {
            items.push(line.to_owned());
        } else if let Some(item) = items.last_mut() {
            item.push(' ');
            item.push_str(line.trim());
        }
    }
    let group = |said: &str| -> Vec<String> {
        let names = said.split_once(')').map_or(said, |(names, _)| names);
        names.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let tests = |item: &str| item.split("(test").skip(1).flat_map(group).collect();
    items.into_iter().map(|item| (item.clone(), tests(&item))).collect()
}

/// A rule of A2A, from a row of a table.
struct Rule {
    row: String,
    /// Backticked names in the last cell: the tests that prove the rule.
    tests: Vec<String>,
    /// Names in brackets in the last cell: the steps that prove the rule.
    steps: Vec<String>,
}

/// The rows of all tables whose first cell is the number of a section.
fn rules(doc: &str) -> Vec<Rule> {
    let rows = doc.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix('|'));
    let rows = rows.filter(|row| row.starts_with(|c: char| c.is_ascii_digit()));
    let rule = |row: &str| {
        let held = row.rsplit('|').next().unwrap();
        let tests = held.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let steps = held.split_once('(').and_then(|(_, steps)| Some(steps.split_once(')')?.0));
        let steps = steps.into_iter().flat_map(|steps| steps.split(", ")).map(str::to_owned);
        Rule { row: row.to_owned(), tests, steps: steps.collect() }
    };
    rows.map(rule).collect()
}

/// True if `text` contains the absolute path `word`, and not only as a part of a longer path.
fn says_path(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !"~._-)}>".contains(c))
    })
}

/// The dependencies of the crate at `krate`, without those of its tests.
fn dependencies(krate: &str) -> Vec<String> {
    let manifest = read(&format!("{krate}/Cargo.toml"));
    let section = manifest.split("\n[dependencies]\n").nth(1).unwrap_or_default();
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| Some(line.split(['.', ' ', '=']).next()?.to_owned())).collect()
}

/// The folders under `guest-agents/`.
fn guest_agents() -> Vec<String> {
    let entries = fs::read_dir(root().join("guest-agents")).unwrap().map(Result::unwrap);
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}
