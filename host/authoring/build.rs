//! Packs the contents of new agent projects into one compressed archive: templates, the contract,
//! the SDKs and their documentation.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use miniz_oxide::deflate::compress_to_vec;

/// Files and folders of the repository that are packed. A folder that holds sources only is watched
/// as a whole; in other folders, tools leave generated files.
const PACKED: &[(&str, Watched)] = &[
    ("Cargo.lock", Watched::Directory),
    ("Cargo.toml", Watched::Directory),
    ("LICENSE", Watched::Directory),
    ("docs/how-to/test-your-agent.md", Watched::Directory),
    ("docs/reference/manifest.md", Watched::Directory),
    ("docs/reference/sdk-javascript.md", Watched::Directory),
    ("docs/reference/sdk-python.md", Watched::Directory),
    ("docs/reference/sdk-rust.md", Watched::Directory),
    ("sdk/Cargo.toml", Watched::Directory),
    ("sdk/src", Watched::Directory),
    ("sdk-js", Watched::FileByFile),
    ("sdk-python", Watched::FileByFile),
    ("templates", Watched::Directory),
    ("wit", Watched::Directory),
];

/// Granularity at which a packed folder is watched for changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Watched {
    Directory,
    FileByFile,
}

/// Names of generated files and folders.
const NOT_PACKED: &[&str] = &["__pycache__", "dist", "node_modules", "target"];

/// Compression level, of 10: the archive is compressed once.
const EFFORT: u8 = 9;

fn main() -> io::Result<()> {
    let root = from_cargo("CARGO_MANIFEST_DIR")?.join("../..").canonicalize()?;
    fs::write(from_cargo("OUT_DIR")?.join("project.archive"), archive(&root)?)
}

/// Packs all files: each file's path, its length as text, and its bytes; compressed.
fn archive(root: &Path) -> io::Result<Vec<u8>> {
    let mut files = Vec::new();
    for (source, watched) in PACKED {
        let path = root.join(source);
        if !path.exists() {
            continue;
        }
        if *watched == Watched::Directory {
            println!("cargo::rerun-if-changed={}", path.display());
        }
        let before = files.len();
        find(&path, source, &mut files)?;
        if *watched == Watched::FileByFile {
            for (path, _) in &files[before..] {
                println!("cargo::rerun-if-changed={}", path.display());
            }
        }
    }
    files.sort();
    let mut all = Vec::new();
    for (path, name) in files {
        let bytes = fs::read(path)?;
        all.extend(format!("{name}\n{}\n", bytes.len()).into_bytes());
        all.extend(bytes);
    }
    Ok(compress_to_vec(&all, EFFORT))
}

/// Collects the files at and below `path`, which is called `name`, without the SDKs' tests.
fn find(path: &Path, name: &str, files: &mut Vec<(PathBuf, String)>) -> io::Result<()> {
    if !path.is_dir() {
        files.push((path.to_owned(), name.to_owned()));
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let file = entry.file_name().to_string_lossy().into_owned();
        let is_test = name.starts_with("sdk") && ["test", "tests"].contains(&file.as_str());
        let is_generated = NOT_PACKED.contains(&file.as_str()) || file.ends_with(".egg-info");
        if !file.starts_with('.') && !is_test && !is_generated {
            find(&entry.path(), &format!("{name}/{file}"), files)?;
        }
    }
    Ok(())
}

/// Reads a path that cargo passes to every build script.
fn from_cargo(name: &str) -> io::Result<PathBuf> {
    env::var_os(name)
        .map(PathBuf::from)
        .ok_or_else(|| io::Error::other(format!("cargo did not set {name}")))
}
