//! Wheel for Python's installers: it puts the program into the `bin` folder of an environment and
//! has no Python code ([binary distribution
//! format](https://packaging.python.org/specifications/binary-distribution-format/)).

use std::{env::consts::ARCH, fs::File, io::Write as _, path::Path};

use anyhow::{Context as _, Result};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use super::{
    files::{Files, VERSION},
    glibc,
};

/// Packs `files` as a wheel in `to`, and returns its name.
pub(super) fn wheel(files: &Files, is_quick: bool, to: &Path) -> Result<String> {
    let tag = format!("py3-none-{}", platform(ARCH, glibc::newest(&files.program)));
    let name = format!("a2a_hub-{VERSION}-{tag}.whl");
    let read = |name: &str| {
        std::fs::read(files.root.join(name)).with_context(|| format!("failed to read {name}"))
    };
    let info = format!("a2a_hub-{VERSION}.dist-info");
    let record = format!("{info}/RECORD");
    let mut contents = vec![
        (format!("a2a_hub-{VERSION}.data/scripts/a2a-hub"), files.program.clone(), 0o755),
        (format!("{info}/METADATA"), metadata(&read("packaging/npm/README.md")?), 0o644),
        (format!("{info}/WHEEL"), about(&tag).into_bytes(), 0o644),
        (format!("{info}/licenses/LICENSE"), read("LICENSE")?, 0o644),
    ];
    let mut lines = String::new();
    for (path, bytes, _) in &contents {
        let digest = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
        lines.push_str(&format!("{path},sha256={digest},{}\n", bytes.len()));
    }
    lines.push_str(&format!("{record},,\n"));
    contents.push((record, lines.into_bytes(), 0o644));

    let mut archive = ZipWriter::new(File::create(to.join(&name))?);
    for (path, bytes, mode) in contents {
        // Without a time, archives of the same files are the same.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(if is_quick { 1 } else { 9 }))
            .last_modified_time(zip::DateTime::default())
            .unix_permissions(mode);
        archive.start_file(path, options)?;
        archive.write_all(&bytes)?;
    }
    archive.finish()?;
    Ok(name)
}

/// Platform tag of a program that needs this version of the GNU C library
/// ([PEP 600](https://peps.python.org/pep-0600/)).
fn platform(architecture: &str, glibc: Option<(u32, u32)>) -> String {
    match glibc {
        Some((major, minor)) => format!("manylinux_{major}_{minor}_{architecture}"),
        None => format!("linux_{architecture}"),
    }
}

fn about(tag: &str) -> String {
    format!("Wheel-Version: 1.0\nGenerator: a2a-hub xtask\nRoot-Is-Purelib: false\nTag: {tag}\n")
}

fn metadata(readme: &[u8]) -> Vec<u8> {
    let readme = String::from_utf8_lossy(readme).replace("npm install -g", "pip install");
    let readme = readme.replace("npx a2a-hub", "uvx a2a-hub");
    format!(
        "Metadata-Version: 2.4\n\
         Name: a2a-hub\n\
         Version: {VERSION}\n\
         Summary: Host of A2A agents as sandboxed WebAssembly components\n\
         License-Expression: Apache-2.0\n\
         License-File: LICENSE\n\
         Description-Content-Type: text/markdown\n\
         \n{readme}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platform_names_required_glibc() {
        assert_eq!(platform("x86_64", Some((2, 34))), "manylinux_2_34_x86_64");
        assert_eq!(platform("x86_64", None), "linux_x86_64");
    }

    #[test]
    fn description_names_commands_of_python() {
        let said = String::from_utf8(metadata(b"`npx a2a-hub --help`\nnpm install -g a2a-hub\n"));
        assert!(said.unwrap().ends_with("\n\n`uvx a2a-hub --help`\npip install a2a-hub\n"));
    }
}
