//! Where a vendor's program keeps its own files in a test.

use a2a_hub_tests::processes_with_marker;
use anyhow::Result;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;

/// A folder that goes once no program of the hub's is left, which would write into it again: they end a moment after their hub.
pub(super) struct ProgramFiles {
    dir: TempDir,
    hub_data: Option<PathBuf>,
}

impl ProgramFiles {
    pub(super) fn new() -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("cli-").tempdir()?;
        Ok(Self { dir, hub_data: None })
    }

    /// They are those of programs of the hub with this data directory.
    pub(super) fn belong_to(&mut self, hub_data: &Path) {
        self.hub_data = Some(hub_data.to_owned());
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Looks at the programs of a hub, so often at most, with so much time between.
const LOOKS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(10);

impl ProgramFiles {
    #[expect(
        clippy::disallowed_methods,
        reason = "the test is over, and a drop cannot wait otherwise"
    )]
    fn wait(hub_data: &Path) {
        for _ in 0..LOOKS {
            if processes_with_marker(hub_data).is_empty() {
                break;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for ProgramFiles {
    fn drop(&mut self) {
        if let Some(data) = &self.hub_data {
            Self::wait(data);
        }
    }
}
