//! Errors of worktrees. Each one names the rule and the way out.

use std::io;

/// Reason why an operation on a worktree failed.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// The program git is not installed.
    #[error("worktrees need the program `git`, 2.38 or newer; install it and restart the hub")]
    NoGit,
    /// The directory is in no repository.
    #[error(
        "`{0}` is in no git repository; make one there: `git init && git add -A && git commit -m start`"
    )]
    NoRepository(String),
    /// The base names no commit.
    #[error("the repository has no commit `{_0}`{hint}", hint = hint_of_base(_0))]
    NoBase(String),
    /// The repository has a form that worktrees cannot be made of.
    #[error("{0}")]
    Unsupported(String),
    /// The task has no worktree.
    #[error(
        "task `{0}` has no worktree: it got none (`a2a-hub send --worktree` gives a task one), or it changed nothing; `a2a-hub worktrees` lists them"
    )]
    NotFound(String),
    /// The files of the worktree cannot be taken over.
    #[error("{0}")]
    Refused(String),
    /// Both sides changed the same lines. Nothing was changed.
    #[error("the changes conflict with those of the checkout in {}; nothing was changed. Take them as a branch, and merge it: \
        `a2a-hub task apply {task} --branch NAME`", listed(.paths))]
    Conflict {
        /// The task.
        task: String,
        /// Files with conflicts.
        paths: Vec<String>,
    },
    /// The changes contain files that programs obey; the operator must agree. Nothing was changed.
    #[error("the changes contain files that programs obey: {}; read them (`a2a-hub task diff {task}`), then agree: \
        `a2a-hub task apply {task} --yes`", listed(.paths))]
    Sensitive {
        /// The task.
        task: String,
        /// Files with the reason, as `PATH (REASON)`.
        paths: Vec<String>,
    },
    /// A program that sets the worktree up failed, or took too long.
    #[error("set up the worktree: `{command}` {end}{lines}", lines = last_lines(.output))]
    Setup {
        /// Program and arguments.
        command: String,
        /// Its end, such as `exited with 1`.
        end: String,
        /// Last lines of its output.
        output: String,
    },
    /// Git failed.
    #[error("git {step}: {stderr}")]
    Git {
        /// Subcommand.
        step: String,
        /// Last lines of its standard error, at most 1,000 characters.
        stderr: String,
    },
    /// Output of git exceeds its limit.
    #[error("git {step}: the output is larger than {limit} bytes")]
    TooLarge {
        /// Subcommand.
        step: String,
        /// Limit in bytes.
        limit: usize,
    },
    /// Git ran longer than its limit.
    #[error("git {step}: it was ended after {seconds} seconds")]
    TimedOut {
        /// Subcommand.
        step: String,
        /// Limit in seconds.
        seconds: u64,
    },
    /// Git could not be started.
    #[error(transparent)]
    Start(#[from] a2a_hub_process::SpawnError),
    /// The disk failed.
    #[error("worktree: {0}")]
    Disk(#[source] io::Error),
}

impl WorktreeError {
    pub(crate) const fn disk(why: io::Error) -> Self {
        Self::Disk(why)
    }

    /// The error of git as a refusal, if what git said fits.
    pub(crate) fn refused_if(
        self,
        fits: impl Fn(&str) -> bool,
        text: impl Fn(&str) -> String,
    ) -> Self {
        if let Self::Git { stderr, .. } = &self
            && fits(stderr)
        {
            return Self::Refused(text(stderr));
        }
        self
    }

    /// True if the request must change; false if the machine or the repository failed.
    pub fn is_callers_fault(&self) -> bool {
        match self {
            Self::NoRepository(_)
            | Self::NoBase(_)
            | Self::Unsupported(_)
            | Self::NotFound(_)
            | Self::Refused(_)
            | Self::Conflict { .. }
            | Self::Sensitive { .. }
            | Self::Setup { .. } => true,
            Self::NoGit
            | Self::Git { .. }
            | Self::TooLarge { .. }
            | Self::TimedOut { .. }
            | Self::Start(_)
            | Self::Disk(_) => false,
        }
    }
}

fn hint_of_base(base: &str) -> &'static str {
    match base {
        "HEAD" => "; a worktree needs a first commit: `git add -A && git commit -m start`",
        _ => "; name a branch, a tag or a commit of it",
    }
}

fn last_lines(output: &str) -> String {
    if output.is_empty() { String::new() } else { format!("; its last lines:\n{output}") }
}

/// The first ten paths.
fn listed(paths: &[String]) -> String {
    let shown: Vec<_> = paths.iter().take(10).map(|path| format!("`{path}`")).collect();
    let rest = paths.len().saturating_sub(10);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}
