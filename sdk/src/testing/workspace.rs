//! Files of the workspace of a scripted hub.

use std::collections::{BTreeMap, BTreeSet};

use crate::Failure;

/// Files by path, if the script grants a workspace.
#[derive(Default)]
pub(super) struct WorkspaceFiles {
    files: Option<BTreeMap<String, Vec<u8>>>,
    pub(super) read_only: bool,
}

impl WorkspaceFiles {
    pub(super) fn grant(&mut self, files: &[(&str, &str)]) {
        let file = |(path, text): &(&str, &str)| ((*path).to_owned(), text.as_bytes().to_vec());
        self.files = Some(files.iter().map(file).collect());
    }

    pub(super) fn read(&self, path: &str) -> Result<Vec<u8>, Failure> {
        let what = format!("read `{path}`");
        self.granted(&what)?.get(path).cloned().ok_or_else(|| missing(&what))
    }

    pub(super) fn write(&mut self, path: &str, content: &[u8]) -> Result<(), Failure> {
        let what = format!("write `{path}`");
        self.granted(&what)?;
        if self.read_only {
            return Err(Failure::Denied(format!("{what}: the workspace is read-only")));
        }
        self.files.get_or_insert_default().insert(path.to_owned(), content.to_vec());
        Ok(())
    }

    pub(super) fn list(&self, path: &str) -> Result<Vec<String>, Failure> {
        let what = format!("list `{path}`");
        let folder = if path.is_empty() { String::new() } else { format!("{path}/") };
        let name = |file: &String| {
            let below = file.strip_prefix(&folder)?;
            let folder = below.split_once('/').map(|(folder, _)| format!("{folder}/"));
            Some(folder.unwrap_or_else(|| below.to_owned()))
        };
        let names: BTreeSet<String> = self.granted(&what)?.keys().filter_map(name).collect();
        if names.is_empty() && !path.is_empty() {
            return Err(missing(&what));
        }
        Ok(names.into_iter().collect())
    }

    fn granted(&self, what: &str) -> Result<&BTreeMap<String, Vec<u8>>, Failure> {
        let refused = || Failure::Denied(format!("{what}: the script grants no workspace"));
        self.files.as_ref().ok_or_else(refused)
    }
}

fn missing(what: &str) -> Failure {
    Failure::Invalid(format!("{what}: there is no such file in the workspace"))
}
