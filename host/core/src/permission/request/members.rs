//! Members of requests: a check of an object against those that the hub knows, scripts and paths.

use crate::{
    permission::{path, shell},
    text::plain_text::line,
};
use a2a_hub_protocol::permission::Action;
use serde_json::{Map, Value};

/// Maximum number of files of a request.
const MAX_PATHS: usize = 256;

/// Members of an object, each of them known.
pub(super) struct ObjectForm {
    /// Members that the caller reads, or that only describe.
    pub(super) known: &'static [&'static str],
    /// Members that widen the request unless they are `false`.
    pub(super) widening: &'static [&'static str],
}

impl ObjectForm {
    /// Form with these members only.
    pub(super) const fn of(known: &'static [&'static str]) -> Self {
        Self { known, widening: &[] }
    }

    /// Refuses a value that is no object, and an object with another member. A member with the
    /// value null is absent.
    pub(super) fn check<'v>(&self, value: &'v Value) -> Result<&'v Map<String, Value>, String> {
        let object = value.as_object().ok_or("a part of it is missing")?;
        for (name, value) in object {
            if value.is_null() || self.known.contains(&name.as_str()) {
                continue;
            }
            if !self.widening.contains(&name.as_str()) {
                return Err(format!("the hub does not know its member `{}`", line(name, 64)));
            }
            if *value != false {
                return Err(format!("it asks for more than the action, by `{name}`"));
            }
        }
        Ok(object)
    }
}

/// Run of a shell's script in the directory.
pub(super) fn run(script: &Value, directory: &Value) -> Result<Action, String> {
    let script = script.as_str().ok_or("it has no command as a text")?;
    let commands = shell::commands(script)?;
    let directory = directory.as_str().and_then(path::canonical);
    let directory = directory.ok_or("the directory of its shell is not known")?.to_owned();
    Ok(Action::Run { commands, directory })
}

/// Absolute path of a member.
pub(super) fn absolute(value: &Value) -> Result<String, String> {
    let path = value.as_str().ok_or("it names no file")?;
    let is_exact = path::canonical(path) == Some(path) && path != "/";
    is_exact.then(|| path.to_owned()).ok_or_else(|| {
        "a path is relative, or has `.`, `..`, empty components or control characters".to_owned()
    })
}

/// Absolute paths of a list, which is not empty.
pub(super) fn absolute_each<'v>(
    values: impl IntoIterator<Item = &'v Value>,
) -> Result<Vec<String>, String> {
    let mut paths = Vec::new();
    for value in values {
        let path = absolute(value)?;
        if !paths.contains(&path) {
            paths.push(path);
        }
        if paths.len() > MAX_PATHS {
            return Err(format!("it names more than {MAX_PATHS} files"));
        }
    }
    if paths.is_empty() { Err("it names no file".to_owned()) } else { Ok(paths) }
}
