//! Files that agents pass to their programs, and the programs' temporary files: one directory for
//! each instance, created with its first file and removed soon after the instance ends.

use super::live_grant::{LiveGrant, Revocation, revoked};
use a2a_hub_config::private_file;
use a2a_hub_process::{Supervisor, run_blocking};
use a2a_hub_runtime::{Failure, port::files::FilesPort};
use parking_lot::Mutex;
use rustix::{
    fs::{Mode, OFlags, mkdirat, openat},
    io::Errno,
};
use std::{
    borrow::Cow,
    fs,
    io::{self, Write as _},
    os::{fd::OwnedFd, unix::fs::DirBuilderExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{runtime::Handle, task::JoinSet, time::timeout};
use tokio_util::task::TaskTracker;

/// Folder of the data directory that contains the instances' directories.
const FOLDER: &str = "files";

/// Folder of an instance's directory for files that the agent wrote.
const AGENT_FILES: &str = "given";

/// Folder of an instance's directory for its programs' temporary files.
const TEMPORARY: &str = "tmp";

/// Time that the removal of a directory waits for programs that may still write into it.
const PROGRAM_EXIT_TIMEOUT: Duration = Duration::from_secs(8);

/// Creates directories for instances. Clones share state.
#[derive(Clone)]
pub(crate) struct Files(Arc<FilesInner>);

struct FilesInner {
    folder: Arc<Path>,
    supervisor: Supervisor,
    next_number: AtomicU64,
    removals: TaskTracker,
}

/// Removes directories that a killed hub process left in its data directory. Called at the start of
/// a hub.
pub fn sweep_files(data_dir: &Path) -> io::Result<()> {
    private_file::ok_if_missing(fs::remove_dir_all(data_dir.join(FOLDER)))
}

impl Files {
    pub(crate) fn new(data_dir: &Path, supervisor: Supervisor) -> Self {
        let folder = data_dir.join(FOLDER);
        // Programs receive these paths and may have another working directory.
        let folder = std::path::absolute(&folder).unwrap_or(folder).into();
        let (next_number, removals) = (AtomicU64::new(0), TaskTracker::new());
        Self(Arc::new(FilesInner { folder, supervisor, next_number, removals }))
    }

    /// Directory of a new instance. Its programs run on behalf of `owner`; `live` limits what it
    /// may write.
    pub(crate) fn instance(&self, owner: &str, live: LiveGrant) -> InstanceFiles {
        let number = self.0.next_number.fetch_add(1, Relaxed);
        let folder = Arc::clone(&self.0.folder);
        let directory =
            Arc::new(InstanceDirectory { folder, number, is_removed: Mutex::default() });
        let writable =
            WritableFolder { directory: Arc::clone(&directory), folder: AGENT_FILES.into() };
        InstanceFiles {
            directory,
            places: Arc::new(Mutex::new(vec![writable])),
            is_used: AtomicBool::new(false),
            written: AtomicU64::new(0),
            live,
            watch: OnceLock::new(),
            owner: owner.to_owned(),
            shared: Arc::clone(&self.0),
        }
    }

    /// Waits until the directories of all ended instances are removed.
    pub(crate) async fn shutdown(&self) {
        self.0.removals.close();
        self.0.removals.wait().await;
    }
}

/// Files of one instance. Dropping it removes them once the instance's programs have exited.
pub(crate) struct InstanceFiles {
    directory: Arc<InstanceDirectory>,
    places: Places,
    is_used: AtomicBool,
    /// Bytes that the agent wrote.
    written: AtomicU64,
    live: LiveGrant,
    /// Removes the agent's files on revocation.
    watch: OnceLock<Withdrawing>,
    owner: String,
    shared: Arc<FilesInner>,
}

/// Waits for the revocation of the grant and removes the files that were written under it.
struct Withdrawing {
    _revocation: Revocation,
    _removing: JoinSet<()>,
}

struct InstanceDirectory {
    /// Folder of all instances; `number` is unique within this process.
    folder: Arc<Path>,
    number: u64,
    /// Set on removal; later writes fail instead of recreating the directory.
    is_removed: Mutex<bool>,
}

impl InstanceDirectory {
    /// Computed on demand, because few instances have files.
    fn path(&self) -> PathBuf {
        self.folder.join(format!("{}-{}", std::process::id(), self.number))
    }

    /// Opens a folder of the directory, created if necessary, and runs `act` in it. The folder is
    /// not removed meanwhile. The instance's programs may write here: a link in place of the folder
    /// is refused (CWE-59).
    fn with<T>(
        &self,
        folder: &str,
        act: impl FnOnce(&OwnedFd, PathBuf) -> io::Result<T>,
    ) -> io::Result<T> {
        let is_removed = self.is_removed.lock();
        if *is_removed {
            return Err(io::Error::other("the task is over"));
        }
        let path = self.path();
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        let real = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let instance_dir = rustix::fs::open(&path, OFlags::PATH | real, Mode::empty())?;
        match mkdirat(&instance_dir, folder, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(why) => return Err(why.into()),
        }
        let opened = openat(&instance_dir, folder, OFlags::PATH | real, Mode::empty())?;
        act(&opened, path.join(folder))
    }

    fn write(&self, folder: &str, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        self.with(folder, |opened, path| {
            // `EXCL` follows no link, whatever a program may have put there.
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            let file = openat(opened, name, flags, Mode::RUSR | Mode::WUSR)?;
            fs::File::from(file).write_all(bytes)?;
            Ok(path.join(name))
        })
    }

    /// Removes the agent's files; its programs keep their temporary files.
    fn withdraw(&self, folder: &str) -> io::Result<()> {
        let _guard = self.is_removed.lock();
        private_file::ok_if_missing(fs::remove_dir_all(self.path().join(folder)))
    }

    fn remove(&self) -> io::Result<()> {
        *self.is_removed.lock() = true;
        private_file::ok_if_missing(fs::remove_dir_all(self.path()))
    }
}

/// Folder that an instance writes to: in its own directory, or in the directory that a readmitted
/// program sees.
#[derive(Clone)]
struct WritableFolder {
    directory: Arc<InstanceDirectory>,
    folder: Cow<'static, str>,
}

/// All folders that an instance has written to, the current one last.
type Places = Arc<Mutex<Vec<WritableFolder>>>;

/// Removes the files in all these folders. Blocks on the disk.
fn withdraw(places: &Places) -> io::Result<()> {
    let places = places.lock().clone();
    places.iter().try_for_each(|entry| entry.directory.withdraw(&entry.folder))
}

impl InstanceFiles {
    /// Redirects later writes to a folder visible to a program that was started with the files of
    /// `other`. The folder is still removed with this instance.
    pub(crate) fn share(&self, other: &Self) {
        let number = self.shared.next_number.fetch_add(1, Relaxed);
        let (directory, folder) =
            (Arc::clone(&other.directory), format!("{AGENT_FILES}-{number}").into());
        let mut places = self.places.lock();
        places.retain(|entry| Arc::ptr_eq(&entry.directory, &self.directory));
        places.push(WritableFolder { directory, folder });
    }

    /// Writes to the current folder: the program's, or the instance's own if the program has ended.
    fn write(places: &Places, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let places = places.lock().clone();
        let there = places.iter().rev().find(|entry| !*entry.directory.is_removed.lock());
        let over = || io::Error::other("the task is over");
        let WritableFolder { directory, folder } = there.ok_or_else(over)?;
        directory.write(folder, name, bytes)
    }

    /// Directory for the programs' temporary files, created if necessary. Blocks on the disk.
    pub(crate) fn temporary(&self) -> io::Result<PathBuf> {
        self.is_used.store(true, Relaxed);
        self.directory.with(TEMPORARY, |_, path| Ok(path))
    }

    /// Starts the removal of the agent's files on revocation of the right to write files.
    fn withdraw_when_revoked(&self) {
        self.watch.get_or_init(|| {
            let revocation = self.live.watch(|grant| grant.files_bytes.is_some());
            let (token, places) = (revocation.token.clone(), Arc::clone(&self.places));
            let mut removing = JoinSet::new();
            removing.spawn(async move {
                token.cancelled().await;
                let removed = run_blocking(move || withdraw(&places)).await;
                if let Err(why) = removed.map_err(io::Error::other).flatten() {
                    tracing::warn!(%why, "cannot remove files written under a revoked grant");
                }
            });
            Withdrawing { _revocation: revocation, _removing: removing }
        });
    }
}

#[async_trait::async_trait]
impl FilesPort for InstanceFiles {
    async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<String, Failure> {
        let action = "write files";
        let Some(max_bytes) = self.live.now().files_bytes else { return Err(revoked(action)) };
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let written = self.written.fetch_add(size, Relaxed).saturating_add(size);
        if written > max_bytes {
            return Err(Failure::Exhausted(format!(
                "write a file of {size} bytes: the operator allows {max_bytes} bytes for each task now, and {written} would be written"
            )));
        }
        self.is_used.store(true, Relaxed);
        self.withdraw_when_revoked();
        let failed = |why| Failure::Unavailable(format!("write the file `{name}`: {why}"));
        let (places, file) = (Arc::clone(&self.places), name.to_owned());
        let written = run_blocking(move || Self::write(&places, &file, &bytes)).await;
        let path = written.map_err(io::Error::other).and_then(|path| path).map_err(failed)?;
        if let Err(why) = self.live.must(action, |grant| grant.files_bytes.is_some()) {
            let places = Arc::clone(&self.places);
            // The revocation's removal may have run before this file existed.
            let _ = run_blocking(move || withdraw(&places)).await;
            return Err(why);
        }
        path.into_os_string()
            .into_string()
            .map_err(|_| failed(io::Error::other("the path of the data directory is not UTF-8")))
    }
}

impl Drop for InstanceFiles {
    fn drop(&mut self) {
        // Without a runtime the hub has already shut down; the next start sweeps the directory.
        if !*self.is_used.get_mut() || Handle::try_current().is_err() {
            return;
        }
        let (directory, shared) = (Arc::clone(&self.directory), Arc::clone(&self.shared));
        let owner = std::mem::take(&mut self.owner);
        let places = Arc::clone(&self.places);
        self.shared.removals.spawn(async move {
            let _ = timeout(PROGRAM_EXIT_TIMEOUT, shared.supervisor.ended(&owner)).await;
            let remove = move || withdraw(&places).and(directory.remove());
            let removed = run_blocking(remove).await;
            if let Err(why) = removed.map_err(io::Error::other).and_then(|removed| removed) {
                tracing::warn!(owner, %why, "cannot remove files of a task");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_core::grant::EffectiveGrant;
    use std::os::unix::fs::PermissionsExt as _;

    fn files(data: &Path) -> Files {
        let supervisor = Supervisor::new("/none".into(), data.to_owned(), Duration::ZERO);
        Files::new(data, supervisor)
    }

    fn granted() -> LiveGrant {
        let held = EffectiveGrant { files_bytes: Some(1000), ..EffectiveGrant::default() };
        LiveGrant::new(Arc::new(held))
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn dropped_instance_removes_its_directory() {
        let data = tempfile::tempdir().unwrap();
        let files = files(data.path());
        let (one, two) = (files.instance("t", granted()), files.instance("t", granted()));
        assert!(!data.path().join(FOLDER).exists(), "nothing is made before it is needed");

        let path = PathBuf::from(one.put("a.txt", b"hello".to_vec()).await.unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"hello");
        let directory = path.parent().unwrap();
        assert_eq!((mode(&path), mode(directory)), (0o600, 0o700));
        let temporary = one.temporary().unwrap();
        assert_eq!((one.temporary().unwrap(), mode(&temporary)), (temporary.clone(), 0o700));
        assert_eq!(mode(&data.path().join(FOLDER)), 0o700);
        let other = PathBuf::from(two.put("a.txt", Vec::new()).await.unwrap());
        assert_ne!(other.parent(), path.parent(), "each has its own");

        drop(one);
        files.shutdown().await;
        assert!(!directory.exists() && !temporary.exists() && other.exists());
    }

    #[tokio::test]
    async fn shared_file_is_removed_with_its_task() {
        let data = tempfile::tempdir().unwrap();
        let files = files(data.path());
        let (first, second) = (files.instance("t", granted()), files.instance("u", granted()));
        let theirs = PathBuf::from(first.put("a", Vec::new()).await.unwrap());
        let before = PathBuf::from(second.put("a", Vec::new()).await.unwrap());
        second.share(&first);
        let after = PathBuf::from(second.put("a", b"x".to_vec()).await.unwrap());
        let instance = |path: &Path| path.ancestors().nth(2).unwrap().to_owned();
        assert_eq!(instance(&after), instance(&theirs), "where the program sees it");
        assert_ne!(instance(&before), instance(&theirs));
        assert_ne!(after.parent(), theirs.parent(), "no name is taken there");

        drop(second);
        files.shutdown().await;
        assert!(!after.exists() && !before.exists(), "with their task");
        assert!(theirs.exists(), "and what is another's stays");
        let third = files.instance("v", granted());
        third.share(&first);
        first.directory.remove().unwrap();
        let own = PathBuf::from(third.put("a", Vec::new()).await.unwrap());
        assert!(own.exists(), "the program is gone, and the task goes on");
    }

    #[tokio::test]
    async fn write_through_link_is_refused() {
        let data = tempfile::tempdir().unwrap();
        let files = files(data.path());
        let one = files.instance("t", granted());
        let path = PathBuf::from(one.put("a", Vec::new()).await.unwrap());
        let outside = data.path().join("outside");
        std::os::unix::fs::symlink(&outside, path.with_file_name("b")).unwrap();
        assert!(one.put("b", b"x".to_vec()).await.is_err());
        assert!(!outside.exists());
    }

    /// A confined program sees its instance's directory, and may write there.
    #[tokio::test]
    async fn folder_swapped_for_link_is_refused() {
        let data = tempfile::tempdir().unwrap();
        let one = files(data.path()).instance("t", granted());
        let given = PathBuf::from(one.put("a", Vec::new()).await.unwrap());
        let (given, temporary) = (given.parent().unwrap(), one.temporary().unwrap());
        let outside = data.path().join("outside");
        fs::create_dir(&outside).unwrap();
        for folder in [given, &temporary] {
            fs::rename(folder, folder.with_extension("moved")).unwrap();
            std::os::unix::fs::symlink(&outside, folder).unwrap();
        }
        assert!(one.put("b", b"x".to_vec()).await.is_err() && one.temporary().is_err());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn late_write_does_not_recreate_directory() {
        let data = tempfile::tempdir().unwrap();
        let one = files(data.path()).instance("t", granted());
        one.put("a", Vec::new()).await.unwrap();
        one.directory.remove().unwrap();
        assert!(one.put("b", Vec::new()).await.is_err() && one.temporary().is_err());
        assert!(!one.directory.path().exists());
    }

    #[test]
    fn sweep_removes_leftovers_of_killed_hub() {
        let data = tempfile::tempdir().unwrap();
        let left = data.path().join(FOLDER).join("1-0");
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("a"), "x").unwrap();
        sweep_files(data.path()).unwrap();
        assert!(!left.exists());
        sweep_files(data.path()).unwrap();
    }
}
