//! Private files of this user: opened without following links, checked, replaced atomically.
//!
//! Unix has a mode for that. On other systems, a file is private if it lies below the directory of
//! the user's profile, whose access list Windows gives to the user, the administrators and the
//! system.

mod not_private;
#[cfg(any(test, not(unix), feature = "without-unix"))]
#[cfg_attr(
    all(unix, not(feature = "without-unix")),
    expect(dead_code, unreachable_pub, reason = "tested on Unix too")
)]
mod profile;
#[cfg(all(unix, not(feature = "without-unix")))]
mod unix;

#[cfg(not(all(unix, not(feature = "without-unix"))))]
use profile as system;
#[cfg(all(unix, not(feature = "without-unix")))]
use unix as system;

pub use not_private::NotPrivate;
pub use system::{can_be_private, create_dir, open, remedy};

use std::{
    fs,
    io::{self, Read as _, Write as _},
    path::Path,
};

/// Reads the text of a plain file of this user, of at most `max_bytes`; none if it is missing.
/// Others must have none of the `forbidden` permissions, as for [`open`].
///
/// # Errors
///
/// Fails if the file does not satisfy this; with [`io::ErrorKind::FileTooLarge`] if it is longer.
pub fn read_text(
    path: &Path,
    forbidden: u32,
    max_bytes: u64,
) -> Result<Option<String>, NotPrivate> {
    let file = match open(path, forbidden) {
        Err(NotPrivate::Io(why)) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut text = String::new();
    file.take(max_bytes + 1).read_to_string(&mut text)?;
    if text.len() as u64 > max_bytes {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge).into());
    }
    Ok(Some(text))
}

/// Writes a private file next to `path`, and renames it once it is synced, so that nobody reads an
/// incomplete file.
///
/// # Errors
///
/// Returns the error of the system; the old file is then unchanged.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = path.with_file_name(format!(".{name}.draft"));
    // The draft may be left over from a killed writer, or be a link that somebody planted.
    ok_if_missing(fs::remove_file(&draft))?;
    let mut file = system::create(&draft)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    // Some systems rename no open file.
    drop(file);
    if let Err(why) = written.and_then(|()| fs::rename(&draft, path)) {
        ok_if_missing(fs::remove_file(&draft))?;
        return Err(why);
    }
    system::sync_dir(path.parent().unwrap_or(Path::new(".")))
}

/// Accepts a removal whose file did not exist.
///
/// # Errors
///
/// Returns the error of the system if the file still exists.
pub fn ok_if_missing(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|why| if why.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(why) })
}

#[cfg(all(test, unix, not(feature = "without-unix")))]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn only_private_plain_file_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        replace(&file, b"mine").unwrap();
        assert!(open(&file, 0o077).is_ok(), "of mode 0600");
        symlink(&file, &link).unwrap();
        assert!(matches!(open(&link, 0), Err(NotPrivate::Link)));
        assert!(matches!(open(dir.path(), 0), Err(NotPrivate::NotPlain)));
        assert!(matches!(open(&dir.path().join("none"), 0), Err(NotPrivate::Io(_))));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(open(&file, 0o022).is_ok(), "others may read it");
        assert!(matches!(open(&file, 0o077), Err(NotPrivate::Shared)));
    }

    #[test]
    fn replace_is_atomic_and_follows_no_symlink() {
        let dir = tempfile::tempdir().unwrap();
        let (place, elsewhere) = (dir.path().join("place"), dir.path().join("elsewhere"));
        symlink(&elsewhere, dir.path().join(".place.draft")).unwrap();
        replace(&place, b"one").unwrap();
        replace(&place, b"two").unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"two");
        assert!(!elsewhere.exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no draft is left");
    }
}
