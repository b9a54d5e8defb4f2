//! Parsers of git's output.

use std::collections::HashMap;

/// Commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Commit {
    /// Hash.
    pub(crate) hash: String,
    /// Author, mapped by the repository's mailmap.
    pub(crate) author: String,
    /// Commit time, in seconds since 1970.
    pub(crate) time: i64,
    /// Number of parents: none for the first commit, several for a merge.
    pub(crate) parents: usize,
    /// First line of the message.
    pub(crate) subject: String,
    /// Rest of the message.
    pub(crate) body: String,
    /// Changed files, if requested.
    pub(crate) files: Vec<CommitChange>,
}

/// Change of a file by a commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CommitChange {
    /// Path after the commit.
    pub(crate) path: String,
    /// Path before the commit, if it differs.
    pub(crate) renamed_from: Option<String>,
    /// Lines added and deleted; `None` for a binary file.
    pub(crate) lines: Option<(u32, u32)>,
}

/// Tag of a commit, usually a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag {
    /// Name.
    pub(crate) name: String,
    /// Time of the tag, in seconds since 1970.
    pub(crate) time: i64,
    /// Hash of the commit.
    pub(crate) commit: String,
}

/// Line with the commit that last changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blamed {
    /// Hash of the commit.
    pub(crate) commit: String,
    /// Author of the commit.
    pub(crate) author: String,
    /// Text of the line.
    pub(crate) text: String,
}

/// Position of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinePosition {
    /// File, relative to the repository's root.
    pub(crate) path: String,
    /// Line number.
    pub(crate) line: u32,
}

/// Parses commits in the form of `LOG_FORMAT`, with `-z` and optionally `--numstat`.
pub(super) fn log(output: &str) -> Vec<Commit> {
    let mut fields = output.trim_end_matches('\n').split('\0').peekable();
    let mut commits = Vec::new();
    while let Some(hash) = fields.next_if(|field| !field.is_empty()) {
        let mut next = || fields.next().unwrap_or_default();
        let (author, time, parents) = (next(), next(), next());
        let is_encoded = !next().is_empty();
        let text = |text: &str| if is_encoded { relabelled(text) } else { text.to_owned() };
        let (subject, body) = (text(next()), text(next().trim()));
        let mut files = Vec::new();
        // A hash contains no tab, a file's figures contain two.
        while let Some(figures) = fields.next_if(|field| field.contains('\t')) {
            files.extend(file_change(figures, || fields.next()));
        }
        commits.push(Commit {
            hash: hash.trim_start().to_owned(),
            author: text(author),
            time: time.parse().unwrap_or_default(),
            parents: parents.split_whitespace().count(),
            subject,
            body,
            files,
        });
    }
    commits
}

/// Text of a commit that wrongly names an encoding other than UTF-8: with `i18n.commitEncoding`
/// set, some programs still write UTF-8, which git then converts a second time.
fn relabelled(text: &str) -> String {
    let bytes: Option<Vec<u8>> =
        text.chars().map(|char| u8::try_from(u32::from(char)).ok()).collect();
    let original = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    original.unwrap_or_else(|| text.to_owned())
}

/// Parses `added TAB deleted TAB path`; without a path, the next fields have the old and the new
/// one.
fn file_change<'a>(
    figures: &str,
    mut next: impl FnMut() -> Option<&'a str>,
) -> Option<CommitChange> {
    let mut figures = figures.trim_start_matches('\n').splitn(3, '\t');
    let (added, deleted, path) = (figures.next()?, figures.next()?, figures.next()?);
    let lines = added.parse().ok().zip(deleted.parse().ok());
    if !path.is_empty() {
        return Some(CommitChange { path: path.to_owned(), renamed_from: None, lines });
    }
    let (old, new) = (next()?, next()?);
    Some(CommitChange { path: new.to_owned(), renamed_from: Some(old.to_owned()), lines })
}

/// Parses tags in the form of `TAG_FORMAT`. An annotated tag's own object precedes its commit.
pub(super) fn tags(output: &str) -> Vec<Tag> {
    let tag = |line: &str| {
        let mut fields = line.split('\x1f');
        let (name, time) = (fields.next()?, fields.next()?);
        let (object, commit) = (fields.next()?, fields.next()?);
        let commit = if commit.is_empty() { object } else { commit };
        Some(Tag {
            name: name.to_owned(),
            time: time.parse().unwrap_or_default(),
            commit: commit.to_owned(),
        })
    };
    output.lines().filter_map(tag).collect()
}

/// Parses `git blame --porcelain`, which names a commit's author at its first line only.
pub(super) fn blame(output: &str) -> Vec<Blamed> {
    let mut authors: HashMap<&str, String> = HashMap::new();
    let mut commit = "";
    let mut lines = Vec::new();
    let mut expects_header = true;
    for line in output.lines() {
        if let Some(text) = line.strip_prefix('\t') {
            let author = authors.get(commit).cloned().unwrap_or_default();
            lines.push(Blamed { commit: commit.into(), author, text: text.into() });
            expects_header = true;
        } else if expects_header {
            commit = line.split(' ').next().unwrap_or_default();
            expects_header = false;
        } else if let Some(author) = line.strip_prefix("author ") {
            authors.insert(commit, relabelled(author));
        }
    }
    lines
}

/// Parses `git grep -n -z` in a commit: `hash:path NUL line NUL text`.
pub(super) fn grep(output: &str, hash: &str) -> Vec<LinePosition> {
    let parse_line = |line: &str| {
        let mut fields = line.split('\0');
        let path = fields.next()?.strip_prefix(hash)?.strip_prefix(':')?;
        Some(LinePosition { path: path.to_owned(), line: fields.next()?.parse().ok()? })
    };
    output.lines().filter_map(parse_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_parses_renames_binaries_and_empty_commits() {
        let output = "100e79c\0Ada\x001767225600\0e68ad42\0\0fix: f\0\0\n1\t0\tsrc/y.rs\0\
                      e68ad42\0Bob\x001767225500\x00172da30 aaaaaaa\0\0feat: move\0\0\n-\t-\tbin\x000\t0\t\0src/x.rs\0src/y.rs\0\
                      aaaaaaa\0Ada\x001767225400\x00172da30\0\0nothing\0\0\
                      172da30\0Ada\x001767225300\0\0\0init\0Body\nline.\n\0\n1\t0\tREADME.md\0\n";
        let commits = log(output);
        let told: Vec<String> = commits
            .iter()
            .map(|c| {
                format!("{} {} {} {:?} {:?}", c.hash, c.author, c.parents, c.body, c.files.len())
            })
            .collect();
        assert_eq!(
            told,
            [
                "100e79c Ada 1 \"\" 1",
                "e68ad42 Bob 2 \"\" 2",
                "aaaaaaa Ada 1 \"\" 0",
                "172da30 Ada 0 \"Body\\nline.\" 1"
            ]
        );
        let moved = &commits[1].files[1];
        assert_eq!(moved.renamed_from.as_deref(), Some("src/x.rs"));
        assert_eq!((moved.path.as_str(), moved.lines), ("src/y.rs", Some((0, 0))));
        assert_eq!(commits[1].files[0].lines, None);
        assert_eq!(log("\n"), []);
    }

    #[test]
    fn mislabelled_encoding_is_undone() {
        for (text, original) in [
            ("GrÃ¶\u{c3}\u{9f}e geÃ¤ndert", "Größe geändert"),
            ("Größe geändert", "Größe geändert"),
            ("plain", "plain"),
            ("Größe – 3 €", "Größe – 3 €"),
        ] {
            assert_eq!(relabelled(text), original);
        }
        let commit =
            |encoding: &str| log(&format!("aaa\0ZoÃ«\x000\0\0{encoding}\0GrÃ¶\0\0")).remove(0);
        let told = commit("ISO-8859-1");
        assert_eq!((told.author.as_str(), told.subject.as_str()), ("Zoë", "Grö"));
        assert_eq!(commit("").subject, "GrÃ¶", "a commit in UTF-8 says what it says");
    }

    #[test]
    fn lightweight_and_annotated_tags_name_commits() {
        let tags =
            tags("v1.1\x1f1767225600\x1fe24bbd2\x1fe68ad42\nv1\x1f1767225500\x1f172da30\x1f\n");
        assert_eq!(tags[0].commit, "e68ad42");
        assert_eq!((tags[1].commit.as_str(), tags[1].time), ("172da30", 1_767_225_500));
    }

    #[test]
    fn blame_keeps_author_of_repeated_commit() {
        let output = "aaa 1 1 2\nauthor Ada\nsummary x\nfilename f\n\tone\naaa 2 2\n\tauthor of tabs\n\
                      bbb 3 3 1\nauthor Bob\nfilename f\n\t\n";
        let told: Vec<String> =
            blame(output).iter().map(|l| format!("{} {} {}", l.commit, l.author, l.text)).collect();
        assert_eq!(told, ["aaa Ada one", "aaa Ada author of tabs", "bbb Bob "]);
    }

    #[test]
    fn grep_output_gives_positions() {
        let places = grep("abc:src/a:b.rs\x0012\0let x\n", "abc");
        assert_eq!(places, [LinePosition { path: "src/a:b.rs".into(), line: 12 }]);
    }
}
