//! Builds the components of this repository, by the toolchain that `host/toolchain` finds.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use a2a_hub_toolchain::{Cargo, DEBIAN_PACKAGES, TARGET, Toolchain, advice, debian_lacks};
use anyhow::{Context as _, Result, bail};

use crate::shell::{announce, output, run};

/// Profile of the root manifest for guests: small, since components are embedded in the hub's
/// binary.
const PROFILE: &str = "guest";

/// Guests of the end-to-end tests, good and bad, which are not real agents.
const TEST_GUESTS: [&str; 5] =
    ["test-guests", "picky-guest", "kit-guest", "durable-guest", "faulty-guest"];

/// Selection of components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// Agents that are embedded in the hub.
    Agents,
    /// Agents of `examples/` and guests of the tests as well.
    All,
}

/// Builds these components, and returns their paths: `target/components/<package>.wasm`.
pub(crate) fn build(root: &Path, which: Which) -> Result<Vec<PathBuf>> {
    let mut packages = packages_in(&root.join("guest-agents"))?;
    if which == Which::All {
        packages.extend(packages_in(&root.join("examples/agents"))?);
        packages.extend(TEST_GUESTS.map(str::to_owned));
    }

    // A separate directory, since the compiler may differ from the workspace's.
    let target_dir = root.join("target/guests");
    let mut cargo = command(&toolchain()?.cargo());
    cargo.current_dir(root).args(["build", "--locked", "--profile", PROFILE, "--target", TARGET]);
    cargo.arg("--target-dir").arg(&target_dir);
    for package in &packages {
        cargo.args(["--package", package]);
    }
    run(&mut cargo)?;

    let components = root.join("target/components");
    fs::create_dir_all(&components)?;
    let built = target_dir.join(TARGET).join(PROFILE);
    packages.iter().map(|package| publish(package, &built, &components)).collect()
}

/// Packages in a folder, named after their subfolders.
fn packages_in(dir: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("failed to read {}", dir.display()))? {
        let entry = entry?;
        if entry.path().join("Cargo.toml").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Copies the component of `package` unless it is unchanged, so that the hub is rebuilt only for
/// changes.
fn publish(package: &str, built: &Path, components: &Path) -> Result<PathBuf> {
    let from = built.join(package.replace('-', "_")).with_extension("wasm");
    let to = components.join(package).with_extension("wasm");
    let bytes = fs::read(&from).with_context(|| {
        format!("{package} left no {}: its library must be a `cdylib`", from.display())
    })?;
    if fs::read(&to).is_ok_and(|old| old == bytes) {
        return Ok(to);
    }
    fs::write(&to, bytes).with_context(|| format!("failed to write {}", to.display()))?;
    Ok(to)
}

/// Finds a toolchain for WebAssembly; as root on Debian, installs one if missing.
fn toolchain() -> Result<Toolchain> {
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"])).ok();
    let sysroot = sysroot.as_deref().map(Path::new);
    if let Some(found) = Toolchain::find(sysroot) {
        return Ok(found);
    }
    if !can_apt_get() {
        bail!("this Rust cannot compile for {TARGET}; {}", advice());
    }
    announce(&format!("this Rust cannot compile for {TARGET}: installing Debian's"));
    apt_get_install().with_context(|| {
        format!("Debian's Rust could not be installed; instead, run `rustup target add {TARGET}`")
    })?;
    match debian_lacks().first() {
        None => Ok(Toolchain::Debian),
        Some(piece) => bail!(
            "Debian's packages left no {}; instead, run `rustup target add {TARGET}`",
            piece.display()
        ),
    }
}

/// Command that starts a cargo.
fn command(cargo: &Cargo) -> Command {
    let mut command = Command::new(cargo.program);
    for name in &cargo.unset {
        command.env_remove(name);
    }
    command.args(&cargo.args).envs(cargo.set.iter().map(|(name, value)| (name, value)));
    command
}

/// True if this is Debian and the user is root.
fn can_apt_get() -> bool {
    Path::new("/etc/debian_version").exists()
        && Path::new("/usr/bin/apt-get").exists()
        && fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

fn apt_get_install() -> Result<()> {
    let apt_get = || {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    run(apt_get().arg("update"))?;
    run(apt_get().args(["install", "-y", "--no-install-recommends"]).args(DEBIAN_PACKAGES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_listed_in_name_order() {
        let root = tempfile::tempdir().unwrap();
        for name in ["git-historian", "echo", "notes"] {
            fs::create_dir_all(root.path().join("guest-agents").join(name)).unwrap();
        }
        for name in ["git-historian", "echo"] {
            let manifest = root.path().join("guest-agents").join(name).join("Cargo.toml");
            fs::write(manifest, "").unwrap();
        }
        let agents = packages_in(&root.path().join("guest-agents")).unwrap();
        assert_eq!(agents, ["echo", "git-historian"]);
    }

    #[test]
    fn unchanged_component_is_not_copied() {
        let root = tempfile::tempdir().unwrap();
        let (built, components) = (root.path().join("built"), root.path().join("components"));
        fs::create_dir(&built).unwrap();
        fs::create_dir(&components).unwrap();
        let publish = |bytes: &str| {
            fs::write(built.join("git_historian.wasm"), bytes).unwrap();
            publish("git-historian", &built, &components).unwrap()
        };

        let component = publish("one");
        assert_eq!(component, components.join("git-historian.wasm"));
        let first = fs::metadata(&component).unwrap().modified().unwrap();
        publish("one");
        assert_eq!(fs::metadata(&component).unwrap().modified().unwrap(), first);
        publish("two");
        assert_eq!(fs::read_to_string(&component).unwrap(), "two");
    }

    #[test]
    fn missing_component_error_names_crate_type() {
        let error = publish("echo", Path::new("/nowhere"), Path::new("/nowhere")).unwrap_err();
        assert!(error.to_string().ends_with("its library must be a `cdylib`"), "{error}");
    }
}
