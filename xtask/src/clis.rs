//! Installs the agents' command line programs at the versions that the tests were written for.

mod newest;
mod python;
mod version;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::shell::{announce, run};

pub(crate) use newest::try_newest;

/// File with all pinned versions.
const PINS: &str = "tests/clis.json";

#[derive(Deserialize)]
struct Pins {
    /// Exact version by npm package.
    npm: BTreeMap<String, String>,
    /// `package==version` by program; the program also names the virtual environment.
    python: BTreeMap<String, String>,
}

/// Manifest of an installed package: only its programs are read.
#[derive(Deserialize)]
struct Package {
    bin: BTreeMap<String, String>,
}

/// Installs every pinned program into `dir` and checks that each one runs.
pub(crate) fn install(root: &Path, dir: &Path) -> Result<()> {
    let pins = read_pins(root)?;
    // npm uses the nearest parent folder that looks like a package, unless this one exists.
    fs::create_dir_all(dir).with_context(|| format!("failed to create {}", dir.display()))?;

    announce(&format!("installing the programs of {PINS} into {}", dir.display()));
    let mut npm = Command::new("npm");
    npm.args(["install", "--save-exact", "--no-audit", "--no-fund", "--prefix"]).arg(dir);
    run(npm.args(specs(&pins))).context("npm comes with Node.js; is it on PATH?")?;

    for (package, version) in &pins.npm {
        for program in programs(dir, package)? {
            version::check(&program, version)?;
        }
    }
    for (program, pin) in &pins.python {
        python::install(&dir.join(program), program, pin)?;
    }
    Ok(())
}

fn read_pins(root: &Path) -> Result<Pins> {
    let text =
        fs::read_to_string(root.join(PINS)).with_context(|| format!("failed to read {PINS}"))?;
    serde_json::from_str(&text).with_context(|| format!("failed to read {PINS}"))
}

/// Arguments of `npm install`: `name@version`.
fn specs(pins: &Pins) -> Vec<String> {
    pins.npm.iter().map(|(name, version)| format!("{name}@{version}")).collect()
}

/// Programs of `package`, at the paths where npm links them.
fn programs(dir: &Path, package: &str) -> Result<Vec<PathBuf>> {
    let modules = dir.join("node_modules");
    let manifest = modules.join(package).join("package.json");
    let text = fs::read_to_string(&manifest)
        .with_context(|| format!("failed to read {}", manifest.display()))?;
    let Package { bin } = serde_json::from_str(&text)
        .with_context(|| format!("failed to find the programs in {}", manifest.display()))?;
    Ok(bin.into_keys().map(|name| modules.join(".bin").join(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_exact_versions() {
        let pins: Pins = serde_json::from_str(include_str!("../../tests/clis.json")).unwrap();
        assert!(!pins.npm.is_empty());
        let python = pins.python.values().map(|pin| pin.split_once("==").unwrap().1);
        for version in pins.npm.values().map(String::as_str).chain(python) {
            assert!(version.split('.').all(|part| part.parse::<u32>().is_ok()), "{version}");
        }
    }

    #[test]
    fn pins_become_npm_specs() {
        let pins: Pins =
            serde_json::from_str(r#"{"npm": {"@a/b": "1.2.3", "c": "4.5.6"}, "python": {}}"#)
                .unwrap();
        assert_eq!(specs(&pins), ["@a/b@1.2.3", "c@4.5.6"]);
    }
}
