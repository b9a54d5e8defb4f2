//! Builds the components: the only place that knows the WebAssembly toolchain.
//!
//! rustup's `wasm32-wasip2` comes with a compiled standard library. Debian's compiler has none, but Debian packages
//! everything to compile one: the library's source, a linker, and the C library for WASI.

use std::{
    env::consts::ARCH,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use crate::shell::{announce, output, run};

/// Plain `cargo build` for this target yields a component.
const TARGET: &str = "wasm32-wasip2";

/// The profile in the root manifest: small, for components travel inside the hub's binary.
const PROFILE: &str = "guest";

/// The guests of the end-to-end tests, good and bad, which are no agent of anybody's.
const TEST_GUESTS: [&str; 4] = ["test-guests", "picky-guest", "durable-guest", "faulty-guest"];

/// What Debian calls the pieces. The `web` line of packages is the one that follows the current Rust.
const DEBIAN_PACKAGES: &[&str] =
    &["rustc-web", "cargo-web", "rust-web-src", "rust-web-llvm", "lld-22", "wasi-libc"];

/// WASI's C library as Debian installs it.
const WASI_LIBC: &str = "/usr/lib/wasm32-wasi";

/// What the cargo above us, its rustup, or the user's shell says about building for this machine.
const FOREIGN_ENVIRONMENT: &[&str] = &[
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_TARGET_DIR",
    "RUSTFLAGS",
];

/// The same, where it also names another compiler than Debian's.
const FOREIGN_TOOLCHAIN: &[&str] = &[
    "CARGO",
    "CARGO_BUILD_RUSTC",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER",
    "LD_LIBRARY_PATH",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTUP_TOOLCHAIN",
    "RUST_RECURSION_COUNT",
];

/// Which components are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// The agents that travel inside the hub.
    Agents,
    /// The agents of `examples/`, and the guests of the tests, as well.
    All,
}

/// Builds these components, and returns where each is: `target/components/<package>.wasm`.
pub(crate) fn build(root: &Path, which: Which) -> Result<Vec<PathBuf>> {
    let mut packages = packages_in(&root.join("guest-agents"))?;
    if which == Which::All {
        packages.extend(packages_in(&root.join("examples/agents"))?);
        packages.extend(TEST_GUESTS.map(str::to_owned));
    }

    // A directory of its own, for another compiler than the workspace's may work in it.
    let target_dir = root.join("target/guests");
    let mut cargo = Toolchain::find()?.cargo();
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

/// The packages in a folder, which are named after their own.
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

/// Copies the component of `package` unless the same bytes are there, so that the hub is only built again for news.
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

/// Who can compile for WebAssembly here.
enum Toolchain {
    /// The one that compiles the hub has the target.
    Active,
    /// Debian's, with a standard library that it compiles itself.
    Debian,
}

impl Toolchain {
    fn find() -> Result<Self> {
        if active_has_target() {
            return Ok(Self::Active);
        }
        if debian_lacks().is_empty() {
            return Ok(Self::Debian);
        }
        if !can_apt_get() {
            bail!(
                "this Rust cannot compile for {TARGET}; run `rustup target add {TARGET}`, or install Debian's {}",
                DEBIAN_PACKAGES.join(" ")
            );
        }
        announce(&format!("this Rust cannot compile for {TARGET}: installing Debian's"));
        apt_get_install().with_context(|| {
            format!(
                "Debian's Rust could not be installed; instead, run `rustup target add {TARGET}`"
            )
        })?;
        match debian_lacks().first() {
            None => Ok(Self::Debian),
            Some(piece) => bail!(
                "Debian's packages left no {}; instead, run `rustup target add {TARGET}`",
                piece.display()
            ),
        }
    }

    /// A cargo that is ready for `build`, free of what was said to the one above us.
    fn cargo(&self) -> Command {
        let mut cargo = match self {
            Self::Active => Command::new("cargo"),
            Self::Debian => {
                let mut cargo = Command::new("/usr/bin/cargo");
                for name in FOREIGN_TOOLCHAIN {
                    cargo.env_remove(name);
                }
                cargo
            }
        };
        for name in FOREIGN_ENVIRONMENT {
            cargo.env_remove(name);
        }
        if matches!(self, Self::Debian) {
            cargo.arg("-Zbuild-std=std,panic_abort");
            // In place of what is there by default: a guest has no symbols for a backtrace to show.
            cargo.arg("-Zbuild-std-features=optimize_for_size");
            cargo.env("RUSTC_BOOTSTRAP", "1"); // `-Z` on a stable compiler
            cargo.env("RUSTC", "/usr/bin/rustc");
            cargo.env("RUSTFLAGS", format!("-L native={WASI_LIBC}"));
        }
        cargo
    }
}

/// Looks into the compiler's own folder: asking rustup could make it download something.
fn active_has_target() -> bool {
    output(Command::new("rustc").args(["--print", "sysroot"])).is_ok_and(|sysroot| {
        Path::new(&sysroot).join("lib/rustlib").join(TARGET).join("lib").is_dir()
    })
}

/// The pieces of Debian's toolchain that are not on this machine.
fn debian_lacks() -> Vec<PathBuf> {
    let linker = format!("/usr/lib/rustlib/{ARCH}-unknown-linux-gnu/bin/wasm-component-ld");
    let libc = format!("{WASI_LIBC}/libc.a");
    let source = "/usr/lib/rustlib/src/rust/library/std/Cargo.toml";
    ["/usr/bin/rustc", "/usr/bin/cargo", "/usr/bin/rust-lld", source, &linker, &libc]
        .into_iter()
        .map(PathBuf::from)
        .filter(|piece| !piece.exists())
        .collect()
}

/// Whether this is Debian and we are root.
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
    use std::ffi::OsStr;

    #[test]
    fn agents_are_the_packages_in_name_order() {
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
    fn a_component_is_published_under_its_package_name_and_only_when_it_differs() {
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
    fn a_package_without_a_component_says_what_to_change() {
        let error = publish("echo", Path::new("/nowhere"), Path::new("/nowhere")).unwrap_err();
        assert!(error.to_string().ends_with("its library must be a `cdylib`"), "{error}");
    }

    /// `docs/GUESTS.md` tells strangers how to build an agent with Debian's packages: as it is done here.
    #[test]
    fn the_guide_builds_with_debians_packages_as_we_do() {
        let guide = include_str!("../../docs/GUESTS.md");
        let packages = DEBIAN_PACKAGES.join(" ");
        let install = format!("apt-get install --no-install-recommends {packages}\n");
        assert!(guide.contains(&install), "{install}");

        let mut cargo = Toolchain::Debian.cargo();
        cargo.args(["build", "--release", "--target", TARGET]);
        let set = cargo.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let quoted = |value: String| {
            if value.contains(' ') { format!("\"{value}\"") } else { value }
        };
        let text = |word: &OsStr| word.to_str().unwrap_or_default().to_owned();
        let set = set.map(|(name, value)| format!("{}={}", text(name), quoted(text(value))));
        let env: Vec<_> = set.collect();
        let mut words = vec![text(cargo.get_program())];
        words.extend(cargo.get_args().map(text));
        let command = format!("{} \\\n  {}\n", env.join(" "), words.join(" "));
        assert!(guide.contains(&command), "{command}");
    }

    #[test]
    fn debians_cargo_hears_nothing_that_was_meant_for_ours() {
        let cargo = Toolchain::Debian.cargo();
        let value = |name: &str| {
            let (_, value) = cargo.get_envs().find(|(key, _)| *key == name).unwrap();
            value.and_then(|value| value.to_str())
        };
        for name in ["CARGO", "RUSTUP_TOOLCHAIN", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER"] {
            assert_eq!(value(name), None, "{name}");
        }
        assert_eq!(value("RUSTC"), Some("/usr/bin/rustc"));
        assert_eq!(value("RUSTFLAGS"), Some("-L native=/usr/lib/wasm32-wasi"));
    }
}
