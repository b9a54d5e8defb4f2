//! Compiles what A2A says on gRPC into one set of descriptors, by which messages are read and written.

use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true);
    compiler.open_files(["a2a_v1.proto", "a2a_v03.proto", "google_rpc.proto"])?;
    #[expect(clippy::disallowed_methods, reason = "this is how cargo tells a build script")]
    let to = PathBuf::from(env::var("OUT_DIR")?).join("a2a.descriptors");
    Ok(fs::write(to, compiler.encode_file_descriptor_set())?)
}
