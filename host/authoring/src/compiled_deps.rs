//! Compiled dependencies that the first build of a Rust project begins with: the standard library
//! and crates of registries, as an earlier project compiled them, in the user's cache directory.
//! cargo's fingerprints decide whether a project can use them. Code of projects is never stored.

use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// Maximum number of stored copies, of about 100 MB each: the latest compilers.
const MAX_COPIES: usize = 3;

/// Length of the hash in cargo's names of units, such as `serde-2f115d8bb6845af2`.
const HASH: usize = 16;

/// Folders of cargo with one entry for each unit.
const UNITS: [&str; 2] = [".fingerprint", "build"];

/// Stored copy for one compiler and one profile.
#[derive(Clone, Debug)]
pub(crate) struct CompiledDeps {
    /// Folder of all copies.
    all: PathBuf,
    /// Folder of this copy.
    dir: PathBuf,
}

impl CompiledDeps {
    /// Returns the copy for this key, below the user's cache directory.
    pub(crate) fn new(cache: &Path, key: &str) -> Self {
        let all = cache.join("rust");
        Self { dir: all.join(key), all }
    }

    /// Copies the dependencies to a new target directory; false if none are stored.
    pub(crate) fn restore(&self, target: &Path) -> io::Result<bool> {
        if !self.dir.is_dir() {
            return Ok(false);
        }
        let parent = target.parent().unwrap_or(target);
        fs::create_dir_all(parent)?;
        copied(&self.dir, target, parent, |_, _| true)?;
        // Marks the copy as used.
        File::open(&self.dir)?.set_modified(now(target)?)?;
        Ok(true)
    }

    /// Stores the dependencies of a target directory, except `local` packages: those whose source
    /// is a folder.
    pub(crate) fn store(&self, target: &Path, local: &BTreeSet<String>) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.all)?;
        let hashes = hashes(target, local)?;
        let is_included = |path: &Path, is_dir| {
            let mut names = path.iter().map(|name| name.to_str().unwrap_or_default()).rev();
            let (name, folder) = (names.next().unwrap_or_default(), names.next());
            match folder {
                Some(folder) if UNITS.contains(&folder) => is_among(name, &hashes),
                Some("deps") => is_among(name.split('.').next().unwrap_or_default(), &hashes),
                _ => is_dir || names.any(|ancestor| UNITS.contains(&ancestor)),
            }
        };
        copied(target, &self.dir, &self.all, is_included)?;
        self.evict()
    }

    /// Removes all copies but the latest.
    fn evict(&self) -> io::Result<()> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.all)? {
            let entry = entry?;
            all.push((entry.metadata()?.modified()?, entry.path()));
        }
        all.sort_by(|a, b| b.cmp(a));
        all.iter().skip(MAX_COPIES).try_for_each(|(_, dir)| fs::remove_dir_all(dir))
    }
}

/// Reads the names of the packages whose source is a folder from a lock file.
pub(crate) fn local_packages(lock: &str) -> Option<BTreeSet<String>> {
    let lock: toml::Table = lock.parse().ok()?;
    let packages = lock.get("package")?.as_array()?.iter().filter_map(toml::Value::as_table);
    let local = packages.filter(|package| !package.contains_key("source"));
    local.map(|package| Some(package.get("name")?.as_str()?.to_owned())).collect()
}

/// Time of the file system on which `target` is.
fn now(target: &Path) -> io::Result<SystemTime> {
    fs::metadata(target)?.modified()
}

/// Splits the name of a unit into package and hash.
fn unit(name: &str) -> Option<(&str, &str)> {
    let (package, hash) = name.rsplit_once('-')?;
    let is_hash = hash.len() == HASH && hash.bytes().all(|it| it.is_ascii_hexdigit());
    is_hash.then_some((package, hash))
}

fn is_among(name: &str, hashes: &BTreeSet<String>) -> bool {
    unit(name).is_some_and(|(_, hash)| hashes.contains(hash))
}

/// Collects the hashes of all units below a target directory, except those of `local` packages.
fn hashes(target: &Path, local: &BTreeSet<String>) -> io::Result<BTreeSet<String>> {
    let mut hashes = BTreeSet::new();
    for profile in profiles(target)? {
        let Ok(units) = fs::read_dir(profile.join(".fingerprint")) else { continue };
        for entry in units {
            let name = entry?.file_name();
            let unit =
                name.to_str().and_then(unit).filter(|(package, _)| !local.contains(*package));
            hashes.extend(unit.map(|(_, hash)| hash.to_owned()));
        }
    }
    Ok(hashes)
}

/// Lists the folders that may be of a profile: `release` and `TARGET/release`.
fn profiles(target: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(target)? {
        let path = entry?.path();
        found.extend([path.join("release"), path]);
    }
    Ok(found)
}

/// Copies a folder with the files' times, which cargo compares. The copy appears as a whole, by a
/// rename within `staging_dir`; an existing one is left alone. `is_included` gets each path below
/// `from`, and whether it is a folder.
fn copied(
    from: &Path,
    to: &Path,
    staging_dir: &Path,
    is_included: impl Fn(&Path, bool) -> bool,
) -> io::Result<()> {
    let chance = getrandom::u32().map_err(io::Error::other)?;
    let draft = staging_dir.join(format!(".a2a-hub-copy-{chance:08x}"));
    DirBuilder::new().mode(0o700).create(&draft)?;
    let moved = copy(from, Path::new(""), &draft, &is_included).and_then(|()| {
        renameat_with(CWD, &draft, CWD, to, RenameFlags::NOREPLACE).map_err(io::Error::from)
    });
    if moved.is_err() {
        // Leftovers do no harm.
        let _ = fs::remove_dir_all(&draft);
    }
    moved
}

/// Copies the folder `relative` of `from` to the same folder of `to`.
fn copy(
    from: &Path,
    relative: &Path,
    to: &Path,
    is_included: &impl Fn(&Path, bool) -> bool,
) -> io::Result<()> {
    for entry in fs::read_dir(from.join(relative))? {
        let entry = entry?;
        let relative = relative.join(entry.file_name());
        let (kind, to_file) = (entry.file_type()?, to.join(&relative));
        if kind.is_symlink() || !is_included(&relative, kind.is_dir()) {
            continue;
        }
        if kind.is_dir() {
            fs::create_dir(to_file)?;
            copy(from, &relative, to, is_included)?;
        } else {
            fs::copy(entry.path(), &to_file)?;
            File::open(&to_file)?.set_modified(entry.metadata()?.modified()?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn files(dir: &Path) -> Vec<String> {
        let mut found = Vec::new();
        let mut pending = vec![dir.to_owned()];
        while let Some(next) = pending.pop() {
            for entry in fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => pending.push(path),
                    false => {
                        found.push(path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned());
                    }
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn stored_dependencies_contain_no_project() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("build/components");
        let (std, own) = ("std-0123456789abcdef", "notes-fedcba9876543210");
        for file in [
            ".rustc_info.json".to_owned(),
            format!("release/build/{std}/out/x"),
            format!("wasm32-wasip2/release/.fingerprint/{std}/invoked.timestamp"),
            format!("wasm32-wasip2/release/.fingerprint/{own}/invoked.timestamp"),
            format!("wasm32-wasip2/release/deps/lib{std}.rlib"),
            format!("wasm32-wasip2/release/deps/{own}.d"),
            "wasm32-wasip2/release/deps/notes.wasm".to_owned(),
            "wasm32-wasip2/release/notes.wasm".to_owned(),
        ] {
            let path = target.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let library = format!("wasm32-wasip2/release/deps/lib{std}.rlib");
        File::open(target.join(&library)).unwrap().set_modified(long_ago).unwrap();

        let deps = CompiledDeps::new(&dir.path().join("cache"), "key");
        let new = dir.path().join("new/components");
        assert!(!deps.restore(&new).unwrap(), "nothing is stored yet");
        let lock = "[[package]]\nname = 'notes'\n[[package]]\nname = 'serde'\nsource = 'registry'";
        deps.store(&target, &local_packages(lock).unwrap()).unwrap();
        assert!(deps.restore(&new).unwrap());
        let there = [
            format!("release/build/{std}/out/x"),
            format!("wasm32-wasip2/release/.fingerprint/{std}/invoked.timestamp"),
            library.clone(),
        ];
        assert_eq!(files(&new), there);
        assert_eq!(fs::metadata(new.join(library)).unwrap().modified().unwrap(), long_ago);
        assert!(deps.restore(&new).is_err(), "an existing target directory is left alone");
        assert_eq!(fs::read_dir(dir.path().join("new")).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn oldest_copies_are_evicted() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("components");
        fs::create_dir(&target).unwrap();
        let names = ["a", "b", "c", "d"];
        for (seconds, name) in (1..).zip(names) {
            let deps = CompiledDeps::new(dir.path(), name);
            deps.store(&target, &BTreeSet::new()).unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            File::open(&deps.dir).unwrap().set_modified(time).unwrap();
        }
        CompiledDeps::new(dir.path(), "d").evict().unwrap();
        let mut left =
            fs::read_dir(dir.path().join("rust")).unwrap().map(|it| it.unwrap().file_name());
        assert!(left.all(|name| name != "a"));
    }
}
