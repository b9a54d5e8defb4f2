//! Sums of commits by person, file, and kind or area.

use std::collections::{BTreeMap, BTreeSet};

use crate::git::{Commit, CommitChange};

/// Sums of one person.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Person {
    pub(crate) name: String,
    pub(crate) commits: usize,
    pub(crate) lines: usize,
    pub(crate) first: i64,
    pub(crate) last: i64,
}

/// Sums of one file.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct File<'a> {
    pub(crate) path: &'a str,
    pub(crate) commits: usize,
    pub(crate) people: BTreeSet<&'a str>,
    pub(crate) lines: usize,
    pub(crate) last: i64,
}

/// Number of lines that a change touched.
fn lines(change: &CommitChange) -> usize {
    change.lines.map_or(0, |(added, deleted)| added as usize + deleted as usize)
}

/// Total of lines added and deleted.
pub(crate) fn total(commits: &[Commit]) -> (usize, usize) {
    let changes = commits.iter().flat_map(|commit| &commit.files).filter_map(|file| file.lines);
    changes.fold((0, 0), |(a, d), (added, deleted)| (a + added as usize, d + deleted as usize))
}

/// People, most commits first.
pub(crate) fn people(commits: &[Commit]) -> Vec<Person> {
    let mut people: BTreeMap<&str, Person> = BTreeMap::new();
    for commit in commits {
        let person = people.entry(&commit.author).or_insert_with(|| Person {
            name: commit.author.clone(),
            first: commit.time,
            last: commit.time,
            ..Person::default()
        });
        person.commits += 1;
        person.lines += commit.files.iter().map(lines).sum::<usize>();
        person.first = person.first.min(commit.time);
        person.last = person.last.max(commit.time);
    }
    let mut people: Vec<Person> = people.into_values().collect();
    people.sort_by_key(|person| std::cmp::Reverse((person.commits, person.lines, person.last)));
    people
}

/// Files, most commits first. Commits are sorted newest first, so a renamed file has its newest
/// name.
pub(crate) fn files(commits: &[Commit]) -> Vec<File<'_>> {
    let mut files: BTreeMap<&str, File<'_>> = BTreeMap::new();
    let mut renamed: BTreeMap<&str, &str> = BTreeMap::new();
    for commit in commits {
        for change in &commit.files {
            let path = renamed.get(change.path.as_str()).copied().unwrap_or(&change.path);
            if let Some(old) = &change.renamed_from {
                renamed.insert(old, path);
            }
            let file = files.entry(path).or_insert_with(|| File { path, ..File::default() });
            file.commits += 1;
            file.people.insert(&commit.author);
            file.lines += lines(change);
            file.last = file.last.max(commit.time);
        }
    }
    let mut files: Vec<File<'_>> = files.into_values().collect();
    files.sort_by_key(|file| std::cmp::Reverse((file.commits, file.lines)));
    files
}

/// Kinds of Conventional Commits, in reading order.
const KINDS: [(&str, &str); 9] = [
    ("feat", "Features"),
    ("fix", "Fixes"),
    ("perf", "Performance"),
    ("refactor", "Refactoring"),
    ("docs", "Documentation"),
    ("test", "Tests"),
    ("build", "Build"),
    ("ci", "CI"),
    ("chore", "Chores"),
];

/// Groups of commits: by kind if at least half of the subjects have one (`feat: …`), otherwise by
/// the area in the subject (`parser: …`) or the folder touched most.
pub(crate) fn groups(commits: &[Commit]) -> Vec<(String, Vec<&Commit>)> {
    let with_kind = commits.iter().filter(|commit| kind(&commit.subject).is_some()).count();
    if commits.is_empty() || with_kind * 2 < commits.len() {
        return by_area(commits);
    }
    let mut groups: Vec<(String, Vec<&Commit>)> =
        KINDS.iter().map(|(_, title)| ((*title).to_owned(), Vec::new())).collect();
    groups.push(("Other".to_owned(), Vec::new()));
    for commit in commits {
        let at = kind(&commit.subject).unwrap_or(KINDS.len());
        groups[at].1.push(commit);
    }
    groups.retain(|(_, commits)| !commits.is_empty());
    groups
}

/// Kind of a subject such as `feat: …`, `fix(parser)!: …`.
fn kind(subject: &str) -> Option<usize> {
    let (prefix, _) = subject.split_once(':')?;
    let kind = prefix.trim_end_matches('!').split('(').next()?.to_lowercase();
    KINDS.iter().position(|(name, _)| *name == kind)
}

fn by_area(commits: &[Commit]) -> Vec<(String, Vec<&Commit>)> {
    let mut areas: BTreeMap<String, Vec<&Commit>> = BTreeMap::new();
    for commit in commits {
        areas.entry(area(commit)).or_default().push(commit);
    }
    let mut areas: Vec<_> = areas.into_iter().collect();
    areas.sort_by_key(|(_, commits)| std::cmp::Reverse(commits.len()));
    areas
}

fn area(commit: &Commit) -> String {
    if let Some((area, _)) = commit.subject.split_once(": ")
        && area.len() <= 30
        && !area.contains(' ')
    {
        return area.to_owned();
    }
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for change in &commit.files {
        let folder = change.path.split_once('/').map_or("top level", |(folder, _)| folder);
        *folders.entry(folder).or_default() += 1;
    }
    let largest = folders.into_iter().max_by_key(|(_, files)| *files);
    largest.map_or("elsewhere", |(folder, _)| folder).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(author: &str, time: i64, subject: &str, files: &[(&str, Option<&str>)]) -> Commit {
        let change = |(path, from): &(&str, Option<&str>)| CommitChange {
            path: (*path).into(),
            renamed_from: from.map(str::to_owned),
            lines: Some((2, 1)),
        };
        Commit {
            author: author.into(),
            time,
            subject: subject.into(),
            files: files.iter().map(change).collect(),
            ..Commit::default()
        }
    }

    #[test]
    fn renamed_file_counts_as_one() {
        let commits = [
            commit("Ada", 3, "c", &[("new.rs", None)]),
            commit("Bob", 2, "b", &[("new.rs", Some("old.rs"))]),
            commit("Ada", 1, "a", &[("old.rs", None), ("other.rs", None)]),
        ];
        let files = files(&commits);
        let told: Vec<_> =
            files.iter().map(|f| (f.path, f.commits, f.people.len(), f.lines)).collect();
        assert_eq!(told, [("new.rs", 3, 2, 9), ("other.rs", 1, 1, 3)]);
        let people = people(&commits);
        assert_eq!((people[0].name.as_str(), people[0].first, people[0].last), ("Ada", 1, 3));
        assert_eq!(total(&commits), (8, 4));
    }

    #[test]
    fn commits_are_grouped_by_kind_or_area() {
        let named = |subjects: [&str; 3]| {
            let commits = subjects.map(|subject| commit("Ada", 1, subject, &[("src/a.rs", None)]));
            let titles =
                groups(&commits).into_iter().map(|(title, c)| format!("{title} {}", c.len()));
            titles.collect::<Vec<_>>().join(", ")
        };
        assert_eq!(named(["fix(x)!: a", "feat: b", "c"]), "Features 1, Fixes 1, Other 1");
        assert_eq!(named(["parser: a", "parser: b", "c: is a thing"]), "parser 2, c 1");
        assert_eq!(named(["a", "b", "note to self: c"]), "src 3");
        assert_eq!(groups(&[]), []);
    }
}
