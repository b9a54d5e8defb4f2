//! Builds the web page from its sources in `web/` into `web/built`, which is checked in: nobody
//! needs Node.js to build the hub.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use crate::shell::{announce, run};

/// Sources of the page.
const SOURCES: &str = "web";

/// Folder of the sources that holds what they give.
const BUILT: &str = "built";

/// Folder below `target` in which the page is built.
const WORKPLACE: &str = "web";

/// Entries of the sources that belong to no build.
const EXCLUDED: [&str; 2] = [BUILT, "node_modules"];

/// Installs the page's packages, at the versions of its lock file.
pub(crate) fn install(root: &Path) -> Result<()> {
    let work_dir = root.join("target").join(WORKPLACE);
    copy_sources(root, &work_dir)?;
    announce("installing the packages of the web page into target/web");
    run(npm(&work_dir).args(["ci", "--no-audit", "--no-fund"]))
        .context("npm comes with Node.js; is it on PATH?")
}

/// Builds the page anew, and replaces what is checked in.
pub(crate) fn build(root: &Path) -> Result<()> {
    install(root)?;
    let files = built(root)?;
    let checked_in = root.join(SOURCES).join(BUILT);
    if checked_in.exists() {
        fs::remove_dir_all(&checked_in)?;
    }
    write_files(&checked_in, &files)?;
    announce(&format!("{} files are in {SOURCES}/{BUILT}", files.len()));
    Ok(())
}

/// Builds and tests the page in its workplace. Returns the files that it gives.
fn built(root: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let work_dir = root.join("target").join(WORKPLACE);
    copy_sources(root, &work_dir)?;
    run(npm(&work_dir).args(["run", "--silent", "test"]))?;
    run(npm(&work_dir).args(["run", "--silent", "build"]))?;
    files_in(&work_dir.join(BUILT))
}

fn npm(work_dir: &Path) -> Command {
    let mut npm = Command::new("npm");
    npm.current_dir(work_dir);
    npm
}

/// Puts the sources into a folder in place of older ones, and keeps the packages there.
fn copy_sources(root: &Path, work_dir: &Path) -> Result<()> {
    fs::create_dir_all(work_dir)?;
    for entry in fs::read_dir(work_dir)? {
        let entry = entry?;
        if entry.file_name() == "node_modules" {
            continue;
        }
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(path)?;
        } else {
            fs::remove_file(path)?;
        }
    }
    write_files(work_dir, &files_in(&root.join(SOURCES))?)
}

/// Writes files into a folder, by their relative paths.
fn write_files(folder: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> Result<()> {
    for (path, bytes) in files {
        let file = folder.join(path);
        fs::create_dir_all(file.parent().context("a file without a folder")?)?;
        fs::write(file, bytes)?;
    }
    Ok(())
}

/// Files below a folder by their relative paths, without what belongs to no build.
fn files_in(folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        let entries =
            fs::read_dir(&next).with_context(|| format!("failed to read {}", next.display()))?;
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            let is_excluded = EXCLUDED.iter().any(|name| folder.join(name) == path);
            if is_excluded {
                continue;
            }
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.strip_prefix(folder)?.to_owned(), fs::read(&path)?);
            }
        }
    }
    ensure!(!files.is_empty(), "there is nothing in {}", folder.display());
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_page_is_what_its_sources_give() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let given = built(root).unwrap();
        let kept = files_in(&root.join(SOURCES).join(BUILT)).unwrap();
        let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&kept), names(&given), "run `cargo xtask web`");
        for (path, bytes) in given {
            assert!(kept[&path] == bytes, "{} differs: run `cargo xtask web`", path.display());
        }
    }
}
