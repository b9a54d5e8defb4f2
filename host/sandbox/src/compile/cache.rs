//! Cache of compiled components on disk, and of components that are not to be compiled again.
//! Entries are authenticated (HMAC); an invalid entry is treated as a miss.

use crate::compile::{cache_key::CacheKey, compiled_code::CompiledCode};
use rustix::fs::{Mode, OFlags, Timespec, Timestamps, UTIME_NOW};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// Size limit of all files; beyond it the least recently used are removed.
const MAX_BYTES: u64 = 512 << 20;

/// Size after an eviction, so that not every new file causes one.
const TARGET_BYTES: u64 = MAX_BYTES / 4 * 3;

/// Age, relative to the most recent use of any entry, after which an entry belongs to an old
/// version.
const MAX_IDLE: Duration = Duration::from_secs(60 * 24 * 60 * 60);

/// Directory of wasmtime's own cache, used by earlier versions of the hub.
const OF_EARLIER_HUBS: &str = "modules";

/// Settings of the cache.
#[derive(Clone, Debug)]
pub struct CacheSettings {
    /// Directory of the cache, without other files.
    pub dir: PathBuf,
    /// Authentication key, stored outside of the directory.
    pub key: CacheKey,
}

/// Cache directory.
#[derive(Debug)]
pub(crate) struct CodeCache {
    settings: CacheSettings,
}

/// Result of a lookup.
#[derive(Debug)]
pub(crate) enum CacheLookup<T> {
    /// A valid entry.
    Found(T),
    /// No entry.
    Nothing,
    /// An entry that fails authentication or cannot be read.
    Forged,
}

/// Limits of one compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompileLimits {
    /// CPU time.
    pub cpu: Duration,
    /// Bytes of memory.
    pub memory: u64,
}

/// Record of a failed compilation, which is not repeated under the same limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FailedCompilation {
    /// Limits of the attempt.
    pub(crate) limits: CompileLimits,
    /// Reason of the failure.
    pub(crate) why: String,
}

impl FailedCompilation {
    /// True if the current limits exceed those of the attempt.
    pub(crate) fn is_outgrown(&self, limits: CompileLimits) -> bool {
        limits.cpu > self.limits.cpu || limits.memory > self.limits.memory
    }
}

impl CodeCache {
    /// Opens the cache, creates its directory for this user only if necessary, and evicts old
    /// entries.
    pub(crate) fn open(settings: CacheSettings) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&settings.dir)?;
        let cache = Self { settings };
        let old = cache.settings.dir.join(OF_EARLIER_HUBS);
        if old.is_dir() && !old.is_symlink() {
            fs::remove_dir_all(old)?;
        }
        cache.sweep()?;
        Ok(cache)
    }

    /// Cached code.
    pub(crate) fn code(&self, name: &str) -> CacheLookup<CompiledCode> {
        let name = format!("{name}.cwasm");
        self.find(&name, |key, file| CompiledCode::marked(key, &name, file))
    }

    /// Stores compiled code.
    pub(crate) fn keep_code(&self, name: &str, code: &CompiledCode) -> io::Result<()> {
        self.store(&format!("{name}.cwasm"), code.bytes())
    }

    /// Cached refusal.
    pub(crate) fn refusal(&self, name: &str) -> CacheLookup<FailedCompilation> {
        let name = format!("{name}.refused");
        self.find(&name, |key, file| serde_json::from_slice(key.unmark(&name, &file)?).ok())
    }

    /// Stores a refusal.
    pub(crate) fn keep_refusal(&self, name: &str, refusal: &FailedCompilation) -> io::Result<()> {
        let text = serde_json::to_vec(refusal).map_err(io::Error::other)?;
        self.store(&format!("{name}.refused"), &text)
    }

    fn find<T>(
        &self,
        name: &str,
        read: impl FnOnce(&CacheKey, Vec<u8>) -> Option<T>,
    ) -> CacheLookup<T> {
        let path = self.settings.dir.join(name);
        let file = match read_file(&path) {
            Ok(file) => file,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return CacheLookup::Nothing,
            Err(why) => {
                tracing::warn!(file = %path.display(), %why, "cannot read a compiled component from the cache");
                return CacheLookup::Forged;
            }
        };
        match read(&self.settings.key, file) {
            Some(found) => CacheLookup::Found(found),
            None => {
                tracing::warn!(
                    file = %path.display(),
                    "cached component is not authentic, compiling it again: the file or the hub's `cache-key` was changed"
                );
                CacheLookup::Forged
            }
        }
    }

    /// Writes a temporary file and renames it, so that no partial file is visible.
    fn store(&self, name: &str, data: &[u8]) -> io::Result<()> {
        let dir = &self.settings.dir;
        let draft = dir.join(format!(".{name}.{}", std::process::id()));
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::open(&draft, flags, Mode::RUSR | Mode::WUSR)?);
        let written = file
            .write_all(self.settings.key.mark(name, data).as_ref())
            .and_then(|()| file.write_all(data))
            .and_then(|()| fs::rename(&draft, dir.join(name)));
        if written.is_err() {
            // A leftover is removed by the next eviction.
            let _ = fs::remove_file(&draft);
        }
        written
    }

    /// Evicts entries that are too many or too old (least recently used first).
    fn sweep(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.settings.dir)? {
            let entry = entry?;
            // The file vanished meanwhile.
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_file() && is_ours(&entry.path()) {
                files.push((meta.modified()?, meta.len(), entry.path()));
            }
        }
        for path in surplus(files) {
            match fs::remove_file(&path) {
                Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }
}

fn is_ours(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // Temporary files have a suffix after that.
    name.contains(".cwasm") || name.contains(".refused")
}

/// Files to evict, from their last use, size and path.
fn surplus(mut files: Vec<(SystemTime, u64, PathBuf)>) -> Vec<PathBuf> {
    files.sort_by(|a, b| b.cmp(a));
    let Some(latest) = files.first().map(|(used, ..)| *used) else { return Vec::new() };
    let all: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
    let limit = if all > MAX_BYTES { TARGET_BYTES } else { MAX_BYTES };
    let mut total = 0;
    let goes = files.into_iter().filter(|(used, bytes, _)| {
        total += bytes;
        let idle = latest.duration_since(*used).unwrap_or_default();
        total > limit || idle > MAX_IDLE
    });
    goes.map(|(.., path)| path).collect()
}

/// Reads a file and updates its last use.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let meta = file.metadata()?;
    if !meta.is_file() || meta.len() > MAX_BYTES {
        return Err(io::Error::other("it is no plain file of a sensible size"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or_default());
    (&mut file).take(MAX_BYTES).read_to_end(&mut bytes)?;
    let now = || Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    // If that fails, the file is evicted earlier, which does no harm.
    let _ =
        rustix::fs::futimens(&file, &Timestamps { last_access: now(), last_modification: now() });
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn cache(dir: &Path, secret: u8) -> CodeCache {
        let key = CacheKey::new(&[secret; 32]);
        CodeCache::open(CacheSettings { dir: dir.to_owned(), key }).unwrap()
    }

    fn is_found(cache: &CodeCache, name: &str) -> bool {
        matches!(cache.code(name), CacheLookup::Found(_))
    }

    /// Write access to the directory does not allow an attacker to run code.
    #[test]
    fn only_authentic_entries_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let ours = cache(dir.path(), 1);
        assert!(matches!(ours.code("a"), CacheLookup::Nothing));
        for name in ["a", "b"] {
            ours.keep_code(name, &CompiledCode::fresh(name.repeat(1_000).into_bytes())).unwrap();
        }
        let (a, b) = (dir.path().join("a.cwasm"), dir.path().join("b.cwasm"));
        assert!(is_found(&ours, "a") && is_found(&ours, "b"));
        let CacheLookup::Found(code) = ours.code("a") else { panic!("it was found") };
        assert_eq!(code.bytes(), "a".repeat(1_000).as_bytes());

        let kept = fs::read(&a).unwrap();
        fs::copy(&b, &a).unwrap();
        assert!(matches!(ours.code("a"), CacheLookup::Forged), "another component's");
        fs::write(&a, &kept[..kept.len() - 1]).unwrap();
        assert!(matches!(ours.code("a"), CacheLookup::Forged), "truncated");
        fs::write(&a, "").unwrap();
        assert!(matches!(ours.code("a"), CacheLookup::Forged), "empty");
        fs::remove_file(&a).unwrap();
        fs::write(dir.path().join("real"), &kept).unwrap();
        symlink(dir.path().join("real"), &a).unwrap();
        assert!(matches!(ours.code("a"), CacheLookup::Forged), "a link");
        fs::remove_file(&a).unwrap();
        fs::create_dir(&a).unwrap();
        assert!(matches!(ours.code("a"), CacheLookup::Forged), "no file");

        // After a key loss everything is compiled and stored again.
        let anew = cache(dir.path(), 2);
        assert!(matches!(anew.code("b"), CacheLookup::Forged));
        anew.keep_code("b", &CompiledCode::fresh(b"b".to_vec())).unwrap();
        assert!(is_found(&anew, "b"));
    }

    #[test]
    fn refusal_holds_until_limits_grow() {
        let dir = tempfile::tempdir().unwrap();
        let ours = cache(dir.path(), 1);
        let limits = CompileLimits { cpu: Duration::from_secs(60), memory: 1 << 30 };
        let refusal = FailedCompilation { limits, why: "it took long".to_owned() };
        ours.keep_refusal("a", &refusal).unwrap();
        let CacheLookup::Found(found) = cache(dir.path(), 1).refusal("a") else {
            panic!("it was found")
        };
        assert_eq!(found, refusal);
        assert!(!found.is_outgrown(limits));
        assert!(found.is_outgrown(CompileLimits { memory: 2 << 30, ..limits }));
        let less = CompileLimits { cpu: Duration::from_secs(59), ..limits };
        assert!(!found.is_outgrown(less));
        // A copied entry does not refuse another component.
        fs::copy(dir.path().join("a.refused"), dir.path().join("b.refused")).unwrap();
        assert!(matches!(ours.refusal("b"), CacheLookup::Forged));
    }

    #[test]
    fn large_and_old_entries_are_evicted() {
        let at = |days: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(days * 24 * 60 * 60);
        let file = |days, mb: u64, name: &str| (at(days), mb << 20, PathBuf::from(name));
        assert!(surplus(Vec::new()).is_empty());
        let goes = |files: &[(SystemTime, u64, PathBuf)]| -> Vec<String> {
            surplus(files.to_vec()).iter().map(|path| path.display().to_string()).collect()
        };
        assert!(goes(&[file(1, 256, "a"), file(2, 256, "b")]).is_empty());
        assert_eq!(goes(&[file(1, 256, "a"), file(2, 257, "b")]), ["a"]);
        assert_eq!(goes(&[file(1, 1, "a"), file(62, 1, "b"), file(61, 1, "c")]), ["a"]);
    }
}
