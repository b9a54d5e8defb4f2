//! Working directory of a task, for an agent that reads its files directly.

use super::{live_grant::LiveGrant, programs::Programs};
use a2a_hub_core::grant::workspace::WorkspaceAccess;
use a2a_hub_process::run_blocking;
use a2a_hub_runtime::{
    Failure,
    port::workspace::{OpenWorkspace, WorkspacePort},
};
use std::{
    collections::BTreeSet,
    fs::{self, File},
    io,
    os::{fd::AsRawFd as _, unix::fs::OpenOptionsExt as _},
    path::Path,
    sync::Arc,
};

/// Workspaces of one agent: those that its programs may start in.
pub(crate) struct Workspace {
    programs: Arc<Programs>,
    access: WorkspaceAccess,
    /// Directories of the grant at the start of the agent's tasks.
    directories: Option<BTreeSet<String>>,
    /// Current grant.
    live: LiveGrant,
}

impl Workspace {
    /// Workspaces of an agent; none if its grant has none.
    pub(crate) fn of(programs: &Arc<Programs>, live: &LiveGrant) -> Option<Arc<Self>> {
        let now = live.now();
        let (access, directories) = (now.workspace?, now.directories.clone());
        let (programs, live) = (Arc::clone(programs), live.clone());
        Some(Arc::new(Self { programs, access, directories, live }))
    }
}

#[async_trait::async_trait]
impl WorkspacePort for Workspace {
    async fn open(&self, asked: Option<&str>) -> Result<OpenWorkspace, Failure> {
        let (programs, asked) = (Arc::clone(&self.programs), asked.map(str::to_owned));
        let opened = run_blocking(move || open(&programs, asked.as_deref())).await;
        let directory = opened.map_err(|why| Failure::Internal(why.to_string()))??;
        Ok(OpenWorkspace { directory, access: self.access })
    }

    fn access(&self) -> Option<WorkspaceAccess> {
        let now = self.live.now();
        let is_left = |left: &BTreeSet<String>| {
            self.directories.as_ref().is_some_and(|then| then.is_subset(left))
        };
        // Any revoked directory ends access, because it may be the open one.
        now.workspace.filter(|_| now.directories.as_ref().is_none_or(is_left))
    }
}

/// Opens a directory and validates the opened one: a link may have replaced it meanwhile (TOCTOU).
fn open(programs: &Programs, asked: Option<&str>) -> Result<File, Failure> {
    let path = programs.directory(asked)?;
    let unopened = |path: &Path, why: io::Error| {
        Failure::Unavailable(format!("open the workspace {}: {why}", path.display()))
    };
    if asked.is_none() {
        programs.make_home().map_err(|why| unopened(&path, why))?;
    }
    let flags = rustix::fs::OFlags::DIRECTORY.bits().cast_signed();
    let directory = File::options().read(true).custom_flags(flags).open(&path);
    let directory = directory.map_err(|why| unopened(&path, why))?;
    if asked.is_some() {
        let opened = fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd()));
        let opened = opened.map_err(|why| unopened(&path, why))?;
        let moved = || Failure::Denied(format!("work in {}: it moved meanwhile", path.display()));
        if programs.directory(Some(opened.to_str().ok_or_else(moved)?))? != opened {
            return Err(moved());
        }
    }
    Ok(directory)
}
