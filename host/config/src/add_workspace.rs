//! Adds a workspace to the text of a configuration file, with its comments and order unchanged.

use crate::text_file::toml_problem;
use toml::{Table, Value};

/// Reason why a workspace cannot be added by a command.
#[derive(Debug, thiserror::Error)]
pub enum AddWorkspaceError {
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
pub fn add_workspace(text: &str, dir: &str) -> Result<Option<String>, AddWorkspaceError> {
    let parse = |text: &str| {
        let parsed = text.parse::<Table>();
        parsed.map_err(|why| AddWorkspaceError::Toml(toml_problem(text, &why)))
    };
    let mut wanted = parse(text)?;
    let all = wanted.entry("workspaces").or_insert_with(|| Value::Array(Vec::new()));
    let all = all.as_array_mut().ok_or(AddWorkspaceError::Form)?;
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
    if parse(&changed)? == wanted { Ok(Some(changed)) } else { Err(AddWorkspaceError::Form) }
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

    fn added(text: &str) -> String {
        match add_workspace(text, "/src/my \"app\"") {
            Ok(changed) => changed.unwrap_or_else(|| "unchanged".to_owned()),
            Err(why) => why.to_string(),
        }
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
}
