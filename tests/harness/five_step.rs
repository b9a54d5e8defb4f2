//! Client of the five-step protocol.

use crate::{Endpoints, ModelServer, WebServer, stage::loopback};
use anyhow::{Context as _, Result, bail, ensure};
use futures::{StreamExt as _, stream::BoxStream};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// Timeout of a test for the next update.
const WITHIN: Duration = Duration::from_secs(60);

/// Server-sent event.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// Position among the events of its task.
    pub id: String,
    /// Type of the event.
    pub event: String,
    /// Data of the event.
    pub data: Value,
}

impl Update {
    /// State of the task.
    pub fn status(&self) -> &str {
        self.data["status"].as_str().unwrap_or_default()
    }

    /// Text that explains the state.
    pub fn message(&self) -> &str {
        self.data["status_message"].as_str().unwrap_or_default()
    }
}

/// Subscription to the updates of a task.
pub struct Updates {
    bytes: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    open: String,
}

impl Updates {
    /// Subscribes at `url` to the updates after the one with this id.
    pub async fn listen(url: &str, after: Option<&str>) -> Result<Self> {
        let request = reqwest::Client::new().get(url);
        let request = match after {
            Some(id) => request.header("Last-Event-ID", id),
            None => request,
        };
        let response = request.send().await?;
        ensure!(response.status() == 200, "{}: {}", response.status(), response.text().await?);
        ensure!(response.headers()["content-type"] == "text/event-stream");
        Ok(Self { bytes: response.bytes_stream().boxed(), open: String::new() })
    }

    /// Next update; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Update>> {
        loop {
            if let Some((event, rest)) = self.open.split_once("\n\n") {
                let member = |name: &str| {
                    event.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default()
                };
                let data = serde_json::from_str(member("data: ")).context(event.to_owned())?;
                let (id, name) = (member("id: ").to_owned(), member("event: ").to_owned());
                self.open = rest.to_owned();
                return Ok(Some(Update { id, event: name, data }));
            }
            match timeout(WITHIN, self.bytes.next()).await? {
                Some(Ok(more)) => self.open.push_str(std::str::from_utf8(&more)?),
                Some(Err(_)) | None => return Ok(None),
            }
        }
    }

    /// All remaining updates.
    pub async fn rest(mut self) -> Result<Vec<Update>> {
        let mut all = Vec::new();
        while let Some(update) = self.next().await? {
            all.push(update);
        }
        Ok(all)
    }

    /// Reads up to the first update with this state.
    pub async fn until(&mut self, status: &str) -> Result<Update> {
        while let Some(update) = self.next().await? {
            if update.status() == status {
                return Ok(update);
            }
        }
        bail!("the updates ended before it was {status}")
    }
}

/// Submits a task at `path` of a hub; returns the status and the response.
pub async fn post(hub: &Endpoints, path: &str, task: &Value) -> Result<(u16, Value)> {
    let url = format!("http://{}{path}", hub.http());
    let answer = reqwest::Client::new().post(url).json(task).send().await?;
    Ok((answer.status().as_u16(), answer.json().await?))
}

/// Submitted task.
#[expect(clippy::needless_pass_by_value, reason = "most inputs are made where they are said")]
pub fn task(skill: &str, input: Value) -> Value {
    json!({ "requesting_agent_id": "requesting-agent-01", "skill_id": skill, "input_data": input })
}

/// Has the test guest perform a behaviour; returns the URL of the updates.
pub async fn behave(hub: &Endpoints, text: &str) -> Result<String> {
    let (status, submitted) =
        post(hub, "/submit_task", &task("behave", json!({ "text": text }))).await?;
    ensure!(status == 202, "{status}: {submitted}");
    Ok(submitted["updates_url"].as_str().context("no updates_url")?.to_owned())
}

/// Configuration of a hub with the specialist `browse-extract`, a source and a model.
pub fn specialist_config(source: &WebServer, model: Option<&ModelServer>) -> Result<String> {
    let mut config =
        format!("[agents.browse-extract.settings]\nsources = '{}'\n", source.url("/{query}/page"));
    let mut ports = vec![source.port()];
    if let Some(model) = model {
        config += &format!("model_url = '{}/v1/chat/completions'\nmodel = 'tiny'\n", model.url());
        ports.push(model.url().rsplit(':').next().context("no port")?.parse()?);
    }
    Ok(config + &loopback("browse-extract", 0).replace("[0]", &format!("{ports:?}")))
}
