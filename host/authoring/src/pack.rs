//! A manifest put into a component that somebody else's tool made.

use crate::{
    component::{Component, read_at_most},
    error::{AuthoringError, Doing as _, Kind},
};
use a2a_hub_config::own_file;
use a2a_hub_sandbox::manifest;
use std::{fs, path::Path};

/// More is read of no manifest, in bytes; what is longer is refused for that.
const MAX_MANIFEST: u64 = 1 << 20;

/// Puts the file `manifest` into the component at `from`, and writes what comes of it to `to`. What the component asked for before does
/// not count: that may be what is to be mended.
///
/// # Errors
/// If there is no component, or no manifest ([`Kind::NoManifest`]) that can be followed; and the system's.
pub fn pack(from: &Path, manifest: &Path, to: &Path) -> Result<Component, AuthoringError> {
    let bytes = Component::bytes_of(from)?;
    let text = read_at_most(manifest, MAX_MANIFEST).map_err(|why| {
        let why = format!("read the manifest {}: {why}", manifest.display());
        AuthoringError::new(Kind::NoManifest, why)
    })?;
    // Its text says all, and its cause would say it once more.
    let (packed, _) = manifest::embed(&bytes, &text).map_err(|why| {
        let why = format!("put {} into {}: {why}", manifest.display(), from.display());
        AuthoringError::new(Kind::Other, why)
    })?;
    write(to, &packed)?;
    Component::of(to.to_owned(), packed)
}

/// Writes a component whole or not at all; through a link to where that leads, so that the link stays.
fn write(output: &Path, bytes: &[u8]) -> Result<(), AuthoringError> {
    let what = || format!("write {}", output.display());
    let place = fs::canonicalize(output).unwrap_or_else(|_| output.to_owned());
    let place = std::path::absolute(place).doing(what)?;
    own_file::replace(&place, bytes).doing(what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_manifest_is_put_into_a_component_and_a_link_to_it_stays() {
        let dir = tempfile::tempdir().unwrap();
        let [from, link, manifest] =
            ["x.wasm", "link", "manifest.toml"].map(|name| dir.path().join(name));
        fs::write(&from, b"\0asm\x0d\0\x01\0").unwrap();
        symlink(&from, &link).unwrap();
        assert_eq!(pack(&from, &manifest, &link).unwrap_err().kind(), Kind::NoManifest);
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
