//! Files `.a2a-hub/worktree.toml` of repositories: those that the operator trusts count.

use a2a_hub_config::{RepositoryFile, TrustedWorktrees};
use a2a_hub_worktrees::{DecideOwnFile, OwnFileTrust, OwnPreparation};
use std::{path::Path, sync::Arc};

/// Decides about such files by the trusted texts in the data directory of a hub.
pub fn decide_by_trust(data_dir: &Path) -> DecideOwnFile {
    let trusted = TrustedWorktrees::of(data_dir);
    Arc::new(move |repository, text| match trusted.text(repository) {
        Ok(Some(known)) if known == text => match RepositoryFile::parse(text) {
            Ok(RepositoryFile { copy, setup, ports }) => {
                OwnFileTrust::Trusted(OwnPreparation { copy, setup, ports })
            }
            Err(why) => OwnFileTrust::Wrong(why),
        },
        Ok(_) => OwnFileTrust::Untrusted,
        Err(why) => OwnFileTrust::Wrong(format!("{}: {why}", trusted.path(repository).display())),
    })
}
