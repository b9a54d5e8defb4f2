//! Compiled components, shared between tests: they are the same for every hub and take seconds to
//! compile. Each hub finds them in its cache under its key; newly compiled ones are kept for the
//! next hub.

use anyhow::Result;
use std::{
    fs::{self, DirBuilder, File},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

/// Time after which an unused entry is deleted: its component does not exist any more.
const MAX_IDLE: Duration = Duration::from_secs(3 * 24 * 60 * 60);

/// Byte of the key of all test hubs, in hex, repeated 32 times.
const SECRET: &str = "5a";

/// Cached files of one hub; dropping this keeps the newly compiled ones.
#[derive(Debug)]
pub struct Compiled {
    shared: PathBuf,
    cache: PathBuf,
}

impl Compiled {
    /// Links the cached components of this executable into the data directory.
    pub fn lend(binary: &Path, data_dir: &Path) -> Result<Self> {
        let shared = binary.with_file_name("compiled-components");
        fs::create_dir_all(&shared)?;
        let cache = data_dir.join("cache");
        DirBuilder::new().recursive(true).mode(0o700).create(&cache)?;
        let mut file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(data_dir.join("cache-key"))?;
        file.write_all(SECRET.repeat(32).as_bytes())?;
        for file in fs::read_dir(&shared)? {
            let file = file?;
            let Ok(meta) = file.metadata() else { continue };
            if meta.modified()?.elapsed().is_ok_and(|idle| idle > MAX_IDLE) {
                // Another test may delete it first.
                let _ = fs::remove_file(file.path());
            } else if is_code(&file.path()) {
                link(&file.path(), &cache.join(file.file_name()))?;
            }
        }
        Ok(Self { shared, cache })
    }

    fn keep(&self) -> io::Result<()> {
        for file in fs::read_dir(&self.cache)? {
            let file = file?;
            if is_code(&file.path()) {
                link(&file.path(), &self.shared.join(file.file_name()))?;
            }
        }
        Ok(())
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        // A component that is not kept is compiled again.
        let _ = self.keep();
    }
}

fn is_code(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.ends_with(".cwasm") && !name.starts_with('.')
}

/// Links a file under a second name; an existing one is equivalent.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(why)
            if matches!(why.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) =>
        {
            Ok(())
        }
        // Another file system needs a copy.
        Err(why) if why.kind() == io::ErrorKind::CrossesDevices => fs::copy(from, to).map(drop),
        linked => linked,
    }
}
