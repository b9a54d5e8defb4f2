//! All invocations of `git` by this agent: one function each, matched by a form of `manifest.toml`.
//!
//! A repository may be hostile, and its configuration may name programs. So nothing here touches
//! the working tree or the index (no filters, no fsmonitor); pagers, external diffs, textconv,
//! signature checks and fetching of missing objects are off. Revisions are passed as verified
//! hashes, paths and texts in positions that take no options.
//!
//! Settings of the user, the machine or the repository that would change an answer are overridden:
//! by an option where git has one, and else by `-c`.

mod parse;

use a2a_hub_sdk::{Command, Context, Failure};
use jiff::civil::Date;

use crate::error::QuestionError;
pub(crate) use parse::{Blamed, Commit, CommitChange, LinePosition, Tag};

/// Limit of commits read: enough for years of most projects, and a few seconds of git.
pub(crate) const MAX_COMMITS: usize = 5000;

/// Limit of git for counts, which read no files: none.
const ALL: usize = i32::MAX as usize;

/// Limit of hits of a search for a text, beyond what anyone reads.
const MAX_HITS: usize = 1000;

/// First arguments of every invocation.
const BASE: [&str; 6] = [
    "--no-pager",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
];

/// Settings that change what `git log` shows. Without rename detection a search for a text finds
/// moved files, and a user's attributes may call text binary.
const LOG_SETTINGS: [&str; 16] = [
    "-c",
    "log.showRoot=true",
    "-c",
    "log.follow=false",
    // Options alone do not reach the search for an earlier name (`--follow`).
    "-c",
    "diff.relative=false",
    "-c",
    "diff.orderFile=/dev/null",
    "-c",
    "diff.renames=true",
    "-c",
    "diff.renameLimit=1000",
    "-c",
    "core.attributesFile=/dev/null",
    "-c",
    "mailmap.file=/dev/null",
];

/// Settings that change what `git blame` shows.
const BLAME_SETTINGS: [&str; 4] = ["-c", "diff.algorithm=default", "-c", "mailmap.file=/dev/null"];

/// Settings that change what `git grep` searches.
const GREP_SETTINGS: [&str; 4] =
    ["-c", "submodule.recurse=false", "-c", "core.attributesFile=/dev/null"];

/// English messages, since they are parsed; no network, even if a partial clone lacks objects.
const ENVIRONMENT: [(&str, &str); 3] =
    [("LC_ALL", "C"), ("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "none")];

/// Records and fields end with NUL, which no message can contain.
const LOG_FORMAT: &str = "--format=%H%x00%aN%x00%ct%x00%P%x00%e%x00%s%x00%b";
const TAG_FORMAT: &str =
    "--format=%(refname:strip=2)%1f%(creatordate:unix)%1f%(objectname)%1f%(*objectname)";

/// Repository that contains one directory.
pub(crate) struct Git<'a> {
    ctx: &'a Context,
    directory: Option<&'a str>,
}

/// Facts about the repository that every question needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repository {
    /// Newest commit.
    pub(crate) head: String,
    /// True if the clone omits older history.
    pub(crate) shallow: bool,
    /// Relative path from the directory to the repository's root: empty, or repeated `../`.
    pub(crate) up: String,
}

/// Selection of commits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Selection<'a> {
    /// A hash, or two with `..` between.
    pub(crate) range: &'a str,
    /// First day.
    pub(crate) since: Option<Date>,
    /// Last day.
    pub(crate) until: Option<Date>,
    /// File or folder, relative to the repository's root.
    pub(crate) path: Option<&'a str>,
}

impl Selection<'_> {
    fn days(&self) -> impl Iterator<Item = String> {
        let since = self.since.map(|day| format!("--since={day}T00:00:00Z"));
        let until = self.until.map(|day| format!("--until={day}T23:59:59Z"));
        since.into_iter().chain(until)
    }

    fn args(&self) -> impl Iterator<Item = String> {
        let path = self.path.map(|path| format!(":(top,literal){path}"));
        [self.range.to_owned(), "--".to_owned()].into_iter().chain(path)
    }
}

impl<'a> Git<'a> {
    /// Runs git in that directory, or in the hub's default directory.
    pub(crate) fn new(ctx: &'a Context, directory: Option<&'a str>) -> Self {
        Self { ctx, directory }
    }

    /// Version of git.
    pub(crate) fn version(&self) -> Result<String, QuestionError> {
        let version = self.read(&["--version"])?;
        Ok(version.trim().trim_start_matches("git version ").to_owned())
    }

    /// Checks that a repository exists and has commits.
    pub(crate) fn open(&self) -> Result<Repository, QuestionError> {
        let facts = self.read(&["rev-parse", "--is-shallow-repository", "--show-cdup"])?;
        let mut lines = facts.lines();
        let shallow = lines.next() == Some("true");
        let up = lines.next().unwrap_or_default().to_owned();
        let head = self.commit_id("HEAD")?.ok_or(QuestionError::NoCommits)?;
        Ok(Repository { head, shallow, up })
    }

    /// Hash of the commit that a revision names.
    pub(crate) fn commit_id(&self, revision: &str) -> Result<Option<String>, QuestionError> {
        let revision = format!("{revision}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &revision];
        let found = self.try_read(&args)?.ok();
        Ok(found.map(|hash| hash.trim().to_owned()))
    }

    /// Tags, newest first: all, or those in the history of a commit.
    pub(crate) fn tags(&self, merged_into: Option<&str>) -> Result<Vec<Tag>, QuestionError> {
        let merged = merged_into.map(|hash| format!("--merged={hash}"));
        self.list_tags(merged.as_deref())
    }

    /// Tags whose history has that commit, newest first.
    pub(crate) fn tags_containing(&self, hash: &str) -> Result<Vec<Tag>, QuestionError> {
        self.list_tags(Some(&format!("--contains={hash}")))
    }

    fn list_tags(&self, filter: Option<&str>) -> Result<Vec<Tag>, QuestionError> {
        let mut args = vec!["for-each-ref", "--sort=-creatordate", TAG_FORMAT];
        args.extend(filter);
        args.push("refs/tags");
        Ok(parse::tags(&self.read(&args)?))
    }

    /// Files of a commit, relative to the repository's root.
    pub(crate) fn files(&self, hash: &str) -> Result<Vec<String>, QuestionError> {
        let args = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", hash];
        let names = self.read(&args)?;
        Ok(names.split_terminator('\0').map(str::to_owned).collect())
    }

    /// Number of selected commits without merges; at most [`MAX_COMMITS`].
    pub(crate) fn count(&self, selection: &Selection<'_>) -> Result<usize, QuestionError> {
        self.rev_list(MAX_COMMITS, true, selection)
    }

    /// Exact number of selected commits.
    pub(crate) fn total(&self, selection: &Selection<'_>) -> Result<usize, QuestionError> {
        self.rev_list(ALL, false, selection)
    }

    /// Exact number of selected commits, and how many of them are merges.
    pub(crate) fn count_all(
        &self,
        selection: &Selection<'_>,
    ) -> Result<(usize, usize), QuestionError> {
        let all = self.total(selection)?;
        Ok((all, all.saturating_sub(self.rev_list(ALL, true, selection)?)))
    }

    fn rev_list(
        &self,
        max: usize,
        without_merges: bool,
        selection: &Selection<'_>,
    ) -> Result<usize, QuestionError> {
        let mut args = vec!["rev-list".into(), "--count".into(), format!("--max-count={max}")];
        args.extend(without_merges.then(|| "--no-merges".into()));
        args.extend(selection.days());
        args.extend(selection.args());
        let number = self.read(&args)?;
        number.trim().parse().map_err(|_| QuestionError::Git("git rev-list gave no number".into()))
    }

    /// Oldest of that number of commits in the history of a commit.
    pub(crate) fn oldest(
        &self,
        hash: &str,
        number: usize,
    ) -> Result<Option<Commit>, QuestionError> {
        let selection = Selection { range: hash, ..Selection::default() };
        let skip = format!("--skip={}", number.saturating_sub(1));
        Ok(self.read_log(1, [skip], &selection)?.into_iter().next())
    }

    /// Selected commits with their files, newest first, without merges.
    pub(crate) fn log(&self, selection: &Selection<'_>) -> Result<Vec<Commit>, QuestionError> {
        let options = ["--no-merges".into(), "--numstat".into(), "-M".into()];
        self.read_log(MAX_COMMITS, options.into_iter().chain(selection.days()), selection)
    }

    /// Commits that changed a file under this name and its earlier ones, newest first.
    pub(crate) fn follow(&self, selection: &Selection<'_>) -> Result<Vec<Commit>, QuestionError> {
        let options = ["--no-merges", "--numstat", "--follow", "-M"];
        self.read_log(MAX_COMMITS, options.map(str::to_owned), selection)
    }

    /// Newest commit of the selection.
    pub(crate) fn newest(
        &self,
        selection: &Selection<'_>,
    ) -> Result<Option<Commit>, QuestionError> {
        Ok(self.read_log(1, [], selection)?.into_iter().next())
    }

    /// One commit with its files; a merge is compared with its first parent.
    pub(crate) fn show(&self, hash: &str) -> Result<Commit, QuestionError> {
        let options = ["--diff-merges=first-parent", "--numstat", "-M"].map(str::to_owned);
        let selection = Selection { range: hash, ..Selection::default() };
        let commits = self.read_log(1, options, &selection)?;
        commits.into_iter().next().ok_or_else(|| QuestionError::Git("git log told nothing".into()))
    }

    /// Commits that changed the number of occurrences of a text, newest first.
    pub(crate) fn pickaxe(
        &self,
        text: &str,
        selection: &Selection<'_>,
    ) -> Result<Vec<Commit>, QuestionError> {
        self.read_log(MAX_HITS, ["--no-merges".into(), format!("-S{text}")], selection)
    }

    fn read_log(
        &self,
        max: usize,
        options: impl IntoIterator<Item = String>,
        selection: &Selection<'_>,
    ) -> Result<Vec<Commit>, QuestionError> {
        let fixed = [
            "log",
            "-z",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--no-show-signature",
            "--no-relative",
            "--encoding=UTF-8",
            "--ignore-submodules=none",
            "--diff-algorithm=default",
            "-O/dev/null",
            LOG_FORMAT,
        ];
        let fixed = LOG_SETTINGS.into_iter().chain(fixed);
        let mut args: Vec<String> = fixed.map(str::to_owned).collect();
        args.push(format!("--max-count={max}"));
        args.extend(options);
        args.extend(selection.args());
        Ok(parse::log(&self.read(&args)?))
    }

    /// Last change of each line of a file in a commit, or of one line. Without a commit git would
    /// read the working tree, through the repository's filters.
    pub(crate) fn blame(
        &self,
        repository: &Repository,
        path: &str,
        line: Option<u32>,
    ) -> Result<Vec<Blamed>, QuestionError> {
        let only = line.map(|line| format!("-L{line},{line}"));
        let path = format!("{}{path}", repository.up);
        let mut args = BLAME_SETTINGS.to_vec();
        let options = ["--no-textconv", "--no-ignore-revs-file", "--encoding=UTF-8", "--porcelain"];
        args.push("blame");
        args.extend(options);
        args.extend(only.as_deref());
        args.extend([repository.head.as_str(), "--", &path]);
        Ok(parse::blame(&self.read(&args)?))
    }

    /// Occurrences of a text in a commit.
    pub(crate) fn grep(
        &self,
        text: &str,
        selection: &Selection<'_>,
    ) -> Result<Vec<LinePosition>, QuestionError> {
        let pattern = format!("-e{text}");
        let command = ["grep", "-n", "-z", "-I", "-F", "--full-name", "--no-color", "--no-column"];
        let command = GREP_SETTINGS.into_iter().chain(command).chain(["--no-textconv"]);
        let mut args: Vec<String> = command.map(str::to_owned).collect();
        args.push(pattern);
        args.extend(selection.args());
        match self.try_read(&args)? {
            Ok(found) => Ok(parse::grep(&found, selection.range)),
            Err(stderr) if stderr.is_empty() => Ok(Vec::new()),
            Err(stderr) => Err(QuestionError::from_git(&stderr)),
        }
    }

    fn read<S: AsRef<str>>(&self, args: &[S]) -> Result<String, QuestionError> {
        self.try_read(args)?.map_err(|stderr| QuestionError::from_git(&stderr))
    }

    /// Output of git, or its error message if it fails.
    fn try_read<S: AsRef<str>>(&self, args: &[S]) -> Result<Result<String, String>, Failure> {
        let args = BASE.into_iter().chain(args.iter().map(AsRef::as_ref));
        let mut command = Command::new("git").args(args);
        for (name, value) in ENVIRONMENT {
            command = command.env(name, value);
        }
        if let Some(directory) = self.directory {
            command = command.cwd(directory);
        }
        let mut output = String::new();
        let exit = self.ctx.run_lines(command, |line| {
            output.push_str(line);
            output.push('\n');
            Ok(())
        })?;
        Ok(if exit.success() { Ok(output) } else { Err(exit.stderr) })
    }
}

#[cfg(test)]
#[path = "git/manifest_tests.rs"]
mod manifest_tests;
