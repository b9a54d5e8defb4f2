//! The operator's changes to plug-ins: add, grant, deny, revoke, remove.
//!
//! The editor changes one data directory, on behalf of a running hub ([`PluginFolder::edit`]) or of
//! the command line while no hub uses the directory. The caller is authorised before.

use crate::{
    agent::AgentSource,
    registry::plugins::{
        component_store::ComponentStore,
        file_error::FileError,
        folder_watcher::{MAX_BYTES, PluginFolder, read_offered},
        provenance::{self, signature_path},
    },
};
use a2a_hub_clock as clock;
use a2a_hub_config::{
    self as config, Config, GrantsError, GrantsFile, ProgramFileError, private_file,
};
use a2a_hub_core::{
    grant::{Ask, Grant},
    plugin::{
        installation::{DenyError, Installations, NewGrant},
        manifest::InvalidManifest,
    },
};
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::{
    id::AgentId,
    operation::{AddPlugin, ComponentSource, GrantPlugin, PluginChanged, PluginGrant},
};
use a2a_hub_sandbox::{
    component::manifest::{self, ManifestError},
    digest_of,
};
use bytes::Bytes;
use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A change of one plug-in.
#[derive(Clone, Debug, PartialEq)]
pub enum PluginEdit {
    /// Puts a component into the plugins folder.
    Add(Box<AddPlugin>),
    /// Grants capabilities to the present component.
    Grant(Box<GrantPlugin>),
    /// Revokes some capabilities by name, such as `process.git`.
    Deny(AgentId, Vec<String>),
    /// Revokes the whole grant.
    Revoke(AgentId),
    /// Removes the plug-in and its stored data.
    Remove(AgentId),
}

impl PluginEdit {
    /// Kind of change, for the log.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Add(_) => "add",
            Self::Grant(_) => "grant",
            Self::Deny(..) => "deny",
            Self::Revoke(_) => "revoke",
            Self::Remove(_) => "remove",
        }
    }

    /// Plug-in that is changed.
    pub fn agent(&self) -> &AgentId {
        match self {
            Self::Add(add) => &add.id,
            Self::Grant(grant) => &grant.id,
            Self::Deny(id, _) | Self::Revoke(id) | Self::Remove(id) => id,
        }
    }
}

/// Reason why a change was refused.
#[derive(Debug, thiserror::Error)]
pub enum PluginEditError {
    /// The file of grants cannot be read or written.
    #[error(transparent)]
    Grants(#[from] GrantsError),
    /// The capability is not granted, or a wider grant would still allow it.
    #[error(transparent)]
    Deny(#[from] DenyError),
    /// Neither a component nor a grant has the id.
    #[error(
        "there is no plug-in `{0}`: `a2a-hub plugin list` lists those there are, and `a2a-hub plugin add FILE` adds one"
    )]
    Unknown(AgentId),
    /// The component is not the one that the operator inspected.
    #[error(
        "change the plug-in `{agent}`: the component that is there has the digest {found}, and {meant} was looked at; look at it with \
         `a2a-hub plugin inspect {agent}`"
    )]
    Digest {
        /// The plug-in.
        agent: AgentId,
        /// Digest in the request.
        meant: String,
        /// Digest of the present component.
        found: String,
    },
    /// The grant has changed since the new one was derived from it.
    #[error(
        "grant something to `{0}`: its grant was changed meanwhile; look at it with `a2a-hub plugin list`, and grant again"
    )]
    Outdated(AgentId),
    /// The grant cannot be parsed.
    #[error("grant something to `{agent}`: `grant` cannot be read: {why}")]
    Grant {
        /// The plug-in.
        agent: AgentId,
        /// Parse error.
        why: serde_json::Error,
    },
    /// A granted program cannot be found or trusted.
    #[error("grant something to `{agent}`: {why}")]
    Program {
        /// The plug-in.
        agent: AgentId,
        /// The program and its problem.
        why: ProgramFileError,
    },
    /// The component's manifest cannot be read.
    #[error("use the component of `{agent}`: {why}")]
    Manifest {
        /// The plug-in.
        agent: AgentId,
        /// Problem with the manifest.
        why: ManifestError,
    },
    /// The component's manifest names another id.
    #[error("use the component as `{agent}`: {why}")]
    NotForName {
        /// The plug-in.
        agent: AgentId,
        /// Id in the manifest.
        why: InvalidManifest,
    },
    /// Another agent has the id.
    #[error("add `{0}`: an agent of that name exists already, from {1}; choose another name")]
    Taken(AgentId, String),
    /// A plug-in without a grant has the id, so the request cannot be recognised as an update.
    #[error(
        "add `{0}`: a plug-in of that name is there already; `a2a-hub plugin remove {0}` takes it out, or choose another name"
    )]
    Exists(AgentId),
    /// The file cannot be used as a component.
    #[error("add `{agent}`: {why}")]
    File {
        /// The plug-in.
        agent: AgentId,
        /// Problem with the file.
        why: FileError,
    },
    /// The files cannot be written.
    #[error("change the plug-in `{agent}` in {}: {why}", .path.display())]
    Io {
        /// The plug-in.
        agent: AgentId,
        /// File or folder.
        path: PathBuf,
        /// The system's error.
        why: io::Error,
    },
}

/// Editor of the plug-ins in a data directory. All methods block on the disk.
#[derive(Debug)]
pub struct PluginEditor<'c> {
    dir: &'c Path,
    config: &'c Config,
    by: &'c str,
}

impl<'c> PluginEditor<'c> {
    /// Creates an editor of the data directory `dir`. `config` has the programs' paths and the
    /// trusted signature keys; `by` names the requester in the records.
    pub fn new(dir: &'c Path, config: &'c Config, by: &'c str) -> Self {
        Self { dir, config, by }
    }

    /// Carries out one change.
    ///
    /// # Errors
    /// If the change is refused or cannot be written; then the grants are as before.
    pub fn carry_out(&self, change: PluginEdit) -> Result<(), PluginEditError> {
        match change {
            PluginEdit::Add(add) => self.add(*add),
            PluginEdit::Grant(grant) => self.grant(*grant),
            PluginEdit::Deny(id, capabilities) => {
                Ok(self.grants().change(|all| all.deny(&id, &capabilities, self.by))??)
            }
            PluginEdit::Revoke(id) => {
                let known = self.grants().change(|all| all.revoke(&id, self.by))?;
                if known { Ok(()) } else { Err(DenyError::NoGrant(id).into()) }
            }
            PluginEdit::Remove(id) => self.remove(&id),
        }
    }

    fn add(&self, add: AddPlugin) -> Result<(), PluginEditError> {
        let AddPlugin { id, component, sha256, signature, grant } = add;
        let refused = |why| PluginEditError::File { agent: id.clone(), why };
        let bytes = match component {
            ComponentSource::File(path) => read_offered(&path, MAX_BYTES).map_err(refused)?,
            ComponentSource::Bytes(bytes) => Bytes::from(bytes),
        };
        let component_file = self.file_of(&id);
        let ask = self.checked(&id, &bytes, &sha256)?;
        let signed = signature.as_deref().map(str::as_bytes);
        provenance::admit(&bytes, signed, &self.config.plugins).map_err(refused)?;
        if component_file.exists() && !self.grants().read()?.plugins.contains_key(&id) {
            return Err(PluginEditError::Exists(id));
        }
        if let Some(grant) = grant {
            // Recorded first, so that the component never joins without its grant.
            self.record(&id, &bytes, sha256, &ask, grant)?;
        }
        let put = put(&component_file, &bytes, signature.as_deref());
        put.map_err(|why| PluginEditError::Io { agent: id, path: component_file, why })
    }

    fn grant(&self, grant: GrantPlugin) -> Result<(), PluginEditError> {
        let GrantPlugin { id, sha256, grant } = grant;
        let component_file = self.file_of(&id);
        let bytes = match read_offered(&component_file, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(FileError::Io(why)) if why.kind() == io::ErrorKind::NotFound => {
                return Err(PluginEditError::Unknown(id));
            }
            Err(why) => return Err(PluginEditError::File { agent: id, why }),
        };
        let ask = self.checked(&id, &bytes, &sha256)?;
        self.record(&id, &bytes, sha256, &ask, grant)
    }

    /// Manifest of the component, if it has the digest `meant` and may have this id.
    fn checked(&self, id: &AgentId, component: &[u8], meant: &str) -> Result<Ask, PluginEditError> {
        let found = digest_of(component);
        if !found.eq_ignore_ascii_case(meant) {
            let (agent, meant) = (id.clone(), meant.to_owned());
            return Err(PluginEditError::Digest { agent, meant, found });
        }
        let unread = |why| PluginEditError::Manifest { agent: id.clone(), why };
        let ask = manifest::read(component).map_err(unread)?;
        let not_for = |why| PluginEditError::NotForName { agent: id.clone(), why };
        ask.is_for(id).map_err(not_for)?;
        Ok(ask)
    }

    /// Records a grant for this component only.
    fn record(
        &self,
        id: &AgentId,
        component: &[u8],
        sha256: String,
        ask: &Ask,
        request: PluginGrant,
    ) -> Result<(), PluginEditError> {
        let PluginGrant { grant, before, key, dev, source } = request;
        let unread = |why| PluginEditError::Grant { agent: id.clone(), why };
        let grant: Grant = serde_json::from_value(grant).map_err(unread)?;
        let before: Option<Grant> =
            before.map(serde_json::from_value).transpose().map_err(unread)?;
        let (grant, wrong) = config::resolve(grant, &self.config.agent(id).programs);
        if let Some(why) = wrong.into_iter().next() {
            return Err(PluginEditError::Program { agent: id.clone(), why });
        }
        let failed =
            |path: PathBuf| move |why| PluginEditError::Io { agent: id.clone(), path, why };
        // The granted component runs from this copy while a new one is held back.
        let stored = ComponentStore::for_grants(self.dir).store(component);
        stored.map_err(failed(self.dir.to_owned()))?;
        let chance = getrandom::u32().map_err(io::Error::other);
        let chance = chance.map_err(failed(self.dir.to_owned()))?;
        let new = NewGrant {
            sha256,
            version: ask.version.clone(),
            source: source.unwrap_or_else(|| self.file_of(id).display().to_string()),
            at: clock::now(),
            key,
            dev: dev.unwrap_or(false),
            by: self.by.to_owned(),
            grant: grant.settled(ask),
        };
        let granted =
            self.grants().change(|all| grant_unless_outdated(all, id, (new, dev), before, chance));
        granted?.map_err(|Outdated| PluginEditError::Outdated(id.clone()))
    }

    fn remove(&self, id: &AgentId) -> Result<(), PluginEditError> {
        let component_file = self.file_of(id);
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |why| PluginEditError::Io { agent: id.clone(), path, why }
        };
        let chance = getrandom::u32().map_err(io::Error::other).map_err(failed(self.dir))?;
        // Read first: if the grants are unreadable, the component stays.
        self.grants().read()?;
        let was_there = component_file.symlink_metadata().is_ok();
        for file in [component_file.clone(), signature_path(&component_file)] {
            private_file::ok_if_missing(fs::remove_file(&file)).map_err(failed(&file))?;
        }
        let had_record = self.grants().change(|all| all.remove(id, chance))?.is_some();
        if was_there || had_record { Ok(()) } else { Err(PluginEditError::Unknown(id.clone())) }
    }

    fn grants(&self) -> GrantsFile {
        GrantsFile::new(self.dir)
    }

    fn file_of(&self, id: &AgentId) -> PathBuf {
        plugin_file(self.dir, id)
    }
}

/// Path of the plug-in `id` in the data directory `dir`, whether or not the file exists.
pub fn plugin_file(dir: &Path, id: &AgentId) -> PathBuf {
    let folder = dir.join("plugins");
    // The folder may be a link. The hub creates it with access for its user only.
    fs::canonicalize(&folder).unwrap_or(folder).join(format!("{id}.wasm"))
}

/// The new grant was derived from one that has changed.
struct Outdated;

/// Records the grant, unless the one that it was derived from has changed (optimistic concurrency).
fn grant_unless_outdated(
    all: &mut Installations,
    id: &AgentId,
    (mut new, dev): (NewGrant, Option<bool>),
    base: Option<Grant>,
    chance: u32,
) -> Result<(), Outdated> {
    let before = all.continued_by(id, &new.sha256);
    let now = before.map(|record| &record.grant);
    if base.is_some_and(|base| now != Some(&base)) {
        return Err(Outdated);
    }
    new.key = new.key.or_else(|| before?.key.clone());
    new.dev = dev.unwrap_or_else(|| before.is_some_and(|record| record.dev));
    all.grant(id, new, chance);
    Ok(())
}

/// Writes a component and its signature atomically into the plugins folder. The signature comes
/// first, because it is read only next to a component.
fn put(path: &Path, component: &[u8], signature: Option<&str>) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    match signature {
        Some(signature) => private_file::replace(&signature_path(path), signature.as_bytes())?,
        None => private_file::ok_if_missing(fs::remove_file(signature_path(path)))?,
    }
    private_file::replace(path, component)
}

impl PluginFolder {
    /// Carries out a change of a plug-in and applies it: running tasks lose revoked capabilities
    /// before this returns. `by` names the requester in the records.
    ///
    /// # Errors
    /// If the change is refused or cannot be written; then nothing has changed.
    pub async fn edit(
        &self,
        change: PluginEdit,
        by: &str,
    ) -> Result<PluginChanged, PluginEditError> {
        let id = change.agent().clone();
        if let PluginEdit::Add(_) = change {
            self.require_plugin_name(&id)?;
        }
        let (shared, by) = (Arc::clone(&self.agents.shared), by.to_owned());
        let done = run_blocking(move || {
            let config = shared.config();
            PluginEditor::new(&shared.data_dir, &config, &by).carry_out(change)
        });
        let failed = |why| PluginEditError::Io {
            agent: id.clone(),
            path: self.dir.to_path_buf(),
            why: io::Error::other(why),
        };
        done.await.map_err(failed)??;
        let problem = self.refresh().await.trouble;
        let plugin = self.plugins().await.into_iter().find(|plugin| plugin.agent_id == id);
        Ok(PluginChanged { agent_id: id, plugin, trouble: problem })
    }

    /// Refuses the id of an agent that is not a plug-in: no file can replace it.
    fn require_plugin_name(&self, id: &AgentId) -> Result<(), PluginEditError> {
        let source = self.agents.find(id).map(|there| there.source.clone());
        let built_in = || self.agents.shared.built_in.reserves(id).then_some(AgentSource::BuiltIn);
        match source.or_else(built_in) {
            None | Some(AgentSource::File(_)) => Ok(()),
            Some(source) => Err(PluginEditError::Taken(id.clone(), source.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::os::unix::fs::PermissionsExt as _;

    fn agent() -> AgentId {
        AgentId::parse("notes").unwrap()
    }

    /// The smallest component: a header without sections.
    const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

    /// Output of minisign 0.10 with a key that no configuration names.
    const SIGNATURE: &str = "untrusted comment: signature
RUSWo1m4ztjchSI5QTdfOUZlVt9QbSMCc5UR31P/J7KBZgC8dnTqN0V2zZdj0vgSQ6MiFTCEAl0AwLG4sAz9WNKZaKQZLu6p0go=
trusted comment: a trusted comment
wR0iPbApHX6siJ7qFbTLNWaW2veTEI4pfcXonzNZZFWhn1ImvuiWEyHgflJ4PSRvP7Y38siE24VkoLCZ9qMiCQ==
";

    fn grant(memory: u64, before: Option<serde_json::Value>) -> PluginGrant {
        let grant = json!({ "memory": memory });
        PluginGrant { grant, before, key: None, dev: None, source: None }
    }

    fn add(grant: Option<PluginGrant>) -> PluginEdit {
        PluginEdit::Add(Box::new(AddPlugin {
            id: agent(),
            component: ComponentSource::Bytes(COMPONENT.to_vec()),
            sha256: digest_of(COMPONENT),
            signature: Some(SIGNATURE.to_owned()),
            grant,
        }))
    }

    fn granted(memory: u64, before: Option<serde_json::Value>) -> PluginEdit {
        let (id, sha256) = (agent(), digest_of(COMPONENT));
        PluginEdit::Grant(Box::new(GrantPlugin { id, sha256, grant: grant(memory, before) }))
    }

    #[test]
    fn add_grant_deny_remove_round_trip() {
        let (dir, config) = (tempfile::tempdir().unwrap(), Config::default());
        let editor = PluginEditor::new(dir.path(), &config, "a test");
        editor.carry_out(add(Some(grant(7, None)))).unwrap();
        let place = plugin_file(dir.path(), &agent());
        assert_eq!(fs::read(&place).unwrap(), COMPONENT);
        assert_eq!(fs::read_to_string(signature_path(&place)).unwrap(), SIGNATURE);
        let mode = fs::metadata(place.parent().unwrap()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let record = || GrantsFile::new(dir.path()).read().unwrap().plugins[&agent()].clone();
        assert_eq!(record().changed_by.as_deref(), Some("a test"));
        assert!(ComponentStore::for_grants(dir.path()).read(&record().sha256).unwrap().is_some());

        editor.carry_out(PluginEdit::Deny(agent(), vec!["memory".to_owned()])).unwrap();
        assert_eq!(record().grant, Grant::default());
        editor.carry_out(PluginEdit::Remove(agent())).unwrap();
        assert!(!place.exists() && !signature_path(&place).exists());
        let why = editor.carry_out(PluginEdit::Remove(agent())).unwrap_err();
        assert!(matches!(why, PluginEditError::Unknown(_)), "{why}");
    }

    #[test]
    fn grant_from_outdated_base_is_refused() {
        let (dir, config) = (tempfile::tempdir().unwrap(), Config::default());
        let editor = PluginEditor::new(dir.path(), &config, "a test");
        editor.carry_out(add(Some(grant(7, None)))).unwrap();
        let before = json!(GrantsFile::new(dir.path()).read().unwrap().plugins[&agent()].grant);
        editor.carry_out(granted(8, Some(before.clone()))).unwrap();
        let why = editor.carry_out(granted(9, Some(before))).unwrap_err();
        assert!(matches!(why, PluginEditError::Outdated(_)), "{why}");
        editor.carry_out(granted(9, None)).unwrap();
    }

    #[test]
    fn later_grant_keeps_dev_mark() {
        let (dir, config) = (tempfile::tempdir().unwrap(), Config::default());
        let editor = PluginEditor::new(dir.path(), &config, "a test");
        let is_dev_after = |dev: Option<bool>| {
            let grant = PluginGrant { dev, ..grant(8, None) };
            let (id, sha256) = (agent(), digest_of(COMPONENT));
            let granted = PluginEdit::Grant(Box::new(GrantPlugin { id, sha256, grant }));
            editor.carry_out(granted).unwrap();
            GrantsFile::new(dir.path()).read().unwrap().plugins[&agent()].dev
        };
        editor.carry_out(add(Some(grant(7, None)))).unwrap();
        let marks = [None, Some(true), None, Some(false), None];
        assert_eq!(marks.map(is_dev_after), [false, true, true, false, false]);
    }

    #[test]
    fn refused_change_changes_no_file() {
        let (dir, config) = (tempfile::tempdir().unwrap(), Config::default());
        let editor = PluginEditor::new(dir.path(), &config, "a test");
        let other = PluginEdit::Grant(Box::new(GrantPlugin {
            id: agent(),
            sha256: "ab".repeat(32),
            grant: grant(1, None),
        }));
        for change in [other.clone(), PluginEdit::Revoke(agent()), PluginEdit::Remove(agent())] {
            assert!(editor.carry_out(change.clone()).is_err(), "{change:?}");
        }
        assert!(GrantsFile::new(dir.path()).stamp().is_none());
        editor.carry_out(add(None)).unwrap();
        let why = editor.carry_out(other).unwrap_err();
        assert!(matches!(why, PluginEditError::Digest { .. }), "{why}");
        let why = editor.carry_out(add(None)).unwrap_err();
        assert!(matches!(why, PluginEditError::Exists(_)), "{why}");
        assert!(GrantsFile::new(dir.path()).stamp().is_none());
    }
}
