//! The client of remote hubs builds for macOS and Windows: its dependency tree and its sources.
//!
//! Only the standard library of Linux is installed where these tests run, so no compiler checks the
//! other systems. cargo resolves the tree for them, and `cargo xtask check` compiles the client as
//! for a system that is no Unix. `docs/decisions/0015-a-port-to-macos.md` has the reasons.

use crate::{
    linux::INTERFACES,
    sources::{is_test, read, root, sources},
};
use regex::Regex;
use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    process::Command,
};

/// Targets of the client, with crates that do not compile for them beside [`FORBIDDEN`].
const TARGETS: [(&str, &[&str]); 2] = [
    ("x86_64-pc-windows-msvc", &["rustix", "linux-raw-sys", "signal-hook-registry"]),
    ("aarch64-apple-darwin", &["linux-raw-sys"]),
];

/// Crates of the hub, by the begin of their names: they need Linux, or are large.
const FORBIDDEN: [&str; 19] = [
    "a2a-hub-agents",
    "a2a-hub-authoring",
    "a2a-hub-engine",
    "a2a-hub-process",
    "a2a-hub-rpc",
    "a2a-hub-sandbox",
    "a2a-hub-server",
    "a2a-hub-store",
    "a2a-hub-worktrees",
    "command-fds",
    "cranelift",
    "hyperlocal",
    "landlock",
    "libsqlite3-sys",
    "netlink",
    "nix",
    "rusqlite",
    "seccompiler",
    "wasmtime",
];

/// Interfaces that Unix has, and Windows does not. macOS has most of them.
const UNIX: &str = r"os::unix|os::fd|rustix|libc::|UnixStream|UnixListener|net::unix|signal::unix";

/// Attributes of items that only a build with the hub has, or only tests.
const WITH_HUB: [&str; 5] = [
    "#[cfg(feature = \"hub\")]",
    "#[cfg(feature = \"disk\")]",
    "#[cfg(all(test,",
    "#[cfg(any(test, feature = \"testing\"))]",
    "#[cfg(test)]",
];

/// Attributes of items that only a build for Unix has.
const WITH_UNIX: [&str; 2] = ["#[cfg(unix)]", "#[cfg(all(unix,"];

/// Modules of the client that name interfaces of Linux, and work without them.
const LINUX_NAMED: [&str; 3] = [
    // Paths that no confined program gets, in settings of the hub.
    "host/config/src/confined.rs",
    // Returns nothing without procfs.
    "host/config/src/environment/unix.rs",
    // No signal counts as ignored without procfs.
    "host/socket-client/src/signals/unix.rs",
];

/// Names of the crates that a build of the client for this target has, or of the whole program
/// without a target.
#[expect(clippy::disallowed_methods, reason = "cargo ends by itself")]
fn crates(target: Option<&str>) -> BTreeSet<String> {
    let mut tree = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    tree.current_dir(root()).args(["tree", "--locked", "--package", "a2a-hub-cli"]);
    tree.args(["--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    if let Some(target) = target {
        tree.args(["--no-default-features", "--target", target]);
    }
    let output = tree.output().unwrap();
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{why}");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect()
}

fn forbidden<'a>(found: &'a BTreeSet<String>, more: &[&str]) -> Vec<&'a String> {
    let is_of = |name: &String, begin: &str| {
        name.strip_prefix(begin).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let is_forbidden = |name: &&String| {
        *name == "a2a-hub" || FORBIDDEN.iter().chain(more).any(|begin| is_of(name, begin))
    };
    found.iter().filter(is_forbidden).collect()
}

#[test]
fn client_depends_on_no_crate_of_single_system() {
    for (target, more) in TARGETS {
        let found = crates(Some(target));
        assert!(found.contains("a2a-hub-socket-client"), "{target}: the tree is another one");
        let wrong = forbidden(&found, more);
        assert!(
            wrong.is_empty(),
            "{target}: the client depends on {wrong:?}; make them part of its feature `hub`, or of \
             `[target.'cfg(unix)'.dependencies]`"
        );
    }
    // Such crates are found.
    let whole = crates(None);
    for name in ["a2a-hub", "a2a-hub-process", "wasmtime", "rusqlite", "rustix"] {
        let wrong = forbidden(&whole, &["rustix"]);
        assert!(wrong.iter().any(|it| *it == name), "{name} is part of the whole program");
    }
}

/// Sources of the workspace's crates in the client, without tests, and without the modules and
/// items of a build with the hub.
fn client_sources() -> Vec<Source> {
    let mut found = Vec::new();
    for name in crates(Some(TARGETS[0].0)) {
        let Some(name) = name.strip_prefix("a2a-hub-") else { continue };
        let all = sources(&format!("host/{name}/src"));
        assert!(!all.is_empty(), "host/{name} has moved");
        let (hub, unix) = (gated_modules(&all, &WITH_HUB), gated_modules(&all, &WITH_UNIX));
        for (path, text) in all {
            if is_test(&path) || hub.iter().any(|module| is_in(&path, module)) {
                continue;
            }
            let needs_unix = unix.iter().any(|module| is_in(&path, module));
            found.push(Source { path, text: without_items(&text, &WITH_HUB), needs_unix });
        }
    }
    found
}

/// One file of the client.
struct Source {
    path: String,
    text: String,
    /// True if the module exists on Unix only.
    needs_unix: bool,
}

/// Paths of modules, without the ending, that their parents declare with one of these attributes.
fn gated_modules(all: &[(String, String)], attributes: &[&str]) -> Vec<String> {
    let declared = Regex::new(r"(?m)^\s*(?:pub(?:\([^)]*\))? )?mod (\w+);").unwrap();
    let names = |text: &str| -> BTreeSet<String> {
        declared.captures_iter(text).map(|it| it[1].to_owned()).collect()
    };
    let mut gated = Vec::new();
    for (path, text) in all {
        let remaining = names(&without_items(text, attributes));
        let folder = match path.rsplit_once('/').unwrap() {
            (folder, "lib.rs" | "main.rs" | "mod.rs") => folder.to_owned(),
            _ => path.strip_suffix(".rs").unwrap().to_owned(),
        };
        let gone = names(text).into_iter().filter(|name| !remaining.contains(name));
        gated.extend(gone.map(|name| format!("{folder}/{name}")));
    }
    gated
}

/// True if the file at `path` is this module, or one below it.
fn is_in(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// Code without comments, and without the items that have one of these attributes. An item ends as
/// `rustfmt` writes it: on its line, or with a closing bracket below its first character.
fn without_items(text: &str, attributes: &[&str]) -> String {
    let mut out = String::new();
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with("//")).peekable();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        if !attributes.iter().any(|attribute| code.starts_with(attribute)) {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        let indent = line.len() - code.len();
        // Further attributes, which may have several lines.
        while lines.peek().is_some_and(|next| next.trim_start().starts_with("#[")) {
            let attribute = lines.next().unwrap();
            if !attribute.ends_with(']') {
                lines.by_ref().find(|next| next.trim() == ")]").unwrap();
            }
        }
        let first = lines.next().unwrap_or_default();
        if first.ends_with([';', ',', '}']) {
            continue;
        }
        let is_end = |next: &&str| {
            let code = next.trim_start();
            next.len() - code.len() == indent
                && (code.starts_with(['}', ')', ']']) || code.ends_with(';'))
                && !code.ends_with('{')
        };
        lines.by_ref().find(is_end);
    }
    out
}

#[test]
fn client_calls_unix_in_its_modules_for_unix_only() {
    let unix = Regex::new(UNIX).unwrap();
    let all = client_sources();
    let wrong: Vec<_> = all
        .iter()
        .filter(|source| !source.needs_unix)
        .filter(|source| unix.is_match(&without_items(&source.text, &WITH_UNIX)))
        .map(|source| &source.path)
        .collect();
    assert!(
        wrong.is_empty(),
        "{wrong:?}: a client on Windows has no such call; ask `terminal`, `config` or \
         `socket-client` for it, which have modules for each system"
    );
    // Such calls are found.
    assert!(all.iter().any(|source| source.needs_unix && unix.is_match(&source.text)));
}

#[test]
fn client_works_without_interfaces_of_linux() {
    let linux = Regex::new(INTERFACES).unwrap();
    let all = client_sources();
    let found: BTreeSet<_> = all
        .iter()
        .filter(|source| linux.is_match(&without_items(&source.text, &[])))
        .map(|source| source.path.as_str())
        .collect();
    let listed = BTreeSet::from(LINUX_NAMED);
    let new: Vec<_> = found.difference(&listed).collect();
    assert!(new.is_empty(), "{new:?}: a client on macOS has no such call; see {}", file!());
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(gone.is_empty(), "{gone:?}: no longer name Linux; remove them from {}", file!());
}

#[test]
fn each_system_has_the_same_functions() {
    // What one of them lacks fails only in a build for the other system.
    let public = Regex::new(r"(?m)^\s*pub(?:\([^)]*\))? (?:async )?fn (\w+)").unwrap();
    let names = |path: &str| -> BTreeSet<String> {
        public.captures_iter(&read(path)).map(|it| it[1].to_owned()).collect()
    };
    let pairs = BTreeMap::from([
        ("host/terminal/src/system/unix.rs", "host/terminal/src/system/portable.rs"),
        (
            "host/config/src/data_dir/private_file/unix.rs",
            "host/config/src/data_dir/private_file/profile.rs",
        ),
    ]);
    for (unix, other) in pairs {
        assert_eq!(names(unix), names(other), "{unix} and {other}");
    }
}

#[test]
fn gated_items_end_with_their_brackets() {
    let text = "#[cfg(unix)]\nuse a::{\n    b,\n};\nuse c;\n#[cfg(unix)]\n#[expect(\n    x,\n)]\nfn f(\n    a: u8,\n) -> u8 {\n    {\n    }\n}\nfn g() {\n    #[cfg(all(unix, x))]\n    if a {\n        b;\n    }\n    #[cfg(unix)]\n    let c = 1;\n    d\n}\n// os::unix\n";
    assert_eq!(without_items(text, &WITH_UNIX), "use c;\nfn g() {\n    d\n}\n");
    let all = [
        ("host/x/src/lib.rs".to_owned(), "#[cfg(unix)]\nmod a;\nmod b;\n".to_owned()),
        ("host/x/src/b.rs".to_owned(), "#[cfg(unix)]\npub(crate) mod c;\n".to_owned()),
    ];
    assert_eq!(gated_modules(&all, &WITH_UNIX), ["host/x/src/a", "host/x/src/b/c"]);
    assert!(is_in("host/x/src/a.rs", "host/x/src/a") && is_in("host/x/src/a/d.rs", "host/x/src/a"));
    assert!(!is_in("host/x/src/ab.rs", "host/x/src/a"));
}
