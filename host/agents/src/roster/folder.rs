//! The plugins folder: a component dropped there joins, one replaced there takes the old one's place, one removed leaves.
//!
//! The folder is looked at twice a second rather than watched: a file counts once it stood still between two looks, so a
//! copy is never read half way, and no event can be missed. A file that cannot join leaves what was there as it is.
//!
//! Each file is taken in by itself: one that takes long to compile, or to say its card, holds up no other and nobody who looks.

use super::{
    Agents,
    admitted::Admitted,
    file_error::FileError,
    provenance::{self, beside},
};
use a2a_hub_config::{
    Config,
    own_file::{self, NotOwn},
};
use a2a_hub_core::signature;
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::id::AgentId;
use a2a_hub_sandbox::LoadError;
use bytes::Bytes;
use futures::future;
use rustix::fs::{Mode, OFlags};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{Mutex, MutexGuard},
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

/// How often the folder is looked at; a file must stand still for that long.
const INTERVAL: Duration = Duration::from_millis(500);

/// How long the start of the hub waits for what is in the folder; what takes longer joins later.
/// A compiler that is not optimised takes longer for everything.
const AT_THE_START: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 3 });

/// How long it waits for those that have unfinished tasks, which would fail without them: a new version of the hub compiles
/// all components anew.
const FOR_THEIR_TASKS: Duration = Duration::from_secs(30);

/// How long is waited before it is looked again whether a plug-in has been read.
const A_MOMENT: Duration = Duration::from_millis(10);

/// When a file is tried again that could not join for no fault of its own.
const NEXT_TRY: Duration = Duration::from_secs(30);

/// Larger components are refused: a Python agent is about 20 MiB.
pub(super) const MAX_BYTES: u64 = 128 << 20;

/// The folder, and what was seen in it. Cheap to clone.
#[derive(Clone)]
pub struct PluginFolder {
    pub(super) dir: Arc<Path>,
    pub(super) agents: Agents,
    /// Held by whoever changes the folder or takes in what is there, so that nobody does at the same time.
    seen: Arc<Mutex<SeenFiles>>,
}

/// A file that is being taken in, and what comes of that; what is wrong with it is kept for whoever asks.
type Taking = JoinHandle<Result<Option<AgentId>, FileError>>;

/// The files that were seen, by name.
pub(super) type SeenFiles = BTreeMap<String, Seen>;

/// A file as it was last seen.
pub(super) struct Seen {
    stamp: Stamp,
    /// Whether this very state of it was read, or is being read.
    read: bool,
    /// When it is read once more, though it is as it was.
    again: Option<Instant>,
    /// Ends the reading when the file is another one, or gone.
    reading: Option<DropGuard>,
    /// The agent that came of it.
    joined: Option<AgentId>,
}

/// An agent that came of a file and has no place yet.
struct Prepared {
    admitted: Admitted,
    /// The configuration that it was made under: there may be another one once it is to have its place.
    config: Arc<Config>,
}

/// What changes when a file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    component: FileStamp,
    /// That of the signature beside it.
    signature: Option<FileStamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStamp {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl PluginFolder {
    /// The folder `dir`, made if it is not there, private to this user.
    pub fn open(dir: PathBuf, agents: Agents) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        Ok(Self { dir: dir.into(), agents, seen: Arc::default() })
    }

    /// Takes in what is there now, without waiting for it to stand still. What takes long is not waited for: it joins later. Those
    /// that are `awaited` are given more time.
    pub(super) async fn load(&self, awaited: &BTreeSet<AgentId>) {
        self.adopt().await;
        self.look().await;
        let began = self.look().await;
        self.miss_those_not_there().await;
        let is_awaited = |name: &str| {
            name.strip_suffix(".wasm").is_some_and(|id| awaited.iter().any(|it| it.as_str() == id))
        };
        let (first, rest): (Vec<_>, Vec<_>) =
            began.into_iter().partition(|(name, _)| is_awaited(name));
        let within = |patience, jobs: Vec<(String, Taking)>| {
            timeout(patience, future::join_all(jobs.into_iter().map(|(_, job)| job)))
        };
        let (first, rest) =
            tokio::join!(within(FOR_THEIR_TASKS, first), within(AT_THE_START, rest));
        if first.is_err() || rest.is_err() {
            tracing::info!("some plugins are still being compiled; each joins when it is ready");
        }
    }

    /// Takes in what is there, without waiting for it to stand still, and returns once it has joined or is told why not; what takes
    /// long is not waited for.
    pub(super) async fn look_twice(&self) {
        let mut began = self.look().await;
        began.extend(self.look().await);
        let joining = async {
            future::join_all(began.into_iter().map(|(_, job)| job)).await;
            // Who looks by itself may have begun with what the operator has just granted.
            while self.is_reading_granted().await {
                sleep(A_MOMENT).await;
            }
        };
        if timeout(AT_THE_START, joining).await.is_err() {
            tracing::info!("some plugins are still being compiled; each joins when it is ready");
        }
    }

    /// Whether a plug-in is being read that something is granted to.
    async fn is_reading_granted(&self) -> bool {
        let grants = self.agents.shared.ledger.grants();
        let is_granted = |name| named_by(name).is_some_and(|id| grants.plugins.contains_key(&id));
        let seen = self.seen().await;
        seen.iter().any(|(name, seen)| seen.reading.is_some() && is_granted(name))
    }

    /// Looks again and again, until `stop`.
    pub fn watch(self, tasks: &TaskTracker, stop: CancellationToken) {
        tasks.spawn(async move {
            loop {
                tokio::select! {
                    () = sleep(INTERVAL) => {
                        self.follow_grants().await;
                        drop(self.look().await);
                    }
                    () = stop.cancelled() => return,
                }
            }
        });
    }

    /// What was seen; nobody else looks or changes anything meanwhile.
    pub(super) async fn seen(&self) -> MutexGuard<'_, SeenFiles> {
        self.seen.lock().await
    }

    /// Begins to take in what is new, and tells what.
    async fn look(&self) -> Vec<(String, Taking)> {
        let mut seen = self.seen().await;
        let folder = Arc::clone(&self.dir);
        let there = run_blocking(move || stamps(&folder)).await;
        let there = match there.map_err(io::Error::other).flatten() {
            Ok(there) => there,
            Err(why) => {
                tracing::warn!(folder = %self.dir.display(), %why, "cannot look into the plugins folder");
                return Vec::new();
            }
        };
        let gone: Vec<_> = seen.keys().filter(|name| !there.contains_key(*name)).cloned().collect();
        for name in gone {
            self.forget(&mut seen, &name);
        }
        let mut began = Vec::new();
        for (name, stamp) in there {
            match seen.get_mut(&name) {
                Some(seen) => {
                    if seen.stands_still(stamp) {
                        began.push((name.clone(), self.begin(seen, name)));
                    }
                }
                None => drop(seen.insert(name, Seen::unread(stamp))),
            }
        }
        began
    }

    /// Has a file taken in, beside everything else.
    fn begin(&self, seen: &mut Seen, name: String) -> Taking {
        let (cancel, stamp) = (self.agents.shared.stop.child_token(), seen.stamp);
        (seen.read, seen.again) = (true, None);
        seen.reading = Some(cancel.clone().drop_guard());
        let folder = self.clone();
        let on_its_way = self.agents.shared.joining.one();
        self.agents.shared.asks.spawn(async move {
            let _on_its_way = on_its_way;
            let taking = async {
                let prepared = folder.prepare(&name).await;
                folder.settle(&name, stamp, prepared).await
            };
            Box::pin(cancel.run_until_cancelled(taking)).await.unwrap_or(Err(FileError::Changed))
        })
    }

    /// Lets go of a file that is gone, and of the agent that came of it.
    pub(super) fn forget(&self, seen: &mut SeenFiles, name: &str) {
        if let Some(Seen { joined: Some(agent), .. }) = seen.remove(name) {
            self.agents.leave(&agent);
        }
        if let Some(agent) = named_by(name) {
            self.agents.miss(&agent);
        }
        self.agents.set_rejected(name, None);
    }

    /// Reads a file as it is now and has it join; none if the operator disabled it.
    pub(super) async fn take(&self, name: &str) -> Result<Option<AgentId>, FileError> {
        let taking = {
            let mut seen = self.seen().await;
            let now = Stamp::at(&self.dir.join(name))?;
            let seen = seen.entry(name.to_owned()).or_insert_with(|| Seen::unread(now));
            seen.stamp = now;
            self.begin(seen, name.to_owned())
        };
        // It comes to its end also where whoever wants it has left.
        taking.await.map_err(io::Error::other)?
    }

    /// Gives the agent that came of a file its place, or keeps why none did. Whatever came of a file that is another one by now is
    /// nobody's business.
    async fn settle(
        &self,
        name: &str,
        stamp: Stamp,
        prepared: Result<Option<Prepared>, FileError>,
    ) -> Result<Option<AgentId>, FileError> {
        let mut all = self.seen().await;
        let Some(seen) = all.get_mut(name).filter(|seen| seen.stamp == stamp) else {
            return Err(FileError::Changed);
        };
        let joined = match prepared {
            Ok(Some(prepared)) => self.seat(prepared).await.map(Some),
            Ok(None) => Ok(None),
            Err(why) => Err(why),
        };
        match &joined {
            Ok(agent) => seen.joined.clone_from(agent),
            // It stands otherwise than it did when it was read.
            Err(FileError::Changed) => seen.again = Some(Instant::now()),
            Err(FileError::Join(super::JoinError::Load(LoadError::NotNow(_)))) => {
                seen.again = Some(Instant::now() + NEXT_TRY);
            }
            Err(_) => {}
        }
        if let Some(reading) = seen.reading.take() {
            // It has come to its end: there is nothing to cancel.
            drop(reading.disarm());
        }
        let refused = joined.as_ref().err().map(ToString::to_string);
        if let Some(why) = &refused {
            tracing::warn!(file = name, why, "a plugin cannot join");
        }
        self.agents.set_rejected(name, refused);
        joined
    }

    /// Gives an agent its place.
    async fn seat(&self, prepared: Prepared) -> Result<AgentId, FileError> {
        let Prepared { admitted, config } = prepared;
        let agent = self.agents.finish(admitted).await?;
        let id = agent.id.clone();
        self.agents.register(agent);
        if !Arc::ptr_eq(&config, &self.agents.shared.config()) {
            self.agents.follow_late(&id);
        }
        Ok(id)
    }

    /// Has a plug-in's file read once more at the next look, though it is as it was.
    pub(super) async fn read_again(&self, id: &AgentId) {
        if let Some(seen) = self.seen().await.get_mut(&format!("{id}.wasm")) {
            seen.read_again();
        }
    }

    /// Those whose files are there, and wait for a word of the operator's or for the grants to be readable.
    pub(super) async fn waiting(&self) -> BTreeSet<AgentId> {
        let seen = self.seen().await;
        let of_file = seen.iter().filter_map(|(name, seen)| Some((named_by(name)?, seen)));
        let is_waiting = |id: &AgentId, seen: &Seen| {
            let was_read = seen.read && seen.reading.is_none();
            self.agents.held_back(id).is_some() || (was_read && self.agents.find(id).is_none())
        };
        of_file.filter(|(id, seen)| is_waiting(id, seen)).map(|(id, _)| id).collect()
    }

    /// The first time that there are records of grants: what the configuration grants to those that are there now is recorded for
    /// them, and with it what they have kept so far.
    async fn adopt(&self) {
        let agents = self.agents.clone();
        if agents.shared.ledger.grants().adopted || agents.shared.ledger.trouble().is_some() {
            return;
        }
        let folder = Arc::clone(&self.dir);
        let adopted = run_blocking(move || {
            for name in stamps(&folder).map_err(|why| why.to_string())?.into_keys() {
                let Some(id) = named_by(&name) else { continue };
                let Ok(bytes) = read_trusted(&folder.join(&name), MAX_BYTES) else { continue };
                agents.adopt(&id, &name, &bytes);
            }
            let done = agents.shared.ledger.change(|all| all.adopted = true);
            done.map_err(|why| why.to_string())
        });
        if let Err(why) = adopted.await.map_err(|why| why.to_string()).flatten() {
            tracing::error!(why, "the records of grants cannot be begun");
        }
    }

    /// Plug-ins whose files went while no hub looked on.
    async fn miss_those_not_there(&self) {
        let seen = self.seen().await;
        let there: BTreeSet<_> = seen.keys().filter_map(|name| named_by(name)).collect();
        drop(seen);
        let grants = self.agents.shared.ledger.grants();
        for id in grants.plugins.keys().filter(|id| !there.contains(*id)) {
            self.agents.miss(id);
        }
        let shared = Arc::clone(&self.agents.shared);
        if let Err(why) = run_blocking(move || shared.sweep_kept()).await {
            tracing::warn!(%why, "copies of components cannot be looked through");
        }
    }

    /// The agent that comes of a file; none if the operator disabled it.
    async fn prepare(&self, name: &str) -> Result<Option<Prepared>, FileError> {
        let id = AgentId::parse(name.strip_suffix(".wasm").unwrap_or(name))?;
        let config = self.agents.shared.config();
        if !config.agent(&id).enabled {
            return Ok(None);
        }
        let (file, plugins) = (self.dir.join(name), config.plugins.clone());
        // The semaphore is never closed.
        let _room = self.agents.shared.unloaded.acquire_many(kibibytes(&file)).await;
        let read = run_blocking(move || {
            let bytes = read_trusted(&file, MAX_BYTES)?;
            let signature = signature_of(&file, read_trusted)?;
            let provenance = provenance::admit(&bytes, signature.as_deref(), &plugins)?;
            Ok::<_, FileError>((bytes, signature, provenance))
        });
        let (bytes, signature, provenance) = read.await.map_err(io::Error::other)??;
        let mut admitted = self.agents.admit_file(&id, name, bytes, signature).await?;
        if !admitted.is_another() {
            admitted.agent.signed_by = provenance.signer().map(str::to_owned);
        }
        Ok(Some(Prepared { admitted, config }))
    }
}

impl Seen {
    /// A file that was not read.
    fn unread(stamp: Stamp) -> Self {
        Self { stamp, read: false, again: None, reading: None, joined: None }
    }

    /// The file at `path` as it is now, which was read; `joined` came of it.
    pub(super) fn read(path: &Path, joined: Option<AgentId>) -> io::Result<Self> {
        let stamp = Stamp::at(path)?;
        Ok(Self { read: true, joined, ..Self::unread(stamp) })
    }

    /// Has it read once more, though it is as it was.
    pub(super) fn read_again(&mut self) {
        self.again = Some(Instant::now());
    }

    /// Whether the file is as it was at the last look and is to be read, having the stamp that it has `now`.
    fn stands_still(&mut self, now: Stamp) -> bool {
        if self.stamp != now {
            let joined = self.joined.take();
            *self = Self { joined, ..Self::unread(now) };
            return false;
        }
        !self.read || self.again.is_some_and(|at| Instant::now() >= at)
    }
}

impl Stamp {
    /// Of the component at `path`, and its signature.
    fn at(path: &Path) -> io::Result<Self> {
        let component = FileStamp::of(&fs::symlink_metadata(path)?);
        let signature = fs::symlink_metadata(beside(path)).ok();
        Ok(Self { component, signature: signature.as_ref().map(FileStamp::of) })
    }
}

impl FileStamp {
    fn of(meta: &fs::Metadata) -> Self {
        Self { inode: meta.ino(), size: meta.len(), changed: (meta.ctime(), meta.ctime_nsec()) }
    }
}

/// The agent that a file is, if it can be one.
fn named_by(file: &str) -> Option<AgentId> {
    AgentId::parse(file.strip_suffix(".wasm")?).ok()
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
        let Ok(stamp) = Stamp::at(&entry.path()) else { continue };
        found.insert(name, stamp);
    }
    Ok(found)
}

/// The room that a file takes up while it is loaded: one that grows meanwhile is another file.
fn kibibytes(file: &Path) -> u32 {
    let bytes = fs::symlink_metadata(file).map_or(0, |meta| meta.len().min(MAX_BYTES));
    u32::try_from(bytes >> 10).unwrap_or_default() + 1
}

/// Reads a file that nobody but this user can have put there: what is checked is what was opened, and what is read once
/// is what is hashed and compiled.
fn read_trusted(path: &Path, most: u64) -> Result<Bytes, FileError> {
    let file = own_file::open(path, 0o022).map_err(|why| match why {
        NotOwn::Io(why) => FileError::Io(why),
        NotOwn::Link | NotOwn::NotPlain => FileError::NotPlain,
        NotOwn::Foreign => FileError::Foreign,
        NotOwn::Shared => FileError::Writable,
    })?;
    if file.metadata()?.nlink() != 1 {
        return Err(FileError::NotPlain);
    }
    read_all(file, most)
}

/// The signature beside a component, by the reader of both; none if there is none.
pub(super) fn signature_of(
    component: &Path,
    read: impl FnOnce(&Path, u64) -> Result<Bytes, FileError>,
) -> Result<Option<Bytes>, FileError> {
    match read(&beside(component), signature::MAX_BYTES as u64) {
        Ok(signature) => Ok(Some(signature)),
        Err(FileError::Io(why)) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(FileError::Signature(Box::new(why))),
    }
}

/// Reads a file whose owner asks for it, be it linked or writable to others: what is read now is what counts.
pub(super) fn read_offered(path: &Path, most: u64) -> Result<Bytes, FileError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from)?;
    let file = File::from(file);
    if file.metadata()?.is_file() { read_all(file, most) } else { Err(FileError::NotPlain) }
}

fn read_all(file: File, most: u64) -> Result<Bytes, FileError> {
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(FileError::Large(most));
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
        assert_eq!(read_trusted(&file, MAX_BYTES).unwrap(), "x");

        fs::set_permissions(&file, fs::Permissions::from_mode(0o662)).unwrap();
        assert!(matches!(read_trusted(&file, MAX_BYTES), Err(FileError::Writable)));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();

        let link = dir.path().join("link.wasm");
        symlink(&file, &link).unwrap();
        assert!(matches!(read_trusted(&link, MAX_BYTES), Err(FileError::NotPlain)));
        fs::hard_link(&file, dir.path().join("twin.wasm")).unwrap();
        assert!(matches!(read_trusted(&file, MAX_BYTES), Err(FileError::NotPlain)));
        assert!(matches!(read_trusted(dir.path(), MAX_BYTES), Err(FileError::NotPlain)));
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
