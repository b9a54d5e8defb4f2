//! Reproducible folders and archives: modes, owners, times and order do not depend on the builder.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use crate::shell::run;

/// Creates an empty folder at `dir`, deleting an existing one.
pub(super) fn afresh(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("failed to clear {}", dir.display()))?;
    }
    fs::create_dir_all(dir).with_context(|| format!("failed to make {}", dir.display()))
}

/// Writes a file at `relative` below `top`, with folders that everybody may read.
pub(super) fn file(top: &Path, relative: &str, bytes: &[u8], mode: u32) -> Result<()> {
    let path = top.join(relative);
    let folders: Vec<PathBuf> = path.ancestors().skip(1).map(Path::to_owned).collect();
    for folder in folders.iter().rev().filter(|folder| folder.starts_with(top)) {
        fs::create_dir_all(folder)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    }
    fs::write(&path, bytes).with_context(|| format!("failed to write {}", path.display()))?;
    Ok(fs::set_permissions(&path, fs::Permissions::from_mode(mode))?)
}

/// Packs the folder `name` in `dir` with the times `epoch`; `is_quick` compresses little.
pub(super) fn tarball(
    dir: &Path,
    name: &str,
    (epoch, is_quick): (u64, bool),
    to: &Path,
) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.args([
        "--create",
        "--sort=name",
        "--format=gnu",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
    ]);
    // `gzip -n` writes neither a name nor a time.
    tar.args(["--use-compress-program", if is_quick { "gzip -1n" } else { "gzip -9n" }])
        .arg(format!("--mtime=@{epoch}"));
    run(tar.arg("--file").arg(to).arg("--directory").arg(dir).arg(name))
        .context("GNU tar and gzip make the tarball")
}

/// Compresses a file, and deletes the original.
pub(super) fn gzip(path: &Path) -> Result<()> {
    run(Command::new("gzip").arg("-9n").arg(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_depends_only_on_contents() {
        let dir = tempfile::tempdir().unwrap();
        let packed = |name: &str, order: [&str; 2], epoch| {
            let top = dir.path().join(name).join("top");
            for place in order {
                file(&top, place, place.as_bytes(), 0o644).unwrap();
            }
            let to = dir.path().join(format!("{name}.tar.gz"));
            tarball(&dir.path().join(name), "top", (epoch, false), &to).unwrap();
            fs::read(to).unwrap()
        };
        let one = packed("one", ["a/b", "c"], 1);
        assert_eq!(one, packed("two", ["c", "a/b"], 1));
        assert_ne!(one, packed("three", ["c", "a/b"], 2));
        let mode = |place: &str| fs::metadata(dir.path().join(place)).unwrap().permissions().mode();
        assert_eq!((mode("one/top/a") & 0o777, mode("one/top/a/b") & 0o777), (0o755, 0o644));
    }

    #[test]
    fn afresh_empties_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("a/b");
        for _ in 0..2 {
            afresh(&place).unwrap();
            assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
            fs::write(place.join("old"), "").unwrap();
        }
    }
}
