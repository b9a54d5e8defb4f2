//! Files of a component, by the file functions of WASI.

use std::io::{Error, ErrorKind};
use std::path::Path;

use crate::Failure;

pub(crate) fn read(root: &Path, path: &str) -> Result<Vec<u8>, Failure> {
    std::fs::read(root.join(path)).map_err(|why| failure(root, "read", path, &why))
}

pub(crate) fn write(root: &Path, path: &str, content: &[u8]) -> Result<(), Failure> {
    let file = root.join(path);
    let folder = file.parent().filter(|folder| *folder != root && !folder.is_dir());
    let created = folder.map_or(Ok(()), std::fs::create_dir_all);
    created
        .and_then(|()| std::fs::write(&file, content))
        .map_err(|why| failure(root, "write", path, &why))
}

pub(crate) fn list(root: &Path, path: &str) -> Result<Vec<String>, Failure> {
    let names = || -> std::io::Result<Vec<String>> {
        let entries = std::fs::read_dir(root.join(path))?;
        let name = |entry: std::fs::DirEntry| {
            let slash = if entry.file_type()?.is_dir() { "/" } else { "" };
            Ok(format!("{}{slash}", entry.file_name().to_string_lossy()))
        };
        entries.map(|entry| entry.and_then(name)).collect()
    };
    names().map_err(|why| failure(root, "list", path, &why))
}

fn failure(root: &Path, action: &str, path: &str, why: &Error) -> Failure {
    let action = format!("{action} `{}`", if path.is_empty() { "." } else { path });
    if !root.is_dir() {
        return Failure::Denied(format!(
            "{action}: the agent has no workspace; its manifest must ask with `[workspace]`, and the operator \
             allows it with `a2a-hub plugin grant ID --workspace read`"
        ));
    }
    #[expect(clippy::wildcard_enum_match_arm, reason = "the kinds of errors are an open list")]
    match why.kind() {
        ErrorKind::NotFound => {
            Failure::Invalid(format!("{action}: there is no such file in the workspace"))
        }
        ErrorKind::NotADirectory => Failure::Invalid(format!("{action}: it is no folder")),
        ErrorKind::IsADirectory => {
            Failure::Invalid(format!("{action}: it is a folder, and not a file"))
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Failure::Denied(format!(
            "{action}: not granted; `a2a-hub plugin grant ID --workspace read-write` allows changes"
        )),
        ErrorKind::StorageFull => Failure::Exhausted(format!(
            "{action}: the task's limit of written files or bytes is used up"
        )),
        _ => Failure::Unavailable(format!("{action}: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_workspace_names_the_grant() {
        let nowhere = Path::new("/nonexistent/workspace");
        let failure = read(nowhere, "README.md").unwrap_err();
        assert!(matches!(failure, Failure::Denied(_)));
        assert!(failure.text().contains("`a2a-hub plugin grant ID --workspace read`"));
        assert!(write(nowhere, "x", b"").is_err() && list(nowhere, "").is_err());
    }
}
