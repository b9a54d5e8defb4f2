//! Programs written in Python, each in a separate virtual environment.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use super::version;
use crate::shell::{announce, output, run, succeeds};

/// Oldest Python version that all of them support.
const OLDEST: (u32, u32) = (3, 12);

/// Installs `pin`, such as `package==1.2.3`, into the environment `dir`, unless it is installed.
pub(super) fn install(dir: &Path, name: &str, pin: &str) -> Result<()> {
    let Some((_, version)) = pin.split_once("==") else {
        bail!("`{pin}` is no exact version; write `package==1.2.3`");
    };
    let program = dir.join("bin").join(name);
    if program.is_file() && version::check(&program, version).is_ok() {
        return Ok(());
    }
    announce(&format!("installing {pin} into {}", dir.display()));
    run(Command::new(python()?).args(["-m", "venv", "--clear"]).arg(dir))
        .context("Python's `venv` comes in a package of its own on Debian: python3-venv")?;
    let mut pip = Command::new(dir.join("bin/python"));
    run(pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", pin]))?;
    version::check(&program, version)
}

/// Installs the newest version of `package` into the environment `dir`, and returns the version.
pub(super) fn install_newest(dir: &Path, package: &str) -> Result<String> {
    run(Command::new(python()?).args(["-m", "venv", "--clear"]).arg(dir))?;
    let pip = || {
        let mut pip = Command::new(dir.join("bin/python"));
        pip.args(["-m", "pip", "--disable-pip-version-check"]);
        pip
    };
    run(pip().args(["install", "--quiet", package]))?;
    let shown = output(pip().args(["show", package]))?;
    let version = shown.lines().find_map(|line| line.strip_prefix("Version: "));
    version.map(str::to_owned).with_context(|| format!("pip does not say which {package} this is"))
}

/// Newest sufficient Python: from `PATH`, or from pyenv.
fn python() -> Result<PathBuf> {
    let (major, oldest) = OLDEST;
    let named =
        (oldest..=oldest + 8).rev().map(|minor| PathBuf::from(format!("python{major}.{minor}")));
    let found = named.chain(of_pyenv()).find(|python| {
        // pyenv installs shims even for versions that are not selected.
        succeeds(Command::new(python).args(["-c", "import venv"]))
    });
    found.with_context(|| {
        format!(
            "no Python {major}.{oldest} or newer: none on PATH (python{major}.{oldest}, ...) and none of pyenv's; \
             install one, for example with `pyenv install {major}.{oldest}`"
        )
    })
}

/// Sufficient versions of pyenv, newest first.
fn of_pyenv() -> Vec<PathBuf> {
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".pyenv"));
    let Some(root) = env::var_os("PYENV_ROOT").map(PathBuf::from).or_else(home) else {
        return Vec::new();
    };
    let entries = fs::read_dir(root.join("versions")).into_iter().flatten().flatten();
    let mut versions: Vec<_> = entries
        .filter_map(|entry| Some((version(entry.file_name().to_str()?)?, entry.path())))
        .filter(|(version, _)| *version >= OLDEST)
        .collect();
    versions.sort();
    versions.into_iter().rev().map(|(_, path)| path.join("bin/python")).collect()
}

/// Parses "3.12.1" as (3, 12).
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_versions_are_compared_by_number() {
        assert_eq!(version("3.12.1"), Some((3, 12)));
        assert_eq!(version("3.9.18").map(|version| version >= OLDEST), Some(false));
        assert_eq!(version("3.14.0rc1").map(|version| version >= OLDEST), Some(true));
        assert_eq!(version("pypy3.10-7.3"), None);
    }
}
