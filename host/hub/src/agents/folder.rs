//! The plugins folder: a component dropped there joins, one replaced there takes the old one's place, one removed leaves.
//!
//! The folder is looked at twice a second rather than watched: a file counts once it stood still between two looks, so a
//! copy is never read half way, and no event can be missed. A file that cannot join leaves what was there as it is.

use super::{Agents, agent::Source};
use a2a_hub_protocol::id::AgentId;
use rustix::fs::{Mode, OFlags};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    time::Duration,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How often the folder is looked at; a file must stand still for that long.
const INTERVAL: Duration = Duration::from_millis(500);

/// Larger components are refused: a Python agent is about 20 MiB.
const MAX_BYTES: u64 = 128 << 20;

/// The folder, and what was seen in it.
pub struct PluginFolder {
    dir: PathBuf,
    agents: Agents,
    seen: BTreeMap<String, Seen>,
}

/// A file as it was last seen.
struct Seen {
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

/// Why a file in the folder is not an agent.
#[derive(Debug, thiserror::Error)]
enum FileError {
    #[error("its name cannot name an agent: {0}")]
    Name(#[from] a2a_hub_protocol::id::InvalidAgentId),
    #[error("it is a link, or no plain file; copy the component itself into the folder")]
    NotPlain,
    #[error("it belongs to another user; only your own files are loaded")]
    Foreign,
    #[error("others may write to it; run `chmod go-w` on it")]
    Writable,
    #[error("it is larger than {MAX_BYTES} bytes")]
    Large,
    #[error("read it: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Join(#[from] super::JoinError),
}

impl PluginFolder {
    /// The folder `dir`, made if it is not there, private to this user.
    pub fn open(dir: PathBuf, agents: Agents) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        Ok(Self { dir, agents, seen: BTreeMap::new() })
    }

    /// Takes in what is there now, without waiting for it to stand still.
    pub async fn load(&mut self) {
        self.look().await;
        self.look().await;
    }

    /// Looks again and again, until `stop`.
    pub fn watch(mut self, tasks: &TaskTracker, stop: CancellationToken) {
        tasks.spawn(async move {
            loop {
                tokio::select! {
                    () = tokio::time::sleep(INTERVAL) => self.look().await,
                    () = stop.cancelled() => return,
                }
            }
        });
    }

    async fn look(&mut self) {
        let there = match stamps(&self.dir) {
            Ok(there) => there,
            Err(why) => {
                tracing::warn!(folder = %self.dir.display(), %why, "cannot look into the plugins folder");
                return;
            }
        };
        let gone: Vec<_> =
            self.seen.keys().filter(|name| !there.contains_key(*name)).cloned().collect();
        for name in gone {
            self.forget(&name);
        }
        for (name, stamp) in there {
            let settled = match self.seen.get_mut(&name) {
                Some(seen) if seen.stamp == stamp => !seen.read,
                Some(seen) => {
                    (seen.stamp, seen.read) = (stamp, false);
                    false
                }
                None => {
                    self.seen.insert(name.clone(), Seen { stamp, read: false, joined: None });
                    false
                }
            };
            if settled {
                self.take(&name).await;
            }
        }
    }

    fn forget(&mut self, name: &str) {
        if let Some(Seen { joined: Some(agent), .. }) = self.seen.remove(name) {
            self.agents.leave(&agent);
        }
        self.agents.set_rejected(name, None);
    }

    async fn take(&mut self, name: &str) {
        let joined = join(&self.agents, &self.dir, name).await;
        let Some(seen) = self.seen.get_mut(name) else { return };
        seen.read = true;
        match joined {
            Ok(agent) => {
                seen.joined = agent;
                self.agents.set_rejected(name, None);
            }
            Err(why) => {
                tracing::warn!(file = name, %why, "a plugin cannot join");
                self.agents.set_rejected(name, Some(why.to_string()));
            }
        }
    }
}

/// Reads the file and has it join under the name of the file; none if the operator disabled it.
async fn join(agents: &Agents, dir: &Path, name: &str) -> Result<Option<AgentId>, FileError> {
    let id = AgentId::parse(name.strip_suffix(".wasm").unwrap_or(name))?;
    if !agents.shared.config.agent(&id).enabled {
        return Ok(None);
    }
    let file = dir.join(name);
    let bytes = tokio::task::spawn_blocking(move || read_trusted(&file)).await;
    let bytes = bytes.map_err(io::Error::other)??;
    agents.join(&id, bytes, Source::File(name.to_owned())).await?;
    Ok(Some(id))
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
        let changed = (meta.ctime(), meta.ctime_nsec());
        found.insert(name, Stamp { inode: meta.ino(), size: meta.len(), changed });
    }
    Ok(found)
}

/// Reads a file that nobody but this user can have put there: what is checked is what was opened, and what is read once
/// is what is hashed and compiled.
fn read_trusted(path: &Path) -> Result<Vec<u8>, FileError> {
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
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(FileError::Large);
    }
    Ok(bytes)
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
        assert_eq!(read_trusted(&file).unwrap(), b"x");

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
