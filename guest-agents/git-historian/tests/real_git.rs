//! Tests of questions about a small repository, answered by the real git.

#![expect(clippy::unwrap_used, reason = "a test may panic, its fixtures too")]

#[path = "real_git/configuration.rs"]
mod configuration;
#[path = "real_git/repository.rs"]
mod repository;

use a2a_hub_sdk::{Event, TaskState};
use repository::{Repo, git};
use tempfile::TempDir;

#[test]
fn changes_are_limited_by_time_range_folder() {
    let repo = Repo::sample();
    let answer = repo.ask("what changed last week?");
    answer.tells(&[
        "## What changed since 2026-11-14",
        "1 commit by 1 person changed 1 file (+0 −1 lines).",
        "### Fixes (1)",
    ]);
    assert_eq!(answer.host.said(), ["reading 1 commit …"]);
    assert_eq!(
        answer.outcome.text(),
        "1 commit by 1 person changed 1 file (+0 −1 lines). Most of it: Fixes (1)."
    );
    let answer = repo.ask("what changed since v1.0 in src/?");
    answer
        .tells(&["since `v1.0` in `src`", "3 commits by 2 people", "| `src/x.rs` | 3 | 2 |"])
        .keeps_from(&["use it.md"]);
    repo.ask("what changed between v1.0 and 1.1.0?").tells(&["refactor: call it x", "feat: parse"]);
    repo.ask("what changed since the last release?")
        .tells(&["since `v1.1`", "fix: frobnicate no more"]);
    let nothing = "No commits since 2026-11-20 in `docs`. The newest one is";
    repo.ask("what changed since yesterday in docs")
        .tells(&[nothing, "feat: parse — Bob, 2026-04-01"]);
}

#[test]
fn release_lists_commits_since_previous_one() {
    let repo = Repo::sample();
    let answer = repo.ask("summarise release v1.1");
    answer.tells(&[
        "## Release `v1.1`",
        "after `v1.0` of 2026-01-05",
        "### Features (1)",
        "### Refactoring (1)",
        "Ada (1)",
        "Bob (1)",
    ]);
    answer.keeps_from(&["feat: begin", "frobnicate no more"]);
    repo.ask("summarise the first release 1.0").tells(&["the first release I know", "feat: begin"]);
    repo.ask("summarise release v1.3").fails("unknown-revision", "did you mean `v1.0` or `v1.1`?");
}

#[test]
fn people_and_experts_are_ranked() {
    let repo = Repo::sample();
    let answer = repo.ask("who knows src/x.rs best?");
    answer.tells(&[
        "## Who knows `src/x.rs`",
        "| Ada | 4 (80 %) | 2 | 2026-03-01 |",
        "| Bob | 1 (20 %) | 2 | 2026-11-18 |",
    ]);
    assert!(answer.outcome.text().contains("and then **Bob**"), "{}", answer.outcome.text());
    repo.ask("who works on this repository?").tells(&[
        "2 people made 4 commits: Ada (2), Bob (2). 1 person was active in the last 90 days.",
    ]);
    repo.ask_in("docs", "who knows x best?").tells(&["| Ada | 4 (80 %) |"]);
}

#[test]
fn origin_of_text_and_line_is_found() {
    let repo = Repo::sample();
    let answer = repo.ask("when was \"fn frobnicate\" introduced?");
    answer.tells(&[
        "**feat: begin**",
        "> Frobnicating was asked for by everyone.",
        "First in `v1.0`",
        "Added or removed again by",
        "fix: frobnicate no more",
        "not in the newest commit",
    ]);
    repo.ask("when was begin introduced?").tells(&["- `src/x.rs:1`"]);
    repo.ask("why is src/x.rs:5 here?").tells(&[
        "`fn parse() {}`",
        "**feat: parse**",
        "First in `v1.1`",
    ]);
    repo.ask_in("src", "who wrote line 5 of x.rs?").tells(&["**feat: parse**"]);
    repo.ask("why is src/x.rs:99 here?").fails("no-such-line", "`src/x.rs` has no line 99");
    repo.ask("when was \"nowhere\" added?").tells(&["No commit added or removed `nowhere`."]);
}

#[test]
fn history_follows_renames_and_deletions() {
    let repo = Repo::sample();
    let answer = repo.ask("history of src/x.rs");
    answer.tells(&[
        "4 commits by 2 people",
        "refactor: call it x — Ada, 2026-03-01 (was `src/old.rs`)",
        "feat: begin",
    ]);
    repo.ask("history of src/old.rs").tells(&["removed or renamed by"]);
    repo.ask("history of src/y.rs").fails("unknown-path", "did you mean `src/x.rs`?");
    repo.ask("history of `docs/use it.md`").tells(&["feat: parse"]);
}

#[test]
fn hot_spots_commit_and_help_are_answered() {
    let repo = Repo::sample();
    repo.ask("which files change most?").tells(&["| `src/x.rs` | 4 | 2 |"]).keeps_from(&["old.rs"]);
    repo.ask("show commit HEAD~1").tells(&[
        "**feat: parse**",
        "First in `v1.1`",
        "- `docs/use it.md` (+1 −0)",
    ]);
    repo.ask("show commit deadbeef").fails("unknown-revision", "did you mean `v1.1` or `v1.0`?");
    repo.ask("hello").tells(&["who knows src/x.rs best?", "summarise release v1.1"]);
}

#[test]
fn counts_are_answered_with_numbers() {
    let repo = Repo::sample();
    let summary = |question: &str| {
        let answer = repo.ask(question);
        answer.text();
        answer.outcome.text()
    };
    assert_eq!(summary("how many commits are there?"), "4 commits.");
    assert_eq!(summary("how many commits since v1.1?"), "1 commit since `v1.1`.");
    assert_eq!(summary("how many commits did Bob make in docs?"), "1 commit in `docs` by Bob.");
    assert_eq!(summary("how many files are in src?"), "1 file in `src`.");
    assert_eq!(
        summary("how many releases are there?"),
        "2 tags; the newest is `v1.1` of 2026-04-01."
    );
    assert!(summary("how many people work here?").starts_with("2 people made 4 commits"));
    let first = summary("how old is this repository?");
    assert!(first.starts_with("The first of 4 commits is ") && first.contains("feat: begin"));
    let nothing = summary("how many commits since yesterday?");
    assert!(nothing.starts_with("No commits since 2026-11-20. The newest one is"), "{nothing}");
    repo.run(&["checkout", "-q", "-b", "side", "HEAD~1"]).commit("Eve", "2026-11-19", "side");
    let name = ["-c", "user.name=Eve", "-c", "user.email=e@example.org"];
    repo.run(&["checkout", "-q", "main"])
        .run(&[&name[..], &["merge", "-q", "--no-ff", "-m", "merge side", "side"]].concat());
    assert_eq!(repo.ask("how many commits?").outcome.text(), "6 commits (1 is a merge).");
}

#[test]
fn changes_of_one_author_leave_out_others() {
    let repo = Repo::sample();
    repo.ask("what did Ada do this year?")
        .tells(&["since 2026-01-01 by Ada", "2 commits by 1 person"])
        .keeps_from(&["Bob"]);
    let nothing = "by ada. The newest one is";
    repo.ask("what did ada do last week?").tells(&[nothing, "refactor: call it x — Ada"]);
    repo.ask("what did Zoe do?").fails("unknown-person", "history has `Ada`, `Bob`");
    repo.ask("what did I do last week?").fails("unknown-person", "I know no author `I`");
}

#[test]
fn unknown_question_is_rejected_with_examples() {
    let repo = Repo::sample();
    for question in ["write me a poem", "how many bugs are open?", "good morning, what a nice day"]
    {
        let outcome = repo.ask(question).outcome;
        assert_eq!(outcome.state(), Some(TaskState::Rejected), "{question}: {}", outcome.text());
        assert!(outcome.text().contains("`help` lists more"), "{}", outcome.text());
    }
}

#[test]
fn merge_is_compared_with_first_parent() {
    let repo = Repo::sample();
    repo.run(&["checkout", "-q", "-b", "side", "HEAD~1"]).write("side.rs", "x\n").commit(
        "Eve",
        "2026-11-19",
        "feat: side",
    );
    let name = ["-c", "user.name=Eve", "-c", "user.email=e@example.org"];
    repo.run(&["checkout", "-q", "main"])
        .run(&[&name[..], &["merge", "-q", "--no-ff", "-m", "merge side", "side"]].concat());
    repo.ask("show commit HEAD")
        .tells(&[", a merge.", "### Files (1)", "- `side.rs` (+1 −0)"])
        .keeps_from(&["src/x.rs"]);
}

#[test]
fn sections_are_streamed_before_whole_answer() {
    let answer = Repo::sample().ask("summarise release v1.1");
    let pieces = answer.host.events().into_iter().filter_map(|event| match event {
        Event::Artifact(update) => {
            Some((update.append, update.last_chunk, update.artifact.joined_text()))
        }
        Event::Status(_) | Event::Other(_) => None,
    });
    let pieces: Vec<_> = pieces.collect();
    let ((_, _, whole), parts) = pieces.split_last().unwrap();
    let joined: String = parts.iter().map(|(_, _, text)| text.as_str()).collect();
    assert_eq!((joined.as_str(), parts.len()), (whole.as_str(), 5));
}

#[test]
fn empty_repositories_give_errors_with_fix() {
    Repo::new().ask("what changed?").fails("no-commits", "after the first `git commit`");
    let untagged = Repo::new();
    untagged.write("a", "a\n").commit("Ada", "2026-11-20", "begin");
    untagged.ask("summarise the latest release").fails("no-releases", "`git tag v0.1.0`");
    untagged.ask("help").tells(&["who knows a best?"]).keeps_from(&["release"]);
    let nowhere = Repo(TempDir::new().unwrap());
    nowhere.ask("what changed?").fails("not-a-repository", "`git init`");
}

#[test]
fn shallow_clone_is_mentioned() {
    let (whole, shallow) = (Repo::sample(), Repo(TempDir::new().unwrap()));
    let url = format!("file://{}", whole.path().display());
    shallow.run(&["clone", "-q", "--depth", "1", &url, "."]);
    shallow.ask("what changed this month?").tells(&["`git fetch --unshallow`"]);
}

/// Programs that a repository's configuration names are never started.
#[test]
fn hostile_configuration_runs_no_program() {
    let repo = Repo::sample();
    let evil = repo.path().join("evil.sh");
    repo.write("evil.sh", "#!/bin/sh\ntouch \"$(dirname \"$0\")/ran\"\ncat\n")
        .write(".gitattributes", "* diff=evil filter=evil\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&evil, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    repo.commit("Eve", "2026-11-20", "feat: trust me");
    let evil = evil.to_str().unwrap();
    for key in [
        "core.pager",
        "core.fsmonitor",
        "core.editor",
        "core.askPass",
        "core.sshCommand",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "filter.evil.clean",
        "filter.evil.smudge",
        "gpg.program",
        "pager.log",
        "pager.grep",
        "pager.blame",
        "credential.helper",
    ] {
        repo.run(&["config", key, evil]);
    }
    repo.run(&["config", "log.showSignature", "true"]).run(&["config", "color.ui", "always"]);
    for question in [
        "what changed last week?",
        "summarise release v1.1",
        "who knows src/x.rs best?",
        "who works here?",
        "when was \"parse\" introduced?",
        "why is src/x.rs:5 here?",
        "history of src/x.rs",
        "hot spots",
        "show HEAD",
        "help",
    ] {
        repo.ask(question).text();
        assert!(!repo.path().join("ran").exists(), "`{question}` ran the repository's program");
    }
    // The trap works: an ordinary git runs the program.
    git(repo.path(), &["status"], &[]);
    assert!(repo.path().join("ran").exists());
}

/// A partial clone fetches missing objects through a program that its configuration may name.
#[test]
fn missing_object_is_not_fetched() {
    let repo = Repo::sample();
    let ran = repo.path().join("ran");
    let remote = format!("ext::touch {}", ran.display());
    for (key, value) in [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", remote.as_str()),
        ("protocol.ext.allow", "always"),
    ] {
        repo.run(&["config", key, value]);
    }
    let blob = git(repo.path(), &["rev-parse", "HEAD~1:docs/use it.md"], &[]).stdout;
    let (folder, file) = std::str::from_utf8(&blob).unwrap().trim().split_at(2);
    std::fs::remove_file(repo.path().join(".git/objects").join(folder).join(file)).unwrap();
    repo.ask("show commit v1.1").fails("git-failed", "unable to read");
    repo.ask("summarise release v1.1").fails("git-failed", "unable to read");
    assert!(!ran.exists());
    git(repo.path(), &["show", "v1.1"], &[]);
    assert!(ran.exists());
}
