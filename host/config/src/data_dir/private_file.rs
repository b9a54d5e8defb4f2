//! Private files of this user: opened without following links, checked after opening, replaced
//! atomically.

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};
use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

/// Reason why a file is not private.
#[derive(Debug)]
pub enum NotPrivate {
    /// The system refused to open it.
    Io(io::Error),
    /// It is a symlink.
    Link,
    /// It is not a plain file.
    NotPlain,
    /// It belongs to another user.
    Foreign,
    /// Others have permissions that they must not have.
    Shared,
}

impl From<io::Error> for NotPrivate {
    fn from(why: io::Error) -> Self {
        Self::Io(why)
    }
}

/// Opens a plain file of this user for reading. Others must have none of the `forbidden`
/// permissions, given as a mode such as `0o022` for writing. The opened file is checked, not the
/// path.
///
/// # Errors
///
/// Fails if the file does not satisfy this.
pub fn open(path: &Path, forbidden: u32) -> Result<File, NotPrivate> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|why| match why {
        Errno::LOOP => NotPrivate::Link,
        why => NotPrivate::Io(why.into()),
    })?;
    let file = File::from(file);
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(NotPrivate::NotPlain);
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(NotPrivate::Foreign);
    }
    if meta.mode() & forbidden != 0 {
        return Err(NotPrivate::Shared);
    }
    Ok(file)
}

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

/// Writes a file of mode 0600 next to `path`, and renames it once it is synced, so that nobody
/// reads an incomplete file.
///
/// # Errors
///
/// Returns the error of the system; the old file is then unchanged.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = path.with_file_name(format!(".{name}.draft"));
    // The draft may be left over from a killed writer, or be a link that somebody planted.
    ok_if_missing(fs::remove_file(&draft))?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(&draft, flags, Mode::RUSR | Mode::WUSR)?);
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if let Err(why) = written.and_then(|()| fs::rename(&draft, path)) {
        ok_if_missing(fs::remove_file(&draft))?;
        return Err(why);
    }
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// Accepts a removal whose file did not exist.
///
/// # Errors
///
/// Returns the error of the system if the file still exists.
pub fn ok_if_missing(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|why| if why.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(why) })
}

#[cfg(test)]
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
