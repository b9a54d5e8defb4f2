//! Conversion of facts to Markdown. Each function writes one section.

use jiff::ToSpan;
use jiff::civil::Date;

use crate::git::{Blamed, Commit, CommitChange, LinePosition, Tag};
use crate::markdown::{code, code_cell, count, day, grouped, plain, quote, short, table};
use crate::tally::{self, Person};

/// Maximum number of list items; the rest is only counted.
const LISTED: usize = 12;

/// Maximum number of table rows.
const ROWS: usize = 10;

/// Maximum number of lines of a commit's message.
const MESSAGE_LINES: usize = 30;

/// Months without a commit after which a person may have left.
const INACTIVE_MONTHS: i64 = 6;

/// Commit in the form `12345678` subject — author, day.
pub(crate) fn commit_line(commit: &Commit) -> String {
    let Commit { hash, author, time, subject, .. } = commit;
    format!("{} {} — {}, {}", code(short(hash)), plain(subject), plain(author), day(*time))
}

/// List of lines, with the number of omitted ones.
fn list(lines: impl ExactSizeIterator<Item = String>) -> String {
    let more = lines.len().saturating_sub(LISTED);
    let mut lines: Vec<String> = lines.take(LISTED).map(|line| format!("- {line}")).collect();
    if more > 0 {
        lines.push(format!("- … and {} more", grouped(more)));
    }
    lines.join("\n")
}

/// Summary of the commits in one sentence.
pub(crate) fn overview(commits: &[Commit]) -> String {
    let (added, deleted) = tally::total(commits);
    format!(
        "{} by {} changed {} (+{} −{} lines).",
        count(commits.len(), "commit"),
        count(tally::people(commits).len(), "person"),
        count(tally::files(commits).len(), "file"),
        grouped(added),
        grouped(deleted),
    )
}

/// Commits, grouped by kind or area.
pub(crate) fn groups(commits: &[Commit]) -> String {
    let groups = tally::groups(commits);
    let section = |(title, commits): &(String, Vec<&Commit>)| {
        let lines = list(commits.iter().map(|commit| commit_line(commit)));
        format!("### {} ({})\n\n{lines}", plain(title), grouped(commits.len()))
    };
    let mut sections: Vec<String> = groups.iter().take(ROWS).map(section).collect();
    if let Some(rest) = groups.get(ROWS..).filter(|rest| !rest.is_empty()) {
        let commits = rest.iter().map(|(_, commits)| commits.len()).sum();
        sections.push(format!(
            "… and {} in {}.",
            count(commits, "commit"),
            count(rest.len(), "smaller group")
        ));
    }
    sections.join("\n\n")
}

/// Authors of the commits in one line.
pub(crate) fn people_line(commits: &[Commit]) -> String {
    let people = tally::people(commits);
    let more = people.len().saturating_sub(LISTED);
    let named = |person: &Person| format!("{} ({})", plain(&person.name), grouped(person.commits));
    let mut names: Vec<String> = people.iter().take(LISTED).map(named).collect();
    if more > 0 {
        names.push(format!("{} more", grouped(more)));
    }
    format!("**People** (commits): {}", names.join(", "))
}

/// Most changed files, of those that `is_included` accepts.
pub(crate) fn files(commits: &[Commit], is_included: impl Fn(&str) -> bool) -> Option<String> {
    let mut files = tally::files(commits);
    files.retain(|file| is_included(file.path));
    let rows = files.iter().take(ROWS).map(|file| {
        [
            code_cell(file.path),
            grouped(file.commits),
            grouped(file.people.len()),
            grouped(file.lines),
            day(file.last).to_string(),
        ]
    });
    let head = ["file", "commits", "people", "lines changed", "last change"];
    (!files.is_empty()).then(|| table(head, rows))
}

/// Number of people that a summary or an error names.
pub(crate) const NAMED: usize = 3;

/// Summary of people and their commits, such as `2 people made 4 commits: Bob (2), Ada (2). 1
/// person was active in the last 90 days.`
pub(crate) fn people_summary(people: &[Person], commits: usize, active: usize) -> String {
    let named = |person: &Person| format!("{} ({})", plain(&person.name), grouped(person.commits));
    let mut names: Vec<String> = people.iter().take(NAMED).map(named).collect();
    if people.len() > NAMED {
        names.push(format!("{} more", grouped(people.len() - NAMED)));
    }
    let active = match active {
        0 => "Nobody was".to_owned(),
        1 if people.len() == 1 => "They were".to_owned(),
        1 => "1 person was".to_owned(),
        some => format!("{} people were", grouped(some)),
    };
    format!(
        "{} made {}: {}. {active} active in the last 90 days.",
        count(people.len(), "person"),
        count(commits, "commit"),
        names.join(", ")
    )
}

/// Table of the people of a project or folder.
pub(crate) fn people(people: &[Person]) -> String {
    let rows = people.iter().take(ROWS).map(|person| {
        [
            plain(&person.name),
            grouped(person.commits),
            grouped(person.lines),
            day(person.first).to_string(),
            day(person.last).to_string(),
        ]
    });
    let mut text = table(["person", "commits", "lines changed", "first", "last"], rows);
    if people.len() > ROWS {
        text += &format!("\n\n… and {} more.", grouped(people.len() - ROWS));
    }
    text
}

/// Person's share of a file's current lines.
pub(crate) struct Owner<'a> {
    pub(crate) name: &'a str,
    pub(crate) lines: usize,
    pub(crate) person: Option<&'a Person>,
}

/// Authors of a file's lines and of its commits: most lines first, then most commits.
pub(crate) fn owners<'a>(blamed: &'a [Blamed], people: &'a [Person]) -> Vec<Owner<'a>> {
    let mut owners: Vec<Owner<'_>> =
        people.iter().map(|p| Owner { name: &p.name, lines: 0, person: Some(p) }).collect();
    for line in blamed {
        match owners.iter_mut().find(|owner| owner.name == line.author) {
            Some(owner) => owner.lines += 1,
            None => owners.push(Owner { name: &line.author, lines: 1, person: None }),
        }
    }
    let commits = |owner: &Owner<'_>| owner.person.map_or(0, |person| person.commits);
    owners.sort_by_key(|owner| std::cmp::Reverse((owner.lines, commits(owner))));
    owners
}

/// Table of the owners of a file.
pub(crate) fn owners_table(owners: &[Owner<'_>]) -> String {
    let total = owners.iter().map(|owner| owner.lines).sum::<usize>().max(1);
    let rows = owners.iter().take(ROWS).map(|owner| {
        let (commits, last) = owner.person.map_or(("–".into(), "–".into()), |person| {
            (grouped(person.commits), day(person.last).to_string())
        });
        let share = owner.lines * 100 / total;
        [plain(owner.name), format!("{} ({share} %)", grouped(owner.lines)), commits, last]
    });
    table(["person", "lines today", "commits", "last change"], rows)
}

/// Advice on whom to ask first: the best person, and if that one may have left, the best active
/// one.
pub(crate) fn whom_to_ask<'a>(
    mut ranked: impl Iterator<Item = (&'a str, i64)>,
    today: Date,
) -> String {
    let here = |last: i64| {
        today.checked_sub(INACTIVE_MONTHS.months()).is_ok_and(|limit| day(last) >= limit)
    };
    let Some((best, last)) = ranked.next() else {
        return "Nobody is known.".into();
    };
    let best = plain(best);
    if here(last) {
        return format!("Ask **{best}** first.");
    }
    let other = ranked.find(|(_, last)| here(*last));
    let other = other.map(|(name, _)| format!(", and then **{}**, who has", plain(name)));
    format!(
        "**{best}** knows most, but has not changed it since {}: ask there first{}.",
        day(last),
        other.unwrap_or_default()
    )
}

/// History of a file or folder.
pub(crate) fn history(commits: &[Commit], path: &str) -> String {
    let line = |commit: &Commit| {
        let rename =
            commit.files.iter().find(|change| change.path == path || commit.files.len() == 1);
        let from = rename.and_then(|change| change.renamed_from.as_deref());
        let from = from.map(|from| format!(" (was {})", code(from))).unwrap_or_default();
        format!("{}{from}", commit_line(commit))
    };
    list(commits.iter().map(line))
}

/// Commit with its whole message.
pub(crate) fn commit(commit: &Commit) -> String {
    let Commit { hash, author, time, subject, body, parents, .. } = commit;
    let merge = if *parents > 1 { ", a merge" } else { "" };
    let mut text = format!(
        "**{}**\n\n{} by {}, {}{merge}.",
        plain(subject),
        code(hash),
        plain(author),
        day(*time)
    );
    if !body.is_empty() {
        let lines: Vec<&str> = body.lines().take(MESSAGE_LINES).collect();
        text += &format!("\n\n{}", quote(&lines.join("\n")));
    }
    text
}

/// Files of one commit.
pub(crate) fn changed_files(commit: &Commit) -> String {
    let line = |change: &CommitChange| {
        let lines =
            change.lines.map_or("binary".into(), |(added, deleted)| format!("+{added} −{deleted}"));
        let from = change.renamed_from.as_deref().map(|from| format!(", was {}", code(from)));
        format!("{} ({lines}{})", code(&change.path), from.unwrap_or_default())
    };
    format!(
        "### Files ({})\n\n{}",
        grouped(commit.files.len()),
        list(commit.files.iter().map(line))
    )
}

/// First release that has a commit, among the tags that contain it (newest first).
pub(crate) fn released(tags: &[Tag]) -> String {
    match tags.last() {
        Some(tag) => format!("First in {} of {}.", code(&tag.name), day(tag.time)),
        None => "In no release yet.".into(),
    }
}

/// Current occurrences of a text.
pub(crate) fn places(places: &[LinePosition]) -> String {
    if places.is_empty() {
        return "It is **not in the newest commit** any more.".into();
    }
    let lines =
        list(places.iter().map(|position| code(&format!("{}:{}", position.path, position.line))));
    format!("### Where it is now\n\n{lines}")
}

/// Commits after the first that changed the number of occurrences of a text.
pub(crate) fn later(commits: &[Commit]) -> String {
    format!("### Added or removed again by\n\n{}", list(commits.iter().map(commit_line)))
}

/// Names from this repository, for example questions.
pub(crate) struct Examples {
    pub(crate) path: Option<String>,
    pub(crate) tag: Option<String>,
    pub(crate) commit: String,
}

/// Examples of supported questions.
pub(crate) fn help(examples: &Examples) -> String {
    let questions = vec![
        "what changed last week?",
        "who works on this repository?",
        "how many commits are there?",
    ];
    let mut questions: Vec<String> = questions.into_iter().map(str::to_owned).collect();
    if let Some(path) = &examples.path {
        let folder =
            path.split_once('/').map(|(folder, _)| format!(" in {folder}/")).unwrap_or_default();
        questions.extend([
            format!("what changed in the last 3 months{folder}?"),
            format!("who knows {path} best?"),
            format!("history of {path}"),
            format!("why is {path}:1 here?"),
        ]);
    }
    if let Some(tag) = &examples.tag {
        questions
            .extend([format!("what changed since {tag}?"), format!("summarise release {tag}")]);
    }
    questions.extend([
        "when was \"some text of a line\" introduced?".to_owned(),
        "which files change most?".into(),
        format!("show commit {}", examples.commit),
    ]);
    format!("## What you can ask\n\n{}", list_all(&questions))
}

fn list_all(questions: &[String]) -> String {
    let lines: Vec<String> =
        questions.iter().map(|question| format!("- {}", code(question))).collect();
    lines.join("\n")
}

#[cfg(test)]
#[path = "answer/tests.rs"]
mod tests;
