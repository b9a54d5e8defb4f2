//! The flows folder: a file `NAME.flow.toml` is the agent `NAME`, which the bundled component
//! `flow` runs. The hub does not read the file's content: the component makes the card from it, in
//! the sandbox, or lists its errors.
//!
//! As with plug-ins, a file counts once it is unchanged between two polls, only the operator's own
//! files count, and a file with errors leaves the registered agent as it is.

use super::{
    Agents,
    plugins::{
        file_error::FileError,
        trusted_file::{FileStamp, read_trusted},
    },
};
use crate::{
    agent::{
        Agent, AgentSource, FLOW_RUNNER, SCRIPT,
        flow_file::{FlowFile, FlowNeeds},
    },
    registry::JoinError,
};
use a2a_hub_config::{MAX_FLOW_BYTES, TrustStamp, TrustedFlows, utf8_problem};
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::{card::AgentCard, id::AgentId};
use a2a_hub_sandbox::{LoadError, Plugin};
use bytes::Bytes;
use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::Mutex;

/// End of a flow file's name.
const ENDING: &str = ".flow.toml";

/// Most flow files: each has a card in every list of agents.
const MAX_FILES: usize = 256;

/// Extension of a card that lists a file's errors.
const PROBLEMS: &str = "https://a2a-hub.invalid/extensions/flow-problems";

/// The folder and the files seen in it.
pub(in crate::registry) struct FlowFolder {
    agents: Agents,
    dir: PathBuf,
    trusted: TrustedFlows,
    polled: Mutex<BTreeMap<String, PolledFlow>>,
}

/// State of a file at the last poll.
struct PolledFlow {
    stamp: FileStamp,
    is_read: bool,
    /// The operator's setting when the file was read.
    is_enabled: bool,
    /// Copy that the operator trusts, when the file was read.
    trust: Option<TrustStamp>,
}

impl FlowFolder {
    /// Opens the folder `flows` of the data directory; creates it if necessary, with access for
    /// this user only.
    pub(in crate::registry) fn open(agents: Agents) -> io::Result<Self> {
        let dir = agents.shared.data_dir.join("flows");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        let trusted = TrustedFlows::new(&agents.shared.data_dir);
        Ok(Self { agents, dir, trusted, polled: Mutex::default() })
    }

    /// Loads the current files at the start, without waiting for them to be unchanged.
    pub(in crate::registry) async fn load(&self) {
        self.poll().await;
        self.poll().await;
    }

    /// Polls once.
    pub(in crate::registry) async fn poll(&self) {
        let mut polled = self.polled.lock().await;
        let dir = self.dir.clone();
        let there = run_blocking(move || stamps(&dir)).await;
        let there = match there.map_err(io::Error::other).flatten() {
            Ok(there) => there,
            Err(why) => {
                tracing::warn!(folder = %self.dir.display(), %why, "cannot read the flows folder");
                return;
            }
        };
        let removed: Vec<_> =
            polled.keys().filter(|name| !there.contains_key(*name)).cloned().collect();
        let any_removed = !removed.is_empty();
        for name in removed {
            polled.remove(&name);
            if let Ok(id) = named_by(&name)
                && self.is_of(&id, &name)
            {
                self.agents.deregister(&id);
            }
            self.agents.set_rejected(&listed(&name), None);
        }
        let mut is_changed = any_removed;
        for (name, stamp) in there {
            let is_enabled =
                named_by(&name).map_or(true, |id| self.agents.shared.config().agent(&id).enabled);
            let trust = named_by(&name).ok().and_then(|id| self.trusted.stamp(&id));
            let new = PolledFlow { stamp, is_read: false, is_enabled, trust };
            match polled.get_mut(&name) {
                None => drop(polled.insert(name, new)),
                Some(before) if before.stamp != stamp => *before = new,
                Some(before)
                    if before.is_read
                        && before.is_enabled == is_enabled
                        && before.trust == trust => {}
                Some(before) => {
                    *before = PolledFlow { is_read: true, ..new };
                    is_changed = true;
                    let refused = self.load_file(&name).await.err();
                    if let Some(FileError::Join(JoinError::Load(LoadError::NotNow(_)))) = &refused {
                        before.is_read = false;
                    }
                    let refused = refused.map(|why| why.to_string());
                    if let Some(why) = &refused {
                        tracing::warn!(file = name, why, "a flow cannot join");
                    }
                    self.agents.set_rejected(&listed(&name), refused);
                }
            }
        }
        if is_changed {
            self.try_update_script(None).await;
        }
    }

    /// Updates the agent that runs the programs of flows; logs a failure.
    async fn try_update_script(&self, new: Option<&FlowFile>) {
        if let Err(why) = self.update_script(new).await {
            tracing::error!(%why, "the programs of flows cannot be run");
        }
    }

    /// Registers the agent that runs the programs of the registered flows and of `new`, with
    /// exactly their commands; removes it once no flow runs a program.
    async fn update_script(&self, new: Option<&FlowFile>) -> Result<(), FileError> {
        let (agents, id) = (&self.agents, AgentId::parse(SCRIPT)?);
        let there = agents.find(&id).filter(|there| there.is_script());
        let all = agents.all();
        let flows = all.iter().filter_map(|agent| agent.source.flow()).chain(new);
        let flows: Vec<_> = flows.filter(|flow| flow.needs.runs_programs()).collect();
        if flows.is_empty() || !agents.shared.config().agent(&id).enabled {
            if there.is_some() {
                agents.deregister(&id);
                // No flow may run a program any more: those at work end.
                agents.shared.seats.revoke(&id);
            }
            return Ok(());
        }
        let Some(bytes) = agents.shared.built_in.script() else { return Err(lacks(SCRIPT)) };
        let (plugin, card) =
            agents.prepare(&id, Bytes::from_static(bytes), &AgentSource::Script).await?;
        let mut ask = plugin.ask().clone();
        flows.iter().for_each(|flow| flow.needs.add_to(&mut ask));
        if there.is_some_and(|there| *there.runtime.ask() == ask) {
            return Ok(());
        }
        let plugin = plugin.with_ask(ask);
        let terms = agents.terms_of(&id, &AgentSource::Script, plugin.ask(), None);
        let deps = agents.deps_of(&id, terms);
        agents.register(Agent::new(id, Arc::new(plugin), card, AgentSource::Script, deps));
        Ok(())
    }

    /// True if the agent is from this file.
    fn is_of(&self, id: &AgentId, name: &str) -> bool {
        let there = self.agents.find(id);
        there.is_some_and(|it| it.source.flow().is_some_and(|flow| flow.file == listed(name)))
    }

    /// Reads a file and registers its agent.
    async fn load_file(&self, name: &str) -> Result<(), FileError> {
        let id = named_by(name)?;
        let agents = &self.agents;
        if !agents.shared.config().agent(&id).enabled {
            return Ok(());
        }
        let file = self.dir.join(name);
        let read = run_blocking(move || read_trusted(&file, MAX_FLOW_BYTES)).await;
        let text = read.map_err(io::Error::other)??;
        let text = String::from_utf8(text.to_vec())
            .map_err(|why| FileError::Flow(utf8_problem(why.as_bytes()).unwrap_or_default()))?;
        let there = agents.find(&id).map(|there| there.source.to_string());
        let reserved =
            agents.shared.built_in.reserves(&id).then(|| AgentSource::BuiltIn.to_string());
        if let Some(there) = reserved.or(there).filter(|there| *there != listed(name)) {
            return Err(JoinError::Taken(id, there).into());
        }
        agents.require_no_alias(&id)?;
        let (plugin, bytes) = self.runner().await?;
        let needs = FlowNeeds::default();
        let flow = FlowFile { file: listed(name), text: Arc::from(text), needs };
        let settings = AgentSource::Flow(flow.clone()).settings(&id);
        let mut card = plugin.card_with(&id, settings).await.map_err(JoinError::Load)?;
        if let Some(problems) = problems(&card) {
            return Err(FileError::Flow(problems));
        }
        let needs = FlowNeeds::extract(&mut card)
            .map_err(|why| FileError::Flow(format!("its needs cannot be read: {why}")))?;
        if needs.wants_trust() {
            self.require_trust(&id, name, &flow.text, &needs).await?;
        }
        let flow = FlowFile { needs, ..flow };
        if flow.needs.runs_programs() {
            // Its first step may run one as soon as the flow is an agent.
            self.try_update_script(Some(&flow)).await;
        }
        let source = AgentSource::Flow(flow);
        agents.keep_for_replays(&id, &plugin, bytes).await;
        let terms = agents.terms_of(&id, &source, plugin.ask(), None);
        let deps = agents.deps_of(&id, terms);
        agents.register(Agent::new(id, Arc::new(plugin), card, source, deps));
        Ok(())
    }

    /// Refuses a file that is not the one that the operator trusts. The agent of an earlier file
    /// leaves, unless that one is still trusted.
    async fn require_trust(
        &self,
        id: &AgentId,
        name: &str,
        text: &str,
        needs: &FlowNeeds,
    ) -> Result<(), FileError> {
        let (trusted, flow) = (self.trusted.clone(), id.clone());
        let trusted =
            run_blocking(move || trusted.text(&flow)).await.map_err(io::Error::other)??;
        if trusted.as_deref() == Some(text) {
            return Ok(());
        }
        let there = self.agents.find(id).filter(|_| self.is_of(id, name));
        let is_served = there.as_ref().and_then(|there| there.source.flow()).is_some_and(|flow| {
            !flow.needs.wants_trust() || trusted.as_deref() == Some(&*flow.text)
        });
        if there.is_some() && !is_served {
            self.agents.deregister(id);
            // Its tasks at work lose their rights with the trust, and so do their programs.
            self.agents.shared.seats.revoke(id);
        }
        let state = match (is_served, trusted.is_some()) {
            (true, _) => "it has changed, and the file before it serves on",
            (false, true) => "it has changed since you trusted it",
            (false, false) => "nobody has trusted it yet",
        };
        Err(FileError::FlowPendingApproval { name: id.to_string(), needs: needs.summary(), state })
    }

    /// The bundled component that runs flows. It is compiled once; later loads find its code.
    async fn runner(&self) -> Result<(Plugin, Bytes), FileError> {
        let missing = || lacks(FLOW_RUNNER);
        let id = AgentId::parse(FLOW_RUNNER)?;
        let bytes = self.agents.shared.built_in.component(&id).ok_or_else(missing)?;
        let bytes = Bytes::from_static(bytes);
        let loaded = Plugin::load(&self.agents.shared.engine, bytes.clone()).await;
        Ok((loaded.map_err(JoinError::Load)?, bytes))
    }
}

/// Error for a program without one of the agents that flows need.
fn lacks(agent: &str) -> FileError {
    FileError::Flow(format!(
        "this program has no agent `{agent}`, which flow files need; build it with `cargo xtask install`"
    ))
}

/// Name of a file in lists and messages.
fn listed(name: &str) -> String {
    format!("flows/{name}")
}

/// Name of an agent's file in lists and messages.
pub(super) fn listed_of(id: &AgentId) -> String {
    listed(&format!("{id}{ENDING}"))
}

/// Agent id that a file's name stands for.
fn named_by(file: &str) -> Result<AgentId, FileError> {
    Ok(AgentId::parse(file.strip_suffix(ENDING).unwrap_or(file))?)
}

/// Errors of a flow file, from the card that the component made of it.
fn problems(card: &AgentCard) -> Option<String> {
    let all = card.other.get("capabilities")?.get("extensions")?.as_array()?;
    let of_flow = all.iter().find(|extension| extension["uri"] == PROBLEMS)?;
    Some(of_flow["params"]["problems"].as_str().unwrap_or("it has errors").to_owned())
}

/// Flow files in the folder: files that are not hidden and end in `.flow.toml`.
fn stamps(dir: &Path) -> io::Result<BTreeMap<String, FileStamp>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.starts_with('.') || !name.ends_with(ENDING) {
            continue;
        }
        // The file vanished between the two system calls.
        let Ok(meta) = fs::symlink_metadata(entry.path()) else { continue };
        found.insert(name, FileStamp::from_metadata(&meta));
    }
    while found.len() > MAX_FILES {
        if let Some((name, _)) = found.pop_last() {
            tracing::warn!(file = name, "flow file ignored: more than {MAX_FILES} flow files");
        }
    }
    Ok(found)
}
