//! Changes of the configuration file by commands: the sections of agents that drive a program of
//! the Agent Client Protocol. A file is the operator's text, so everything else of it stays as it
//! is written. Each change is read again before it is stored.

use crate::{
    acp,
    catalogue::{self, CatalogueEntry},
    data_dir::private_file,
    environment::{find_program, is_executable},
    settings::Config,
    text_file::{MAX_CONFIG, read_text, toml_problem},
};
use a2a_hub_protocol::id::AgentId;
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use toml::{Table, Value};

/// Reason why the configuration file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The file cannot be read or written.
    #[error("change {}: {why}", .file.display())]
    File {
        /// Configuration file.
        file: PathBuf,
        /// Error of the system.
        why: io::Error,
    },
    /// The file, or the change, is no valid configuration.
    #[error("change {}: {why}", .file.display())]
    Invalid {
        /// Configuration file.
        file: PathBuf,
        /// Reason, and way out.
        why: String,
    },
    /// The agent has a section with a program.
    #[error(
        "add the agent `{0}`: the configuration has one of that name; see `a2a-hub agent remove {0}`, or take another name"
    )]
    Taken(AgentId),
    /// The catalogue has no such program.
    #[error(
        "no program called `{0}` is in the catalogue; `a2a-hub agent available` lists it, and `a2a-hub agent add {0} --acp -- PROGRAM ARGS` adds any other"
    )]
    NotListed(AgentId),
    /// The program is not on the `PATH`.
    #[error("`{program}` is not installed; {}, then call this again", .install.as_deref().map_or("install it, or give its absolute path".to_owned(), |install| format!("run `{install}`")))]
    NotInstalled {
        /// Program.
        program: String,
        /// Command that installs it, if known.
        install: Option<String>,
    },
    /// The configuration has no such agent.
    #[error(
        "remove the agent `{0}`: the configuration has no `agents.{0}.acp`; `a2a-hub agents` lists all agents and their sources"
    )]
    Unknown(AgentId),
    /// The file writes the section in a way that only a person can change safely.
    #[error("change {}: its section `agents.{agent}` is written in a form that this command cannot change; {way_out}", .file.display())]
    ByHand {
        /// Configuration file.
        file: PathBuf,
        /// Agent of the section.
        agent: AgentId,
        /// Way out.
        way_out: String,
    },
}

impl EditError {
    /// Command that installs the missing program, if that is the reason and the command is known.
    pub fn install(&self) -> Option<&str> {
        if let Self::NotInstalled { install, .. } = self { install.as_deref() } else { None }
    }
}

/// Command line of the new agent `name`: this one, or else the catalogue's. The program must be
/// installed.
///
/// # Errors
///
/// If the catalogue has no such program, or if the program is not installed.
pub fn acp_command<'a>(name: &AgentId, command: &'a [String]) -> Result<&'a [String], EditError> {
    let entry = catalogue::entries().get(name.as_str()).filter(|_| command.is_empty());
    let command = entry.map_or(command, |entry| entry.command.as_slice());
    let Some(program) = command.first() else { return Err(EditError::NotListed(name.clone())) };
    let path = Path::new(program);
    if find_program(program).is_some() || (path.is_absolute() && is_executable(path)) {
        return Ok(command);
    }
    Err(EditError::NotInstalled {
        program: program.clone(),
        install: entry.map(CatalogueEntry::install),
    })
}

/// Adds an agent that drives this program to the configuration file, which is made if missing.
///
/// # Errors
///
/// If the agent is in the file already, or the file cannot be changed; it is then as it was.
pub fn add_acp_agent(file: &Path, agent: &AgentId, command: &[String]) -> Result<(), EditError> {
    let text = read(file)?;
    let old = parse(file, &text)?;
    let command: Vec<_> = command.iter().map(|word| Value::from(word.as_str())).collect();
    let key = format!("acp = {}", Value::Array(command.clone()));
    let section = section(&old, agent);
    if section.is_some_and(|section| section.contains_key("acp")) {
        return Err(EditError::Taken(agent.clone()));
    }
    let mut wanted = old.clone();
    let new = match section {
        // A section of that name gets the key as its first line.
        Some(_) => {
            let header = format!("[agents.{agent}]");
            let lines = text.lines().flat_map(|line| {
                let is_header = line.trim() == header;
                [Some(line), is_header.then_some(key.as_str())]
            });
            lines.flatten().map(|line| format!("{line}\n")).collect()
        }
        None => {
            let gap = if text.is_empty() || text.ends_with("\n\n") { "" } else { "\n" };
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            format!("{text}{end}{gap}[agents.{agent}]\n{key}\n")
        }
    };
    set(&mut wanted, agent, Value::Array(command));
    let way_out = format!("add the line `{key}` to it yourself, and call `a2a-hub reload`");
    store(file, &new, &wanted, agent, way_out)
}

/// Removes the section of an agent that drives a program of the Agent Client Protocol from the
/// configuration file, with all its settings.
///
/// # Errors
///
/// If the file has no such agent, or cannot be changed; it is then as it was.
pub fn remove_acp_agent(file: &Path, agent: &AgentId) -> Result<(), EditError> {
    let text = read(file)?;
    let old = parse(file, &text)?;
    if section(&old, agent).is_none_or(|section| !section.contains_key("acp")) {
        return Err(EditError::Unknown(agent.clone()));
    }
    let (table_header, subtable_prefix) =
        (format!("[agents.{agent}]"), format!("[agents.{agent}."));
    let (mut new, mut is_inside) = (String::new(), false);
    for line in text.lines() {
        let start = line.trim_start();
        if start.starts_with('[') {
            is_inside = start.starts_with(&table_header) || start.starts_with(&subtable_prefix);
        }
        let is_dotted = start.starts_with(&format!("agents.{agent}."));
        if !is_inside && !is_dotted {
            new.push_str(line);
            new.push('\n');
        }
    }
    let new = if new.trim().is_empty() { String::new() } else { new };
    let mut wanted = old;
    if let Some(Value::Table(agents)) = wanted.get_mut("agents") {
        agents.remove(agent.as_str());
        if agents.is_empty() {
            wanted.remove("agents");
        }
    }
    let way_out = "remove it yourself, and call `a2a-hub reload`".to_owned();
    store(file, &new, &wanted, agent, way_out)
}

/// Text of the file; empty if it is missing.
fn read(file: &Path) -> Result<String, EditError> {
    match read_text(file, MAX_CONFIG) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read.map_err(|why| EditError::File { file: file.to_owned(), why }),
    }
}

fn parse(file: &Path, text: &str) -> Result<Table, EditError> {
    let wrong = |why: toml::de::Error| EditError::Invalid {
        file: file.to_owned(),
        why: toml_problem(text, &why),
    };
    text.parse().map_err(wrong)
}

fn section<'a>(table: &'a Table, agent: &AgentId) -> Option<&'a Table> {
    table.get("agents")?.get(agent.as_str())?.as_table()
}

fn set(table: &mut Table, agent: &AgentId, command: Value) {
    let mut at = table;
    for name in ["agents", agent.as_str()] {
        let entry = at.entry(name).or_insert_with(|| Value::Table(Table::new()));
        let Value::Table(inner) = entry else { return };
        at = inner;
    }
    at.insert(acp::KEY.to_owned(), command);
}

/// Stores the new text if it says exactly what is wanted, as a valid configuration.
fn store(
    file: &Path,
    new: &str,
    wanted: &Table,
    agent: &AgentId,
    way_out: String,
) -> Result<(), EditError> {
    if new.parse::<Table>().ok().as_ref() != Some(wanted) {
        return Err(EditError::ByHand { file: file.to_owned(), agent: agent.clone(), way_out });
    }
    let invalid = |why: String| EditError::Invalid { file: file.to_owned(), why };
    let config: Config = toml::from_str(new).map_err(|why| invalid(toml_problem(new, &why)))?;
    config.check().map_err(|why| invalid(why.to_string()))?;
    let failed = |why| EditError::File { file: file.to_owned(), why };
    // A link is the operator's: its target is replaced.
    let target = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    private_file::replace(&target, new.as_bytes()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text of a file after a change; the file begins as `text`.
    fn changed(
        text: &str,
        change: impl FnOnce(&Path, &AgentId) -> Result<(), EditError>,
    ) -> Result<String, String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        if !text.is_empty() {
            fs::write(&file, text).unwrap();
        }
        let done = change(&file, &AgentId::parse("mini").unwrap());
        let now = fs::read_to_string(&file).unwrap_or_default();
        match done {
            Ok(()) => Ok(now),
            Err(why) => {
                assert_eq!(now, text, "a refused change leaves the file as it was");
                Err(why.to_string().replace(&dir.path().display().to_string(), "DIR"))
            }
        }
    }

    fn added(text: &str) -> Result<String, String> {
        changed(text, |file, id| add_acp_agent(file, id, &["mini".into(), "a \"b\"".into()]))
    }

    fn removed(text: &str) -> Result<String, String> {
        changed(text, remove_acp_agent)
    }

    #[test]
    fn added_agent_leaves_other_text_unchanged() {
        let section = "[agents.mini]\nacp = [\"mini\", 'a \"b\"']\n";
        assert_eq!(added("").unwrap(), section);
        let mine = "# mine\nmax_tasks = 5 # few\n\n[agents.echo]\nenabled = false";
        assert_eq!(added(mine).unwrap(), format!("{mine}\n\n{section}"));
        let there = added("[agents.mini]\ntimeout_ms = 1000\n[http]\n").unwrap();
        assert_eq!(there, format!("{section}timeout_ms = 1000\n[http]\n"));
    }

    #[test]
    fn removed_agent_takes_its_section_along() {
        let mine =
            "# mine\n[agents.mini]\nacp = ['x']\n[agents.mini.settings]\na = 1\n[http]\nport = 1\n";
        assert_eq!(removed(mine).unwrap(), "# mine\n[http]\nport = 1\n");
        assert_eq!(removed("agents.mini.acp = ['x']\nmax_tasks = 5\n").unwrap(), "max_tasks = 5\n");
        assert_eq!(removed(&added("").unwrap()).unwrap(), "");
    }

    #[test]
    fn unclear_changes_are_refused() {
        insta::assert_snapshot!(added("agents.mini.acp = ['x']\n").unwrap_err(), @"add the agent `mini`: the configuration has one of that name; see `a2a-hub agent remove mini`, or take another name");
        insta::assert_snapshot!(removed("[agents.mini]\nenabled = false\n").unwrap_err(), @"remove the agent `mini`: the configuration has no `agents.mini.acp`; `a2a-hub agents` lists all agents and their sources");
        insta::assert_snapshot!(removed("agents = { mini = { acp = ['x'] } }\n").unwrap_err(), @"change DIR/config.toml: its section `agents.mini` is written in a form that this command cannot change; remove it yourself, and call `a2a-hub reload`");
        assert!(
            added("agents.mini.timeout_ms = 1000\n").unwrap_err().contains("add the line `acp")
        );
        assert!(added("no toml").is_err());
        let odd = changed("", |file, id| add_acp_agent(file, id, &["bin/x".into()]));
        assert!(odd.unwrap_err().contains("relative path"));
    }
}
