//! The plugins folder: a component copied there joins, a replaced one takes the old one's place, a
//! removed one leaves.
//!
//! The folder is polled twice a second instead of watched: a file counts once it is unchanged
//! between two polls. So a half-written copy is never read, and no event is missed. A file that
//! cannot join leaves the registered agent as it is.
//!
//! Each file is loaded independently: a slow compilation or card delays no other file and no poll.

use super::{
    admitted::AdmittedAgent,
    compile_progress::UnderWay,
    file_error::FileError,
    provenance::{self, signature_path},
    trusted_file::{FileStamp, read_all, read_trusted},
};
use crate::registry::{Agents, flows::FlowFolder};
use a2a_hub_config::Config;
use a2a_hub_core::plugin::signature;
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::id::AgentId;
use a2a_hub_sandbox::LoadError;
use bytes::Bytes;
use futures::future;
use rustix::fs::{Mode, OFlags};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
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

/// Polling interval; a file must be unchanged for that long.
const INTERVAL: Duration = Duration::from_millis(500);

/// Time that the start of the hub waits for the folder's components; slower ones join later. An
/// unoptimised compiler takes longer for everything.
const AT_THE_START: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 3 });

/// Time that the start waits for agents with unfinished tasks, which would fail without them: a new
/// version of the hub compiles all components anew.
const FOR_THEIR_TASKS: Duration = Duration::from_secs(30);

/// Interval at which a refresh checks whether granted plug-ins have been read.
const A_MOMENT: Duration = Duration::from_millis(10);

/// Delay before the retry of a file that failed for a transient reason.
const NEXT_TRY: Duration = Duration::from_secs(30);

/// Largest component, in bytes: a Python agent has about 20 MiB.
pub(in crate::registry) const MAX_BYTES: u64 = 128 << 20;

/// The folder and the files seen in it. Cheap to clone.
#[derive(Clone)]
pub struct PluginFolder {
    pub(in crate::registry) dir: Arc<Path>,
    pub(in crate::registry) agents: Agents,
    /// Lock on the folder: held to change it or to register its files.
    polled: Arc<Mutex<PolledFiles>>,
    /// Lock on the grants: held while a changed file of grants is applied.
    following: Arc<Mutex<()>>,
    /// The folder of flow files, which is polled together with this one.
    flows: Arc<FlowFolder>,
}

/// Task that loads a file; its error is also kept in the list of rejected files.
type Taking = JoinHandle<Result<Option<AgentId>, FileError>>;

/// Polled files, by name.
pub(in crate::registry) type PolledFiles = BTreeMap<String, PolledFile>;

/// State of a file at the last poll.
pub(in crate::registry) struct PolledFile {
    stamp: PluginStamp,
    /// True if this state of the file was read or is being read.
    read: bool,
    /// Time of a repeated read of the unchanged file.
    again: Option<Instant>,
    /// The load under way.
    reading: Option<PendingLoad>,
    /// Agent registered from the file.
    joined: Option<AgentId>,
}

/// A load of a file under way. Dropping it cancels the load.
struct PendingLoad {
    guard: DropGuard,
    _listed: UnderWay,
    /// Digest of the component that is loaded, once it is known.
    component: Arc<OnceLock<String>>,
}

/// An agent built from a file and not yet registered.
struct BuiltAgent {
    admitted: AdmittedAgent,
    /// Configuration under which the agent was built; a newer one may be in force at registration.
    config: Arc<Config>,
}

/// Metadata that changes with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::registry) struct PluginStamp {
    component: FileStamp,
    /// Metadata of the signature file.
    signature: Option<FileStamp>,
}

impl PluginFolder {
    /// Opens the folder `dir`; creates it if necessary, with access for this user only.
    pub fn open(dir: PathBuf, agents: Agents) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        let flows = Arc::new(FlowFolder::open(agents.clone())?);
        Ok(Self {
            dir: dir.into(),
            agents,
            polled: Arc::default(),
            following: Arc::default(),
            flows,
        })
    }

    /// Loads the current files at the start, without waiting for them to be unchanged. Slow ones
    /// join later; the `awaited` ones get more time.
    pub(in crate::registry) async fn load(&self, awaited: &BTreeSet<AgentId>) {
        self.flows.load().await;
        self.import_existing().await;
        self.poll().await;
        let began = self.poll().await;
        self.miss_those_not_there().await;
        let is_awaited = |name: &str| {
            name.strip_suffix(".wasm").is_some_and(|id| awaited.iter().any(|it| it.as_str() == id))
        };
        let (first, rest): (Vec<_>, Vec<_>) =
            began.into_iter().partition(|(name, _)| is_awaited(name));
        let within = |limit, jobs: Vec<(String, Taking)>| {
            timeout(limit, future::join_all(jobs.into_iter().map(|(_, job)| job)))
        };
        let (first, rest) =
            tokio::join!(within(FOR_THEIR_TASKS, first), within(AT_THE_START, rest));
        if first.is_err() || rest.is_err() {
            tracing::info!("some plugins are still being compiled; each joins when it is ready");
        }
    }

    /// Loads the current files without waiting for them to be unchanged; returns once each has
    /// joined or failed. Slow ones join later.
    pub(in crate::registry) async fn load_now(&self) {
        let mut began = self.poll().await;
        began.extend(self.poll().await);
        let joining = async {
            loop {
                future::join_all(began.drain(..).map(|(_, job)| job)).await;
                // The background poll may already be reading a file that was just granted.
                while self.is_reading_granted().await {
                    sleep(A_MOMENT).await;
                }
                // A grant that changed during a load applies to the same file again.
                began = self.read_due().await;
                if began.is_empty() {
                    break;
                }
            }
        };
        if timeout(AT_THE_START, joining).await.is_err() {
            tracing::info!("some plugins are still being compiled; each joins when it is ready");
        }
    }

    /// True if a plug-in with a grant is being read.
    async fn is_reading_granted(&self) -> bool {
        let grants = self.agents.shared.ledger.grants();
        let is_granted = |name| named_by(name).is_some_and(|id| grants.plugins.contains_key(&id));
        let polled = self.lock_files().await;
        polled.iter().any(|(name, file)| file.reading.is_some() && is_granted(name))
    }

    /// Polls until `stop`.
    pub fn watch(self, tasks: &TaskTracker, stop: CancellationToken) {
        tasks.spawn(async move {
            loop {
                tokio::select! {
                    () = sleep(INTERVAL) => {
                        self.follow_grants().await;
                        drop(self.poll().await);
                        self.flows.poll().await;
                    }
                    () = stop.cancelled() => return,
                }
            }
        });
    }

    /// Locks the grants; no other change of them is applied meanwhile.
    pub(in crate::registry) async fn following(&self) -> MutexGuard<'_, ()> {
        self.following.lock().await
    }

    /// Locks the folder; no other poll or change runs meanwhile.
    pub(in crate::registry) async fn lock_files(&self) -> MutexGuard<'_, PolledFiles> {
        self.polled.lock().await
    }

    /// Polls once; returns the loads that it started.
    async fn poll(&self) -> Vec<(String, Taking)> {
        let mut polled = self.lock_files().await;
        let folder = Arc::clone(&self.dir);
        let there = run_blocking(move || stamps(&folder)).await;
        let there = match there.map_err(io::Error::other).flatten() {
            Ok(there) => there,
            Err(why) => {
                tracing::warn!(folder = %self.dir.display(), %why, "cannot read the plugins folder");
                return Vec::new();
            }
        };
        let removed: Vec<_> =
            polled.keys().filter(|name| !there.contains_key(*name)).cloned().collect();
        for name in removed {
            self.forget(&mut polled, &name);
        }
        let mut began = Vec::new();
        for (name, stamp) in there {
            match polled.get_mut(&name) {
                Some(file) => {
                    if file.observe(stamp) {
                        began.push((name.clone(), self.begin(file, name)));
                    }
                }
                None => drop(polled.insert(name, PolledFile::unread(stamp))),
            }
        }
        began
    }

    /// Starts to load the known files that have to be read again.
    async fn read_due(&self) -> Vec<(String, Taking)> {
        let mut polled = self.lock_files().await;
        let due = polled.iter_mut().filter(|(_, file)| file.read && file.is_due());
        due.map(|(name, file)| (name.clone(), self.begin(file, name.clone()))).collect()
    }

    /// Starts to load a file in the background.
    fn begin(&self, file: &mut PolledFile, name: String) -> Taking {
        let (cancel, stamp) = (self.agents.shared.stop.child_token(), file.stamp);
        (file.read, file.again) = (true, None);
        // An earlier reason says nothing about this load.
        self.agents.set_rejected(&name, None);
        let (component, guard) = (Arc::<OnceLock<_>>::default(), cancel.clone().drop_guard());
        let listed = self.agents.load_begins(&name, stamp.component.size);
        let reading = PendingLoad { guard, _listed: listed, component: Arc::clone(&component) };
        file.reading = Some(reading);
        let folder = self.clone();
        let on_its_way = self.agents.shared.joining.one();
        self.agents.shared.asks.spawn(async move {
            let _on_its_way = on_its_way;
            let taking = async {
                let prepared = folder.prepare(&name, &component).await;
                folder.finish_load(&name, stamp, prepared).await
            };
            Box::pin(cancel.run_until_cancelled(taking)).await.unwrap_or(Err(FileError::Changed))
        })
    }

    /// Drops a vanished file and its agent.
    pub(in crate::registry) fn forget(&self, polled: &mut PolledFiles, name: &str) {
        if let Some(PolledFile { joined: Some(agent), .. }) = polled.remove(name) {
            self.agents.deregister(&agent);
        }
        if let Some(agent) = named_by(name) {
            self.agents.miss(&agent);
        }
        self.agents.set_rejected(name, None);
    }

    /// Loads a file now and registers it; none if the operator disabled it.
    pub(in crate::registry) async fn load_file(
        &self,
        name: &str,
    ) -> Result<Option<AgentId>, FileError> {
        let taking = {
            let mut polled = self.lock_files().await;
            let now = PluginStamp::at(&self.dir.join(name))?;
            let file = polled.entry(name.to_owned()).or_insert_with(|| PolledFile::unread(now));
            file.stamp = now;
            self.begin(file, name.to_owned())
        };
        // The load completes even if the caller has left.
        taking.await.map_err(io::Error::other)?
    }

    /// Registers the agent built from a file, or stores the reason of the failure. Discards the
    /// result if the file changed while it was being loaded.
    async fn finish_load(
        &self,
        name: &str,
        stamp: PluginStamp,
        prepared: Result<Option<BuiltAgent>, FileError>,
    ) -> Result<Option<AgentId>, FileError> {
        let mut all = self.lock_files().await;
        let Some(file) = all.get_mut(name).filter(|file| file.stamp == stamp) else {
            return Err(FileError::Changed);
        };
        let joined = match prepared {
            Ok(Some(prepared)) => self.register_built(prepared).await.map(Some),
            Ok(None) => Ok(None),
            Err(why) => Err(why),
        };
        match &joined {
            Ok(agent) => file.joined.clone_from(agent),
            // The component's grant status has changed since it was read.
            Err(FileError::Changed) => file.read_after(Duration::ZERO),
            Err(FileError::Join(crate::registry::JoinError::Load(LoadError::NotNow(_)))) => {
                file.read_after(NEXT_TRY);
            }
            Err(_) => {}
        }
        if let Some(reading) = file.reading.take() {
            // The read is complete, so nothing is left to cancel.
            drop(reading.guard.disarm());
        }
        let refused = joined.as_ref().err().map(ToString::to_string);
        if let Some(why) = &refused {
            tracing::warn!(file = name, why, "a plugin cannot join");
        }
        self.agents.set_rejected(name, refused);
        joined
    }

    /// Registers an agent.
    async fn register_built(&self, prepared: BuiltAgent) -> Result<AgentId, FileError> {
        let BuiltAgent { admitted, config } = prepared;
        let agent = self.agents.finish(admitted).await?;
        let id = agent.id.clone();
        self.agents.register(agent);
        if !Arc::ptr_eq(&config, &self.agents.shared.config()) {
            self.agents.follow_late(&id);
        }
        Ok(id)
    }

    /// Marks an unchanged file to be read again at the next poll, or once the load of the
    /// `granted` component is complete: a compilation takes long, and the grant applies at its end.
    pub(in crate::registry) async fn read_again(&self, id: &AgentId, granted: Option<&str>) {
        if let Some(file) = self.lock_files().await.get_mut(&format!("{id}.wasm")) {
            let loaded = file.reading.as_ref().and_then(|reading| reading.component.get());
            if loaded.is_some_and(|loaded| granted.is_some_and(|granted| granted != loaded)) {
                file.reading = None;
            }
            file.read_again();
        }
    }

    /// Plug-ins that wait for the operator's approval or for a readable file of grants.
    pub(in crate::registry) async fn waiting(&self) -> BTreeSet<AgentId> {
        let polled = self.lock_files().await;
        let of_file = polled.iter().filter_map(|(name, file)| Some((named_by(name)?, file)));
        let is_waiting = |id: &AgentId, file: &PolledFile| {
            let was_read = file.read && file.reading.is_none();
            self.agents.pending_approval(id).is_some()
                || (was_read && self.agents.find(id).is_none())
        };
        of_file.filter(|(id, file)| is_waiting(id, file)).map(|(id, _)| id).collect()
    }

    /// On the first start with a file of grants: records the configuration's grants for the present
    /// components, together with the data that they have stored so far.
    async fn import_existing(&self) {
        let agents = self.agents.clone();
        if agents.shared.ledger.grants().adopted || agents.shared.ledger.read_error().is_some() {
            return;
        }
        let folder = Arc::clone(&self.dir);
        let adopted = run_blocking(move || {
            for name in stamps(&folder).map_err(|why| why.to_string())?.into_keys() {
                let Some(id) = named_by(&name) else { continue };
                let Ok(bytes) = read_trusted(&folder.join(&name), MAX_BYTES) else { continue };
                agents.import_grant(&id, &name, &bytes);
            }
            let done = agents.shared.ledger.change(|all| all.adopted = true);
            done.map_err(|why| why.to_string())
        });
        if let Err(why) = adopted.await.map_err(|why| why.to_string()).flatten() {
            tracing::error!(why, "cannot import plug-in grants");
        }
    }

    /// Handles plug-ins whose files vanished while no hub ran.
    async fn miss_those_not_there(&self) {
        let polled = self.lock_files().await;
        let there: BTreeSet<_> = polled.keys().filter_map(|name| named_by(name)).collect();
        drop(polled);
        let grants = self.agents.shared.ledger.grants();
        for id in grants.plugins.keys().filter(|id| !there.contains(*id)) {
            self.agents.miss(id);
        }
        let shared = Arc::clone(&self.agents.shared);
        if let Err(why) = run_blocking(move || shared.sweep_components()).await {
            tracing::warn!(%why, "cannot sweep copies of components");
        }
    }

    /// Builds the agent of a file; none if the operator disabled it.
    async fn prepare(
        &self,
        name: &str,
        component: &OnceLock<String>,
    ) -> Result<Option<BuiltAgent>, FileError> {
        let id = AgentId::parse(name.strip_suffix(".wasm").unwrap_or(name))?;
        let config = self.agents.shared.config();
        if !config.agent(&id).enabled {
            return Ok(None);
        }
        let (file, plugins) = (self.dir.join(name), config.plugins.clone());
        // The semaphore is never closed.
        let _permit = self.agents.shared.unloaded.acquire_many(kibibytes(&file)).await;
        let read = run_blocking(move || {
            let bytes = read_trusted(&file, MAX_BYTES)?;
            let signature = signature_of(&file, read_trusted)?;
            let provenance = provenance::admit(&bytes, signature.as_deref(), &plugins)?;
            Ok::<_, FileError>((bytes, signature, provenance))
        });
        let (bytes, signature, provenance) = read.await.map_err(io::Error::other)??;
        let offered = (bytes, signature);
        let mut admitted = self.agents.admit_file(&id, name, offered, component).await?;
        if !admitted.is_another() {
            admitted.agent.signed_by = provenance.signer().map(str::to_owned);
        }
        Ok(Some(BuiltAgent { admitted, config }))
    }
}

impl PolledFile {
    /// State of an unread file.
    fn unread(stamp: PluginStamp) -> Self {
        Self { stamp, read: false, again: None, reading: None, joined: None }
    }

    /// Current state of the file at `path`, marked as read, with its agent.
    pub(in crate::registry) fn read(path: &Path, joined: Option<AgentId>) -> io::Result<Self> {
        let stamp = PluginStamp::at(path)?;
        Ok(Self { read: true, joined, ..Self::unread(stamp) })
    }

    /// Marks the unchanged file to be read again, after the load under way.
    pub(in crate::registry) fn read_again(&mut self) {
        self.again = Some(Instant::now());
    }

    /// Marks the file to be read again after `pause`, unless it is marked already.
    fn read_after(&mut self, pause: Duration) {
        self.again.get_or_insert_with(|| Instant::now() + pause);
    }

    /// True if the file has to be read now.
    fn is_due(&self) -> bool {
        let is_again = || self.again.is_some_and(|at| Instant::now() >= at);
        self.reading.is_none() && (!self.read || is_again())
    }

    /// True if the file is unchanged since the last poll and has to be read.
    fn observe(&mut self, now: PluginStamp) -> bool {
        if self.stamp != now {
            let joined = self.joined.take();
            *self = Self { joined, ..Self::unread(now) };
            return false;
        }
        self.is_due()
    }
}

impl PluginStamp {
    /// Metadata of the component at `path` and of its signature.
    fn at(path: &Path) -> io::Result<Self> {
        let component = FileStamp::from_metadata(&fs::symlink_metadata(path)?);
        let signature = fs::symlink_metadata(signature_path(path)).ok();
        Ok(Self { component, signature: signature.as_ref().map(FileStamp::from_metadata) })
    }
}

/// Agent id that a file's name stands for, if it is valid.
fn named_by(file: &str) -> Option<AgentId> {
    AgentId::parse(file.strip_suffix(".wasm")?).ok()
}

/// Components in the folder: files that are not hidden and end in `.wasm`.
fn stamps(dir: &Path) -> io::Result<BTreeMap<String, PluginStamp>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.starts_with('.') || !name.ends_with(".wasm") {
            continue;
        }
        // The file vanished between the two system calls.
        let Ok(stamp) = PluginStamp::at(&entry.path()) else { continue };
        found.insert(name, stamp);
    }
    Ok(found)
}

/// Size of a file in KiB, for the memory budget. A file that grows meanwhile counts as another
/// file.
fn kibibytes(file: &Path) -> u32 {
    let bytes = fs::symlink_metadata(file).map_or(0, |meta| meta.len().min(MAX_BYTES));
    u32::try_from(bytes >> 10).unwrap_or_default() + 1
}

/// Signature file of a component, read by the same function as the component; none if it does not
/// exist.
pub(in crate::registry) fn signature_of(
    component: &Path,
    read: impl FnOnce(&Path, u64) -> Result<Bytes, FileError>,
) -> Result<Option<Bytes>, FileError> {
    match read(&signature_path(component), signature::MAX_BYTES as u64) {
        Ok(signature) => Ok(Some(signature)),
        Err(FileError::Io(why)) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(FileError::Signature(Box::new(why))),
    }
}

/// Reads a file that the caller names; links and write access of others are allowed, because only
/// the bytes read now count.
pub(in crate::registry) fn read_offered(path: &Path, max_bytes: u64) -> Result<Bytes, FileError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from)?;
    let file = File::from(file);
    if file.metadata()?.is_file() { read_all(file, max_bytes) } else { Err(FileError::NotPlain) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_visible_wasm_files_count() {
        let dir = tempfile::tempdir().unwrap();
        for name in [".a.wasm", "b.wasm.part", "c.wasm"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(stamps(dir.path()).unwrap().into_keys().collect::<Vec<_>>(), ["c.wasm"]);
    }
}
