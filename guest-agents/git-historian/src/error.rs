//! Errors of questions, each with a way out.

use a2a_hub_sdk::Failure;

use crate::markdown::code;

/// Error of a question. The text is for users, [`QuestionError::reason`] for programs.
#[derive(Debug, thiserror::Error)]
pub(crate) enum QuestionError {
    /// The hub refused a call; its own text says why.
    #[error("{}", .0.text())]
    Hub(#[from] Failure),
    /// The directory is in no repository.
    #[error(
        "there is no git repository here: ask again with a repository as the working directory, \
         or make one with `git init`"
    )]
    NoRepository,
    /// The directory belongs to a repository that git cannot see: a linked worktree and a submodule
    /// name another directory. A confined program is not shown it, since anyone who writes to the
    /// workspace may name any directory.
    #[error(
        "the repository of this directory is at {path}, and git cannot see it: it was moved or removed, or this is a linked \
         worktree whose programs are confined to the workspace; ask again in the repository itself, start the hub with a \
         `--workspace` that contains both, or set `agents.git-historian.confine = false`"
    )]
    OutsideRepository { path: String },
    /// Git does not trust the repository of another user, since its configuration could name
    /// programs.
    #[error(
        "git does not trust {path}, for it belongs to another user: let the hub's user own it \
         (`sudo chown -R \"$(id -un)\" {path}`), or if you trust it, tell git so for every user of this machine: \
         `sudo git config --system --add safe.directory {path}`"
    )]
    ForeignOwner { path: String },
    /// The sentence is none of the supported questions.
    #[error(
        "I did not understand this: I answer questions about a repository's history, in English. Ask for example \
         `what changed last week?`, `how many commits are there?` or `who works on this repository?`; `help` lists more"
    )]
    UnknownQuestion,
    /// No author has the name.
    #[error(
        "I know no author {} in this repository; git's history has {}, so ask with a name from there",
        code(query), people.iter().map(|name| code(name)).collect::<Vec<_>>().join(", ")
    )]
    UnknownPerson { query: String, people: Vec<String> },
    /// The repository has no commits.
    #[error(
        "this repository has no commits yet, so it has no history: ask again after the first `git commit`"
    )]
    NoCommits,
    /// The path does not exist or is ambiguous.
    #[error("{}", unknown("path", query, nearest, "paths are told from the repository's root"))]
    UnknownPath { query: String, nearest: Vec<String> },
    /// The revision does not exist.
    #[error(
        "{}",
        unknown("tag, branch or commit", query, tags, "`git tag` and `git branch` list the names")
    )]
    UnknownRevision { query: String, tags: Vec<String> },
    /// The question is about a release, but the repository has no tags.
    #[error(
        "this repository has no tags, so I know no releases: ask for a time instead, as in \
         `what changed in the last month?`, or mark a release with `git tag v0.1.0`"
    )]
    NoReleases,
    /// The line does not exist.
    #[error(
        "{} has no line {line} in the newest commit; lines that are not committed yet have no history",
        code(path)
    )]
    NoSuchLine { path: String, line: u32 },
    /// Git does not accept its configuration.
    #[error("git failed: {0}; `git config --list --show-origin` tells which file sets this")]
    Configuration(String),
    /// Git failed for another reason.
    #[error("git failed: {0}; `git fsck` tells whether the repository is intact")]
    Git(String),
}

impl QuestionError {
    /// Maps git's error message.
    pub(crate) fn from_git(stderr: &str) -> Self {
        if let Some((_, after)) = stderr.split_once("dubious ownership in repository at '") {
            let path = after.split('\'').next().unwrap_or_default().to_owned();
            return Self::ForeignOwner { path };
        }
        if let Some((_, path)) = stderr.split_once("not a git repository: ")
            && let Some(path) = path.lines().next().filter(|path| path.starts_with('/'))
        {
            let (root, _) = path.split_once("/worktrees/").unwrap_or((path, ""));
            return Self::OutsideRepository { path: root.to_owned() };
        }
        if stderr.contains("not a git repository") {
            return Self::NoRepository;
        }
        let fatal = stderr.lines().find(|line| line.starts_with("fatal: "));
        let line = fatal.or(stderr.lines().last()).unwrap_or("it told no reason");
        let line = line.trim_start_matches("fatal: ").to_owned();
        if line.contains("config") { Self::Configuration(line) } else { Self::Git(line) }
    }

    /// Stable reason for programs.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Hub(_) => "hub",
            Self::NoRepository | Self::OutsideRepository { .. } => "not-a-repository",
            Self::ForeignOwner { .. } => "foreign-owner",
            Self::UnknownQuestion => "unknown-question",
            Self::UnknownPerson { .. } => "unknown-person",
            Self::NoCommits => "no-commits",
            Self::UnknownPath { .. } => "unknown-path",
            Self::UnknownRevision { .. } => "unknown-revision",
            Self::NoReleases => "no-releases",
            Self::NoSuchLine { .. } => "no-such-line",
            Self::Configuration(_) | Self::Git(_) => "git-failed",
        }
    }
}

fn unknown(noun: &str, query: &str, nearest: &[String], hint: &str) -> String {
    let query = code(query);
    if nearest.is_empty() {
        return format!("I know no {noun} {query} in this repository; {hint}");
    }
    let nearest: Vec<String> = nearest.iter().map(|name| code(name)).collect();
    format!("I know no {noun} {query} in this repository; did you mean {}?", nearest.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_owner_error_contains_fix() {
        let stderr =
            "fatal: detected dubious ownership in repository at '/srv/repo'\nTo add an exception …";
        let trouble = QuestionError::from_git(stderr);
        assert_eq!(trouble.reason(), "foreign-owner");
        let fix = "`sudo git config --system --add safe.directory /srv/repo`";
        assert!(trouble.to_string().ends_with(fix), "{trouble}");
    }

    #[test]
    fn linked_worktree_error_names_repository() {
        let trouble =
            QuestionError::from_git("fatal: not a git repository: /srv/main/.git/worktrees/w\n");
        assert_eq!(trouble.reason(), "not-a-repository");
        let text = trouble.to_string();
        assert!(text.contains("at /srv/main/.git, and git cannot see it"), "{text}");
        assert!(text.contains("`agents.git-historian.confine = false`"), "{text}");
    }

    #[test]
    fn bad_configuration_error_names_command() {
        let trouble = QuestionError::from_git("fatal: bad config line 3 in file .git/config\n");
        assert!(trouble.to_string().contains("`git config --list --show-origin`"), "{trouble}");
    }

    #[test]
    fn hub_failure_keeps_its_text() {
        let trouble = QuestionError::from(Failure::Unavailable("git is not installed".to_owned()));
        assert_eq!(trouble.to_string(), "git is not installed");
    }

    #[test]
    fn error_contains_gits_fatal_line() {
        let trouble = QuestionError::from_git("warning: x\nfatal: bad object 123\n");
        assert!(trouble.to_string().starts_with("git failed: bad object 123;"), "{trouble}");
        assert_eq!(
            QuestionError::from_git("fatal: not a git repository: .git").reason(),
            "not-a-repository"
        );
    }
}
