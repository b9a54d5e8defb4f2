//! Catalogue of programs that speak the Agent Client Protocol: `agents.toml`, which is part of the
//! program. It lists agents of the public ACP registry that a package registry offers. Nothing is
//! ever installed from it; it says how a person would.

use crate::{environment::find_program, settings::Config};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::OnceLock,
};

/// CatalogueEntry of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogueEntry {
    /// Name for people.
    pub name: String,
    /// Description in a few words.
    pub about: String,
    /// Command line that starts the program as an agent.
    pub command: Vec<String>,
    /// Registry that has the package.
    pub registry: PackageRegistry,
    /// Name of the package.
    pub package: String,
    /// Command that logs in, or the step that does.
    pub login: String,
    /// Version that the hub was tested with, if any.
    pub tested: Option<String>,
    /// Variables of the hub's environment that the program is passed, in the syntax of manifests.
    #[serde(default)]
    pub pass: BTreeSet<String>,
    /// Variables that the hub sets for the program.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// Paths of the program's login and sessions, in the syntax of manifests.
    #[serde(default)]
    pub keeps: BTreeSet<String>,
    /// Mode of a session for each word of `permissions`.
    #[serde(default)]
    pub modes: BTreeMap<String, String>,
    /// Method of `authenticate` that the program needs before a session.
    pub login_method: Option<String>,
    /// True if the program reports the tokens of a whole session with each answer.
    #[serde(default)]
    pub usage_is_of_session: bool,
}

/// Registry of packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PackageRegistry {
    /// npm.
    Npm,
    /// PyPI.
    Pypi,
    /// The Rust registry.
    Crates,
}

impl CatalogueEntry {
    /// Command by which a person installs the program.
    pub fn install(&self) -> String {
        let package = &self.package;
        match self.registry {
            PackageRegistry::Npm => format!("npm install -g {package}"),
            PackageRegistry::Pypi => format!("uv tool install {package}"),
            PackageRegistry::Crates => format!("cargo install --locked {package}"),
        }
    }
}

/// All entries, by the id that the public registry gives the agent.
pub fn entries() -> &'static BTreeMap<String, CatalogueEntry> {
    static ENTRIES: OnceLock<BTreeMap<String, CatalogueEntry>> = OnceLock::new();
    ENTRIES.get_or_init(|| toml::from_str(include_str!("agents.toml")).unwrap_or_default())
}

/// CatalogueEntry whose command is this program.
pub fn of_program(program: &str) -> Option<&'static CatalogueEntry> {
    entries().values().find(|entry| entry.command.first().is_some_and(|it| it == program))
}

/// Entry as it is listed, with its state on this machine.
#[derive(Debug, Serialize)]
pub struct Available {
    /// Id in the public registry.
    pub id: &'static str,
    /// Name for people.
    pub name: &'static str,
    /// Description in a few words.
    pub description: &'static str,
    /// Command line that starts the program as an agent.
    pub command: &'static [String],
    /// Command by which a person installs it.
    pub install: String,
    /// Command or step that logs in.
    pub login: &'static str,
    /// Version that the hub was tested with, if any.
    pub tested: Option<&'static str>,
    /// State: `added`, `installed` or `not installed`.
    pub state: &'static str,
    /// Path of the installed program.
    pub path: Option<PathBuf>,
}

/// All entries, with their states under this configuration.
pub fn available(config: &Config) -> Vec<Available> {
    let agents = config.agents.iter();
    let driven: Vec<_> = agents.filter_map(|(id, agent)| agent.acp_program(id)).collect();
    let entry = |(id, entry): (&'static String, &'static CatalogueEntry)| {
        let program = entry.command.first()?;
        let path = find_program(program);
        let state = match &path {
            _ if driven.iter().any(|it| it.name == *program) => "added",
            Some(_) => "installed",
            None => "not installed",
        };
        Some(Available {
            id,
            name: &entry.name,
            description: &entry.about,
            command: &entry.command,
            install: entry.install(),
            login: &entry.login,
            tested: entry.tested.as_deref(),
            state,
            path,
        })
    };
    entries().iter().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_core::{
        grant::permissions::Permissions, plugin::manifest::is_program_name, text::one_line::OneLine,
    };
    use a2a_hub_protocol::id::AgentId;

    #[test]
    fn catalogue_entries_are_well_formed() {
        let read: BTreeMap<String, CatalogueEntry> =
            toml::from_str(include_str!("agents.toml")).unwrap();
        assert_eq!(&read, entries());
        assert!(read.len() >= 10, "{}", read.len());
        let mut programs = BTreeSet::new();
        for (id, entry) in &read {
            assert!(AgentId::parse(id.as_str()).is_ok(), "{id}");
            let program = &entry.command[0];
            assert!(is_program_name(program) && programs.insert(program), "{id}: {program}");
            for line in [&entry.name, &entry.about, &entry.package, &entry.login] {
                assert!(OneLine::parse(line.as_str()).is_ok(), "{id}: {line:?}");
            }
            // It is shown as a command to type.
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "@/._-[]".contains(c);
            assert!(entry.package.chars().all(is_plain), "{id}: {}", entry.package);
            let is_name = |name: &str| {
                name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
            };
            let passed = entry.pass.iter().map(|word| word.strip_suffix('*').unwrap_or(word));
            assert!(passed.chain(entry.set.keys().map(String::as_str)).all(is_name), "{id}");
            for word in entry.modes.keys() {
                let text = toml::Value::String(word.clone());
                assert!(text.try_into::<Permissions>().is_ok(), "{id}: {word}");
            }
            let text = format!("agents.{id}.acp = {:?}", entry.command);
            let config: Config = toml::from_str(&text).unwrap();
            config.check().unwrap();
        }
    }
}
