//! The hub's own door for the programs of agents that may call others: the command `a2a-hub`, and the socket that it asks at. Whose
//! program knocks there the kernel says, not what it was told here.

use super::environment::last;
use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

/// The variable that names the socket, which the command heeds.
const SOCKET: &str = "A2A_HUB_SOCKET";

/// What an agent's program needs to give tasks to others: a command, and where it asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Door {
    program: PathBuf,
    socket: PathBuf,
}

impl Door {
    /// The door of a hub that listens at `socket`, by the command `program`. None if one of them is not there.
    pub fn new(program: &Path, socket: &Path) -> Option<Self> {
        // No link leads to what confined programs are shown; the socket itself is none.
        let (directory, name) = (socket.parent()?.canonicalize().ok()?, socket.file_name()?);
        Some(Self { program: program.canonicalize().ok()?, socket: directory.join(name) })
    }

    /// What an agent is told of it, as settings.
    pub(crate) fn told(&self) -> [(String, String); 2] {
        [("hub_program", &self.program), ("hub_socket", &self.socket)]
            .map(|(name, path)| (name.to_owned(), path.display().to_string()))
    }

    /// What a confined program has to see of it, each at the path that it has outside.
    pub(crate) fn paths(&self) -> [PathBuf; 2] {
        [self.program.clone(), self.socket.clone()]
    }

    /// Has programs with this environment find the command, after all others, and the socket.
    pub(crate) fn furnish(&self, env: &mut Vec<(String, String)>) {
        env.push((SOCKET.to_owned(), self.socket.display().to_string()));
        let Some(directory) = self.program.parent() else { return };
        let known = last(env, "PATH").map(OsString::from).unwrap_or_default();
        let mut places: Vec<_> = env::split_paths(&known).collect();
        if !places.iter().any(|place| place == directory) {
            places.push(directory.to_owned());
        }
        // A directory with a colon in its name is on no path.
        let path = env::join_paths(places).ok().and_then(|path| path.into_string().ok());
        env.extend(path.map(|path| ("PATH".to_owned(), path)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    #[test]
    fn the_command_is_found_last_and_by_no_link() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir(root.join("bin")).unwrap();
        fs::write(root.join("bin/a2a-hub"), "").unwrap();
        symlink(root.join("bin"), root.join("link")).unwrap();
        let door = Door::new(&root.join("link/a2a-hub"), &root.join("link/hub.sock")).unwrap();
        assert_eq!(door.paths(), [root.join("bin/a2a-hub"), root.join("bin/hub.sock")]);
        let mut env = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        door.furnish(&mut env);
        let bin = root.join("bin").display().to_string();
        assert_eq!(last(&env, "PATH"), Some(&*format!("/usr/bin:/bin:{bin}")));
        assert_eq!(last(&env, SOCKET), Some(&*format!("{bin}/hub.sock")));
        let before = last(&env, "PATH").map(str::to_owned);
        door.furnish(&mut env);
        assert_eq!(last(&env, "PATH").map(str::to_owned), before, "once is enough");
        assert_eq!(Door::new(&root.join("gone"), &root.join("bin/hub.sock")), None);
    }
}
