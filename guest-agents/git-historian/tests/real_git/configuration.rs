//! Tests that a user's git configuration changes no answer.

use crate::repository::Repo;

/// Settings that change what git shows, some of them to nonsense.
const SETTINGS: [(&str, &str); 41] = [
    ("blame.ignoreRevsFile", "/none"),
    ("blame.blankBoundary", "true"),
    ("blame.date", "relative"),
    ("blame.markIgnoredLines", "true"),
    ("blame.showEmail", "true"),
    ("blame.showRoot", "true"),
    ("color.ui", "always"),
    ("color.grep", "always"),
    ("column.ui", "always"),
    ("core.abbrev", "4"),
    ("core.attributesFile", "ATTRIBUTES"),
    ("core.pager", "false"),
    ("core.quotePath", "true"),
    ("diff.algorithm", "patience"),
    ("diff.external", "false"),
    ("diff.ignoreSubmodules", "all"),
    ("diff.interHunkContext", "9"),
    ("diff.mnemonicPrefix", "true"),
    ("diff.noprefix", "true"),
    ("diff.orderFile", "/none"),
    ("diff.relative", "true"),
    ("diff.renameLimit", "1"),
    ("diff.renames", "false"),
    ("diff.statGraphWidth", "1"),
    ("diff.submodule", "log"),
    ("format.pretty", "oneline"),
    ("grep.column", "true"),
    ("grep.fullName", "false"),
    ("grep.lineNumber", "false"),
    ("grep.patternType", "perl"),
    ("i18n.commitEncoding", "ISO-8859-1"),
    ("i18n.logOutputEncoding", "ISO-8859-1"),
    ("log.abbrevCommit", "true"),
    ("log.date", "relative"),
    ("log.decorate", "full"),
    ("log.diffMerges", "off"),
    ("log.follow", "true"),
    ("log.mailmap", "false"),
    ("log.showRoot", "false"),
    ("log.showSignature", "true"),
    ("mailmap.file", "MAILMAP"),
];

const QUESTIONS: [&str; 8] = [
    "what changed since 2025-01-01?",
    "who knows src/x.rs best?",
    "who works on this repository?",
    "why is src/x.rs:5 here?",
    "when was \"fn frobnicate\" introduced?",
    "which files change most?",
    "history of src/x.rs",
    "summarise release v1.1",
];

/// Answers to all questions, asked in a folder of the repository.
fn answers(repo: &Repo) -> Vec<String> {
    QUESTIONS.iter().map(|question| repo.ask_in("docs", question).text()).collect()
}

fn sample() -> Repo {
    let repo = Repo::sample();
    repo.write("docs/Größe.txt", "alpha\n").commit("Zoë", "2026-11-19", "docs: Größe geändert");
    repo.write(".git/attributes", "*.rs -diff\n")
        .write(".git/map", "Eve <zoe@x> <Ada@example.org>\n");
    repo
}

#[test]
fn configuration_does_not_change_answers() {
    let repo = sample();
    let before = answers(&repo);
    assert!(before[0].contains("docs: Größe geändert — Zoë"), "{}", before[0]);
    // One after the other stays set, and each may hide what another one does, so all are tried from
    // both ends.
    for settings in [SETTINGS.to_vec(), SETTINGS.into_iter().rev().collect()] {
        for (name, value) in &settings {
            let file = |name: &str| repo.path().join(".git").join(name).display().to_string();
            let value = match *value {
                "ATTRIBUTES" => file("attributes"),
                "MAILMAP" => file("map"),
                value => value.to_owned(),
            };
            repo.run(&["config", name, &value]);
        }
        for (question, (now, before)) in QUESTIONS.iter().zip(answers(&repo).iter().zip(&before)) {
            assert_eq!(now, before, "{question}");
        }
        for (name, _) in &settings {
            repo.run(&["config", "--unset-all", name]);
        }
    }
}

#[test]
fn each_setting_alone_changes_nothing() {
    let repo = sample();
    let before = answers(&repo);
    for (name, value) in [
        ("log.showRoot", "false"),
        ("diff.relative", "true"),
        ("diff.orderFile", "/none"),
        ("diff.renames", "false"),
        ("log.follow", "true"),
        ("blame.ignoreRevsFile", "/none"),
        ("grep.column", "true"),
        ("i18n.logOutputEncoding", "ISO-8859-1"),
        ("i18n.commitEncoding", "ISO-8859-1"),
    ] {
        repo.run(&["config", name, value]);
        assert_eq!(answers(&repo), before, "{name}");
        repo.run(&["config", "--unset-all", name]);
    }
}

/// The search for an earlier name of a file begins in the only commit.
#[test]
fn single_commit_is_followed_despite_settings() {
    let repo = Repo::new();
    repo.write("sub/a.txt", "alpha\n").commit("Zoë", "2026-11-18", "begin");
    for (name, value) in [("x.y", "1"), ("diff.orderFile", "/none"), ("diff.relative", "true")] {
        repo.run(&["config", name, value]);
        repo.ask_in("sub", "who knows sub/a.txt best?").tells(&["| Zoë | 1 (100 %) | 1 |"]);
        repo.run(&["config", "--unset-all", name]);
    }
}

/// Messages in another encoding, and in UTF-8 that the commit calls another encoding.
#[test]
fn commit_encodings_are_decoded() {
    let repo = Repo::new();
    repo.run(&["config", "i18n.commitEncoding", "ISO-8859-1"]);
    repo.write("a.txt", "a\n").commit("Zoë", "2026-11-18", "Größe geändert");
    repo.write("a.txt", "a\nb\n").write("message", "");
    std::fs::write(repo.path().join("message"), b"docs: stra\xdfe\n").unwrap();
    repo.commit_file("Bob", "2026-11-19", "message");
    let answer = repo.ask("what changed last week?");
    answer.tells(&["Größe geändert — Zoë", "straße — Bob"]);
    repo.ask("why is a.txt:1 here?").tells(&["Größe geändert", "Zoë"]);
    repo.ask("who knows a.txt best?").tells(&["| Zoë | 1"]);
}

/// A linked worktree works if git sees the repository, and the answer names it otherwise.
#[test]
fn linked_worktree_needs_its_repository() {
    let repo = Repo::sample();
    let linked = Repo::linked_to(&repo);
    linked.ask_in("w", "what changed last week?").tells(&["fix: frobnicate no more"]);
    let path = repo.path().canonicalize().unwrap();
    drop(repo);
    linked.ask_in("w", "what changed last week?").fails(
        "not-a-repository",
        &format!("is at {}/.git, and git cannot see it", path.display()),
    );
}
