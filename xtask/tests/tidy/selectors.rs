//! Test selectors: `.config/nextest.toml` and `xtask/src/needs.rs` select tests by name, and a
//! renamed test would silently lose its settings. Each selector must match at least one test.

use crate::sources::{is_test, read, sources};
use regex::Regex;

#[test]
fn every_test_selector_matches() {
    let tests = names();
    assert!(tests.len() > 500, "{} tests are found", tests.len());
    let mut selectors = 0;
    for file in [".config/nextest.toml", "xtask/src/needs.rs"] {
        for selector in in_text(&read(file)) {
            let matching = tests.iter().filter(|name| selector.is_match(name)).count();
            assert!(matching > 0, "{file}: `{selector}` selects no test");
            selectors += 1;
        }
    }
    assert!(selectors > 15, "{selectors} selectors are found");
}

/// Arguments of `test(…)`: a regular expression between slashes, or a part of the name.
fn in_text(text: &str) -> Vec<Regex> {
    let whole = Regex::new(r"\btest\((?:/(?<regex>[^\n]*?)/|(?<part>[A-Za-z0-9_:]+))\)").unwrap();
    let selectors = whole.captures_iter(text).map(|found| match found.name("regex") {
        Some(regex) => Regex::new(regex.as_str()).unwrap(),
        None => Regex::new(&regex::escape(&found["part"])).unwrap(),
    });
    selectors.collect()
}

/// Names of all tests of test binaries, as nextest spells them: the modules of the file, and the
/// function.
fn names() -> Vec<String> {
    // Matches a function, or a line of `sdks.rs` from which a macro makes a test, such as
    // `python_0_3_on_rest: Py0 on "HTTP+JSON";`.
    let test = r#"(?m)^\s*(?:(?:async )?fn ([a-z0-9_]+)\(|([a-z0-9_]+): \w+ on ")"#;
    let function = Regex::new(test).unwrap();
    let mut names = Vec::new();
    for (path, text) in sources("").into_iter().filter(|(path, _)| is_test(path)) {
        // `host/cli/tests/e2e/adapters/claude.rs` is `adapters::claude` of the binary `e2e`.
        let Some((_, below)) = path.split_once("/tests/") else { continue };
        let module = below.split_once('/').map_or("", |(_, module)| module);
        let module = module.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::");
        let module = if module == "main" { String::new() } else { format!("{module}::") };
        for found in function.captures_iter(&text) {
            let name = found.get(1).or(found.get(2)).map_or("", |name| name.as_str());
            names.push(format!("{module}{name}"));
        }
    }
    names
}
