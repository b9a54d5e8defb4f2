//! Tests of the answers' Markdown.

use insta::assert_snapshot;
use jiff::civil::date;

use super::*;

const DAY: i64 = 86_400;

/// First day: 2026-11-01.
const START: i64 = 1_793_491_200;

fn made(hash: &str, author: &str, days: i64, subject: &str, files: &[(&str, u32)]) -> Commit {
    let change = |&(path, lines): &(&str, u32)| CommitChange {
        path: path.into(),
        lines: Some((lines, 1)),
        ..CommitChange::default()
    };
    Commit {
        hash: hash.repeat(40),
        author: author.into(),
        time: START + days * DAY,
        subject: subject.into(),
        parents: 1,
        files: files.iter().map(change).collect(),
        ..Commit::default()
    }
}

fn some_commits() -> Vec<Commit> {
    vec![
        made("c", "Ada", 9, "fix: stop at the [end]", &[("src/a.rs", 3)]),
        made("b", "Bob | Co", 5, "feat: read <files>", &[("src/a.rs", 40), ("docs/a|b.md", 2)]),
        made("a", "Ada", 1, "feat: begin", &[("src/a.rs", 1200)]),
    ]
}

#[test]
fn changes_are_grouped_by_kind() {
    let commits = some_commits();
    let files = files(&commits, |_| true).unwrap();
    let text = [overview(&commits), groups(&commits), people_line(&commits), files].join("\n\n");
    assert_snapshot!(text, @r#"
    3 commits by 2 people changed 2 files (+1,245 −4 lines).

    ### Features (2)

    - `bbbbbbbb` feat: read \<files> — Bob \| Co, 2026-11-06
    - `aaaaaaaa` feat: begin — Ada, 2026-11-02

    ### Fixes (1)

    - `cccccccc` fix: stop at the \[end] — Ada, 2026-11-10

    **People** (commits): Ada (2), Bob \| Co (1)

    | file | commits | people | lines changed | last change |
    | --- | --: | --: | --: | --: |
    | `src/a.rs` | 3 | 2 | 1,246 | 2026-11-10 |
    | `docs/a\|b.md` | 1 | 1 | 3 | 2026-11-06 |
    "#);
}

#[test]
fn long_lists_are_cut_and_counted() {
    let commits: Vec<Commit> = (0..15).map(|day| made("a", "Ada", day, "x: y", &[])).collect();
    let text = groups(&commits);
    assert_eq!(text.lines().count(), 2 + LISTED + 1);
    assert!(text.ends_with("- … and 3 more"), "{text}");
}

#[test]
fn owners_are_sorted_by_lines_then_commits() {
    let commits = some_commits();
    let people = tally::people(&commits);
    let line =
        |author: &str| Blamed { commit: String::new(), author: author.into(), text: String::new() };
    let blamed = [line("Bob | Co"), line("Bob | Co"), line("Eve"), line("Ada")];
    assert_snapshot!(owners_table(&owners(&blamed, &people)), @r#"
    | person | lines today | commits | last change |
    | --- | --: | --: | --: |
    | Bob \| Co | 2 (50 %) | 1 | 2026-11-06 |
    | Ada | 1 (25 %) | 2 | 2026-11-10 |
    | Eve | 1 (25 %) | – | – |
    "#);
}

#[test]
fn inactive_expert_comes_with_active_one() {
    let today = date(2026, 11, 21);
    let ranked = [("Ada", START - 400 * DAY), ("Bob", START)];
    let ask = |ranked: &[(&str, i64)]| whom_to_ask(ranked.iter().copied(), today);
    assert_eq!(ask(&ranked[1..]), "Ask **Bob** first.");
    assert_eq!(
        ask(&ranked),
        "**Ada** knows most, but has not changed it since 2025-09-27: ask there first, and then **Bob**, who has."
    );
    assert_eq!(ask(&[]), "Nobody is known.");
}

#[test]
fn commit_is_shown_with_message() {
    let mut told = made("d", "Ada", 1, "feat: move", &[("src/b.rs", 3)]);
    told.body = "Because.\n\nSee *there*.".into();
    told.files[0].renamed_from = Some("src/a.rs".into());
    told.files.push(CommitChange { path: "logo.png".into(), ..CommitChange::default() });
    let tag = |name: &str, days| Tag {
        name: name.into(),
        time: START + days * DAY,
        commit: String::new(),
    };
    let releases = released(&[tag("v2", 9), tag("v1", 3)]);
    assert_snapshot!([commit(&told), releases, changed_files(&told)].join("\n\n"), @r#"
    **feat: move**

    `dddddddddddddddddddddddddddddddddddddddd` by Ada, 2026-11-02.

    > Because.
    > 
    > See \*there\*.

    First in `v1` of 2026-11-04.

    ### Files (2)

    - `src/b.rs` (+3 −1, was `src/a.rs`)
    - `logo.png` (binary)
    "#);
}

#[test]
fn help_uses_names_of_repository() {
    let examples = Examples {
        path: Some("src/a.rs".into()),
        tag: Some("v1.1".into()),
        commit: "abc1234".into(),
    };
    assert_snapshot!(help(&examples), @r#"
    ## What you can ask

    - `what changed last week?`
    - `who works on this repository?`
    - `how many commits are there?`
    - `what changed in the last 3 months in src/?`
    - `who knows src/a.rs best?`
    - `history of src/a.rs`
    - `why is src/a.rs:1 here?`
    - `what changed since v1.1?`
    - `summarise release v1.1`
    - `when was "some text of a line" introduced?`
    - `which files change most?`
    - `show commit abc1234`
    "#);
}

#[test]
fn help_examples_are_parsed() {
    use crate::question::HistoryQuestion;
    let examples = Examples {
        path: Some("src/a.rs".into()),
        tag: Some("v1.1".into()),
        commit: "abc12345".into(),
    };
    let help = help(&examples);
    let questions = help.lines().filter_map(|line| line.strip_prefix("- `")?.strip_suffix('`'));
    let not_understood: Vec<&str> = questions
        .filter(|question| {
            HistoryQuestion::parse(question, date(2026, 11, 21)) == HistoryQuestion::Unknown
        })
        .collect();
    assert_eq!((not_understood, help.lines().count()), (vec![], 14));
}
