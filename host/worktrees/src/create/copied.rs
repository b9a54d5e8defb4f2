//! Files of the user's checkout that are copied into a new worktree because git does not have
//! them, such as `.env`.
//!
//! Agents may write in both directories: other agents in the checkout, and the authors of the base
//! in the worktree. So neither side follows a link or leaves its directory (CWE-59), and nothing
//! but a regular file of limited size is read.

use crate::WorktreeError;
use rustix::{
    fs::{Mode, OFlags, ResolveFlags, fchmod, mkdirat, openat2},
    io::Errno,
};
use std::{
    fs::File,
    io::{self, Read as _},
    os::{fd::AsFd as _, unix::fs::PermissionsExt as _},
    path::Path,
};

/// Largest size of all copied files together, in bytes.
const SIZE_LIMIT: u64 = 64 << 20;

/// Copies files from `checkout` to `tree`, and returns the names of those that were copied. A file
/// that the checkout lacks, or that the worktree has already, is left out. Blocks on the disk.
pub(crate) fn copy_files(
    checkout: &Path,
    tree: &Path,
    names: &[String],
) -> Result<Vec<String>, WorktreeError> {
    let open = |path: &Path| File::open(path).map_err(WorktreeError::disk);
    let (from, to) = (open(checkout)?, open(tree)?);
    let (mut copied, mut remaining) = (Vec::new(), SIZE_LIMIT);
    for name in names {
        let Some(mut source) = open_source(&from, name)? else { continue };
        let meta = source.metadata().map_err(WorktreeError::disk)?;
        if meta.is_dir() {
            return Err(refused(name, "it is a directory; name its files, or make it by `setup`"));
        }
        if !meta.is_file() {
            return Err(refused(name, "it is no regular file; make it by `setup`"));
        }
        let too_large = || {
            let max_mib = SIZE_LIMIT >> 20;
            refused(
                name,
                &format!("all copied files together may have {max_mib} MiB; make it by `setup`"),
            )
        };
        if meta.len() > remaining {
            return Err(too_large());
        }
        let Some(mut target) = create_target(&to, name)? else {
            tracing::info!(name, "file not copied: the base commit contains it");
            continue;
        };
        // The file may grow meanwhile.
        let bytes = io::copy(&mut (&mut source).take(remaining + 1), &mut target);
        let bytes = bytes.map_err(WorktreeError::disk)?;
        remaining = remaining.checked_sub(bytes).ok_or_else(too_large)?;
        let mode = Mode::from_raw_mode(meta.permissions().mode() & 0o777);
        fchmod(&target, mode).map_err(|why| WorktreeError::disk(why.into()))?;
        copied.push(name.clone());
    }
    Ok(copied)
}

/// Lines of `info/exclude` for these files, so that git does not take them for the agent's work
/// (gitignore(5)).
pub(crate) fn excludes(names: &[String]) -> String {
    let escaped = |name: &String| {
        name.chars().fold("/".to_owned(), |line, c| match c {
            '*' | '?' | '[' | '\\' | ' ' => format!("{line}\\{c}"),
            _ => format!("{line}{c}"),
        })
    };
    names.iter().map(|name| escaped(name) + "\n").collect()
}

/// Opens a file without waiting, as for the writer of a FIFO; none if it is missing.
fn open_source(from: &File, name: &str) -> Result<Option<File>, WorktreeError> {
    require_outside_git(name)?;
    match beneath(from, Path::new(name), OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()) {
        Ok(file) => Ok(Some(file)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(why) => Err(unopened(name, why)),
    }
}

/// Creates a file with the directories above it; none if something has its name.
fn create_target(to: &File, name: &str) -> Result<Option<File>, WorktreeError> {
    let path = Path::new(name);
    let failed = |why| unopened(name, why);
    let mut directory = to.try_clone().map_err(WorktreeError::disk)?;
    for part in path.parent().unwrap_or(Path::new("")).components() {
        let part = Path::new(part.as_os_str());
        match mkdirat(&directory, part, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(why) => return Err(failed(why)),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        directory = beneath(&directory, part, flags, Mode::empty()).map_err(failed)?;
    }
    let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let file = Path::new(path.file_name().unwrap_or_default());
    match beneath(&directory, file, new, Mode::from_raw_mode(0o600)) {
        Ok(file) => Ok(Some(file)),
        Err(Errno::EXIST) => Ok(None),
        Err(why) => Err(failed(why)),
    }
}

fn beneath(directory: &File, path: &Path, flags: OFlags, mode: Mode) -> Result<File, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(directory.as_fd(), path, flags | OFlags::CLOEXEC, mode, resolve).map(File::from)
}

/// Refuses files of the git directory: they are a configuration of git.
fn require_outside_git(name: &str) -> Result<(), WorktreeError> {
    if name.split('/').any(|part| part.eq_ignore_ascii_case(".git")) {
        return Err(refused(name, "it lies in the git directory; leave it out"));
    }
    Ok(())
}

fn unopened(name: &str, why: Errno) -> WorktreeError {
    match why {
        Errno::LOOP => refused(
            name,
            "it is a link, or lies behind one, and links are not followed; name the file itself",
        ),
        Errno::XDEV => refused(name, "it lies outside the repository; name a file in it"),
        Errno::NOTDIR => {
            refused(name, "the base has a file where it needs a directory; leave it out")
        }
        why => refused(name, &io::Error::from(why).to_string()),
    }
}

fn refused(name: &str, why: &str) -> WorktreeError {
    let name: String = name.chars().take(200).collect();
    WorktreeError::Refused(format!("copy `{name}` as `worktrees.copy` says: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink, path::PathBuf};

    struct Directories {
        place: tempfile::TempDir,
    }

    impl Directories {
        fn new() -> Self {
            let place = tempfile::tempdir().unwrap();
            for name in ["from/deep", "to", "out"] {
                fs::create_dir_all(place.path().join(name)).unwrap();
            }
            Self { place }
        }

        fn at(&self, name: &str) -> PathBuf {
            self.place.path().join(name)
        }

        fn copy(&self, name: &str) -> Result<Vec<String>, String> {
            let copied = copy_files(&self.at("from"), &self.at("to"), &[name.to_owned()]);
            copied.map_err(|why| why.to_string())
        }
    }

    #[test]
    fn files_are_copied_with_their_mode() {
        let place = Directories::new();
        fs::write(place.at("from/deep/.env"), "KEY=1").unwrap();
        fs::set_permissions(place.at("from/deep/.env"), fs::Permissions::from_mode(0o4640))
            .unwrap();
        assert_eq!(place.copy("deep/.env"), Ok(vec!["deep/.env".to_owned()]));
        assert_eq!(fs::read_to_string(place.at("to/deep/.env")).unwrap(), "KEY=1");
        let mode = fs::metadata(place.at("to/deep/.env")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o640);
        assert_eq!(place.copy("missing"), Ok(Vec::new()));
        assert_eq!(place.copy("deep/.env/x"), Ok(Vec::new()));
        fs::write(place.at("to/own"), "base").unwrap();
        fs::write(place.at("from/own"), "checkout").unwrap();
        assert_eq!(place.copy("own"), Ok(Vec::new()));
        assert_eq!(fs::read_to_string(place.at("to/own")).unwrap(), "base");
    }

    #[test]
    fn hostile_sources_are_refused() {
        let place = Directories::new();
        fs::write(place.at("out/secret"), "hush").unwrap();
        symlink(place.at("out/secret"), place.at("from/link")).unwrap();
        symlink(place.at("out"), place.at("from/linked")).unwrap();
        fs::create_dir(place.at("from/.git")).unwrap();
        fs::write(place.at("from/.git/config"), "").unwrap();
        let fifo =
            std::ffi::CString::new(place.at("from/fifo").into_os_string().into_encoded_bytes());
        rustix::fs::mknodat(
            rustix::fs::CWD,
            fifo.unwrap().as_c_str(),
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        // Sparse: it costs no room here, and would be 2 GiB in the worktree.
        File::create(place.at("from/huge")).unwrap().set_len(2 << 30).unwrap();
        for (name, why) in [
            ("../out/secret", "outside the repository"),
            ("deep/../../out/secret", "outside the repository"),
            ("/etc/passwd", "outside the repository"),
            ("link", "is a link"),
            ("linked/secret", "is a link, or lies behind one"),
            ("deep", "is a directory"),
            ("fifo", "no regular file"),
            ("huge", "64 MiB"),
            (".git/config", "git directory"),
            (".GIT/config", "git directory"),
        ] {
            let refused = place.copy(name).unwrap_err();
            assert!(refused.contains(why) && refused.contains(name), "{name}: {refused}");
        }
        assert_eq!(fs::read_dir(place.at("to")).unwrap().count(), 0);
    }

    #[test]
    fn links_of_base_lead_nowhere() {
        let place = Directories::new();
        fs::write(place.at("from/deep/a"), "new").unwrap();
        fs::write(place.at("from/b"), "new").unwrap();
        symlink(place.at("out"), place.at("to/deep")).unwrap();
        symlink(place.at("out/b"), place.at("to/b")).unwrap();
        assert!(place.copy("deep/a").unwrap_err().contains("link"));
        assert_eq!(place.copy("b"), Ok(Vec::new()));
        assert_eq!(fs::read_dir(place.at("out")).unwrap().count(), 0);
    }

    #[test]
    fn excludes_match_names_literally() {
        let names = [".env", "a/b c", "x*[1]?\\"].map(str::to_owned);
        assert_eq!(excludes(&names), "/.env\n/a/b\\ c\n/x\\*\\[1]\\?\\\\\n");
    }
}
