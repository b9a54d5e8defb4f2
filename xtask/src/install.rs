//! Installs the hub where the shell finds it.

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::shell::announce;

/// Copies `program` into the user's folder of programs, and prints how to call it.
pub(crate) fn install(program: &Path) -> Result<()> {
    let home = env::home_dir().context("the environment names no home directory")?;
    let dir = destination(env::var_os("CARGO_HOME").as_deref(), &home);
    let name = program.file_name().context("the program to install has no name")?;
    let to = dir.join(name);
    replace(program, &to).with_context(|| format!("failed to install {}", to.display()))?;
    announce(&format!("installed {}", to.display()));

    if !env::var_os("PATH").is_some_and(|path| holds(&path, &dir)) {
        announce("that folder is not on your PATH; for this shell, and in its profile for all:");
        eprintln!("export PATH=\"{}:$PATH\"", dir.display());
    }
    Ok(())
}

/// Cargo's folder of programs if it exists, or else the user's own, which is created if missing.
fn destination(cargo_home: Option<&OsStr>, home: &Path) -> PathBuf {
    let cargo = cargo_home.map_or_else(|| home.join(".cargo"), PathBuf::from).join("bin");
    if cargo.is_dir() { cargo } else { home.join(".local/bin") }
}

/// Replaces the file by renaming, since the file of a running program cannot be written to.
fn replace(from: &Path, to: &Path) -> std::io::Result<()> {
    if let Some(dir) = to.parent() {
        fs::create_dir_all(dir)?;
    }
    let fresh = to.with_extension("new");
    fs::copy(from, &fresh)?;
    fs::rename(fresh, to)
}

fn holds(path: &OsStr, dir: &Path) -> bool {
    env::split_paths(path).any(|entry| entry == dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_cargo_folder_is_preferred() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        assert_eq!(destination(None, home), home.join(".local/bin"));
        fs::create_dir_all(home.join(".cargo/bin")).unwrap();
        assert_eq!(destination(None, home), home.join(".cargo/bin"));
        fs::create_dir_all(home.join("elsewhere/bin")).unwrap();
        let named = home.join("elsewhere");
        assert_eq!(destination(Some(named.as_os_str()), home), named.join("bin"));
    }

    #[test]
    fn older_program_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("hub"), dir.path().join("bin/hub"));
        for version in ["one", "two"] {
            fs::write(&from, version).unwrap();
            replace(&from, &to).unwrap();
            assert_eq!(fs::read_to_string(&to).unwrap(), version);
        }
        assert_eq!(fs::read_dir(dir.path().join("bin")).unwrap().count(), 1);
    }

    #[test]
    fn path_matches_whole_folders_only() {
        assert!(holds(OsStr::new("/bin:/home/me/.local/bin"), Path::new("/home/me/.local/bin")));
        assert!(!holds(OsStr::new("/bin:/home/me/.local/bin2"), Path::new("/home/me/.local/bin")));
    }
}
