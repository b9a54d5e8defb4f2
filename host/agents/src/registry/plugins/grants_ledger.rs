//! In-memory view of the file of grants.
//!
//! An unreadable file neither grants nor revokes anything: the known grants stay in force, and no
//! plug-in joins until the file is mended, because its grant is unknown.

use a2a_hub_config::{GrantsError, GrantsFile, GrantsStamp};
use a2a_hub_core::plugin::installation::Installations;
use parking_lot::Mutex;
use std::{path::Path, sync::Arc};

/// Grants of one hub. Reads and writes block on the disk.
pub(in crate::registry) struct Ledger {
    file: GrantsFile,
    /// Held during the hub's own writes and during a refresh, so that the hub's own change is not
    /// taken for another's. Readers of `known` wait neither for it nor for another process's lock.
    writing: Mutex<()>,
    known: Mutex<LedgerState>,
}

struct LedgerState {
    stamp: Option<GrantsStamp>,
    /// Content of the file when it was last readable.
    grants: Arc<Installations>,
    /// Grants before a change by another process that the hub found while it wrote; the next
    /// refresh reports that change.
    unfollowed: Option<Arc<Installations>>,
    /// Reason why the file cannot be read now.
    read_error: Option<String>,
}

impl Ledger {
    /// Reads the grants stored in `data_dir`.
    pub(in crate::registry) fn open(data_dir: &Path) -> Self {
        let file = GrantsFile::new(data_dir);
        let known =
            LedgerState { stamp: None, grants: Arc::default(), unfollowed: None, read_error: None };
        let ledger = Self { file, writing: Mutex::default(), known: Mutex::new(known) };
        ledger.read(&mut ledger.known.lock());
        ledger
    }

    /// The known grants.
    pub(in crate::registry) fn grants(&self) -> Arc<Installations> {
        Arc::clone(&self.known.lock().grants)
    }

    /// Reason why the file cannot be read now, if any.
    pub(in crate::registry) fn read_error(&self) -> Option<String> {
        self.known.lock().read_error.clone()
    }

    /// Reads the file if it has changed. Returns the previous grants if they changed or if the file
    /// became readable again.
    pub(in crate::registry) fn refresh(&self) -> Option<Arc<Installations>> {
        let _nobody_writes = self.writing.lock();
        let mut known = self.known.lock();
        let unfollowed = known.unfollowed.take();
        if unfollowed.is_none() && known.read_error.is_none() && known.stamp == self.file.stamp() {
            return None;
        }
        let was_unreadable = known.read_error.is_some();
        let before = unfollowed.unwrap_or_else(|| Arc::clone(&known.grants));
        self.read(&mut known);
        let is_mended = was_unreadable && known.read_error.is_none();
        (before != known.grants || is_mended).then_some(before)
    }

    /// Writes a change that the hub itself makes.
    pub(in crate::registry) fn change<T>(
        &self,
        change: impl FnOnce(&mut Installations) -> T,
    ) -> Result<T, GrantsError> {
        let _writing = self.writing.lock();
        let mut snapshots = None;
        let done = self.file.change(|all| {
            let found = all.clone();
            let done = change(all);
            snapshots = Some((found, all.clone()));
            done
        })?;
        let mut known = self.known.lock();
        if let Some((found, after)) = snapshots {
            // A revocation written a moment ago is not lost in the hub's own change.
            if found != *known.grants && known.unfollowed.is_none() {
                known.unfollowed = Some(Arc::clone(&known.grants));
            }
            known.grants = Arc::new(after);
        }
        known.stamp = self.file.stamp();
        Ok(done)
    }

    fn read(&self, known: &mut LedgerState) {
        // Taken before the read, so that a concurrent change is seen the next time.
        known.stamp = self.file.stamp();
        match self.file.read() {
            Ok(grants) => {
                (known.grants, known.read_error) = (Arc::new(grants), None);
            }
            Err(why) => {
                let why = why.to_string();
                if known.read_error.as_ref() != Some(&why) {
                    tracing::error!(
                        why,
                        "cannot read changed plug-in grants, keeping the previous ones"
                    );
                }
                known.read_error = Some(why);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_core::{grant::Grant, plugin::installation::NewGrant};
    use a2a_hub_protocol::id::AgentId;
    use std::fs;

    fn grant_to(all: &mut Installations, sha256: &str) {
        let new = NewGrant {
            sha256: sha256.to_owned(),
            version: None,
            source: String::new(),
            at: String::new(),
            key: None,
            dev: false,
            by: String::new(),
            grant: Grant::default(),
        };
        all.grant(&AgentId::parse("notes").unwrap(), new, 1);
    }

    #[test]
    fn damaged_file_keeps_known_grants() {
        let dir = tempfile::tempdir().unwrap();
        let (ledger, cli) = (Ledger::open(dir.path()), GrantsFile::new(dir.path()));
        assert!(ledger.refresh().is_none());
        cli.change(|all| grant_to(all, "aa")).unwrap();
        assert_eq!(ledger.refresh().as_deref(), Some(&Installations::default()));
        assert!(ledger.refresh().is_none(), "once is enough");
        let granted = ledger.grants();

        let whole = fs::read(cli.path()).unwrap();
        fs::write(cli.path(), "plugins = 7").unwrap();
        assert!(ledger.refresh().is_none());
        assert!(ledger.read_error().is_some_and(|why| why.contains("grants.toml")));
        assert_eq!(ledger.grants(), granted);
        assert!(ledger.change(|all| grant_to(all, "bb")).is_err(), "nothing is written over it");

        fs::write(cli.path(), whole).unwrap();
        assert!(ledger.refresh().is_some(), "those who waited for it are looked at again");
        assert_eq!((ledger.read_error(), ledger.grants()), (None, granted));
        ledger.change(|all| grant_to(all, "bb")).unwrap();
        assert!(ledger.refresh().is_none(), "its own change is no news");
        assert_eq!(*ledger.grants(), cli.read().unwrap());
    }

    #[test]
    fn revocation_before_own_write_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (ledger, cli) = (Ledger::open(dir.path()), GrantsFile::new(dir.path()));
        let notes = AgentId::parse("notes").unwrap();
        ledger.change(|all| grant_to(all, "aa")).unwrap();
        let before = ledger.grants();
        // Revoked by another process; before a refresh, the hub writes something else.
        cli.change(|all| all.plugins.clear()).unwrap();
        ledger.change(|all| all.adopted = true).unwrap();
        ledger.change(|all| all.adopted = false).unwrap();
        assert_eq!(ledger.refresh().as_deref(), Some(&*before));
        assert!(!ledger.grants().plugins.contains_key(&notes));
        assert!(ledger.refresh().is_none(), "once is enough");

        cli.change(|all| grant_to(all, "bb")).unwrap();
        ledger.change(|all| all.adopted = true).unwrap();
        let whole = fs::read(cli.path()).unwrap();
        fs::write(cli.path(), "plugins = 7").unwrap();
        assert!(ledger.refresh().is_some_and(|before| before.plugins.is_empty()));
        fs::write(cli.path(), whole).unwrap();
        assert!(ledger.refresh().is_some(), "those who waited are looked at again");
    }
}
