//! Installs the git hook that checks the subjects of commits.

use crate::shell::output;
use anyhow::{Context as _, Result, bail};
use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

/// Checks the message file that git names as the first argument.
const COMMIT_MSG: &str = include_str!("commit-msg.sh");

/// Line by which this command knows its own hook again.
const OURS: &str = "Installed by `cargo xtask hooks`.";

/// Writes the hook into the hooks folder of the repository at `root`.
///
/// # Errors
/// If `root` is no git repository, or has a hook of another origin, which stays.
pub(crate) fn install(root: &Path) -> Result<()> {
    let git = ["rev-parse", "--path-format=absolute", "--git-path", "hooks"];
    let folder = output(Command::new("git").args(git).current_dir(root))?;
    let hook = Path::new(folder.trim()).join("commit-msg");
    let there = fs::read_to_string(&hook).unwrap_or_default();
    if hook.exists() && !there.contains(OURS) {
        bail!("{} is there already; remove it, or call {COMMIT_MSG:?} from it", hook.display());
    }
    fs::create_dir_all(folder.trim()).context("make the hooks folder")?;
    fs::write(&hook, COMMIT_MSG).with_context(|| format!("write {}", hook.display()))?;
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755))?;
    eprintln!("commits are checked by {}", hook.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(message: &str) -> bool {
        let dir = tempfile::tempdir().unwrap();
        let (hook, file) = (dir.path().join("commit-msg"), dir.path().join("message"));
        fs::write(&hook, COMMIT_MSG).unwrap();
        fs::write(&file, message).unwrap();
        let checked = Command::new("sh").arg(&hook).arg(&file).output().unwrap();
        checked.status.success()
    }

    #[test]
    fn hook_accepts_place_and_imperative_verb() {
        for good in [
            "store: let every caller wake the writer",
            "cli, hub: ask the hub first\n\nA body line that is longer than seventy-two characters, as bodies may be.",
            "# a comment of git\nxtask: install a hook",
            "Merge branch 'x'",
        ] {
            assert!(accepts(good), "{good}");
        }
        for bad in
            ["", "Fix things", "store let", "store: Let", &format!("store: {}", "x".repeat(70))]
        {
            assert!(!accepts(bad), "{bad}");
        }
    }
}
