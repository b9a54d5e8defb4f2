//! Agents in Python and JavaScript: the tools that make components of them, at the versions that
//! the SDKs pin, and the components that the tests run. Each is built in a copy of its folder, as
//! in a separate project.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::SystemTime,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::shell::{announce, run};

/// File with the exact versions of sdk-js's packages.
const SDK_JS: &str = "sdk-js/package.json";

/// File with the exact version of sdk-python's package.
const SDK_PYTHON: &str = "sdk-python/pyproject.toml";

/// Folders whose copies must equal those of the repository.
const SHARED: [&str; 3] = ["sdk-python", "sdk-js", "wit"];

/// Generated folders. (`build` of sdk-js is not one.)
const GENERATED: [&str; 4] = ["node_modules", "__pycache__", "dist", ".venv"];

#[derive(Clone, Copy)]
enum Language {
    Python,
    JavaScript,
}

/// Projects to build: folder, and name of the component.
const PROJECTS: [(&str, &str, Language); 4] = [
    ("tests/languages/js", "js-guest", Language::JavaScript),
    ("examples/link-checker", "link-checker", Language::JavaScript),
    ("tests/languages/python", "python-guest", Language::Python),
    ("examples/data-analyst", "data-analyst", Language::Python),
];

/// Installs the tools below `dir`, and builds missing or outdated components into it.
pub(crate) fn install(root: &Path, dir: &Path) -> Result<()> {
    announce(&format!("agents in Python and JavaScript, into {}", dir.display()));
    fs::create_dir_all(dir).with_context(|| format!("failed to create {}", dir.display()))?;
    let dir = dir.canonicalize()?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--save-exact", "--no-audit", "--no-fund", "--prefix"]).arg(&dir);
    run(npm.args(packages(root)?)).context("npm comes with Node.js; is it on PATH?")?;
    // A copy as npm would install it, so that it finds its tools beside it.
    copy(&root.join("sdk-js"), &dir.join("node_modules/a2a-hub-sdk"))?;
    let python = dir.join("venv");
    run(Command::new("python3").args(["-m", "venv"]).arg(&python))
        .context("Python's `venv` comes in a package of its own on Debian: python3-venv")?;
    let mut pip = Command::new(python.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    run(pip.arg(componentize_py(root)?)).context("it wants Python 3.11 or newer")?;
    let shared = SHARED.map(|folder| root.join(folder));
    let shared = shared.iter().map(|folder| newest(folder)).collect::<Result<Vec<_>>>()?;
    for (folder, name, language) in PROJECTS {
        let (from, to) = (root.join(folder), dir.join(name));
        let component = to.join("dist").join(format!("{name}.wasm"));
        let latest_source = shared.iter().copied().chain([newest(&from)?]).max();
        if component.metadata().and_then(|it| it.modified()).ok() >= latest_source {
            announce(&format!("{name} is as new as what it is made of"));
            continue;
        }
        copy(&from, &to)?;
        copy(&root.join("wit"), &to.join("vendor/wit"))?;
        run(&mut build(root, &dir, &to, language))?;
    }
    Ok(())
}

/// Command that builds a project.
fn build(root: &Path, dir: &Path, project: &Path, language: Language) -> Command {
    let mut build = match language {
        Language::Python => {
            let mut python = Command::new(dir.join("venv/bin/python"));
            python.args(["-B", "-m", "a2a_hub.build"]).env("PYTHONPATH", root.join("sdk-python"));
            python
        }
        Language::JavaScript => {
            let mut node = Command::new("node");
            node.arg(dir.join("node_modules/a2a-hub-sdk/build/main.js"));
            node
        }
    };
    build.current_dir(project);
    build
}

/// Arguments of npm, each `name@version`.
fn packages(root: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(root.join(SDK_JS)).with_context(|| SDK_JS.to_owned())?;
    let package: Value = serde_json::from_str(&text).with_context(|| SDK_JS.to_owned())?;
    let all = package["dependencies"].as_object().context("sdk-js is made of nothing")?;
    let pins = all.iter().map(|(name, version)| {
        let version = version.as_str().unwrap_or_default();
        ensure!(is_exact(version), "{name} of {SDK_JS} is not at one exact version: `{version}`");
        Ok(format!("{name}@{version}"))
    });
    pins.collect()
}

/// Argument of pip: `componentize-py==version`.
fn componentize_py(root: &Path) -> Result<String> {
    let text = fs::read_to_string(root.join(SDK_PYTHON)).with_context(|| SDK_PYTHON.to_owned())?;
    let pin = text.split('"').find(|word| word.starts_with("componentize-py=="));
    let pin = pin.with_context(|| format!("{SDK_PYTHON} pins no componentize-py"))?;
    ensure!(pin.split_once("==").is_some_and(|(_, version)| is_exact(version)), "{pin}");
    Ok(pin.to_owned())
}

fn is_exact(version: &str) -> bool {
    let parts = version.split('.').map(|part| part.parse::<u32>());
    parts.clone().count() == 3 && { parts }.all(|part| part.is_ok())
}

/// Latest modification time of the files below a folder.
fn newest(folder: &Path) -> Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    for file in files(folder)? {
        newest = newest.max(folder.join(file).metadata()?.modified()?);
    }
    Ok(newest)
}

/// Copies the files of a folder, replacing the target.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| format!("failed to remove {}", to.display()))?;
    }
    for file in files(from)? {
        let (source, target) = (from.join(&file), to.join(&file));
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::copy(&source, &target)
            .with_context(|| format!("failed to copy {}", source.display()))?;
    }
    Ok(())
}

/// Files below a folder, without generated ones.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut open) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(relative) = open.pop() {
        let directory = folder.join(&relative);
        for entry in fs::read_dir(&directory).with_context(|| directory.display().to_string())? {
            let entry = entry?;
            let name = entry.file_name();
            if !entry.file_type()?.is_dir() {
                found.push(relative.join(name));
            } else if GENERATED.iter().all(|generated| name != *generated) {
                open.push(relative.join(name));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
    }

    #[test]
    fn tool_versions_are_exact_and_consistent() {
        let packages = packages(root()).unwrap();
        assert!(packages.iter().any(|it| it.starts_with("componentize-qjs@")), "{packages:?}");
        let pin = componentize_py(root()).unwrap();
        let version = pin.split_once("==").unwrap().1;
        for file in ["templates/python/pyproject.toml", "sdk-python/a2a_hub/build.py"] {
            let text = fs::read_to_string(root().join(file)).unwrap();
            assert!(text.contains(&format!("\"{version}\"")), "{file} names another than {pin}");
        }
        assert!(!is_exact("^1.2.3") && !is_exact("1.2") && is_exact("0.25.1"));
    }

    #[test]
    fn copy_omits_generated_folders() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for file in ["a.py", "src/b.js", "node_modules/x/y.js", "__pycache__/a.pyc", "dist/a.wasm"]
        {
            let file = from.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "x").unwrap();
        }
        let to = to.path().join("copy");
        fs::create_dir(&to).unwrap();
        fs::write(to.join("old"), "").unwrap();
        copy(from.path(), &to).unwrap();
        let mut found = files(&to).unwrap();
        found.sort();
        assert_eq!(found, [PathBuf::from("a.py"), PathBuf::from("src/b.js")]);
        assert!(newest(from.path()).unwrap() > SystemTime::UNIX_EPOCH);
    }
}
