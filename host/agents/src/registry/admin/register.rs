//! Administrative changes of the agents: register, deregister, reload. When such a call returns,
//! the plugins folder reflects the change.

use crate::{
    agent::{Agent, AgentSource},
    registry::{
        JoinError,
        plugins::{
            file_error::FileError,
            folder_watcher::{MAX_BYTES, PluginFolder, PolledFile, read_offered, signature_of},
            pending_approval_error::PendingApprovalError,
            provenance::{self, ENDING},
        },
    },
    remote::TrustError,
};
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::{
    id::AgentId,
    operation::{ComponentSource, Deregistered},
};
use bytes::Bytes;
use rustix::fs::{CWD, Mode, OFlags, RenameFlags};
use std::{
    fs::File,
    io::{self, Write as _},
    path::Path,
    sync::{Arc, OnceLock},
};

/// Reason why a change of the agents was refused.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// No agent has the id.
    #[error("no agent is called `{0}`")]
    Unknown(AgentId),
    /// The configuration disables the agent.
    #[error(
        "`agents.{0}.enabled` is false in the configuration; change that, and call `a2a-hub reload`"
    )]
    Disabled(AgentId),
    /// The file is not an agent, or may not have the id.
    #[error("accept `{agent}`: {why}")]
    Refused {
        /// Requested id.
        agent: AgentId,
        /// Problem with the file.
        why: FileError,
    },
    /// The component can no longer be loaded.
    #[error("load `{agent}` again: {why}")]
    NotReloaded {
        /// The agent; if it was registered, it still is.
        agent: AgentId,
        /// Problem with the file.
        why: FileError,
    },
    /// The agent is remote, and its card is not used.
    #[error("load `{agent}` again: {}", .why.with_way_out())]
    Elsewhere {
        /// The agent; if it was registered, it still is.
        agent: AgentId,
        /// Reason why the card is not used.
        why: TrustError,
    },
    /// Only the card of a remote agent can be approved.
    #[error("approve a card of `{0}`: it is a component; `agents.{0}.sha256` pins one")]
    NotElsewhere(AgentId),
    /// The plugins folder cannot be written.
    #[error("change the plugins folder: {0}")]
    Folder(#[from] io::Error),
}

impl PluginFolder {
    /// Registers an agent permanently.
    pub async fn register(
        &self,
        id: &AgentId,
        component: ComponentSource,
    ) -> Result<Arc<Agent>, RegistryError> {
        self.enabled(id)?;
        let refused = |why| RegistryError::Refused { agent: id.clone(), why };
        let taken = |there: String| refused(JoinError::Taken(id.clone(), there).into());
        let is_free = || match self.agents.find(id) {
            Some(there) => Err(taken(there.source.to_string())),
            None => Ok(()),
        };
        is_free()?;
        let plugins = self.agents.shared.config().plugins.clone();
        let read = run_blocking(move || {
            let (bytes, signature) = match component {
                ComponentSource::Bytes(bytes) => (Bytes::from(bytes), None),
                ComponentSource::File(path) => {
                    (read_offered(&path, MAX_BYTES)?, signature_of(&path, read_offered)?)
                }
            };
            let provenance = provenance::admit(&bytes, signature.as_deref(), &plugins)?;
            Ok((bytes, signature, provenance))
        });
        let (bytes, signature, provenance) =
            read.await.map_err(io::Error::other)?.map_err(refused)?;
        let name = file_name(id);
        let offered = (bytes.clone(), signature.clone());
        let admitted = self.agents.admit_file(id, &name, offered, &OnceLock::new()).await;
        let mut admitted = admitted.map_err(refused)?;
        if let Some(pending) = self.agents.pending_approval(id).filter(|_| admitted.is_another()) {
            let why = PendingApprovalError { agent: id.clone(), held: pending };
            self.agents.miss(id);
            return Err(refused(why.into()));
        }
        admitted.agent.signed_by = provenance.signer().map(str::to_owned);
        // Loading may have taken long, and others may have joined meanwhile.
        let mut polled = self.lock_files().await;
        is_free()?;
        let agent = self.agents.finish(admitted).await.map_err(refused)?;
        let (dir, file) = (Arc::clone(&self.dir), name.clone());
        let placed = run_blocking(move || write_signed(&dir, &file, &bytes, signature.as_deref()));
        let placed = placed.await;
        match placed.map_err(io::Error::other)? {
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => return Err(taken(name)),
            placed => placed?,
        }
        polled.insert(name.clone(), PolledFile::read(&self.dir.join(&name), Some(id.clone()))?);
        self.agents.register(agent);
        self.agents.find(id).ok_or_else(|| RegistryError::Unknown(id.clone()))
    }

    /// Deregisters an agent. Its tasks run to their end.
    pub async fn deregister(&self, id: &AgentId) -> Result<Deregistered, RegistryError> {
        let mut polled = self.lock_files().await;
        let agent = self.agents.find(id).ok_or_else(|| RegistryError::Unknown(id.clone()))?;
        let source = agent.source.to_string();
        let returns_on_restart = match &agent.source {
            AgentSource::BuiltIn
            | AgentSource::Acp
            | AgentSource::Native
            | AgentSource::Flow(..)
            | AgentSource::Script
            | AgentSource::Remote(_) => true,
            AgentSource::File(name) => {
                let (dir, file) = (Arc::clone(&self.dir), name.clone());
                let removed = run_blocking(move || {
                    remove(&dir, &file)?;
                    remove(&dir, &format!("{file}{ENDING}"))
                });
                let removed = removed.await;
                removed.map_err(io::Error::other)??;
                self.forget(&mut polled, name);
                self.agents.end_installation(id).await;
                false
            }
        };
        self.agents.deregister(id);
        Ok(Deregistered { agent_id: id.clone(), source, returns_on_restart })
    }

    /// Reloads an agent's component, or the card of a remote agent, which the operator may approve
    /// by its digest. On failure the agent stays as it was.
    pub async fn reload(
        &self,
        id: &AgentId,
        accept: Option<&str>,
    ) -> Result<Arc<Agent>, RegistryError> {
        self.enabled(id)?;
        if let Some(joined) = self.agents.reload_remote(id, accept).await {
            joined.map_err(|why| RegistryError::Elsewhere { agent: id.clone(), why })?;
            return self.agents.find(id).ok_or_else(|| RegistryError::Unknown(id.clone()));
        }
        let there = self.agents.find(id);
        if accept.is_some() && there.is_some() {
            return Err(RegistryError::NotElsewhere(id.clone()));
        }
        // A native agent's code is part of the program, so nothing can be reloaded.
        if let Some(native) = there.filter(|agent| agent.source == AgentSource::Native) {
            return Ok(native);
        }
        let not_reloaded = |why| RegistryError::NotReloaded { agent: id.clone(), why };
        if let Some(joining) = self.agents.join_one_built_in(id) {
            joining.await.map_err(|why| not_reloaded(why.into()))?;
        } else {
            let name = file_name(id);
            if self.agents.find(id).is_none() && !self.dir.join(&name).exists() {
                return Err(RegistryError::Unknown(id.clone()));
            }
            self.load_file(&name).await.map_err(not_reloaded)?;
            if let Some(pending) = self.agents.pending_approval(id) {
                return Err(not_reloaded(
                    PendingApprovalError { agent: id.clone(), held: pending }.into(),
                ));
            }
        }
        self.agents.find(id).ok_or_else(|| RegistryError::Unknown(id.clone()))
    }

    fn enabled(&self, id: &AgentId) -> Result<(), RegistryError> {
        let enabled = self.agents.shared.config().agent(id).enabled;
        if enabled { Ok(()) } else { Err(RegistryError::Disabled(id.clone())) }
    }
}

/// Name of a plug-in's file in the folder.
pub(in crate::registry) fn file_name(id: &AgentId) -> String {
    format!("{id}.wasm")
}

/// Writes a component after its signature; a leftover signature of another component is removed.
fn write_signed(
    dir: &Path,
    file_name: &str,
    component: &[u8],
    signature: Option<&[u8]>,
) -> io::Result<()> {
    if dir.join(file_name).exists() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let signature_file = format!("{file_name}{ENDING}");
    remove(dir, &signature_file)?;
    if let Some(signature) = signature {
        write_new(dir, &signature_file, signature)?;
    }
    write_new(dir, file_name, component)
}

/// Writes a hidden temporary file and renames it to its name; an existing file stays.
fn write_new(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let draft = dir.join(format!(".{name}.draft"));
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(&draft, flags, Mode::RUSR | Mode::WUSR)?);
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let moved = written.and_then(|()| {
        let target = dir.join(name);
        Ok(rustix::fs::renameat_with(CWD, &draft, CWD, target, RenameFlags::NOREPLACE)?)
    });
    if let Err(why) = moved {
        std::fs::remove_file(&draft)?;
        return Err(why);
    }
    File::open(dir)?.sync_all()
}

/// Removes a file, if it exists.
fn remove(dir: &Path, name: &str) -> io::Result<()> {
    match std::fs::remove_file(dir.join(name)) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => Err(why),
        Ok(()) | Err(_) => File::open(dir)?.sync_all(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn place_is_atomic_and_never_overwrites() {
        let dir = tempfile::tempdir().unwrap();
        let there = || {
            let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
            names.collect::<Vec<_>>()
        };
        write_new(dir.path(), "a.wasm", b"first").unwrap();
        let taken = write_new(dir.path(), "a.wasm", b"second").unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(dir.path().join("a.wasm")).unwrap(), b"first");
        assert_eq!(there(), ["a.wasm"], "no draft is left");
        remove(dir.path(), "a.wasm").unwrap();
        remove(dir.path(), "a.wasm").unwrap();
        assert!(there().is_empty());
    }
}
