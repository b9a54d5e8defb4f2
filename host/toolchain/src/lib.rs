//! Toolchains that compile a Rust library to a WebAssembly component on this machine. Only this
//! crate knows their differences.
//!
//! rustup's `wasm32-wasip2` comes with a compiled standard library. Debian's compiler has none, but
//! Debian packages everything to compile one: the library's source, a linker, and the C library for
//! WASI.
//!
//! The crate starts no process: its callers start a [`Cargo`] like any program.

use std::{
    env::consts::ARCH,
    path::{Path, PathBuf},
};

/// Target for which plain `cargo build` yields a component.
pub const TARGET: &str = "wasm32-wasip2";

/// Debian's packages of the toolchain. The `-web` packages follow the current Rust.
pub const DEBIAN_PACKAGES: &[&str] =
    &["rustc-web", "cargo-web", "rust-web-src", "rust-web-llvm", "lld-22", "wasi-libc"];

/// Path of WASI's C library in Debian.
const WASI_LIBC: &str = "/usr/lib/wasm32-wasi";

/// Environment variables that configure an outer cargo, rustup or the user's shell for this
/// machine.
const FOREIGN_ENVIRONMENT: &[&str] = &[
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_TARGET_DIR",
    "RUSTFLAGS",
];

/// Further variables that would select another compiler than Debian's.
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

/// Toolchain that compiles for WebAssembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toolchain {
    /// The compiler on the user's `PATH`, which has the target.
    Active,
    /// Debian's compiler, with a standard library that it compiles itself.
    Debian,
}

/// Command line of a cargo that is ready for `build`, with the changes of its environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cargo {
    /// Program: a name on the `PATH`, or an absolute path.
    pub program: &'static str,
    /// First arguments; the command (`build`) follows.
    pub args: Vec<String>,
    /// Environment variables to set.
    pub set: Vec<(&'static str, String)>,
    /// Environment variables to remove, which configure an outer cargo.
    pub unset: Vec<&'static str>,
}

impl Toolchain {
    /// Finds the toolchain to build with; `None` if this machine has none. `sysroot` is the output
    /// of `rustc --print sysroot`, if a `rustc` is active. The compiler's folder is inspected
    /// because rustup might download a target when asked.
    pub fn find(sysroot: Option<&Path>) -> Option<Self> {
        let library = Path::new("lib/rustlib").join(TARGET).join("lib");
        if sysroot.is_some_and(|sysroot| sysroot.join(library).is_dir()) {
            return Some(Self::Active);
        }
        debian_lacks().is_empty().then_some(Self::Debian)
    }

    /// Returns this toolchain's cargo, without the environment of an outer cargo.
    pub fn cargo(self) -> Cargo {
        let mut cargo = Cargo {
            program: "cargo",
            args: Vec::new(),
            set: Vec::new(),
            unset: FOREIGN_ENVIRONMENT.to_vec(),
        };
        if self == Self::Debian {
            cargo.program = "/usr/bin/cargo";
            cargo.unset.extend(FOREIGN_TOOLCHAIN);
            cargo.args.push("-Zbuild-std=std,panic_abort".to_owned());
            // Replaces the default features: a guest has no symbols for a backtrace to show.
            cargo.args.push("-Zbuild-std-features=optimize_for_size".to_owned());
            cargo.set.push(("RUSTC", "/usr/bin/rustc".to_owned()));
            cargo.set.push(("RUSTC_BOOTSTRAP", "1".to_owned())); // `-Z` on a stable compiler
            cargo.set.push(("RUSTFLAGS", format!("-L native={WASI_LIBC}")));
            cargo.unset.retain(|name| *name != "RUSTFLAGS");
        }
        cargo
    }
}

/// Advice for a machine without a toolchain: a clause that ends a sentence.
pub fn advice() -> String {
    format!("run `rustup target add {TARGET}`, or install Debian's {}", DEBIAN_PACKAGES.join(" "))
}

/// Lists the files of Debian's toolchain that are missing on this machine.
pub fn debian_lacks() -> Vec<PathBuf> {
    let linker = format!("/usr/lib/rustlib/{ARCH}-unknown-linux-gnu/bin/wasm-component-ld");
    let libc = format!("{WASI_LIBC}/libc.a");
    let source = "/usr/lib/rustlib/src/rust/library/std/Cargo.toml";
    ["/usr/bin/rustc", "/usr/bin/cargo", "/usr/bin/rust-lld", source, &linker, &libc]
        .into_iter()
        .map(PathBuf::from)
        .filter(|piece| !piece.exists())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/reference/sdk-rust.md` shows the same build with Debian's packages as the code.
    #[test]
    fn reference_matches_debian_build() {
        let guide = include_str!("../../../docs/reference/sdk-rust.md");
        let packages = DEBIAN_PACKAGES.join(" ");
        let install = format!("apt-get install --no-install-recommends {packages}\n");
        assert!(guide.contains(&install), "{install}");

        let cargo = Toolchain::Debian.cargo();
        let quoted = |value: &str| {
            if value.contains(' ') { format!("\"{value}\"") } else { value.to_owned() }
        };
        let set = cargo.set.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
        let env: Vec<_> = set.collect();
        let args = cargo.args.join(" ");
        let command = format!(
            "env {} \\\n  {} {args} build --release --target {TARGET}\n",
            env.join(" "),
            cargo.program
        );
        assert!(guide.contains(&command), "{command}");
    }

    #[test]
    fn debian_cargo_drops_foreign_environment() {
        let cargo = Toolchain::Debian.cargo();
        for name in ["CARGO", "RUSTUP_TOOLCHAIN", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER"] {
            assert!(cargo.unset.contains(&name), "{name}");
        }
        assert!(cargo.set.iter().all(|(name, _)| !cargo.unset.contains(name)));
        assert!(cargo.set.contains(&("RUSTFLAGS", "-L native=/usr/lib/wasm32-wasi".to_owned())));
        assert_eq!(Toolchain::Active.cargo().program, "cargo");
    }

    #[test]
    fn active_compiler_needs_target_library() {
        let sysroot = std::env::temp_dir().join(format!("a2a-hub-sysroot-{}", std::process::id()));
        let library = sysroot.join("lib/rustlib").join(TARGET).join("lib");
        std::fs::create_dir_all(&library).unwrap();
        assert_eq!(Toolchain::find(Some(&sysroot)), Some(Toolchain::Active));
        std::fs::remove_dir_all(&sysroot).unwrap();
        assert_ne!(Toolchain::find(Some(&sysroot)), Some(Toolchain::Active));
    }
}
