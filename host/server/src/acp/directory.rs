//! Comparison of directories as paths: however they are written, and through links.

use a2a_hub_process::run_blocking;
use std::{
    collections::HashMap,
    fs,
    path::{Component, Path, PathBuf},
};

/// Directories that are compared with one, each resolved once.
pub(super) struct SameDirectory {
    wanted: PathBuf,
    known: HashMap<String, bool>,
}

impl SameDirectory {
    /// Compares directories with this one.
    pub(super) async fn new(wanted: &str) -> Self {
        Self { wanted: resolved(wanted).await, known: HashMap::new() }
    }

    /// True if `directory` is the same one.
    pub(super) async fn is(&mut self, directory: &str) -> bool {
        if let Some(known) = self.known.get(directory) {
            return *known;
        }
        let is_same = resolved(directory).await == self.wanted;
        self.known.insert(directory.to_owned(), is_same);
        is_same
    }
}

async fn resolved(path: &str) -> PathBuf {
    let path = PathBuf::from(path);
    let written = path.clone();
    run_blocking(move || resolve(&path)).await.unwrap_or(written)
}

/// Path without `.`, `..` and repeated slashes, and with the links of its existing part resolved.
fn resolve(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|ancestor| {
        let real = fs::canonicalize(ancestor).ok()?;
        Some((real, path.strip_prefix(ancestor).ok()?))
    });
    let (mut resolved, rest) = existing.unwrap_or((PathBuf::new(), path));
    for part in rest.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                resolved.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => resolved.push(part),
        }
    }
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[tokio::test]
    async fn directories_are_compared_as_paths() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name).display().to_string();
        for directory in ["work/in", "other"] {
            fs::create_dir_all(path(directory)).unwrap();
        }
        symlink(path("work"), path("link")).unwrap();
        let missing = path("work/missing/deep");
        for (wanted, directory, is_same) in [
            ("work", path("work/"), true),
            ("work", path("work/."), true),
            ("work", path("work//in/.."), true),
            ("work", path("link"), true),
            ("link/in", path("work/in/"), true),
            ("work", path("other"), false),
            ("work", path("work/in"), false),
            ("work", path("link/in"), false),
            ("work/missing/deep", path("link/missing/./deep/"), true),
            ("work/missing/deep", path("work/missing/x/../deep"), true),
            ("work/missing", missing, false),
        ] {
            let mut same = SameDirectory::new(&path(wanted)).await;
            for _ in 0..2 {
                assert_eq!(same.is(&directory).await, is_same, "{wanted}, {directory}");
            }
        }
    }
}
