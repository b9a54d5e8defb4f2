//! Version of the C library that a program needs, and builds for an older one.

use anyhow::{Result, ensure};

/// Build by zig's linker, which has the symbols of each glibc; its target follows.
pub(super) const BUILD: [&str; 4] = ["zigbuild", "--locked", "--workspace", "--target"];

/// Target of a build for `oldest`, in the form of `cargo zigbuild`.
pub(super) fn target(target: &str, (major, minor): (u32, u32)) -> String {
    format!("{target}.{major}.{minor}")
}

/// Version that somebody typed, as in `2.28`.
pub(super) fn version(text: &str) -> Result<(u32, u32), String> {
    let numbers = text.split_once('.').map(|(major, minor)| (major.parse(), minor.parse()));
    match numbers {
        Some((Ok(major), Ok(minor))) => Ok((major, minor)),
        Some(_) | None => Err("a version of glibc has two numbers, as in 2.28".to_owned()),
    }
}

/// Fails if the program needs a later glibc than `oldest`.
pub(super) fn check(program: &[u8], oldest: (u32, u32)) -> Result<()> {
    if let Some((major, minor)) = newest(program) {
        let (oldest_major, oldest_minor) = oldest;
        ensure!(
            (major, minor) <= oldest,
            "the program needs glibc {major}.{minor}, and {oldest_major}.{oldest_minor} was asked for"
        );
    }
    Ok(())
}

/// Newest version of the C library that the program's symbols require, as in `GLIBC_2.34`.
pub(super) fn newest(program: &[u8]) -> Option<(u32, u32)> {
    // A name in the table of symbol versions has a zero byte on both sides.
    let names = program.split(|byte| *byte == 0).filter_map(|name| name.strip_prefix(b"GLIBC_"));
    let is_number = |name: &&[u8]| name.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let versions = names.filter(is_number).filter_map(|name| {
        let mut numbers = std::str::from_utf8(name).ok()?.split('.');
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    });
    versions.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_required_glibc_is_found() {
        let program = b"\0GLIBC_2.9\0GLIBC_2.34\0GLIBC_2.2.5\0GLIBC_PRIVATE\0GLIBC_9.9 in a text\0";
        assert_eq!(newest(program), Some((2, 34)));
        assert_eq!(newest(b"static"), None);
        assert!(check(program, (2, 34)).is_ok());
        assert!(check(program, (2, 28)).unwrap_err().to_string().contains("needs glibc 2.34"));
    }

    #[test]
    fn typed_version_has_two_numbers() {
        assert_eq!(version("2.28"), Ok((2, 28)));
        for wrong in ["2", "", "2.x", "2.28.1", "-1.2"] {
            assert!(version(wrong).is_err(), "{wrong}");
        }
        assert_eq!(target("x86_64-unknown-linux-gnu", (2, 28)), "x86_64-unknown-linux-gnu.2.28");
    }
}
