//! Fingerprints of programs, by which a replaced file is noticed.

use a2a_hub_runtime::Failure;
use std::{fs, io, os::unix::fs::MetadataExt as _, path::Path};

/// Fingerprint of a program: resolved path, file size and modification time.
pub(super) fn fingerprint(path: &Path) -> Result<String, Failure> {
    let result = fs::canonicalize(path).and_then(|real| {
        let meta = fs::metadata(&real)?;
        let written = (meta.mtime(), meta.mtime_nsec());
        Ok(format!("{} {} {}.{:09}", real.display(), meta.len(), written.0, written.1))
    });
    let unread =
        |why: io::Error| Failure::Unavailable(format!("look at {}: {why}", path.display()));
    result.map_err(unread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        collections::HashSet,
        os::unix::fs::symlink,
        time::{Duration, SystemTime},
    };

    #[test]
    fn fingerprint_covers_path_size_and_mtime() {
        let dir = tempfile::tempdir().unwrap();
        let (program, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&program, "one").unwrap();
        symlink(&program, &link).unwrap();
        let written_at = |path: &Path, at: SystemTime| {
            fs::File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
        };
        let then = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 5);
        written_at(&program, then);
        let real = program.canonicalize().unwrap();
        let first = fingerprint(&program).unwrap();
        assert_eq!(first, format!("{} 3 1000000000.000000005", real.display()));
        assert_eq!(fingerprint(&link).unwrap(), first, "a link is where it leads");
        let mut all = HashSet::from([first]);

        fs::write(&program, "longer").unwrap();
        written_at(&program, then);
        assert!(all.insert(fingerprint(&program).unwrap()), "of another size");
        written_at(&program, then + Duration::from_nanos(1));
        assert!(all.insert(fingerprint(&program).unwrap()), "written a nanosecond later");
        let other = dir.path().join("other");
        fs::copy(&program, &other).unwrap();
        written_at(&other, then);
        fs::remove_file(&link).unwrap();
        symlink(&other, &link).unwrap();
        assert!(all.insert(fingerprint(&link).unwrap()), "the link leads elsewhere, as npm's do");

        fs::remove_file(&other).unwrap();
        let gone = fingerprint(&link).unwrap_err().to_string();
        assert!(gone.contains(&link.display().to_string()), "{gone}");
    }
}
