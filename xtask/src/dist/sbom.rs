//! Bill of materials of the program: each crate with its version and licence (CycloneDX), by
//! `cargo-cyclonedx`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use super::{files::VERSION, tree};
use crate::shell::{announce, cargo, run, succeeds, target_dir};

/// Unique name of the file that the tool writes beside each manifest.
const DRAFT: &str = "a2a-hub-sbom-draft";

/// Writes the bill of materials into `to`, and returns its file name.
pub(super) fn list(root: &Path, epoch: u64, to: &Path) -> Result<String> {
    let tool = tool(root)?;
    let mut list = Command::new(&tool);
    list.current_dir(root).arg("cyclonedx").env("SOURCE_DATE_EPOCH", epoch.to_string());
    list.args(["--format", "json", "--spec-version", "1.5", "--no-build-deps"]);
    list.args(["--override-filename", DRAFT]).arg("--manifest-path").arg("host/cli/Cargo.toml");
    let listed = run(&mut list);
    // The tool writes one file for each member of the workspace.
    let drafts = drafts(root)?;
    let program_list = fs::read_to_string(root.join("host/cli").join(format!("{DRAFT}.json")));
    for draft in drafts {
        fs::remove_file(draft)?;
    }
    listed?;
    let text = program_list.context("cargo-cyclonedx left no list for the program")?;
    let name = format!("a2a-hub-{VERSION}.cdx.json");
    // The published file must not contain this machine's path of the workspace.
    let here = root.display().to_string();
    tree::file(to, &name, text.replace(&here, "/a2a-hub").as_bytes(), 0o644)?;
    Ok(name)
}

/// Files that the tool wrote beside manifests.
fn drafts(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![(root.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if name.to_string_lossy() == format!("{DRAFT}.json") {
                found.push(entry.path());
            } else if depth < 3 && entry.file_type()?.is_dir() && name != "target" && name != ".git"
            {
                folders.push((entry.path(), depth + 1));
            }
        }
    }
    Ok(found)
}

/// Path of the tool, installed into `target/tools` if missing.
fn tool(root: &Path) -> Result<PathBuf> {
    let installed = PathBuf::from("cargo-cyclonedx");
    if succeeds(Command::new(&installed).args(["cyclonedx", "--version"])) {
        return Ok(installed);
    }
    let tools = target_dir(root).join("tools");
    let local = tools.join("bin/cargo-cyclonedx");
    if !local.is_file() {
        announce(
            "cargo-cyclonedx lists what the program is made of: installing it into target/tools",
        );
        let mut install = cargo(root);
        install.args(["install", "--locked", "cargo-cyclonedx", "--root"]).arg(&tools);
        run(&mut install).context(
            "no list of what the program is made of without cargo-cyclonedx; where there is a registry, \
             `cargo install --locked cargo-cyclonedx` brings it",
        )?;
    }
    Ok(local)
}
