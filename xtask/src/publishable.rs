//! Check of the packages that authors of agents depend on: two crates, one package of npm, one of
//! Python. Each is packed as a registry wants it; nothing is sent anywhere.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::shell::{announce, cargo, output, run};

/// Name of the SDK on every registry. The name `a2a-hub` belongs to the program.
const SDK: &str = "a2a-hub-sdk";

/// Crates that are published, each with its folder; the first is [`SDK`].
const CRATES: [(&str, &str); 2] = [(SDK, "sdk"), ("a2a-hub-coordination", "sdk/coordination")];

/// Fields of a crate that a registry wants.
const FIELDS: [&str; 4] = ["description", "license", "readme", "version"];

/// Version of all packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Packs each package without building it, and checks its metadata and its files.
pub(crate) fn check(root: &Path) -> Result<()> {
    crates_are_complete(root)?;
    let mut pack = cargo(root);
    // Dependencies come from the lock file, as in every build; a changed file may be packed.
    pack.args(["package", "--locked", "--offline", "--no-verify", "--allow-dirty", "--quiet"]);
    run(pack.args(CRATES.iter().flat_map(|(name, _)| ["--package", name])))?;

    javascript_is_complete(root)?;
    let mut npm = Command::new("npm");
    npm.current_dir(root.join("sdk-js")).args(["pack", "--dry-run", "--json"]);
    let packed: Value = serde_json::from_str(&output(&mut npm).context("npm packs the SDK")?)?;
    for file in ["README.md", "index.d.ts", "src/index.js", "src/testing.js", "build/main.js"] {
        let is_there = packed.to_string().contains(&format!("\"path\":\"{file}\""));
        ensure!(is_there, "npm would not pack {file}; add it to `files` of sdk-js/package.json");
    }

    python_is_complete(root)?;
    announce(&format!("the crates, and {SDK} for npm and Python, can be published"));
    Ok(())
}

/// Checks the metadata of the crates.
fn crates_are_complete(root: &Path) -> Result<()> {
    let mut list = cargo(root);
    list.args(["metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&output(&mut list)?)?;
    for (name, folder) in CRATES {
        let packages = metadata["packages"].as_array().context("cargo lists packages")?;
        let package = packages.iter().find(|package| package["name"] == name);
        let package = package.with_context(|| format!("there is no crate {name}"))?;
        for field in FIELDS {
            let value = package[field].as_str().unwrap_or_default();
            ensure!(!value.is_empty(), "{folder}/Cargo.toml has no `{field}`");
        }
        ensure!(package["publish"].is_null(), "{folder}/Cargo.toml forbids to publish {name}");
        has_readme(root, folder, name)?;
    }
    Ok(())
}

/// Checks the metadata of the package of npm.
fn javascript_is_complete(root: &Path) -> Result<()> {
    let text = fs::read_to_string(root.join("sdk-js/package.json"))?;
    let package: Value = serde_json::from_str(&text)?;
    for (field, expected) in [("name", SDK), ("version", VERSION), ("license", "Apache-2.0")] {
        let value = package[field].as_str().unwrap_or_default();
        ensure!(value == expected, "sdk-js/package.json: `{field}` is `{value}`, not `{expected}`");
    }
    ensure!(package["description"].is_string(), "sdk-js/package.json has no `description`");
    ensure!(package["private"].is_null(), "sdk-js/package.json forbids to publish it");
    has_readme(root, "sdk-js", SDK)
}

/// Checks the metadata of the package of Python.
fn python_is_complete(root: &Path) -> Result<()> {
    let text = fs::read_to_string(root.join("sdk-python/pyproject.toml"))?;
    let project = text.split("\n[").next().unwrap_or_default();
    let fields = [
        ("name", SDK),
        ("version", VERSION),
        ("license", "Apache-2.0"),
        ("readme", "README.md"),
        ("description", ""),
    ];
    for (field, expected) in fields {
        let line = project.lines().find_map(|line| line.strip_prefix(&format!("{field} = \"")));
        let value = line.and_then(|rest| rest.split('"').next());
        let value = value.with_context(|| format!("sdk-python/pyproject.toml has no `{field}`"))?;
        let is_right = expected.is_empty() || value == expected;
        ensure!(is_right, "sdk-python/pyproject.toml: `{field}` is `{value}`, not `{expected}`");
    }
    has_readme(root, "sdk-python", SDK)
}

/// Checks that the folder has a README that begins with the package's name.
fn has_readme(root: &Path, folder: &str, name: &str) -> Result<()> {
    let path = root.join(folder).join("README.md");
    let text = fs::read_to_string(&path).with_context(|| format!("no {}", path.display()))?;
    ensure!(text.starts_with(&format!("# {name}\n")), "{folder}/README.md: begin with `# {name}`");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
    }

    #[test]
    fn sdk_packages_have_complete_metadata() {
        javascript_is_complete(root()).unwrap();
        python_is_complete(root()).unwrap();
    }

    #[test]
    fn program_and_sdk_have_different_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["sdk-js", "sdk-python"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("README.md"), format!("# {SDK}\n")).unwrap();
        }
        for file in ["sdk-js/package.json", "sdk-python/pyproject.toml"] {
            let text = fs::read_to_string(root().join(file)).unwrap().replace(SDK, "a2a-hub");
            fs::write(folder.path().join(file), text).unwrap();
        }
        let refused = javascript_is_complete(folder.path()).unwrap_err().to_string();
        assert_eq!(refused, "sdk-js/package.json: `name` is `a2a-hub`, not `a2a-hub-sdk`");
        let refused = python_is_complete(folder.path()).unwrap_err().to_string();
        assert_eq!(refused, "sdk-python/pyproject.toml: `name` is `a2a-hub`, not `a2a-hub-sdk`");
    }
}
