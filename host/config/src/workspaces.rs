//! Adds workspaces to the text of a configuration file, and removes them; comments and order stay
//! unchanged.

use crate::{Config, text_file::toml_problem};
use a2a_hub_core::text::shell::shell_word;
use a2a_hub_protocol::id::AgentId;
use std::{collections::BTreeSet, path::PathBuf};
use toml::{Table, Value};

impl Config {
    /// Warnings about workspaces that do not exist, one sentence each. Blocks on the disk for a
    /// moment.
    pub fn missing_workspaces(&self) -> Vec<String> {
        let of_hub = self.workspaces.iter().map(|dir| (dir, None));
        let of_agents = self.agents.iter().flat_map(|(id, agent)| {
            agent.workspaces.iter().flatten().map(move |dir| (dir, Some(id)))
        });
        let all: BTreeSet<_> = of_hub.chain(of_agents).collect();
        let warning = |(dir, agent): (&PathBuf, Option<&AgentId>)| {
            let dir = dir.display().to_string();
            let remove = match agent {
                Some(agent) => format!("remove it from `agents.{agent}.workspaces`"),
                None => format!("remove it: `a2a-hub workspace remove {}`", shell_word(&dir)),
            };
            format!(
                "the workspace {dir} does not exist, so no agent works there; create it, or {remove}"
            )
        };
        all.into_iter().filter(|(dir, _)| !dir.is_dir()).map(warning).collect()
    }
}

/// Reason why a command cannot change the workspaces.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The file is no TOML.
    #[error("the file is not valid: {0}")]
    Toml(String),
    /// The file's form is unusual.
    #[error("`workspaces` is written in a way that only a person can change")]
    Form,
}

/// Returns the text of a configuration file with one more workspace; `None` if it has the workspace
/// already.
///
/// # Errors
/// If the text is not valid, or `workspaces` cannot be found in it.
pub fn add_workspace(text: &str, dir: &str) -> Result<Option<String>, WorkspaceError> {
    let mut wanted = parse(text)?;
    let all = wanted.entry("workspaces").or_insert_with(|| Value::Array(Vec::new()));
    let all = all.as_array_mut().ok_or(WorkspaceError::Form)?;
    let added = Value::from(dir);
    if all.contains(&added) {
        return Ok(None);
    }
    all.insert(0, added.clone());
    let changed = match list_begins(text) {
        Some(at) => {
            let is_last = all.len() == 1;
            let comma = if is_last { "" } else { ", " };
            format!("{}{added}{comma}{}", &text[..at], &text[at..])
        }
        None => format!("workspaces = [{added}]\n{text}"),
    };
    // Whatever the text looked like, the result says exactly what was wanted.
    if parse(&changed)? == wanted { Ok(Some(changed)) } else { Err(WorkspaceError::Form) }
}

/// Returns the text of a configuration file without a workspace; `None` if it lacks the workspace.
///
/// # Errors
/// If the text is not valid, or the workspace cannot be found in it.
pub fn remove_workspace(text: &str, dir: &str) -> Result<Option<String>, WorkspaceError> {
    let mut wanted = parse(text)?;
    let Some(all) = wanted.get_mut("workspaces") else { return Ok(None) };
    let all = all.as_array_mut().ok_or(WorkspaceError::Form)?;
    let before = all.len();
    all.retain(|it| it.as_str() != Some(dir));
    if all.len() == before {
        return Ok(None);
    }
    let list = list_begins(text).ok_or(WorkspaceError::Form)?;
    let spellings = [Value::from(dir).to_string(), format!("\"{dir}\""), format!("'{dir}'")];
    let places = spellings.iter().flat_map(|spelling| {
        text[list..].match_indices(spelling).map(|(at, it)| list + at..list + at + it.len())
    });
    for range in places {
        let (head, tail) = (&text[..range.start], &text[range.end..]);
        let changed = match tail.trim_start().strip_prefix(',') {
            Some(tail) => format!("{head}{}", tail.trim_start_matches(' ')),
            // The last one leaves no comma behind that separates nothing.
            None => format!("{}{tail}", head.trim_end().strip_suffix(',').unwrap_or(head)),
        };
        if parse(&changed).is_ok_and(|changed| changed == wanted) {
            return Ok(Some(changed));
        }
    }
    Err(WorkspaceError::Form)
}

fn parse(text: &str) -> Result<Table, WorkspaceError> {
    text.parse::<Table>().map_err(|why| WorkspaceError::Toml(toml_problem(text, &why)))
}

/// Place after the `[` of the list of workspaces, among the keys above all sections.
fn list_begins(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let key = line.trim_start();
        if key.starts_with('[') {
            return None;
        }
        let value = key.strip_prefix("workspaces").map(str::trim_start);
        if let Some(value) = value.and_then(|it| it.strip_prefix('=')) {
            return value
                .trim_start()
                .starts_with('[')
                .then(|| at + line.find('[').unwrap_or(0) + 1);
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changed text, `unchanged`, or the error.
    fn outcome(result: Result<Option<String>, WorkspaceError>) -> String {
        match result {
            Ok(changed) => changed.unwrap_or_else(|| "unchanged".to_owned()),
            Err(why) => why.to_string(),
        }
    }

    fn added(text: &str) -> String {
        outcome(add_workspace(text, "/src/my \"app\""))
    }

    #[test]
    fn workspace_is_added_and_comments_stay() {
        assert_eq!(added(""), "workspaces = ['/src/my \"app\"']\n");
        assert_eq!(
            added("# mine\nworkspaces = [\n  \"/a\", # first\n]\n[http]\nport = 1\n"),
            "# mine\nworkspaces = ['/src/my \"app\"', \n  \"/a\", # first\n]\n[http]\nport = 1\n"
        );
        assert_eq!(added("workspaces = []\n"), "workspaces = ['/src/my \"app\"']\n");
        assert_eq!(
            added("[agents.x]\nworkspaces = ['/b']\n"),
            "workspaces = ['/src/my \"app\"']\n[agents.x]\nworkspaces = ['/b']\n"
        );
        assert_eq!(added("workspaces = ['/src/my \"app\"']"), "unchanged");
    }

    #[test]
    fn unusual_file_is_left_to_a_person() {
        assert!(added("workspaces = 1").contains("only a person"));
        assert!(added("\"workspaces\" = ['/a']").contains("not valid"));
        assert!(added("a = ").contains("not valid"));
    }

    #[test]
    fn only_named_workspace_is_removed() {
        let removed = |text: &str| outcome(remove_workspace(text, "/b"));
        assert_eq!(removed("workspaces = ['/a', \"/b\"] # mine\n"), "workspaces = ['/a'] # mine\n");
        assert_eq!(
            removed("workspaces = [\n  '/b', # why\n  '/c',\n]\n"),
            "workspaces = [\n  # why\n  '/c',\n]\n"
        );
        assert_eq!(removed("workspaces = ['/b']\n"), "workspaces = []\n");
        assert_eq!(
            removed("workspaces = ['/b/c', # '/b'\n '/b']"),
            "workspaces = ['/b/c', # '/b'\n ]"
        );
        for text in ["", "workspaces = ['/b/c']", "[agents.x]\nworkspaces = ['/b']\n"] {
            assert_eq!(removed(text), "unchanged", "{text}");
        }
        assert!(removed("workspaces = ['/b', '/b']").contains("only a person"));
        assert!(removed("workspaces = ").contains("not valid"));
    }
}
