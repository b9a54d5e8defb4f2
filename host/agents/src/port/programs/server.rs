//! MCP servers that the operator configures for an agent: started with the confinement of the
//! agent's other programs and a separate environment.

use super::{InstanceFiles, Placing, Programs, not_started};
use a2a_hub_config::{self as config, McpServer};
use a2a_hub_process::{Child, Launch, run_blocking};
use a2a_hub_runtime::Failure;
use std::sync::Arc;

impl Programs {
    /// Starts the server on behalf of `owner`, with its temporary files in `files`.
    pub(crate) async fn serve(
        self: &Arc<Self>,
        server: &McpServer,
        owner: String,
        files: Arc<InstanceFiles>,
    ) -> Result<Child, Failure> {
        if let Some(confining) = &self.confining {
            confining.is_possible(&self.supervisor).await?;
        }
        let (programs, server) = (Arc::clone(self), server.clone());
        let prepared = run_blocking(move || programs.prepare_server(server, owner, &files)).await;
        let launch = prepared.map_err(|why| Failure::Internal(why.to_string()))??;
        self.supervisor.spawn(launch).await.map_err(|why| not_started(&why))
    }

    /// Prepares the server's launch. Blocks on the disk.
    fn prepare_server(
        &self,
        server: McpServer,
        owner: String,
        files: &InstanceFiles,
    ) -> Result<Launch, Failure> {
        let McpServer { command, args, env: pass, url: _ } = server;
        let named = || Failure::Unavailable("start a server: no `command` says which".to_owned());
        let program = command.ok_or_else(named)?;
        if self.is_guarded {
            config::guard(&program).map_err(|why| Failure::Denied(why.to_string()))?;
        }
        let temporary = self.make_places(files)?;
        let env = self.environment(&pass, &[], None, &program, &temporary);
        let cwd = self.directory(None, None)?;
        self.placed(Placing {
            owner,
            program,
            keeps: None,
            login: None,
            hub_access: None,
            args,
            env,
            cwd,
            additional: &[],
            worktree: None,
            temporary,
        })
    }
}
