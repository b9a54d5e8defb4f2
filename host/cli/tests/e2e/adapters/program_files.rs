//! Files of a vendor's program in a test.

use a2a_hub_tests::processes_with_marker;
use anyhow::Result;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;

/// Temporary directory that is removed once the hub's programs have exited, which would write into
/// it again: they exit shortly after their hub.
pub(super) struct ProgramFiles {
    dir: TempDir,
    hub_data: Option<PathBuf>,
}

impl ProgramFiles {
    pub(super) fn new() -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("cli-").tempdir()?;
        Ok(Self { dir, hub_data: None })
    }

    /// Assigns the files to the programs of the hub with this data directory.
    pub(super) fn belong_to(&mut self, hub_data: &Path) {
        self.hub_data = Some(hub_data.to_owned());
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Maximum number of polls for the programs of a hub, and the pause between two.
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
