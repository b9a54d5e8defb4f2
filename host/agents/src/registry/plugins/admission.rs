//! Admission of plug-in components: a component gets the grant that is recorded for its digest, or
//! nothing. If a file's granted component is replaced without approval, the new one is held back
//! and the granted one runs on from its stored copy.

use super::{
    admitted::{AdmittedAgent, PluginCandidate},
    component_store::StoredCopy,
    file_error::FileError,
    pending_approval_error::PendingApprovalError,
};
use crate::{
    agent::{Agent, AgentSource, FLOW_RUNNER, Terms, flow_file::FlowNeeds},
    registry::{Agents, JoinError},
};
use a2a_hub_clock as clock;
use a2a_hub_config as config;
use a2a_hub_core::{
    grant::{Ask, Grant},
    plugin::{
        installation::{
            Configured, GrantStatus, Installation, InstallationId, Installations, Successor,
        },
        manifest_diff::difference,
        signature::TrustedKeys,
    },
};
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::{hub::event::HubEventKind, id::AgentId, operation::HeldBack};
use a2a_hub_sandbox::{component::manifest, digest_of};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{Arc, OnceLock},
};

/// Most lines of differences that are reported: more than an operator reads, few enough not to
/// flood a reader.
const MAX_CHANGES: usize = 64;

impl Agents {
    /// Agent for a component in a file of the plugins folder: this component, or the granted one
    /// while this one is held back. `signature` is the text of the file's detached signature; it
    /// counts if it is by the key that the grant names. The digest of the component that is loaded
    /// is stored in `loading`.
    pub(in crate::registry) async fn admit_file(
        &self,
        id: &AgentId,
        file: &str,
        (bytes, signature): (Bytes, Option<Bytes>),
        loading: &OnceLock<String>,
    ) -> Result<AdmittedAgent, FileError> {
        if let Some(why) = self.shared.ledger.read_error() {
            return Err(FileError::Grants(why));
        }
        let candidate = self.candidate(id, bytes, signature).await?;
        let source = AgentSource::File(file.to_owned());
        if candidate.status == GrantStatus::PendingApproval {
            let agent = self.hold_back(id, source, candidate, loading).await?;
            return Ok(AdmittedAgent { agent, candidate: None });
        }
        loading.get_or_init(|| candidate.digest.clone());
        // It needs no approval any more, although its compilation may take long.
        self.shared.pending_approvals.lock().remove(id);
        let agent = match self.serving(id, &source, &candidate.digest) {
            Some(there) => self.anew(&there),
            None => {
                let (bytes, size) = (candidate.bytes.clone(), candidate.bytes.len());
                let preparing = Box::pin(self.prepare(id, bytes, &source));
                let (plugin, card) = self.telling_of(file, size, preparing).await?;
                plugin.ask().is_for(id).map_err(JoinError::Manifest)?;
                let terms = self.terms_of(id, &source, plugin.ask(), Some(&candidate.digest));
                let deps = self.deps_of(id, terms);
                Agent::new(id.clone(), Arc::new(plugin), card, source, deps)
            }
        };
        Ok(AdmittedAgent { agent, candidate: Some(candidate) })
    }

    /// Builds the agent to be registered now, under the current terms, and records its grant and
    /// succession. Compiling may have taken long: if the component's grant status has changed
    /// meanwhile, the file has to be read again.
    pub(in crate::registry) async fn finish(
        &self,
        admitted: AdmittedAgent,
    ) -> Result<Agent, FileError> {
        let AdmittedAgent { agent, candidate } = admitted;
        let Some(candidate) = candidate else { return Ok(self.anew(&agent)) };
        self.install(&agent, candidate).await?;
        Ok(self.anew(&agent))
    }

    async fn candidate(
        &self,
        id: &AgentId,
        bytes: Bytes,
        signature: Option<Bytes>,
    ) -> Result<PluginCandidate, FileError> {
        let config = self.shared.config().agent(id);
        let grants = self.shared.ledger.grants();
        let key = grants.plugins.get(id).and_then(|record| record.key.clone());
        let inspected = run_blocking(move || {
            let is_signed =
                key.as_ref().is_some_and(|key| is_signed(&bytes, signature.as_deref(), key));
            // Nothing counts yet: an unreadable manifest has no version.
            let ask =
                if is_signed { manifest::read(&bytes).unwrap_or_default() } else { Ask::default() };
            (digest_of(&bytes), key.filter(|_| is_signed), ask.version, bytes)
        });
        let (digest, signed_by, version, bytes) = inspected.await.map_err(io::Error::other)?;
        let is_named = |pin: &String| pin.eq_ignore_ascii_case(&digest);
        let is_pinned = config.grant.is_some() && config.sha256.as_ref().is_some_and(is_named);
        let status = GrantStatus::Unknown;
        let mut candidate =
            PluginCandidate { bytes, digest, version, signed_by, is_pinned, status };
        candidate.status = grants.grant_status(id, candidate.offered());
        Ok(candidate)
    }

    /// The registered agent of that id, if it has this source and this component.
    fn serving(&self, id: &AgentId, source: &AgentSource, digest: &str) -> Option<Arc<Agent>> {
        self.find(id).filter(|it| it.source == *source && it.runtime.digest() == Some(digest))
    }

    /// Rebuilds an agent under the current terms and settings.
    pub(in crate::registry) fn anew(&self, agent: &Agent) -> Agent {
        let Agent { id, runtime, card, source, .. } = agent;
        let terms = self.terms_of(id, source, runtime.ask(), runtime.digest());
        let deps = self.deps_of(id, terms);
        let (runtime, card, source) = (Arc::clone(runtime), card.clone(), source.clone());
        let mut anew = Agent::new(id.clone(), runtime, card, source, deps);
        anew.signed_by.clone_from(&agent.signed_by);
        anew
    }

    /// Builds the agent from the granted component instead of the new one, which is held back.
    async fn hold_back(
        &self,
        id: &AgentId,
        source: AgentSource,
        candidate: PluginCandidate,
        loading: &OnceLock<String>,
    ) -> Result<Agent, FileError> {
        let grants = self.shared.ledger.grants();
        let granted =
            grants.plugins.get(id).map(|record| record.sha256.clone()).unwrap_or_default();
        loading.get_or_init(|| granted.clone());
        let PluginCandidate { bytes, digest, signed_by, .. } = candidate;
        let (store, wanted) = (self.shared.granted_components.clone(), granted.clone());
        let compared = run_blocking(move || {
            let new = manifest::read(&bytes).unwrap_or_default();
            Ok::<_, io::Error>(match store.load(&wanted)? {
                StoredCopy::Intact(copy) => {
                    let old = manifest::read(&copy).ok();
                    let found = old.map(|old| difference(&old, &new)).unwrap_or_default();
                    (Some(copy), found, None)
                }
                lacking @ (StoredCopy::Damaged(_) | StoredCopy::Missing(_)) => {
                    (None, Vec::new(), Some(lacking))
                }
            })
        });
        let (copy, found, lacking) = compared.await.map_err(io::Error::other)??;
        let there = self.serving(id, &source, &granted);
        let serves = there.is_some() || copy.is_some();
        let mut changes: Vec<_> = found.iter().take(MAX_CHANGES).map(ToString::to_string).collect();
        if found.len() > MAX_CHANGES {
            changes.push(format!("~ and {} more", found.len() - MAX_CHANGES));
        }
        if let Some(lacking) = lacking {
            changes.push(format!("~ the differences are unknown: {lacking}"));
        }
        if signed_by.is_some() {
            // The only reason to hold back a signed component.
            let older =
                "~ it is signed, and its version is older than the granted one's, or unknown";
            changes.insert(0, older.to_owned());
        }
        let pending = HeldBack { sha256: digest, granted, serves, changes };
        self.record_pending_approval(id, &source, pending.clone());
        let why = PendingApprovalError { agent: id.clone(), held: pending };
        match (there, copy) {
            (Some(there), _) => Ok(self.anew(&there)),
            (None, Some(copy)) => {
                let (file, size) = (source.to_string(), copy.len());
                let preparing = Box::pin(self.prepare(id, copy, &source));
                let (plugin, card) = self.telling_of(&file, size, preparing).await?;
                let terms = self.terms_of(id, &source, plugin.ask(), Some(plugin.digest()));
                let deps = self.deps_of(id, terms);
                Ok(Agent::new(id.clone(), Arc::new(plugin), card, source, deps))
            }
            (None, None) => Err(why.into()),
        }
    }

    fn record_pending_approval(&self, id: &AgentId, source: &AgentSource, pending: HeldBack) {
        let before = self.shared.pending_approvals.lock().insert(id.clone(), pending.clone());
        if before.as_ref() == Some(&pending) {
            return;
        }
        let (file, HeldBack { sha256, granted, changes, .. }) = (source.to_string(), pending);
        let asks = changes.join(", ");
        tracing::warn!(agent = %id, sha256, granted, asks, "a component is held back until the operator grants it");
        self.shared.events.publish(HubEventKind::PluginHeldBack {
            agent_id: id.clone(),
            file,
            sha256,
            changes,
        });
    }

    /// Component of this agent that awaits approval, if any.
    pub fn pending_approval(&self, id: &AgentId) -> Option<HeldBack> {
        self.shared.pending_approvals.lock().get(id).cloned()
    }

    /// Records the configuration's grant and the component's succession; stores a copy of a
    /// component with a grant.
    async fn install(&self, agent: &Agent, candidate: PluginCandidate) -> Result<(), FileError> {
        let (shared, id, file) =
            (Arc::clone(&self.shared), agent.id.clone(), agent.source.to_string());
        let runtime = Arc::clone(&agent.runtime);
        let installed = run_blocking(move || {
            if shared.ledger.grants().grant_status(&id, candidate.offered()) != candidate.status {
                return Err(FileError::Changed);
            }
            let PluginCandidate { bytes, digest, status, .. } = candidate;
            shared.take_over(&id, &file, runtime.ask(), &digest)?;
            let by = match status {
                GrantStatus::Succeeds(by) => Some(by),
                GrantStatus::Unknown
                | GrantStatus::Granted
                | GrantStatus::Another
                | GrantStatus::PendingApproval => None,
            };
            let grants = shared.ledger.grants();
            let record = grants.plugins.get(&id);
            let is_back = status == GrantStatus::Granted && record.is_some_and(|it| it.gone);
            if by.is_some() || is_back {
                if let Some(by) = by {
                    tracing::warn!(agent = %id, sha256 = digest, why = words(by), "updated component inherits the grant");
                }
                let version = runtime.ask().version.as_ref();
                let followed = shared.ledger.change(|all| all.follow(&id, &digest, version));
                followed.map_err(|why| to_file_error(&why))?;
            }
            let grants = shared.ledger.grants();
            if grants.plugins.get(&id).is_some_and(|record| record.sha256 == digest) {
                shared.granted_components.store(&bytes)?;
            }
            if by.is_some() {
                // The predecessor no longer runs, so its copy can go.
                shared.sweep_components();
            }
            Ok(())
        });
        installed.await.map_err(io::Error::other)?
    }

    /// Grant and installation of an agent, from the configuration or the records.
    pub(in crate::registry) fn terms_of(
        &self,
        id: &AgentId,
        source: &AgentSource,
        ask: &Ask,
        digest: Option<&str>,
    ) -> Terms {
        let configured = self.shared.config().agent(id).grant;
        let terms = |grant| Terms { installation: InstallationId::from(id), grant };
        match source {
            // It runs the flow files in messages of clients, with the rights of every flow, and
            // keeps the record of their voters.
            AgentSource::BuiltIn if configured.is_none() && id.as_str() == FLOW_RUNNER => {
                terms(FlowNeeds::of_runner().grant())
            }
            AgentSource::BuiltIn | AgentSource::Acp | AgentSource::Native | AgentSource::Script => {
                terms(match configured {
                    Some(grant) => grant.trusting(ask),
                    None => Grant::everything(ask),
                })
            }
            AgentSource::Flow(flow) => terms(configured.unwrap_or_else(|| flow.needs.grant())),
            AgentSource::Remote(_) => terms(configured.unwrap_or_default()),
            AgentSource::File(_) => {
                let grants = self.shared.ledger.grants();
                let record = grants.plugins.get(id);
                let record = record.filter(|record| digest == Some(record.sha256.as_str()));
                record.map_or_else(
                    || terms(Grant::default()),
                    |Installation { id, grant, .. }| Terms {
                        installation: id.clone(),
                        grant: grant.clone(),
                    },
                )
            }
        }
    }

    /// Records the configuration's grant for a component that has not joined yet.
    pub(in crate::registry) fn import_grant(&self, id: &AgentId, file: &str, bytes: &Bytes) {
        let Ok(ask) = manifest::read(bytes) else { return };
        let there = self.shared.built_in.reserves(id);
        if there || ask.is_for(id).is_err() {
            return;
        }
        if let Err(why) = self.shared.take_over(id, file, &ask, &digest_of(bytes)) {
            tracing::error!(agent = %id, %why, "cannot record the grant in the configuration");
        }
    }

    /// Records that a plug-in's file is gone. Blocks on the disk.
    pub(in crate::registry) fn miss(&self, id: &AgentId) {
        self.shared.pending_approvals.lock().remove(id);
        let ledger = &self.shared.ledger;
        if ledger.grants().plugins.get(id).is_none_or(|record| record.gone) {
            return;
        }
        if let Err(why) = ledger.change(|all| all.set_removed(id, true)) {
            tracing::error!(agent = %id, %why, "cannot record the removal of the plug-in's file");
        }
    }

    /// Ends the installation of a removed plug-in and deletes its stored data.
    pub(in crate::registry) async fn end_installation(&self, id: &AgentId) {
        let (shared, agent) = (Arc::clone(&self.shared), id.clone());
        let ended = run_blocking(move || {
            if !shared.ledger.grants().plugins.contains_key(&agent) {
                return Ok(None);
            }
            let chance = getrandom::u32().map_err(|why| why.to_string())?;
            let ended = shared.ledger.change(|all| all.remove(&agent, chance));
            shared.sweep_components();
            ended.map_err(|why| why.to_string())
        });
        match ended.await.map_err(|why| why.to_string()).flatten() {
            Ok(Some(installation)) => self.purge(installation).await,
            Ok(None) => {}
            Err(why) => tracing::error!(agent = %id, why, "cannot remove the plug-in's grant"),
        }
    }

    /// Updates the records of all registered plug-ins from the configuration.
    pub(in crate::registry) async fn take_over_all(&self) {
        let files = self.all().into_iter().filter(|it| matches!(it.source, AgentSource::File(_)));
        let files: Vec<_> = files.collect();
        let shared = Arc::clone(&self.shared);
        let taken = run_blocking(move || {
            for agent in files {
                let (file, runtime) = (agent.source.to_string(), &agent.runtime);
                let Some(digest) = runtime.digest() else { continue };
                if let Err(why) = shared.take_over(&agent.id, &file, runtime.ask(), digest) {
                    tracing::error!(agent = %agent.id, %why, "cannot update the plug-in's grant from the configuration");
                }
            }
        });
        if let Err(why) = taken.await {
            tracing::error!(%why, "cannot update grants from the configuration");
        }
    }
}

impl crate::registry::RegistryInner {
    /// Records the configuration's grant for a component, if it is new.
    fn take_over(
        &self,
        id: &AgentId,
        file: &str,
        ask: &Ask,
        digest: &str,
    ) -> Result<(), FileError> {
        let config = self.config().agent(id);
        let is_named = |pin: &String| pin.eq_ignore_ascii_case(digest);
        let chance = getrandom::u32().map_err(io::Error::other)?;
        let at = clock::now();
        let configured = Configured {
            grant: config.grant.as_ref(),
            sha256: digest,
            is_pinned: config.sha256.as_ref().is_some_and(is_named),
            ask,
            source: file,
            at: &at,
            chance,
        };
        let take = |all: &mut Installations| {
            let before = all.plugins.get(id).cloned();
            all.take_over(id, configured);
            let after = all.plugins.get_mut(id)?;
            if before.as_ref().map(|it| &it.grant) == Some(&after.grant) {
                return None;
            }
            let (grant, wrong) = config::resolve(after.grant.clone(), &config.programs);
            after.grant = grant;
            Some(wrong)
        };
        // Tried without the lock first: usually nothing changes.
        let mut tried = (*self.ledger.grants()).clone();
        tried.take_over(id, configured);
        if tried == *self.ledger.grants() {
            self.warn_of_two_words(id, config.grant.is_some());
            return Ok(());
        }
        let wrong = self.ledger.change(take).map_err(|why| to_file_error(&why))?;
        tracing::warn!(
            agent = %id,
            sha256 = digest,
            "recorded the grant in the configuration for this component; any other component is held back until you grant it"
        );
        for why in wrong.into_iter().flatten() {
            tracing::warn!(agent = %id, %why, "granted program cannot be found or trusted");
        }
        Ok(())
    }

    fn warn_of_two_words(&self, id: &AgentId, is_configured: bool) {
        let grants = self.ledger.grants();
        let by_command = grants.plugins.get(id).is_some_and(|record| record.configured.is_none());
        if is_configured && by_command {
            tracing::warn!(
                agent = %id,
                "grant in the configuration ignored: `a2a-hub plugin` granted something else; remove one of them"
            );
        }
    }

    /// Removes stored components that no record names.
    pub(in crate::registry) fn sweep_components(&self) {
        let grants = self.ledger.grants();
        let used: BTreeSet<_> = grants.plugins.values().map(|it| it.sha256.as_str()).collect();
        if let Err(why) = self.granted_components.retain(&used) {
            tracing::warn!(%why, "cannot remove copies of components without a grant");
        }
    }
}

/// True if a component is signed with this minisign public key. Hashes the whole component.
fn is_signed(component: &[u8], signature: Option<&[u8]>, key: &str) -> bool {
    let Some(Ok(signature)) = signature.map(str::from_utf8) else { return false };
    let named = BTreeMap::from([("grant".to_owned(), key.to_owned())]);
    let keys = TrustedKeys::named(&named);
    keys.is_ok_and(|keys| keys.provenance(component, Some(signature)).signer().is_some())
}

fn to_file_error(why: &config::GrantsError) -> FileError {
    FileError::Grants(why.to_string())
}

fn words(by: Successor) -> &'static str {
    match by {
        Successor::Signed => "it is signed with the key of the grant",
        Successor::Dev => "the grant is for a development loop",
        Successor::Pinned => "the configuration pins it",
    }
}
