//! Compiled components, kept between tests: they are the same for every hub, and take seconds to make. Each hub finds them in
//! its cache, under its key, and what it compiles itself is there for the next one.

use anyhow::Result;
use std::{
    fs::{self, DirBuilder, File},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

/// What no test has used for so long is of components that are no more.
const MAX_IDLE: Duration = Duration::from_secs(3 * 24 * 60 * 60);

/// The key of all test hubs is 32 bytes of this, in hex.
const SECRET: &str = "5a";

/// The files that one hub borrows; what it has compiled beside is kept when this is dropped.
#[derive(Debug)]
pub struct Compiled {
    shared: PathBuf,
    cache: PathBuf,
}

impl Compiled {
    /// Has the hub of this executable find what was compiled before, in this data directory.
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
                // Another test may have been quicker.
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
        // What is not kept is compiled again.
        let _ = self.keep();
    }
}

fn is_code(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.ends_with(".cwasm") && !name.starts_with('.')
}

/// One file under two names; the one that is there already is as good.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(why)
            if matches!(why.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) =>
        {
            Ok(())
        }
        // Another file system has files of its own.
        Err(why) if why.kind() == io::ErrorKind::CrossesDevices => fs::copy(from, to).map(drop),
        linked => linked,
    }
}
