//! Component file: its manifest is read without running the component.

use crate::error::{AuthoringError, Doing as _, FailureKind};
use a2a_hub_core::grant::Ask;
use a2a_hub_sandbox::{component::manifest, digest_of};
use rustix::fs::{Mode, OFlags};
use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

/// Maximum size, in bytes, of a component.
pub const MAX_BYTES: u64 = 128 << 20;

/// A component that was read and is not executed.
#[derive(Debug)]
pub struct Component {
    /// Path of the file.
    pub path: PathBuf,
    /// Content of the file.
    pub bytes: Vec<u8>,
    /// SHA-256 digest in hex.
    pub sha256: String,
    /// Manifest of the component.
    pub ask: Ask,
}

impl Component {
    /// Reads a component's file.
    ///
    /// # Errors
    /// I/O errors; and if the file is no component, or its manifest cannot be read.
    pub fn read(path: &Path) -> Result<Self, AuthoringError> {
        Self::new(path.to_owned(), Self::bytes_of(path)?)
    }

    /// Reads a component's bytes without its manifest.
    pub(crate) fn bytes_of(path: &Path) -> Result<Vec<u8>, AuthoringError> {
        let action = || format!("read the component {}", path.display());
        let bytes = read_at_most(path, MAX_BYTES).doing(action)?;
        require_component(path, &bytes)?;
        Ok(bytes)
    }

    /// Creates a component from the content of `path`.
    ///
    /// # Errors
    /// If it is no component, or its manifest cannot be read.
    pub fn new(path: PathBuf, bytes: Vec<u8>) -> Result<Self, AuthoringError> {
        require_component(&path, &bytes)?;
        let ask =
            manifest::read(&bytes).doing(|| format!("read the component {}", path.display()))?;
        let sha256 = digest_of(&bytes);
        Ok(Self { path, bytes, sha256, ask })
    }
}

/// Checks the header and the size of a component.
fn require_component(path: &Path, bytes: &[u8]) -> Result<(), AuthoringError> {
    let action = format!("read the component {}", path.display());
    let why = if bytes.len() as u64 > MAX_BYTES {
        format!("{action}: it is larger than {} MiB, and none that joins is", MAX_BYTES >> 20)
    } else if !bytes.starts_with(b"\0asm\x0d\0\x01\0") {
        format!("{action}: it is no WebAssembly component; build it for the target wasm32-wasip2")
    } else {
        return Ok(());
    };
    Err(AuthoringError::new(FailureKind::NoComponent, why))
}

/// Reads a file up to one byte beyond `limit`.
///
/// # Errors
/// I/O errors; and if the path is a directory, a pipe or a device, which may block or have no end.
pub fn read_at_most(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no file, but a directory, a pipe or a device"));
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_component_error_names_target() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.wasm");
        std::fs::write(&path, b"\0asm\x01\0\0\0").unwrap();
        let why = Component::read(&path).unwrap_err();
        assert_eq!(why.kind(), FailureKind::NoComponent);
        assert!(why.to_string().contains("wasm32-wasip2"), "a module is none: {why}");
        std::fs::write(&path, b"\0asm\x0d\0\x01\0").unwrap();
        assert_eq!(Component::read(&path).unwrap().bytes.len(), 8);
        assert_eq!(Component::read(dir.path()).unwrap_err().kind(), FailureKind::Other);
        assert_eq!(read_at_most(&path, 3).unwrap().len(), 4);

        // A reader that waits for a writer of this pipe would wait forever.
        let pipe = dir.path().join("pipe");
        let (kind, mode) = (rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        let why = Component::read(&pipe).unwrap_err();
        assert!(
            std::error::Error::source(&why).is_some_and(|why| why.to_string().contains("pipe"))
        );
    }
}
