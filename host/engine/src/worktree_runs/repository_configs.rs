//! Files `.a2a-hub/worktree.toml` of repositories: those that the operator trusts count.

use a2a_hub_config::{RepositoryFile, TrustedWorktrees};
use a2a_hub_worktrees::{DecideConfigTrust, RepositoryConfigTrust, RepositoryPreparation};
use std::{path::Path, sync::Arc};

/// Decides about such files by the trusted texts in the data directory of a hub.
pub fn decide_by_trust(data_dir: &Path) -> DecideConfigTrust {
    let trusted = TrustedWorktrees::new(data_dir);
    Arc::new(move |repository, text| match trusted.text(repository) {
        Ok(Some(known)) if known == text => match RepositoryFile::parse(text) {
            Ok(RepositoryFile { copy, setup, ports }) => {
                RepositoryConfigTrust::Trusted(RepositoryPreparation { copy, setup, ports })
            }
            Err(why) => RepositoryConfigTrust::Wrong(why),
        },
        Ok(_) => RepositoryConfigTrust::Untrusted,
        Err(why) => {
            RepositoryConfigTrust::Wrong(format!("{}: {why}", trusted.path(repository).display()))
        }
    })
}
