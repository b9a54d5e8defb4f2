//! Packages for npm: `a2a-hub`, which has the command, and one package per system with the program.
//! npm installs the package of the user's system, because the others name another `os` or `cpu`.

use std::{env::consts::ARCH, fs, path::Path};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::{
    files::{Files, VERSION},
    glibc, tree,
};

/// Folder with the files of the package `a2a-hub`.
const SOURCES: &str = "packaging/npm";

/// Systems that have a package, as npm names them.
const SYSTEMS: [&str; 2] = ["linux-x64", "linux-arm64"];

/// Packs `files` for npm into `to`, and returns the names of both packages.
///
/// Neither has a script for installation, because npm warns of those or skips them.
pub(super) fn packages(
    files: &Files,
    (epoch, is_quick): (u64, bool),
    to: &Path,
) -> Result<Vec<String>> {
    let system = system(ARCH)?;
    let scratch = to.join(".npm");
    let mut packed = Vec::new();
    let licence = fs::read(files.root.join("LICENSE"))?;
    // A package of npm is a tarball of a folder of this name.
    let top = scratch.join("package");
    let mut pack = |name: &str| {
        let file = format!("{name}-{VERSION}.tgz");
        tree::tarball(&scratch, "package", (epoch, is_quick), &to.join(&file))?;
        packed.push(file);
        anyhow::Ok(())
    };

    tree::afresh(&scratch)?;
    tree::file(&top, "package.json", &json(&of_system(system, &files.program)), 0o644)?;
    let readme = format!(
        "# @a2a-hub/{system}\n\nThe program of `a2a-hub` for {system}. Install `a2a-hub`.\n"
    );
    tree::file(&top, "README.md", readme.as_bytes(), 0o644)?;
    tree::file(&top, "LICENSE", &licence, 0o644)?;
    tree::file(&top, "bin/a2a-hub", &files.program, 0o755)?;
    pack(&format!("a2a-hub-{system}"))?;

    tree::afresh(&scratch)?;
    tree::file(&top, "package.json", &json(&of_command()), 0o644)?;
    tree::file(&top, "LICENSE", &licence, 0o644)?;
    for (source, target, mode) in [
        ("README.md", "README.md", 0o644),
        ("a2a-hub.js", "bin/a2a-hub", 0o755),
        ("program.js", "program.js", 0o644),
    ] {
        let path = files.root.join(SOURCES).join(source);
        let bytes =
            fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
        tree::file(&top, target, &bytes, mode)?;
    }
    pack("a2a-hub")?;
    fs::remove_dir_all(scratch)?;
    Ok(packed)
}

/// System of an architecture, as npm names it.
fn system(architecture: &str) -> Result<&'static str> {
    Ok(match architecture {
        "x86_64" => "linux-x64",
        "aarch64" => "linux-arm64",
        other => bail!("npm has no package for {other}"),
    })
}

/// `package.json` of the package with the program.
fn of_system(system: &str, program: &[u8]) -> Value {
    let (os, cpu) = system.split_once('-').unwrap_or((system, ""));
    let mut manifest =
        common(&format!("@a2a-hub/{system}"), &format!("Program of a2a-hub for {system}"));
    manifest["os"] = json!([os]);
    manifest["cpu"] = json!([cpu]);
    manifest["preferUnplugged"] = json!(true);
    if let Some((major, minor)) = glibc::newest(program) {
        manifest["libc"] = json!(["glibc"]);
        manifest["a2aHub"] = json!({ "glibc": format!("{major}.{minor}") });
    }
    manifest
}

/// `package.json` of the package with the command.
fn of_command() -> Value {
    let mut manifest = common("a2a-hub", "Host of A2A agents as sandboxed WebAssembly components");
    manifest["bin"] = json!({ "a2a-hub": "bin/a2a-hub" });
    manifest["engines"] = json!({ "node": ">=18" });
    manifest["optionalDependencies"] =
        SYSTEMS.iter().map(|system| (format!("@a2a-hub/{system}"), json!(VERSION))).collect();
    manifest
}

fn common(name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "version": VERSION,
        "description": description,
        "license": "Apache-2.0",
        "keywords": ["a2a", "agents", "mcp", "acp", "wasm"],
    })
}

fn json(value: &Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_depends_on_each_system_optionally() {
        let command = of_command();
        for system in SYSTEMS {
            let package = of_system(system, b"\0GLIBC_2.28\0");
            let name = package["name"].as_str().unwrap();
            assert_eq!(command["optionalDependencies"][name], package["version"]);
            assert_eq!(package["a2aHub"]["glibc"], "2.28");
        }
        assert_eq!(system("aarch64").unwrap(), "linux-arm64");
        assert!(system("riscv64").is_err());
    }

    #[test]
    fn script_requires_no_glibc() {
        let package = of_system("linux-x64", b"#!/bin/sh");
        assert_eq!((&package["os"], &package["cpu"]), (&json!(["linux"]), &json!(["x64"])));
        assert!(package["libc"].is_null());
    }
}
