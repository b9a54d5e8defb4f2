//! Contents of new agent projects, as the build script packed them into this program: templates,
//! the contract, the SDKs, and the dependency versions that the SDK was built with.

use crate::error::{AuthoringError, FailureKind};
use miniz_oxide::inflate::decompress_to_vec;
use std::collections::BTreeMap;

/// Archive that the build script made.
const ARCHIVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/project.archive"));

/// Files of the repository that this program was built from, by their paths there, such as
/// `sdk/src/lib.rs`.
pub(crate) type Packed = BTreeMap<String, Vec<u8>>;

/// Unpacks all files.
///
/// # Errors
/// If the archive is damaged.
pub(crate) fn unpack() -> Result<Packed, AuthoringError> {
    let damaged = |why: &str| {
        AuthoringError::new(FailureKind::Other, format!("unpack what projects are made of: {why}"))
    };
    let all = decompress_to_vec(ARCHIVE).map_err(|why| damaged(&why.to_string()))?;
    split(&all).ok_or_else(|| damaged("this program is damaged; install it again"))
}

/// Splits an archive into files: each has a line with its path, a line with its length in bytes,
/// and its content.
fn split(mut rest: &[u8]) -> Option<Packed> {
    let mut packed = Packed::new();
    while !rest.is_empty() {
        let path = line(&mut rest)?.to_owned();
        let length = line(&mut rest)?.parse().ok()?;
        let (bytes, after) = rest.split_at_checked(length)?;
        packed.insert(path, bytes.to_vec());
        rest = after;
    }
    Some(packed)
}

fn line<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (line, after) = rest.split_at_checked(end)?;
    *rest = after.get(1..)?;
    str::from_utf8(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_archive_is_rejected() {
        let packed = split(b"a/b\n3\nx\ny\nc\n0\n\n").map(|it| it.len());
        assert_eq!(packed, None, "there is a byte too many");
        let packed = split(b"a/b\n3\nx\nyc\n0\n").unwrap();
        assert_eq!(packed["a/b"], b"x\ny");
        assert_eq!(packed["c"], b"");
        assert!(split(b"a\n4\nxyz").is_none());
    }

    #[test]
    fn program_carries_sdk_and_contract() {
        let packed = unpack().unwrap();
        for path in
            ["sdk/src/lib.rs", "sdk/Cargo.toml", "wit/world.wit", "Cargo.lock", "Cargo.toml"]
        {
            assert!(packed.contains_key(path), "{path}");
        }
        let stray = packed.keys().find(|path| path.contains("__pycache__") || path.contains("/."));
        assert_eq!(stray, None);
    }
}
