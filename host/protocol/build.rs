//! Compiles what A2A says on gRPC into one set of descriptors, by which messages are read and written.

use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true);
    compiler.open_files(["a2a_v1.proto", "a2a_v03.proto", "google_rpc.proto"])?;
    let to = env::var_os("OUT_DIR").map(PathBuf::from).ok_or("cargo says no OUT_DIR")?;
    Ok(fs::write(to.join("a2a.descriptors"), compiler.encode_file_descriptor_set())?)
}
