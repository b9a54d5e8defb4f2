//! Lookup of a granted program, and the check that only its owner can replace it (CWE-426,
//! untrusted search path). The check covers the file, its parent directories and, through symlinks,
//! those of the targets.

use crate::{
    environment::{find_program, is_executable},
    links::{MAX_LINKS, Unreadable, first_link},
};
use a2a_hub_core::grant::{Grant, Pin, ProgramGrant};
use sha2::{Digest as _, Sha256};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Refusal of a program that does not meet the conditions of its grant.
#[derive(Debug, thiserror::Error)]
pub enum ProgramFileError {
    /// The program does not exist.
    #[error("find `{0}`: it is not on the PATH; install it, or say where it is with `path`")]
    Missing(String),
    /// The file is not executable.
    #[error("run {0}: it is not a program")]
    NoProgram(PathBuf),
    /// Another user could replace the program.
    #[error(
        "run {program}: others may write to {exposed}, and so could put another program there; run `chmod go-w {exposed}`, or name a \
         copy that is yours alone with `path`"
    )]
    Exposed {
        /// Path of the program.
        program: PathBuf,
        /// Path that others may write to.
        exposed: PathBuf,
    },
    /// A path cannot be inspected.
    #[error("inspect {path}: {why}")]
    Unreadable {
        /// Path.
        path: PathBuf,
        /// Error of the system.
        why: io::Error,
    },
    /// The file differs from the granted one.
    #[error(
        "run {program}: its file is not the one that was granted (`pin`): its SHA-256 digest is {found}; if you updated it, grant it \
         anew"
    )]
    Changed {
        /// Path of the program.
        program: PathBuf,
        /// Current digest.
        found: String,
    },
    /// The grant says `pin`, but the program did not exist when it was granted.
    #[error(
        "run {0}: its grant says `pin`, and it was not there when it was granted; grant it anew"
    )]
    Unpinned(PathBuf),
}

/// Adds the current path of each program to a grant and, for pinned ones, the file's digest.
/// Programs that the operator `placed` in the configuration keep that path. Programs that cannot be
/// found or trusted are returned as errors, and their entries stay unchanged.
pub fn resolve(
    mut grant: Grant,
    placed: &BTreeMap<String, String>,
) -> (Grant, Vec<ProgramFileError>) {
    let mut wrong = Vec::new();
    for (name, program) in &mut grant.process {
        if let Err(why) = resolve_one(name, program, placed.get(name)) {
            wrong.push(why);
        }
    }
    (grant, wrong)
}

fn resolve_one(
    name: &str,
    program: &mut ProgramGrant,
    placed: Option<&String>,
) -> Result<(), ProgramFileError> {
    let configured_path = program.path.as_ref().or(placed).map(PathBuf::from);
    let path = configured_path.or_else(|| find_program(name));
    let path = path.ok_or_else(|| ProgramFileError::Missing(name.to_owned()))?;
    guard(&path)?;
    if program.pin == Pin::AsFound {
        program.pin = Pin::To(digest(&path)?);
    }
    if placed.is_none() && program.path.is_none() {
        program.path = path.into_os_string().into_string().ok();
    }
    Ok(())
}

/// Checks that the program at `path` can be replaced only by its owner, who is this user or root.
///
/// # Errors
///
/// Fails if the file is not a program, or others could replace it.
pub fn guard(path: &Path) -> Result<(), ProgramFileError> {
    if !is_executable(path) {
        return Err(ProgramFileError::NoProgram(path.to_owned()));
    }
    let mut next = Some(path.to_owned());
    for _ in 0..MAX_LINKS {
        let Some(file) = next else { return Ok(()) };
        for ancestor in file.ancestors() {
            guard_one(path, ancestor)?;
        }
        let link = first_link(&file)
            .map_err(|Unreadable { path, why }| ProgramFileError::Unreadable { path, why })?;
        next = link.map(|link| link.leads_to);
    }
    Err(ProgramFileError::NoProgram(path.to_owned()))
}

/// Checks that the file is the pinned one, if any. Reads all of a pinned file.
///
/// # Errors
///
/// Fails if the file differs, or none was found to pin.
pub fn check_pin(path: &Path, pin: &Pin) -> Result<(), ProgramFileError> {
    let pinned = match pin {
        Pin::Free => return Ok(()),
        Pin::AsFound => return Err(ProgramFileError::Unpinned(path.to_owned())),
        Pin::To(digest) => digest,
    };
    let found = digest(path)?;
    if pinned.eq_ignore_ascii_case(&found) {
        return Ok(());
    }
    Err(ProgramFileError::Changed { program: path.to_owned(), found })
}

fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> ProgramFileError {
    let path = path.to_owned();
    move |why| ProgramFileError::Unreadable { path, why }
}

fn digest(path: &Path) -> Result<String, ProgramFileError> {
    let mut hash = Sha256::new();
    let mut file = File::open(path).map_err(unreadable(path))?;
    io::copy(&mut file, &mut hash).map_err(unreadable(path))?;
    Ok(format!("{:x}", hash.finalize()))
}

/// Checks one part of a path. It is safe if it belongs to this user or the system, and nobody else
/// may write to it. A directory with the sticky bit, such as `/tmp`, is safe as well: nobody can
/// replace another user's files in it.
fn guard_one(program: &Path, path: &Path) -> Result<(), ProgramFileError> {
    let meta = fs::symlink_metadata(path).map_err(unreadable(path))?;
    let ours = rustix::process::geteuid().as_raw();
    let owner_is_known = meta.uid() == 0 || meta.uid() == ours;
    let is_sticky = meta.is_dir() && meta.mode() & 0o1000 != 0;
    let group_is_known = meta.gid() == 0 || meta.gid() == rustix::process::getegid().as_raw();
    let others = if group_is_known { 0o002 } else { 0o022 };
    // The mode of a symlink has no meaning.
    let is_writable = !meta.is_symlink() && !is_sticky && meta.mode() & others != 0;
    if owner_is_known && !is_writable {
        return Ok(());
    }
    Err(ProgramFileError::Exposed { program: program.to_owned(), exposed: path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn program(dir: &Path, name: &str) -> PathBuf {
        let path = dir.join(name);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn replaceable_program_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (bin, real) = (dir.path().join("bin"), dir.path().join("real"));
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(&real).unwrap();
        let tool = program(&real, "tool");
        let link = bin.join("tool");
        symlink("../real/tool", &link).unwrap();
        guard(&tool).unwrap();
        guard(&link).unwrap();

        mode(&tool, 0o757);
        let why = guard(&link).unwrap_err().to_string();
        assert!(why.contains("others may write to") && why.contains("real/tool"), "{why}");
        mode(&tool, 0o755);
        mode(&real, 0o777);
        assert!(matches!(guard(&tool), Err(ProgramFileError::Exposed { .. })));
        assert!(matches!(guard(&link), Err(ProgramFileError::Exposed { .. })), "behind a link");
        mode(&real, 0o1777);
        guard(&link).unwrap();
        mode(&bin, 0o777);
        assert!(matches!(guard(&link), Err(ProgramFileError::Exposed { .. })), "on the way");
    }

    #[test]
    fn non_executable_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("notes");
        fs::write(&file, "").unwrap();
        assert!(matches!(guard(&file), Err(ProgramFileError::NoProgram(_))));
        let circle = dir.path().join("circle");
        symlink(&circle, &circle).unwrap();
        assert!(matches!(guard(&circle), Err(ProgramFileError::NoProgram(_))));
    }

    #[test]
    fn changed_pinned_program_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let tool = program(dir.path(), "tool");
        let path = tool.display().to_string();
        let pinned =
            ProgramGrant { path: Some(path), pin: Pin::AsFound, ..ProgramGrant::default() };
        let grant = Grant { process: [("tool".to_owned(), pinned)].into(), ..Grant::default() };
        let (resolved, wrong) = resolve(grant, &BTreeMap::new());
        assert!(wrong.is_empty(), "{wrong:?}");
        let pin = &resolved.process["tool"].pin;
        check_pin(&tool, pin).unwrap();
        fs::write(&tool, "#!/bin/sh\necho other\n").unwrap();
        assert!(matches!(check_pin(&tool, pin), Err(ProgramFileError::Changed { .. })));
        assert!(matches!(check_pin(&tool, &Pin::AsFound), Err(ProgramFileError::Unpinned(_))));
        check_pin(&tool, &Pin::Free).unwrap();
    }

    #[test]
    fn granted_program_path_is_resolved() {
        let sh = [("sh".to_owned(), ProgramGrant::default())];
        let grant = Grant { process: sh.into(), ..Grant::default() };
        let (resolved, _) = resolve(grant.clone(), &BTreeMap::new());
        assert_eq!(
            resolved.process["sh"].path,
            find_program("sh").map(|it| it.display().to_string())
        );
        let placed = [("sh".to_owned(), "/bin/sh".to_owned())].into();
        let (resolved, _) = resolve(grant, &placed);
        assert_eq!(resolved.process["sh"].path, None, "the configuration says where it is");
        let gone = [("no-such-program".to_owned(), ProgramGrant::default())];
        let gone = Grant { process: gone.into(), ..Grant::default() };
        let (_, wrong) = resolve(gone, &BTreeMap::new());
        assert!(matches!(wrong[..], [ProgramFileError::Missing(_)]));
    }
}
