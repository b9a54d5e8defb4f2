//! Arguments that name one task: of the hub, or of a remote agent.

use super::completion;
use crate::{
    Global, block_on,
    client::{
        hub_client::Client,
        ids::{self, Kind},
        remote::{self, Elsewhere, REMOTE},
        remote_task,
    },
};
use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};

#[derive(Clone, Debug, Args)]
pub(crate) struct One {
    /// Id of the task, or a unique prefix of it
    #[arg(add = completion::tasks())]
    pub(crate) id: String,
    /// URL of the remote agent that owns the task [default: the hub]
    #[arg(long, value_name = "URL", help_heading = REMOTE)]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) elsewhere: Elsewhere,
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

    /// Calls `method` for the task; returns the task's whole id and the result.
    pub(crate) fn ask(&self, global: &Global, method: &str) -> anyhow::Result<(String, Value)> {
        match self.url()? {
            Some(url) => {
                let stop = method == "tasks/cancel";
                Ok((self.id.clone(), remote_task::task(url, &self.elsewhere, &self.id, stop)?))
            }
            None => block_on(async {
                let mut client = Client::connect(global).await?;
                let id = ids::resolve(&mut client, Kind::Task, &self.id).await?;
                let task = client.call(method, json!({ "id": id })).await?;
                Ok((id, task))
            }),
        }
    }
}
