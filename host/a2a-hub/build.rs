//! Packs the built-in agents: `cargo xtask guests` leaves one component for each package under `guest-agents/`. Those that were
//! not built are left out, so that the hub also builds without a WebAssembly toolchain.

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
                let what =
                    format!("{} is no component: run `cargo xtask guests`", component.display());
                return Err(io::Error::other(what));
            }
            let _ = writeln!(table, "    ({agent:?}, include_bytes!({component:?})),");
        } else {
            complete = false;
        }
    }
    if !complete {
        // The folder has to exist: cargo takes a watched path that is missing for one that changed, every time.
        let _ = fs::create_dir_all(&components);
        println!("cargo::rerun-if-changed={}", components.display());
    }
    // The lock lists the workspace's members, and so changes when an agent comes or goes.
    println!("cargo::rerun-if-changed={}", root.join("Cargo.lock").display());

    let source = format!(
        "/// The agents this binary carries: name and component, in name order.\n\
         pub(crate) const BUILTIN: &[(&str, &[u8])] = &[\n{table}];\n"
    );
    let out = from_cargo("OUT_DIR")?;
    fs::write(out.join("builtin.rs"), source)
}

/// The packages under `dir`, which are named after their folders.
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

/// A path that cargo hands to every build script.
fn from_cargo(name: &str) -> io::Result<PathBuf> {
    env::var_os(name)
        .map(PathBuf::from)
        .ok_or_else(|| io::Error::other(format!("cargo did not set {name}")))
}
