//! File of grants of plug-ins, `grants.toml` in the data directory. The command line writes it and
//! the hub reads it. Both lock it and replace it atomically, so nobody reads an incomplete file.
//!
//! Write access to this file is operator access: its mode is 0600, and a file that others may write
//! to is refused.

use crate::{
    data_dir::private_file::{self, NotPrivate},
    text_file::toml_problem,
};
use a2a_hub_core::plugin::installation::Installations;
use rustix::fs::{Mode, OFlags};
use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Name of the file in the data directory.
pub const GRANTS_FILE: &str = "grants.toml";

/// Size limit, beyond any real file: a longer one is damaged.
const MAX_BYTES: u64 = 4 << 20;

/// First lines of the file, for people who open it.
const HEADING: &str = "# What is granted to plug-ins, and for which component. `a2a-hub plugin` writes this file.\n\n";

/// File of grants of one data directory.
#[derive(Clone, Debug)]
pub struct GrantsFile {
    dir: PathBuf,
}

/// Error of reading or changing the grants. The stored grants stay unchanged.
#[derive(Debug, thiserror::Error)]
pub enum GrantsError {
    /// The file cannot be read.
    #[error("read the grants in {path}: {why}")]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        why: io::Error,
    },
    /// The file is a link, belongs to another user, or is writable by others.
    #[error(
        "read the grants in {0}: others could have written it; make it a plain file of your own, and run `chmod 600` on it"
    )]
    Foreign(PathBuf),
    /// The file exceeds the size limit.
    #[error("read the grants in {0}: it is larger than {MAX_BYTES} bytes; restore it from a copy")]
    Large(PathBuf),
    /// The file is not valid.
    #[error(
        "read the grants in {path}: {why}\nmend that line, or move the file away and grant anew with `a2a-hub plugin grant`"
    )]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Line and column of the error.
        why: String,
    },
    /// The file cannot be written.
    #[error("write the grants to {path}: {why}; nothing was changed")]
    Unwritable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        why: io::Error,
    },
    /// The grants cannot be serialized.
    #[error("write the grants: {0}; nothing was changed")]
    Unspeakable(#[from] toml::ser::Error),
}

/// Metadata that changes with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantsStamp {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl GrantsFile {
    /// File of grants of the hub with this data directory.
    pub fn new(data_dir: &Path) -> Self {
        Self { dir: data_dir.to_owned() }
    }

    /// Path of the file.
    pub fn path(&self) -> PathBuf {
        self.dir.join(GRANTS_FILE)
    }

    /// Current metadata of the file, to detect changes; `None` without a file.
    pub fn stamp(&self) -> Option<GrantsStamp> {
        let meta = fs::symlink_metadata(self.path()).ok()?;
        let changed = (meta.ctime(), meta.ctime_nsec());
        Some(GrantsStamp { inode: meta.ino(), size: meta.len(), changed })
    }

    /// Reads the grants; empty without a file. Blocks on disk I/O.
    ///
    /// # Errors
    ///
    /// Fails if the file exists and cannot be trusted, read or parsed: the grants are then unknown.
    pub fn read(&self) -> Result<Installations, GrantsError> {
        let path = self.path();
        let unreadable = |why| GrantsError::Unreadable { path: path.clone(), why };
        let text = match private_file::read_text(&path, 0o022, MAX_BYTES) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(Installations::default()),
            Err(NotPrivate::Io(why)) if why.kind() == io::ErrorKind::FileTooLarge => {
                return Err(GrantsError::Large(path));
            }
            Err(NotPrivate::Io(why)) => return Err(unreadable(why)),
            Err(
                NotPrivate::Link | NotPrivate::NotPlain | NotPrivate::Foreign | NotPrivate::Shared,
            ) => {
                return Err(GrantsError::Foreign(path));
            }
        };
        let read = toml::from_str(&text);
        let mut grants: Installations =
            read.map_err(|why| GrantsError::Damaged { path, why: toml_problem(&text, &why) })?;
        // Computed digests are lower case; a person may have edited the file.
        grants.plugins.values_mut().for_each(|record| record.sha256.make_ascii_lowercase());
        Ok(grants)
    }

    /// Changes the grants under a lock, and returns the result of `change`. Unchanged grants are
    /// not written. Blocks on disk I/O, and while another process holds the lock.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or written; it then stays unchanged.
    pub fn change<T>(
        &self,
        change: impl FnOnce(&mut Installations) -> T,
    ) -> Result<T, GrantsError> {
        let unwritable = |why| GrantsError::Unwritable { path: self.path(), why };
        let lock = self.lock().map_err(unwritable)?;
        let before = self.read()?;
        let mut after = before.clone();
        let done = change(&mut after);
        if after != before {
            let text = format!("{HEADING}{}", toml::to_string(&after)?);
            private_file::replace(&self.path(), text.as_bytes()).map_err(unwritable)?;
        }
        drop(lock);
        Ok(done)
    }

    fn lock(&self) -> io::Result<File> {
        let path = self.dir.join(format!("{GRANTS_FILE}.lock"));
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?);
        file.lock()?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_core::{
        grant::{Grant, Pin, ProgramGrant, byte_limit::Allowance},
        plugin::installation::NewGrant,
    };
    use a2a_hub_protocol::id::AgentId;
    use std::{
        os::unix::fs::{PermissionsExt as _, symlink},
        thread,
    };

    fn agent(name: &str) -> AgentId {
        AgentId::parse(name).unwrap()
    }

    fn new_grant() -> NewGrant {
        let git = ProgramGrant {
            path: Some("/usr/bin/git".to_owned()),
            pin: Pin::To("ab".repeat(32)),
            args: Some(vec![vec!["log".to_owned()]].try_into().unwrap()),
            pass: Some(["HOME".to_owned()].into()),
            set: Some(["LC_ALL".to_owned()].into()),
            max_running: Some(2),
        };
        let (memory, files) = (Allowance::Bytes(4096), Allowance::AsAsked);
        let bytes = Grant { memory, files, ..Grant::default() };
        NewGrant {
            sha256: "cd".repeat(32),
            version: None,
            source: "notes.wasm".to_owned(),
            at: "2026-01-01T00:00:00Z".to_owned(),
            key: Some("RWQ".to_owned()),
            dev: true,
            by: "a test".to_owned(),
            grant: Grant {
                process: [("git".to_owned(), git)].into(),
                delegate: ["*".to_owned()].into_iter().collect(),
                directories: Some(["/srv".to_owned()].into()),
                ..bytes
            },
        }
    }

    #[test]
    fn grants_file_round_trips_with_mode_0600() {
        let dir = tempfile::tempdir().unwrap();
        let file = GrantsFile::new(dir.path());
        assert_eq!(file.read().unwrap(), Installations::default());
        assert_eq!(file.stamp(), None);
        file.change(|all| all.grant(&agent("notes"), new_grant(), 7)).unwrap();
        let read = file.read().unwrap();
        let mut wanted = Installations::default();
        wanted.grant(&agent("notes"), new_grant(), 7);
        assert_eq!(read, wanted);
        let mode = fs::metadata(file.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        let stamp = file.stamp();
        file.change(|_| ()).unwrap();
        assert_eq!(file.stamp(), stamp, "what is already so is not written again");
        file.change(|all| all.revoke(&agent("notes"), "a test")).unwrap();
        assert_ne!(file.stamp(), stamp);
    }

    #[test]
    fn digest_case_is_normalized() {
        let dir = tempfile::tempdir().unwrap();
        let file = GrantsFile::new(dir.path());
        file.change(|all| all.grant(&agent("notes"), new_grant(), 7)).unwrap();
        let text = fs::read_to_string(file.path()).unwrap();
        fs::write(file.path(), text.replace(&"cd".repeat(32), &"CD".repeat(32))).unwrap();
        assert_eq!(file.read().unwrap().plugins[&agent("notes")].sha256, "cd".repeat(32));
    }

    #[test]
    fn damaged_file_is_refused_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let file = GrantsFile::new(dir.path());
        let grant = || file.change(|all| all.grant(&agent("notes"), new_grant(), 7));
        grant().unwrap();
        let whole = fs::read_to_string(file.path()).unwrap();
        let id = "\"notes@00000007\"";
        for damaged in [
            &whole[..whole.find("granted_at").unwrap() + 20],
            &format!("{whole}\nsudo = true\n"),
            &whole.replace(id, "\"../../etc\""),
            &whole.replace("memory = 4096", "memory = \"all\""),
        ] {
            fs::write(file.path(), damaged).unwrap();
            let why = file.read().unwrap_err();
            assert!(matches!(why, GrantsError::Damaged { .. }), "{why}");
            assert!(grant().is_err(), "nobody writes over what cannot be read");
            assert_eq!(fs::read_to_string(file.path()).unwrap(), *damaged);
        }
        fs::write(file.path(), &whole).unwrap();
        grant().unwrap();
    }

    #[test]
    fn file_writable_by_others_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = GrantsFile::new(dir.path());
        file.change(|all| all.grant(&agent("notes"), new_grant(), 7)).unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o620)).unwrap();
        assert!(matches!(file.read(), Err(GrantsError::Foreign(_))));
        let elsewhere = dir.path().join("elsewhere");
        fs::rename(file.path(), &elsewhere).unwrap();
        fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&elsewhere, file.path()).unwrap();
        assert!(matches!(file.read(), Err(GrantsError::Foreign(_))), "a link");
    }

    #[test]
    fn concurrent_changes_are_all_stored() {
        let dir = tempfile::tempdir().unwrap();
        let write = |n: u32| {
            let file = GrantsFile::new(dir.path());
            move || file.change(|all| all.grant(&agent(&format!("a{n}")), new_grant(), n))
        };
        let threads: Vec<_> = (0..8).map(|n| thread::spawn(write(n))).collect();
        for thread in threads {
            thread.join().unwrap().unwrap();
        }
        assert_eq!(GrantsFile::new(dir.path()).read().unwrap().plugins.len(), 8);
    }
}
