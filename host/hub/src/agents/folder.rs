//! The plugins folder: a component dropped there joins, one replaced there takes the old one's place, one removed leaves.
//!
//! The folder is looked at twice a second rather than watched: a file counts once it stood still between two looks, so a
//! copy is never read half way, and no event can be missed. A file that cannot join leaves what was there as it is.

use super::{Agents, agent::Source};
use a2a_hub_protocol::id::AgentId;
use bytes::Bytes;
use rustix::fs::{Mode, OFlags};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{Mutex, MutexGuard},
    task::spawn_blocking,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How often the folder is looked at; a file must stand still for that long.
const INTERVAL: Duration = Duration::from_millis(500);

/// Larger components are refused: a Python agent is about 20 MiB.
const MAX_BYTES: u64 = 128 << 20;

/// The folder, and what was seen in it. Cheap to clone.
#[derive(Clone)]
pub struct PluginFolder {
    pub(super) dir: Arc<Path>,
    pub(super) agents: Agents,
    /// Held by whoever changes the folder or takes in what is there, so that nobody does at the same time.
    seen: Arc<Mutex<SeenFiles>>,
}

/// The files that were seen, by name.
pub(super) type SeenFiles = BTreeMap<String, Seen>;

/// A file as it was last seen.
pub(super) struct Seen {
    stamp: Stamp,
    /// Whether this very state of it was read.
    read: bool,
    /// The agent that came of it.
    joined: Option<AgentId>,
}

/// What changes when a file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

/// Why a file is not an agent.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It is called as no agent can be.
    #[error("its name cannot name an agent: {0}")]
    Name(#[from] a2a_hub_protocol::id::InvalidAgentId),
    /// It is not the file itself.
    #[error("it is a link, or no plain file; copy the component itself into the folder")]
    NotPlain,
    /// Somebody else put it there.
    #[error("it belongs to another user; only your own files are loaded")]
    Foreign,
    /// Somebody else may change it.
    #[error("others may write to it; run `chmod go-w` on it")]
    Writable,
    /// It is no component of a sensible size.
    #[error("it is larger than {MAX_BYTES} bytes")]
    Large,
    /// The system would not let it be read.
    #[error("read it: {0}")]
    Io(#[from] io::Error),
    /// It may not join.
    #[error(transparent)]
    Join(#[from] super::JoinError),
}

impl PluginFolder {
    /// The folder `dir`, made if it is not there, private to this user.
    pub fn open(dir: PathBuf, agents: Agents) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        Ok(Self { dir: dir.into(), agents, seen: Arc::default() })
    }

    /// Takes in what is there now, without waiting for it to stand still.
    pub async fn load(&self) {
        self.look().await;
        self.look().await;
    }

    /// Looks again and again, until `stop`.
    pub fn watch(self, tasks: &TaskTracker, stop: CancellationToken) {
        tasks.spawn(async move {
            loop {
                tokio::select! {
                    () = tokio::time::sleep(INTERVAL) => self.look().await,
                    () = stop.cancelled() => return,
                }
            }
        });
    }

    /// What was seen; nobody else looks or changes anything meanwhile.
    pub(super) async fn seen(&self) -> MutexGuard<'_, SeenFiles> {
        self.seen.lock().await
    }

    async fn look(&self) {
        let mut seen = self.seen().await;
        let folder = Arc::clone(&self.dir);
        let there = spawn_blocking(move || stamps(&folder)).await;
        let there = match there.map_err(io::Error::other).flatten() {
            Ok(there) => there,
            Err(why) => {
                tracing::warn!(folder = %self.dir.display(), %why, "cannot look into the plugins folder");
                return;
            }
        };
        let gone: Vec<_> = seen.keys().filter(|name| !there.contains_key(*name)).cloned().collect();
        for name in gone {
            self.forget(&mut seen, &name);
        }
        for (name, stamp) in there {
            let settled = match seen.get_mut(&name) {
                Some(seen) if seen.stamp == stamp => !seen.read,
                Some(seen) => {
                    (seen.stamp, seen.read) = (stamp, false);
                    false
                }
                None => {
                    seen.insert(name.clone(), Seen { stamp, read: false, joined: None });
                    false
                }
            };
            if settled {
                // What is wrong with it is kept for whoever asks.
                let _ = self.take(&mut seen, &name).await;
            }
        }
    }

    /// Lets go of a file that is gone, and of the agent that came of it.
    pub(super) fn forget(&self, seen: &mut SeenFiles, name: &str) {
        if let Some(Seen { joined: Some(agent), .. }) = seen.remove(name) {
            self.agents.leave(&agent);
        }
        self.agents.set_rejected(name, None);
    }

    /// Reads a file and has it join; none if the operator disabled it.
    pub(super) async fn take(
        &self,
        seen: &mut SeenFiles,
        name: &str,
    ) -> Result<Option<AgentId>, FileError> {
        let joined = self.join(name).await;
        if let Some(seen) = seen.get_mut(name) {
            seen.read = true;
            if let Ok(agent) = &joined {
                seen.joined.clone_from(agent);
            }
        }
        let refused = joined.as_ref().err().map(ToString::to_string);
        if let Some(why) = &refused {
            tracing::warn!(file = name, why, "a plugin cannot join");
        }
        self.agents.set_rejected(name, refused);
        joined
    }

    async fn join(&self, name: &str) -> Result<Option<AgentId>, FileError> {
        let id = AgentId::parse(name.strip_suffix(".wasm").unwrap_or(name))?;
        if !self.agents.shared.config().agent(&id).enabled {
            return Ok(None);
        }
        let file = self.dir.join(name);
        let bytes = spawn_blocking(move || read_trusted(&file)).await;
        let bytes = bytes.map_err(io::Error::other)??;
        let agent = self.agents.prepare(&id, bytes, Source::File(name.to_owned())).await?;
        self.agents.register(agent);
        Ok(Some(id))
    }
}

impl Seen {
    /// The file at `path` as it is now, which was read; `joined` came of it.
    pub(super) fn read(path: &Path, joined: Option<AgentId>) -> io::Result<Self> {
        Ok(Self { stamp: Stamp::of(&fs::symlink_metadata(path)?), read: true, joined })
    }
}

impl Stamp {
    fn of(meta: &fs::Metadata) -> Self {
        Self { inode: meta.ino(), size: meta.len(), changed: (meta.ctime(), meta.ctime_nsec()) }
    }
}

/// The components in the folder: what is not hidden and ends in `.wasm`.
fn stamps(dir: &Path) -> io::Result<BTreeMap<String, Stamp>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.starts_with('.') || !name.ends_with(".wasm") {
            continue;
        }
        // A file that went away between the two looks is not there.
        let Ok(meta) = entry.metadata() else { continue };
        found.insert(name, Stamp::of(&meta));
    }
    Ok(found)
}

/// Reads a file that nobody but this user can have put there: what is checked is what was opened, and what is read once
/// is what is hashed and compiled.
fn read_trusted(path: &Path) -> Result<Bytes, FileError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|why| match why {
        rustix::io::Errno::LOOP => FileError::NotPlain,
        why => FileError::Io(why.into()),
    })?;
    let file = File::from(file);
    let meta = file.metadata()?;
    if !meta.is_file() || meta.nlink() != 1 {
        return Err(FileError::NotPlain);
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(FileError::Foreign);
    }
    if meta.mode() & 0o022 != 0 {
        return Err(FileError::Writable);
    }
    read_all(file)
}

/// Reads a file whose owner asks for it, be it linked or writable to others: what is read now is what counts.
pub(super) fn read_offered(path: &Path) -> Result<Bytes, FileError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from)?;
    let file = File::from(file);
    if file.metadata()?.is_file() { read_all(file) } else { Err(FileError::NotPlain) }
}

fn read_all(file: File) -> Result<Bytes, FileError> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(FileError::Large);
    }
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn only_own_plain_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.wasm");
        fs::write(&file, "x").unwrap();
        assert_eq!(read_trusted(&file).unwrap(), "x");

        fs::set_permissions(&file, fs::Permissions::from_mode(0o662)).unwrap();
        assert!(matches!(read_trusted(&file), Err(FileError::Writable)));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();

        let link = dir.path().join("link.wasm");
        symlink(&file, &link).unwrap();
        assert!(matches!(read_trusted(&link), Err(FileError::NotPlain)));
        fs::hard_link(&file, dir.path().join("twin.wasm")).unwrap();
        assert!(matches!(read_trusted(&file), Err(FileError::NotPlain)));
        assert!(matches!(read_trusted(dir.path()), Err(FileError::NotPlain)));
    }

    #[test]
    fn hidden_and_other_files_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        for name in [".a.wasm", "b.wasm.part", "c.wasm"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(stamps(dir.path()).unwrap().into_keys().collect::<Vec<_>>(), ["c.wasm"]);
    }
}
