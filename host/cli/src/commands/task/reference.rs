//! Arguments that name one task: of the hub, or of a remote agent.

use crate::commands::completion;
use crate::{
    Global, block_on,
    client::{
        hub_client::Client,
        remote::{self, REMOTE, RemoteOptions},
        remote_task, sent,
    },
    ui::failure::CommandError,
};
use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};

#[derive(Clone, Debug, Args)]
pub(crate) struct One {
    /// Id of the task, or a unique beginning or end of it [default: the latest task in the current
    /// directory]
    #[arg(add = completion::tasks())]
    pub(crate) id: Option<String>,
    /// URL of the remote agent that owns the task [default: the hub]
    #[arg(long, value_name = "URL", help_heading = REMOTE)]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) elsewhere: RemoteOptions,
}

impl One {
    /// Returns the agent's URL if the task is remote.
    pub(crate) fn url(&self) -> anyhow::Result<Option<&str>> {
        match self.agent.as_deref() {
            Some(agent) if !remote::is_url(agent) => bail!(
                "look for the task at `{agent}`: `--agent` takes the URL of a remote agent; leave \
                 it out for a task of the hub"
            ),
            url => Ok(url),
        }
    }

    /// Returns the id of a remote task, which has no default.
    pub(crate) fn remote_id(&self) -> anyhow::Result<&str> {
        let why = "name the task: the tasks of a remote agent are not listed here";
        Ok(self.id.as_deref().ok_or_else(|| CommandError::usage(why.to_owned()))?)
    }

    /// Calls `method` for the task; returns the task's whole id and the result.
    pub(crate) fn ask(&self, global: &Global, method: &str) -> anyhow::Result<(String, Value)> {
        match self.url()? {
            Some(url) => {
                let (id, stop) = (self.remote_id()?, method == "tasks/cancel");
                Ok((id.to_owned(), remote_task::task(url, &self.elsewhere, id, stop)?))
            }
            None => block_on(async {
                let mut client = Client::connect(global).await?;
                let id = sent::resolve_or_latest(global, &mut client, self.id.as_deref()).await?;
                let task = client.call(method, json!({ "id": id })).await?;
                Ok((id, task))
            }),
        }
    }
}
