//! Checks ownership and permissions of the hub's directories and files before they are used: a file
//! that another user can write to is not trusted, whatever its content (CWE-732), and a link may
//! point to a target that another user chooses (CWE-59).

use std::{
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Directories in a data directory.
const DIRECTORIES: [&str; 6] = ["plugins", "components", "replays", "cache", "homes", "files"];

/// Files there that other users must not read: messages, and secrets.
const PRIVATE_FILES: [&str; 10] = [
    "hub.db",
    "hub.db-wal",
    "hub.db-shm",
    "search.db",
    "search.db-wal",
    "search.db-shm",
    "http-token",
    "cache-key",
    "push-key",
    "hub.log",
];

/// Files there that other users must not write.
const FILES: [&str; 4] = ["hub.lock", "run.json", "config.toml", "grants.toml"];

/// Write permission of the group and of others.
const WRITABLE: u32 = 0o022;

/// Any permission of the group and of others.
const SHARED: u32 = 0o077;

/// Sticky bit: in such a directory everyone may write, and nobody can remove or rename another
/// user's files.
const STICKY: u32 = 0o1000;

/// Path of the hub that other users can influence, with the command that fixes it.
#[derive(Debug, thiserror::Error)]
pub enum OwnershipError {
    /// The path is a link.
    #[error(
        "use {path}: it is a link; put what it leads to in its place, or remove it: `rm {path}`"
    )]
    Link {
        /// Path of the link.
        path: PathBuf,
    },
    /// The path is of the wrong kind.
    #[error("use {path}: it is no {kind}; move it away")]
    Kind {
        /// Path.
        path: PathBuf,
        /// Expected kind.
        kind: &'static str,
    },
    /// Another user owns it, and could change it at any time.
    #[error(
        "use {path}: it belongs to another user ({owner}); run `chown -R {hub_uid} {path}`, or set `data_dir` to a directory of your own"
    )]
    Foreign {
        /// Path that another user owns.
        path: PathBuf,
        /// User id of its owner.
        owner: u32,
        /// User id of the hub.
        hub_uid: u32,
    },
    /// Others may change it.
    #[error("use {path}: others may write to it; run `chmod go-w {path}`")]
    Writable {
        /// Path that others may write to.
        path: PathBuf,
    },
    /// Others may read it.
    #[error("use {path}: others may read or write it; run `chmod 600 {path}`")]
    Readable {
        /// Path that others may read.
        path: PathBuf,
    },
    /// Others may replace the directory.
    #[error(
        "use {path}: everybody may rename what is in {parent}, which is above it; run `chmod o-w {parent}` or `chmod +t {parent}`, or \
         set `data_dir` to another directory"
    )]
    Replaceable {
        /// The data directory.
        path: PathBuf,
        /// Its ancestor that everyone may write to.
        parent: PathBuf,
    },
    /// The path cannot be inspected.
    #[error("inspect {path}: {why}")]
    Io {
        /// Path to inspect.
        path: PathBuf,
        /// Error of the system.
        why: io::Error,
    },
}

/// Checks that the data directory, if it exists, and the hub's files in it are controlled by this
/// user alone.
///
/// The data directory itself may be reached through a link, which this user has set up; nothing
/// inside may be a link.
pub fn check(data_dir: &Path) -> Result<(), OwnershipError> {
    let failed = |path: &Path, why| OwnershipError::Io { path: path.to_owned(), why };
    let dir = match data_dir.canonicalize() {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
        dir => dir.map_err(|why| failed(data_dir, why))?,
    };
    let hub_uid = rustix::process::geteuid().as_raw();
    let find = |path: &Path| match fs::symlink_metadata(path) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some).map_err(|why| failed(path, why)),
    };
    if let Some(meta) = find(&dir)? {
        check_one(&dir, &meta, hub_uid, FileKind::Directory)?;
    }
    for parent in dir.ancestors().skip(1) {
        if find(parent)?.is_some_and(|meta| is_open_to_all(meta.mode())) {
            let (path, parent) = (dir.clone(), parent.to_owned());
            return Err(OwnershipError::Replaceable { path, parent });
        }
    }
    let kinds = [
        (&DIRECTORIES[..], FileKind::Directory),
        (&PRIVATE_FILES[..], FileKind::PrivateFile),
        (&FILES[..], FileKind::File),
    ];
    for (names, kind) in kinds {
        for path in names.iter().map(|name| dir.join(name)) {
            if let Some(meta) = find(&path)? {
                check_one(&path, &meta, hub_uid, kind)?;
            }
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FileKind {
    Directory,
    PrivateFile,
    File,
}

fn check_one(
    path: &Path,
    meta: &Metadata,
    hub_uid: u32,
    kind: FileKind,
) -> Result<(), OwnershipError> {
    let path = || path.to_owned();
    if meta.is_symlink() {
        return Err(OwnershipError::Link { path: path() });
    }
    let (is_right, kind_name) = match kind {
        FileKind::Directory => (meta.is_dir(), "directory"),
        FileKind::PrivateFile | FileKind::File => (meta.is_file(), "plain file"),
    };
    if !is_right {
        return Err(OwnershipError::Kind { path: path(), kind: kind_name });
    }
    if meta.uid() != hub_uid {
        return Err(OwnershipError::Foreign { path: path(), owner: meta.uid(), hub_uid });
    }
    match kind {
        FileKind::PrivateFile if meta.mode() & SHARED != 0 => {
            Err(OwnershipError::Readable { path: path() })
        }
        FileKind::Directory | FileKind::File if meta.mode() & WRITABLE != 0 => {
            Err(OwnershipError::Writable { path: path() })
        }
        FileKind::Directory | FileKind::PrivateFile | FileKind::File => Ok(()),
    }
}

fn is_open_to_all(mode: u32) -> bool {
    mode & 0o002 != 0 && mode & STICKY == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    /// Creates a data directory as a hub leaves it.
    fn data_dir() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in DIRECTORIES {
            fs::create_dir(dir.path().join(name)).unwrap();
            set(&dir.path().join(name), 0o700);
        }
        for name in PRIVATE_FILES.iter().chain(&FILES) {
            fs::write(dir.path().join(name), "").unwrap();
            set(&dir.path().join(name), 0o600);
        }
        dir
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn told(dir: &Path) -> String {
        let why = check(dir).unwrap_err().to_string();
        why.replace(&dir.canonicalize().unwrap().display().to_string(), "DATA")
    }

    #[test]
    fn own_data_dir_passes_check() {
        let dir = data_dir();
        check(dir.path()).unwrap();
        check(&dir.path().join("not/there/yet")).unwrap();
        // Others may read these.
        set(dir.path(), 0o755);
        set(&dir.path().join("plugins"), 0o755);
        set(&dir.path().join("config.toml"), 0o644);
        check(dir.path()).unwrap();
        // This user's link to the directory, for example on a larger disk.
        let home = tempfile::tempdir().unwrap();
        let link = home.path().join("data");
        symlink(dir.path(), &link).unwrap();
        check(&link).unwrap();
    }

    #[test]
    fn unsafe_paths_are_refused_with_fix() {
        let dir = data_dir();
        let path = |name: &str| dir.path().join(name);
        let mut all = Vec::new();
        for (name, wrong, right) in [
            ("", 0o770, 0o700),
            ("plugins", 0o777, 0o700),
            ("cache", 0o720, 0o700),
            ("hub.db", 0o644, 0o600),
            ("cache-key", 0o640, 0o600),
            ("run.json", 0o666, 0o600),
        ] {
            set(&path(name), wrong);
            all.push(told(dir.path()));
            set(&path(name), right);
            check(dir.path()).unwrap();
        }
        fs::rename(path("plugins"), path("elsewhere")).unwrap();
        symlink(path("elsewhere"), path("plugins")).unwrap();
        all.push(told(dir.path()));
        fs::remove_file(path("plugins")).unwrap();
        fs::remove_file(path("cache-key")).unwrap();
        symlink("/etc/hostname", path("cache-key")).unwrap();
        all.push(told(dir.path()));
        fs::remove_file(path("cache-key")).unwrap();
        fs::create_dir(path("cache-key")).unwrap();
        all.push(told(dir.path()));
        insta::assert_snapshot!(all.join("\n"), @"
        use DATA: others may write to it; run `chmod go-w DATA`
        use DATA/plugins: others may write to it; run `chmod go-w DATA/plugins`
        use DATA/cache: others may write to it; run `chmod go-w DATA/cache`
        use DATA/hub.db: others may read or write it; run `chmod 600 DATA/hub.db`
        use DATA/cache-key: others may read or write it; run `chmod 600 DATA/cache-key`
        use DATA/run.json: others may write to it; run `chmod go-w DATA/run.json`
        use DATA/plugins: it is a link; put what it leads to in its place, or remove it: `rm DATA/plugins`
        use DATA/cache-key: it is a link; put what it leads to in its place, or remove it: `rm DATA/cache-key`
        use DATA/cache-key: it is no plain file; move it away
        ");
    }

    #[test]
    fn data_dir_below_world_writable_is_refused() {
        let open = tempfile::tempdir().unwrap();
        let dir = open.path().join("data");
        fs::create_dir(&dir).unwrap();
        set(&dir, 0o700);
        check(&dir).unwrap();
        set(open.path(), 0o777);
        let why = check(&dir).unwrap_err();
        assert!(matches!(why, OwnershipError::Replaceable { .. }), "{why}");
        set(open.path(), 0o1777);
        check(&dir).unwrap();
    }

    #[test]
    fn foreign_owner_is_refused_with_chown_hint() {
        let dir = data_dir();
        let meta = fs::symlink_metadata(dir.path()).unwrap();
        let why = check_one(dir.path(), &meta, meta.uid() + 1, FileKind::Directory).unwrap_err();
        let (said, own) = (why.to_string(), meta.uid() + 1);
        assert!(
            said.contains(&format!("chown -R {own} ")) && said.contains("`data_dir`"),
            "{said}"
        );
    }
}
