//! Access to the hub for the programs of agents that may call others: the command `a2a-hub` and its
//! socket. The kernel identifies the calling program, so neither is a credential.

use super::environment::last;
use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

/// Environment variable that names the socket; the command reads it.
const SOCKET: &str = "A2A_HUB_SOCKET";

/// Command and socket with which an agent's program delegates tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubAccess {
    program: PathBuf,
    socket: PathBuf,
}

impl HubAccess {
    /// Access to a hub that listens at `socket`, by the command `program`. None if one of them does
    /// not exist.
    pub fn new(program: &Path, socket: &Path) -> Option<Self> {
        // Confined programs see resolved paths only; the socket itself is no link.
        let (directory, name) = (socket.parent()?.canonicalize().ok()?, socket.file_name()?);
        Some(Self { program: program.canonicalize().ok()?, socket: directory.join(name) })
    }

    /// Settings that tell an agent the two paths.
    pub(crate) fn to_settings(&self) -> [(String, String); 2] {
        [("hub_program", &self.program), ("hub_socket", &self.socket)]
            .map(|(name, path)| (name.to_owned(), path.display().to_string()))
    }

    /// Paths that a confined program must see, each at its outside path.
    pub(crate) fn paths(&self) -> [PathBuf; 2] {
        [self.program.clone(), self.socket.clone()]
    }

    /// Adds the command to the end of `PATH`, and the socket's variable, in a program's
    /// environment.
    pub(crate) fn add_hub_access(&self, env: &mut Vec<(String, String)>) {
        env.push((SOCKET.to_owned(), self.socket.display().to_string()));
        let Some(directory) = self.program.parent() else { return };
        let known = last(env, "PATH").map(OsString::from).unwrap_or_default();
        let mut places: Vec<_> = env::split_paths(&known).collect();
        if !places.iter().any(|entry| entry == directory) {
            places.push(directory.to_owned());
        }
        // A directory with a colon in its name cannot be part of a path list.
        let path = env::join_paths(places).ok().and_then(|path| path.into_string().ok());
        env.extend(path.map(|path| ("PATH".to_owned(), path)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    #[test]
    fn hub_command_is_last_on_path() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir(root.join("bin")).unwrap();
        fs::write(root.join("bin/a2a-hub"), "").unwrap();
        symlink(root.join("bin"), root.join("link")).unwrap();
        let door = HubAccess::new(&root.join("link/a2a-hub"), &root.join("link/hub.sock")).unwrap();
        assert_eq!(door.paths(), [root.join("bin/a2a-hub"), root.join("bin/hub.sock")]);
        let mut env = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        door.add_hub_access(&mut env);
        let bin = root.join("bin").display().to_string();
        assert_eq!(last(&env, "PATH"), Some(&*format!("/usr/bin:/bin:{bin}")));
        assert_eq!(last(&env, SOCKET), Some(&*format!("{bin}/hub.sock")));
        let before = last(&env, "PATH").map(str::to_owned);
        door.add_hub_access(&mut env);
        assert_eq!(last(&env, "PATH").map(str::to_owned), before, "once is enough");
        assert_eq!(HubAccess::new(&root.join("gone"), &root.join("bin/hub.sock")), None);
    }
}
