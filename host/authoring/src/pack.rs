//! Embeds a manifest into a component that another tool built.

use crate::{
    component::{Component, read_at_most},
    error::{AuthoringError, Doing as _, FailureKind},
};
use a2a_hub_config::private_file;
use a2a_hub_sandbox::component::manifest;
use std::{fs, path::Path};

/// Maximum size, in bytes, of a manifest; a longer one is refused.
const MAX_MANIFEST: u64 = 1 << 20;

/// Embeds the file `manifest` into the component at `from`, and writes the result to `to`. The
/// component's earlier manifest is ignored, because it may be the one with errors.
///
/// # Errors
/// If the component or the manifest is missing or invalid ([`FailureKind::NoManifest`]); and I/O
/// errors.
pub fn pack(from: &Path, manifest: &Path, to: &Path) -> Result<Component, AuthoringError> {
    let bytes = Component::bytes_of(from)?;
    let text = read_at_most(manifest, MAX_MANIFEST).map_err(|why| {
        let why = format!("read the manifest {}: {why}", manifest.display());
        AuthoringError::new(FailureKind::NoManifest, why)
    })?;
    // The message is complete; its source would repeat it.
    let (packed, _) = manifest::embed(&bytes, &text).map_err(|why| {
        let why = format!("put {} into {}: {why}", manifest.display(), from.display());
        AuthoringError::new(FailureKind::Other, why)
    })?;
    write(to, &packed)?;
    Component::new(to.to_owned(), packed)
}

/// Writes a component atomically; a link stays, and its target is replaced.
fn write(output: &Path, bytes: &[u8]) -> Result<(), AuthoringError> {
    let action = || format!("write {}", output.display());
    let path = fs::canonicalize(output).unwrap_or_else(|_| output.to_owned());
    let path = std::path::absolute(path).doing(action)?;
    private_file::replace(&path, bytes).doing(action)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn pack_embeds_manifest_through_link() {
        let dir = tempfile::tempdir().unwrap();
        let [from, link, manifest] =
            ["x.wasm", "link", "manifest.toml"].map(|name| dir.path().join(name));
        fs::write(&from, b"\0asm\x0d\0\x01\0").unwrap();
        symlink(&from, &link).unwrap();
        assert_eq!(pack(&from, &manifest, &link).unwrap_err().kind(), FailureKind::NoManifest);
        fs::write(&manifest, "id = 'notes'\nversion = '1.2'\n").unwrap();
        let packed = pack(&from, &manifest, &link).unwrap();
        assert_eq!(packed.ask.id.unwrap().as_str(), "notes");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(Component::read(&from).unwrap().sha256, packed.sha256);
        fs::write(&manifest, "id = ").unwrap();
        let why = pack(&from, &manifest, &link).unwrap_err();
        assert!(why.to_string().starts_with("put "), "{why}");
        assert_eq!(Component::read(&from).unwrap().sha256, packed.sha256, "it is as it was");
    }
}
