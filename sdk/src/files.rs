//! Files for programs, in a directory of this run, and files of the task's working directory.

use crate::host::{Host, WORKSPACE};
use crate::{Context, Failure};

/// Access to the files of a granted workspace. Paths are relative to it.
pub struct Workspace<'a> {
    ctx: &'a Context,
}

impl Context {
    /// Writes a file that is deleted when this run ends, and returns its absolute path.
    ///
    /// Only the last component of `name` is used, without characters that could mislead. The hub
    /// adds a number if the name is taken. Once the manifest's `[files]` limits are used up, the
    /// result is [`Failure::Exhausted`].
    pub fn put_file(&self, name: &str, bytes: &[u8]) -> Result<String, Failure> {
        self.hub.put_file(name, bytes)
    }

    /// Files of the task's working directory, granted with `workspace`. Natively, these are the
    /// files of the scripted host, so that a test touches no other file.
    pub fn workspace(&self) -> Workspace<'_> {
        Workspace { ctx: self }
    }
}

impl Workspace<'_> {
    /// Reads a file as text; invalid UTF-8 becomes `U+FFFD`.
    pub fn read(&self, path: &str) -> Result<String, Failure> {
        Ok(String::from_utf8_lossy(&self.read_bytes(path)?).into_owned())
    }

    /// Reads a file as bytes.
    pub fn read_bytes(&self, path: &str) -> Result<Vec<u8>, Failure> {
        self.ctx.hub.read_file(&within(path)?)
    }

    /// Writes a file, and creates its folders.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> Result<(), Failure> {
        self.ctx.hub.write_file(&within(path)?, content.as_ref())
    }

    /// Lists the names of a folder, sorted; names of folders end in `/`, and `""` is the workspace.
    pub fn list(&self, path: &str) -> Result<Vec<String>, Failure> {
        let mut names = self.ctx.hub.list_folder(&within(path)?)?;
        names.sort();
        Ok(names)
    }
}

/// Path below the workspace, without `.` and the place of the workspace.
fn within(path: &str) -> Result<String, Failure> {
    let relative =
        path.strip_prefix(WORKSPACE).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let inside = relative.map_or(path, |rest| rest.trim_start_matches('/'));
    let names: Vec<&str> =
        inside.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    if names.contains(&"..") || inside.starts_with('/') {
        return Err(Failure::Invalid(format!(
            "`{path}` is outside of the workspace; give a path below it, such as `src/lib.rs`"
        )));
    }
    Ok(names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_workspace() {
        for (path, inside) in
            [("a.md", "a.md"), ("./src//b.rs", "src/b.rs"), ("/workspace/c", "c"), ("", "")]
        {
            assert_eq!(within(path).unwrap(), inside);
        }
        for path in ["../x", "src/../../x", "/etc/passwd", "/workspaces/x"] {
            let failure = within(path).unwrap_err();
            assert!(failure.text().contains("is outside of the workspace"), "{path}");
        }
    }
}
