//! Packs the built-in agents: `cargo xtask guests` builds one component for each package under
//! `guest-agents/`. Components that are missing are left out, so that the hub also builds without a
//! WebAssembly toolchain.

use std::{
    env,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

use wasmparser::Parser;

fn main() -> io::Result<()> {
    let root = from_cargo("CARGO_MANIFEST_DIR")?.join("../..").canonicalize()?;
    println!("cargo::rerun-if-env-changed=A2A_HUB_COMPONENTS");
    let components = env::var_os("A2A_HUB_COMPONENTS")
        .map_or_else(|| root.join("target/components"), |dir| root.join(dir));

    let mut complete = true;
    let mut table = String::new();
    for agent in agents(&root.join("guest-agents"))? {
        let component = components.join(&agent).with_extension("wasm");
        if component.is_file() {
            println!("cargo::rerun-if-changed={}", component.display());
            if !Parser::is_component(&fs::read(&component)?) {
                let message =
                    format!("{} is no component: run `cargo xtask guests`", component.display());
                return Err(io::Error::other(message));
            }
            let _ = writeln!(table, "    ({agent:?}, include_bytes!({component:?})),");
        } else {
            complete = false;
        }
    }
    if !complete {
        // The directory must exist: cargo treats a watched path that is missing as changed on every
        // build.
        let _ = fs::create_dir_all(&components);
        println!("cargo::rerun-if-changed={}", components.display());
    }
    // The lock file lists the workspace's members, and therefore changes with the set of agents.
    println!("cargo::rerun-if-changed={}", root.join("Cargo.lock").display());

    let source = format!(
        "/// The agents this binary carries: name and component, in name order.\n\
         pub(crate) const BUILTIN: &[(&str, &[u8])] = &[\n{table}];\n"
    );
    let out = from_cargo("OUT_DIR")?;
    fs::write(out.join("builtin.rs"), source)
}

/// Lists the packages under `dir`, which have the names of their folders.
fn agents(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.path().join("Cargo.toml").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Reads a path that cargo passes to every build script.
fn from_cargo(name: &str) -> io::Result<PathBuf> {
    env::var_os(name)
        .map(PathBuf::from)
        .ok_or_else(|| io::Error::other(format!("cargo did not set {name}")))
}
