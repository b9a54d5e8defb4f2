//! Working directory of a task, for an agent that reads its files directly.

use super::{live_grant::LiveGrant, programs::Programs};
use a2a_hub_core::grant::workspace::WorkspaceAccess;
use a2a_hub_process::run_blocking;
use a2a_hub_runtime::{
    Failure,
    port::workspace::{OpenWorkspace, WorkspacePort},
};
use std::{collections::BTreeSet, fs::File, sync::Arc};

/// Workspaces of one agent: those that its programs may start in.
pub(crate) struct Workspace {
    programs: Arc<Programs>,
    access: WorkspaceAccess,
    /// Working directory of the task.
    work_in: Option<String>,
    /// Directories of the grant at the start of the agent's tasks.
    directories: Option<BTreeSet<String>>,
    /// Current grant.
    live: LiveGrant,
}

impl Workspace {
    /// Workspaces of an agent; none if its grant has none.
    pub(crate) fn for_task(
        programs: &Arc<Programs>,
        work_in: Option<&str>,
        live: &LiveGrant,
    ) -> Option<Arc<Self>> {
        let now = live.now();
        let (access, directories) = (now.workspace?, now.directories.clone());
        let (programs, live) = (Arc::clone(programs), live.clone());
        let work_in = work_in.map(str::to_owned);
        Some(Arc::new(Self { programs, access, work_in, directories, live }))
    }
}

#[async_trait::async_trait]
impl WorkspacePort for Workspace {
    async fn open(&self, requested: Option<&str>) -> Result<OpenWorkspace, Failure> {
        let (programs, requested) = (Arc::clone(&self.programs), requested.map(str::to_owned));
        let work_in = self.work_in.clone();
        let opened =
            run_blocking(move || open(&programs, requested.as_deref(), work_in.as_deref())).await;
        let directory = opened.map_err(|why| Failure::Internal(why.to_string()))??;
        Ok(OpenWorkspace { directory, access: self.access })
    }

    fn access(&self) -> Option<WorkspaceAccess> {
        let now = self.live.now();
        let still_granted = |remaining: &BTreeSet<String>| {
            self.directories.as_ref().is_some_and(|then| then.is_subset(remaining))
        };
        // Any revoked directory ends access, because it may be the open one.
        now.workspace.filter(|_| now.directories.as_ref().is_none_or(still_granted))
    }
}

/// Opens a directory to look into it: the one that was judged.
fn open(
    programs: &Programs,
    requested: Option<&str>,
    work_in: Option<&str>,
) -> Result<File, Failure> {
    let worktree = programs.worktree(work_in);
    let directory = programs.directory(requested, worktree.as_ref())?;
    directory.reopen().map_err(|why| {
        Failure::Unavailable(format!("open the workspace {}: {why}", directory.path().display()))
    })
}
