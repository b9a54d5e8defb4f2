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
const LEFT_OUT: [&str; 2] = [BUILT, "node_modules"];

/// Installs the page's packages, at the versions of its lock file.
pub(crate) fn install(root: &Path) -> Result<()> {
    let place = root.join("target").join(WORKPLACE);
    copy_sources(root, &place)?;
    announce("installing the packages of the web page into target/web");
    run(npm(&place).args(["ci", "--no-audit", "--no-fund"]))
        .context("npm comes with Node.js; is it on PATH?")
}

/// Builds the page anew, and replaces what is checked in.
pub(crate) fn build(root: &Path) -> Result<()> {
    install(root)?;
    let files = built(root)?;
    let place = root.join(SOURCES).join(BUILT);
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    for (path, bytes) in &files {
        let file = place.join(path);
        fs::create_dir_all(file.parent().context("a file without a folder")?)?;
        fs::write(file, bytes)?;
    }
    announce(&format!("{} files are in {SOURCES}/{BUILT}", files.len()));
    Ok(())
}

/// Builds and tests the page in its workplace. Returns the files that it gives.
fn built(root: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let place = root.join("target").join(WORKPLACE);
    copy_sources(root, &place)?;
    run(npm(&place).args(["run", "--silent", "test"]))?;
    run(npm(&place).args(["run", "--silent", "build"]))?;
    files_below(&place.join(BUILT))
}

fn npm(place: &Path) -> Command {
    let mut npm = Command::new("npm");
    npm.current_dir(place);
    npm
}

/// Puts the sources into a folder in place of older ones, and keeps the packages there.
fn copy_sources(root: &Path, place: &Path) -> Result<()> {
    fs::create_dir_all(place)?;
    for entry in fs::read_dir(place)? {
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
    let sources = root.join(SOURCES);
    for (path, bytes) in files_below(&sources)? {
        let file = place.join(path);
        fs::create_dir_all(file.parent().context("a file without a folder")?)?;
        fs::write(file, bytes)?;
    }
    Ok(())
}

/// Files below a folder by their relative paths, without what belongs to no build.
fn files_below(folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        let entries =
            fs::read_dir(&next).with_context(|| format!("failed to read {}", next.display()))?;
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            let is_left_out = LEFT_OUT.iter().any(|name| folder.join(name) == path);
            if is_left_out {
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
        let kept = files_below(&root.join(SOURCES).join(BUILT)).unwrap();
        let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&kept), names(&given), "run `cargo xtask web`");
        for (path, bytes) in given {
            assert!(kept[&path] == bytes, "{} differs: run `cargo xtask web`", path.display());
        }
    }
}
