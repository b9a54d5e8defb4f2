//! Git repositories, made and read as a user does.

use anyhow::{Result, ensure};
use std::{fs, path::Path, process::Command};

/// Runs git in a directory, without the settings of this machine; returns its output.
///
/// # Errors
/// Git fails: its error output.
#[expect(clippy::disallowed_methods, reason = "the user runs git")]
pub fn git(directory: &Path, args: &[&str]) -> Result<String> {
    let mut git = Command::new("git");
    git.current_dir(directory).args(["-c", "user.name=Ann", "-c", "user.email=ann@a.b"]);
    let done = git.args(args).env("GIT_CONFIG_GLOBAL", "/dev/null").output()?;
    ensure!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(String::from_utf8(done.stdout)?.trim().to_owned())
}

/// Makes a directory with the file `a` and one commit on the branch `main`.
///
/// # Errors
/// The directory exists, or git fails.
pub fn make_repository(directory: &Path) -> Result<()> {
    fs::create_dir(directory)?;
    fs::write(directory.join("a"), "a\n")?;
    commit_all(directory)
}

/// Makes a directory a repository, and commits its files to the branch `main`.
///
/// # Errors
/// Git fails.
pub fn commit_all(directory: &Path) -> Result<()> {
    git(directory, &["init", "-q", "-b", "main"])?;
    git(directory, &["add", "-A"])?;
    git(directory, &["commit", "-q", "-m", "start"])?;
    Ok(())
}
