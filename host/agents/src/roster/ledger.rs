//! The file of grants as the hub follows it: what was read last, and whether it can be read now.
//!
//! A file that cannot be read takes nothing away and gives nothing: what is in force stays so, and no plug-in joins until the file
//! is mended, for nobody knows what it was granted.

use a2a_hub_config::{GrantsError, GrantsFile, GrantsStamp};
use a2a_hub_core::installation::Installations;
use parking_lot::Mutex;
use std::{path::Path, sync::Arc};

/// The grants of one hub. Reads and writes wait for the disk.
pub(super) struct Ledger {
    file: GrantsFile,
    /// Held while the hub itself writes, and while it looks for what others wrote: its own change is no news. Whoever only wants to know
    /// does not wait for it, nor for another writer's lock.
    writing: Mutex<()>,
    known: Mutex<Known>,
}

struct Known {
    stamp: Option<GrantsStamp>,
    /// What the file said when it could be read last.
    grants: Arc<Installations>,
    /// What was granted before somebody else's change that the hub met with when it wrote, and that nobody has followed yet.
    unfollowed: Option<Arc<Installations>>,
    /// Why it cannot be read now.
    trouble: Option<String>,
}

impl Ledger {
    /// Reads the grants that are kept in `data_dir`.
    pub(super) fn open(data_dir: &Path) -> Self {
        let file = GrantsFile::of(data_dir);
        let known = Known { stamp: None, grants: Arc::default(), unfollowed: None, trouble: None };
        let ledger = Self { file, writing: Mutex::default(), known: Mutex::new(known) };
        ledger.read(&mut ledger.known.lock());
        ledger
    }

    /// What is granted, as far as is known.
    pub(super) fn grants(&self) -> Arc<Installations> {
        Arc::clone(&self.known.lock().grants)
    }

    /// Why the file cannot be followed now, if it cannot.
    pub(super) fn trouble(&self) -> Option<String> {
        self.known.lock().trouble.clone()
    }

    /// Looks whether the file is another one than was read, and reads it. What was granted before, if that changed or can be read
    /// again.
    pub(super) fn refresh(&self) -> Option<Arc<Installations>> {
        let _nobody_writes = self.writing.lock();
        let mut known = self.known.lock();
        let unfollowed = known.unfollowed.take();
        if unfollowed.is_none() && known.trouble.is_none() && known.stamp == self.file.stamp() {
            return None;
        }
        let was_in_trouble = known.trouble.is_some();
        let before = unfollowed.unwrap_or_else(|| Arc::clone(&known.grants));
        self.read(&mut known);
        let is_mended = was_in_trouble && known.trouble.is_none();
        (before != known.grants || is_mended).then_some(before)
    }

    /// Changes the grants by what the hub itself finds out.
    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&mut Installations) -> T,
    ) -> Result<T, GrantsError> {
        let _writing = self.writing.lock();
        let mut seen = None;
        let done = self.file.change(|all| {
            let found = all.clone();
            let done = change(all);
            seen = Some((found, all.clone()));
            done
        })?;
        let mut known = self.known.lock();
        if let Some((found, after)) = seen {
            // A revocation that was written a moment ago is not lost in the hub's own change.
            if found != *known.grants && known.unfollowed.is_none() {
                known.unfollowed = Some(Arc::clone(&known.grants));
            }
            known.grants = Arc::new(after);
        }
        known.stamp = self.file.stamp();
        Ok(done)
    }

    fn read(&self, known: &mut Known) {
        // Looked at before it is read: what changes meanwhile is seen the next time.
        known.stamp = self.file.stamp();
        match self.file.read() {
            Ok(grants) => {
                (known.grants, known.trouble) = (Arc::new(grants), None);
            }
            Err(why) => {
                let why = why.to_string();
                if known.trouble.as_ref() != Some(&why) {
                    tracing::error!(why, "the grants of plug-ins cannot be followed");
                }
                known.trouble = Some(why);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_core::{grant::Grant, installation::NewGrant};
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
    fn a_damaged_file_takes_nothing_away_and_is_followed_again_once_it_is_mended() {
        let dir = tempfile::tempdir().unwrap();
        let (ledger, cli) = (Ledger::open(dir.path()), GrantsFile::of(dir.path()));
        assert!(ledger.refresh().is_none());
        cli.change(|all| grant_to(all, "aa")).unwrap();
        assert_eq!(ledger.refresh().as_deref(), Some(&Installations::default()));
        assert!(ledger.refresh().is_none(), "once is enough");
        let granted = ledger.grants();

        let whole = fs::read(cli.path()).unwrap();
        fs::write(cli.path(), "plugins = 7").unwrap();
        assert!(ledger.refresh().is_none());
        assert!(ledger.trouble().is_some_and(|why| why.contains("grants.toml")));
        assert_eq!(ledger.grants(), granted);
        assert!(ledger.change(|all| grant_to(all, "bb")).is_err(), "nothing is written over it");

        fs::write(cli.path(), whole).unwrap();
        assert!(ledger.refresh().is_some(), "those who waited for it are looked at again");
        assert_eq!((ledger.trouble(), ledger.grants()), (None, granted));
        ledger.change(|all| grant_to(all, "bb")).unwrap();
        assert!(ledger.refresh().is_none(), "its own change is no news");
        assert_eq!(*ledger.grants(), cli.read().unwrap());
    }

    #[test]
    fn what_the_operator_changes_just_before_the_hub_does_is_followed_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let (ledger, cli) = (Ledger::open(dir.path()), GrantsFile::of(dir.path()));
        let notes = AgentId::parse("notes").unwrap();
        ledger.change(|all| grant_to(all, "aa")).unwrap();
        let before = ledger.grants();
        // Revoked, and before anybody looked, the hub itself writes something else.
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
