//! Content of the packages, independent of paths.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use crate::shell::output;

/// Version of every crate of the workspace.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Shells with packed completions.
const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// Content of the packages, independent of paths.
pub(super) struct Files {
    pub(super) root: PathBuf,
    pub(super) program: Vec<u8>,
    /// Completion script of each shell.
    pub(super) completions: Vec<(&'static str, String)>,
    /// Manual pages: name without the section, and text.
    pub(super) pages: Vec<(String, String)>,
    /// Systemd unit for a program in the user's home.
    pub(super) unit: String,
}

impl Files {
    /// Collects the files. The program itself generates its manual and its completions.
    pub(super) fn collect(root: &Path, program: &Path) -> Result<Self> {
        let output_of = |arguments: &[&str]| {
            let mut command = Command::new(program);
            // The configuration of this machine's user must not affect the packages.
            command.env_clear().env("HOME", "/nonexistent").args(arguments);
            output(&mut command).map(|text| text + "\n")
        };
        let mut completions = Vec::new();
        for shell in SHELLS {
            completions.push((shell, output_of(&["completions", shell])?));
        }
        let manual = output_of(&["man"])?;
        let mut pages = Vec::new();
        for command in commands(&manual) {
            pages.push((format!("a2a-hub-{command}"), output_of(&["man", command])?));
        }
        ensure!(!pages.is_empty(), "the manual of {} names no command", program.display());
        pages.push(("a2a-hub".to_owned(), manual));
        Ok(Self {
            root: root.to_owned(),
            program: fs::read(program)?,
            completions,
            pages,
            unit: fs::read_to_string(root.join("packaging/a2a-hub.service"))
                .context("failed to read packaging/a2a-hub.service")?,
        })
    }
}

/// Commands that a manual page refers to as `a2a-hub-<command>(1)`.
fn commands(page: &str) -> Vec<&str> {
    let named = page.lines().filter_map(|line| line.strip_prefix("a2a\\-hub\\-"));
    // `help` has no page.
    named.filter_map(|rest| rest.strip_suffix("(1)")).filter(|name| *name != "help").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_from_manual() {
        let page = ".TP\na2a\\-hub\\-start(1)\nStart the hub\n.TP\na2a\\-hub\\-help(1)\nHelp\n";
        assert_eq!(commands(page), ["start"]);
    }
}
