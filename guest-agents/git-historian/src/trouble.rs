//! Why a question has no answer, and the way out.

use a2a_hub_sdk::Failure;

use crate::markdown::code;

/// Why a question has no answer. The text is for the user, [`Trouble::reason`] for programs.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// The hub did not do its part; its own words say why.
    #[error("{}", .0.text())]
    Hub(#[from] Failure),
    /// No repository around the directory.
    #[error(
        "there is no git repository here: ask again with a repository as the working directory, \
         or make one with `git init`"
    )]
    NoRepository,
    /// Git does not trust a repository of another user, for its configuration could name programs.
    #[error(
        "git does not trust {path}, for it belongs to another user: let the hub's user own it \
         (`sudo chown -R \"$(id -un)\" {path}`), or if you trust it, tell git so for every user of this machine: \
         `sudo git config --system --add safe.directory {path}`"
    )]
    ForeignOwner { path: String },
    /// Nothing was committed yet.
    #[error(
        "this repository has no commits yet, so it has no history: ask again after the first `git commit`"
    )]
    NoCommits,
    /// No such path, or several.
    #[error("{}", unknown("path", asked, nearest, "paths are told from the repository's root"))]
    UnknownPath { asked: String, nearest: Vec<String> },
    /// No such revision.
    #[error(
        "{}",
        unknown("tag, branch or commit", asked, tags, "`git tag` and `git branch` list the names")
    )]
    UnknownRevision { asked: String, tags: Vec<String> },
    /// A release was asked for where there is none.
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
    /// Git failed in a way that is not foreseen.
    #[error("git failed: {0}; `git fsck` tells whether the repository is whole")]
    Git(String),
}

impl Trouble {
    /// What git's complaint means.
    pub(crate) fn from_git(stderr: &str) -> Self {
        if let Some((_, after)) = stderr.split_once("dubious ownership in repository at '") {
            let path = after.split('\'').next().unwrap_or_default().to_owned();
            return Self::ForeignOwner { path };
        }
        if stderr.contains("not a git repository") {
            return Self::NoRepository;
        }
        let fatal = stderr.lines().find(|line| line.starts_with("fatal: "));
        let line = fatal.or(stderr.lines().last()).unwrap_or("it told no reason");
        Self::Git(line.trim_start_matches("fatal: ").to_owned())
    }

    /// A stable word for programs.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Hub(_) => "hub",
            Self::NoRepository => "not-a-repository",
            Self::ForeignOwner { .. } => "foreign-owner",
            Self::NoCommits => "no-commits",
            Self::UnknownPath { .. } => "unknown-path",
            Self::UnknownRevision { .. } => "unknown-revision",
            Self::NoReleases => "no-releases",
            Self::NoSuchLine { .. } => "no-such-line",
            Self::Git(_) => "git-failed",
        }
    }
}

fn unknown(what: &str, asked: &str, nearest: &[String], hint: &str) -> String {
    let asked = code(asked);
    if nearest.is_empty() {
        return format!("I know no {what} {asked} in this repository; {hint}");
    }
    let nearest: Vec<String> = nearest.iter().map(|name| code(name)).collect();
    format!("I know no {what} {asked} in this repository; did you mean {}?", nearest.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_owner_is_told_with_the_fix() {
        let stderr =
            "fatal: detected dubious ownership in repository at '/srv/repo'\nTo add an exception …";
        let trouble = Trouble::from_git(stderr);
        assert_eq!(trouble.reason(), "foreign-owner");
        let fix = "`sudo git config --system --add safe.directory /srv/repo`";
        assert!(trouble.to_string().ends_with(fix), "{trouble}");
    }

    #[test]
    fn what_the_hub_says_is_told_in_its_words() {
        let trouble = Trouble::from(Failure::Unavailable("git is not installed".to_owned()));
        assert_eq!(trouble.to_string(), "git is not installed");
    }

    #[test]
    fn the_fatal_line_is_told() {
        let trouble = Trouble::from_git("warning: x\nfatal: bad object 123\n");
        assert!(trouble.to_string().starts_with("git failed: bad object 123;"), "{trouble}");
        assert_eq!(
            Trouble::from_git("fatal: not a git repository: .git").reason(),
            "not-a-repository"
        );
    }
}
