//! Installs the official SDKs and suites by which the tests drive the hub, at the versions that the
//! tests were written for.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::shell::{announce, run};

/// File with all pinned versions.
const PINS: &str = "tests/sdks.json";

/// Packages by folder: two versions of one package are two folders.
#[derive(Deserialize)]
struct Pins {
    /// Each `name@version`.
    npm: BTreeMap<String, Vec<String>>,
    /// Each `name==version`.
    python: BTreeMap<String, Vec<String>>,
}

/// Installs every pinned SDK into a separate folder below `dir`, keeping existing ones.
pub(crate) fn install(root: &Path, dir: &Path) -> Result<()> {
    let text =
        fs::read_to_string(root.join(PINS)).with_context(|| format!("failed to read {PINS}"))?;
    let pins: Pins =
        serde_json::from_str(&text).with_context(|| format!("failed to read {PINS}"))?;
    announce(&format!("installing the SDKs of {PINS} into {}", dir.display()));
    for (name, specs) in &pins.npm {
        let folder = dir.join(name);
        // npm uses the nearest parent folder that looks like a package, unless this one exists.
        fs::create_dir_all(&folder)
            .with_context(|| format!("failed to create {}", folder.display()))?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--save-exact", "--no-audit", "--no-fund", "--prefix"]).arg(&folder);
        run(npm.args(specs)).context("npm comes with Node.js; is it on PATH?")?;
    }
    for (name, specs) in &pins.python {
        let folder = dir.join(name);
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder))
            .context("Python's `venv` comes in a package of its own on Debian: python3-venv")?;
        let mut pip = Command::new(folder.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        run(pip.args(specs))
            .context("the SDKs want Python 3.10 or newer; see `python3 --version`")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_exact_versions() {
        let pins: Pins = serde_json::from_str(include_str!("../../tests/sdks.json")).unwrap();
        assert!(!pins.npm.is_empty() && !pins.python.is_empty());
        let npm = pins.npm.values().flatten().map(|pin| pin.rsplit_once('@').unwrap().1);
        let python = pins.python.values().flatten().map(|pin| pin.split_once("==").unwrap().1);
        for version in npm.chain(python) {
            assert!(version.split('.').all(|part| part.parse::<u32>().is_ok()), "{version}");
        }
    }
}
