//! File `.a2a-hub/worktree.toml` of a repository: its wishes for the preparation of worktrees.

use super::worktrees::{RepositorySettings, WorktreeSettings};
use crate::text_file::toml_problem;
use serde::Deserialize;

/// Text of the file, which the operator may trust.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RepositoryFile {
    /// Files of the checkout that are copied into a new worktree, as paths from its top directory.
    pub copy: Option<Vec<String>>,
    /// Programs, with their arguments, that run in a new worktree before the agent begins.
    pub setup: Option<Vec<Vec<String>>>,
    /// Number of TCP ports that are reserved for a worktree.
    pub ports: Option<u16>,
}

impl RepositoryFile {
    /// Parses and checks the file.
    ///
    /// # Errors
    ///
    /// Returns what is wrong, with its line and column if it is no such TOML, and how to do it
    /// right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let found: Self = toml::from_str(text).map_err(|why| toml_problem(text, &why))?;
        let overrides = RepositorySettings {
            copy: found.copy.clone(),
            setup: found.setup.clone(),
            ports: found.ports,
            ..RepositorySettings::default()
        };
        let merged = WorktreeSettings::default().for_repository(&overrides);
        let checked = merged.check_preparation(0);
        checked.map_err(|(key, why)| format!("set `{key}`: {why}"))?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_file_names_place_and_rule() {
        let text = "copy = ['.env']\nsetup = [['npm', 'ci']]\nports = 10\n";
        let found = RepositoryFile::parse(text).unwrap();
        assert_eq!((found.ports, found.copy), (Some(10), Some(vec![".env".to_owned()])));
        assert_eq!(RepositoryFile::parse("").unwrap(), RepositoryFile::default());
        for (text, why) in [
            ("ports = 1\nsetup_network = true", "line 2, column 1"),
            ("ports = 1\nsetup_network = true", "unknown field `setup_network`"),
            ("[worktrees]\nports = 1", "unknown field `worktrees`"),
            ("ports = ", "line 1, column"),
            ("ports = 101", "set `ports`: it may have 100 at most"),
            ("copy = ['../x']", "set `copy`: `../x` is no file of a repository"),
            ("setup = [['./x.sh']]", "set `setup`: `./x.sh` is no program"),
            ("setup = [['~/x.sh']]", "set `setup`: `~/x.sh` is no program"),
        ] {
            let refused = RepositoryFile::parse(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
