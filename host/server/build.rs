//! Packs the files of the web page, which `cargo xtask web` builds into `web/built`: each as it is,
//! and compressed.

use miniz_oxide::deflate::compress_to_vec_zlib;
use std::{
    env,
    fmt::Write as _,
    fs,
    hash::{DefaultHasher, Hasher as _},
    io,
    path::{Path, PathBuf},
};

/// Level of the compression: the best.
const BEST: u8 = 10;

fn main() -> io::Result<()> {
    let built = from_cargo("CARGO_MANIFEST_DIR")?.join("../../web/built").canonicalize()?;
    let out = from_cargo("OUT_DIR")?;
    println!("cargo::rerun-if-changed={}", built.display());
    let mut files = Vec::new();
    collect(&built, &mut files)?;
    files.sort();
    let mut table = String::new();
    for (number, file) in files.iter().enumerate() {
        println!("cargo::rerun-if-changed={}", file.display());
        let bytes = fs::read(file)?;
        // Copies, so that a build of the page beside this one changes nothing here.
        let (plain, packed) = (format!("page-{number}"), format!("page-{number}.zlib"));
        fs::write(out.join(&plain), &bytes)?;
        fs::write(out.join(&packed), compress_to_vec_zlib(&bytes, BEST))?;
        let mut hasher = DefaultHasher::new();
        hasher.write(&bytes);
        let (tag, path) = (hasher.finish(), file.strip_prefix(&built).map_err(io::Error::other)?);
        let _ = writeln!(
            table,
            "    PageFile {{ path: {path:?}, tag: \"W/\\\"{tag:016x}\\\"\", plain: include_bytes!({plain:?}), \
             compressed: include_bytes!({packed:?}) }},"
        );
    }
    let source = format!(
        "/// Files of the page, in the order of their paths.\n\
         const FILES: &[PageFile] = &[\n{table}];\n"
    );
    fs::write(out.join("page_files.rs"), source)
}

/// Collects the files below a folder.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            println!("cargo::rerun-if-changed={}", entry.path().display());
            collect(&entry.path(), files)?;
        } else {
            files.push(entry.path());
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
