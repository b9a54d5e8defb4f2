//! `record`: how often agents were right, and which choice of a vote was right.

use a2a_hub_protocol::id::MessageId;
use a2a_hub_socket_client::{
    completion, exit::Exit, failure::CommandError, global::Global, hub_client::Client, ids,
    runtime::block_on,
};
use a2a_hub_terminal::{
    render::{list, text},
    table::{Cell, Table},
    text::Text,
    width::fold,
};
use anyhow::bail;
use clap::Subcommand;
use serde_json::{Value, json};

/// Agent that runs the decisions of `decide`.
const RUNNER: &str = "flow";

/// Reason of a refusal: the agent is no flow.
const NO_FLOW: &str = "FLOW_NOT_FOUND";

/// Reason of a refusal: the choice or the vote is not known.
const NOT_CONFIRMED: &str = "CHOICE_NOT_CONFIRMED";

/// Commands of `record`.
#[derive(Debug, Subcommand)]
pub(crate) enum RecordCommand {
    /// Print how often each agent was right, and its weight in votes by record
    Show {
        /// Flow whose record is printed [default: that of `decide vote --rule record`]
        flow: Option<String>,
    },
    /// Say which choice of a vote by record was right
    Confirm {
        /// Id of the vote's task, or a unique beginning or end of it
        #[arg(add = completion::tasks())]
        task: String,
        /// Choice that was right
        choice: String,
        /// Step of the flow, if it has several votes
        #[arg(long)]
        step: Option<String>,
    },
}

/// Carries out a command.
///
/// # Errors
///
/// The hub cannot be reached, the task or flow is unknown, or the choice was not to choose.
pub(crate) fn record(global: &Global, command: &RecordCommand) -> anyhow::Result<Exit> {
    block_on(async {
        let mut client = Client::connect(global).await?;
        match command {
            RecordCommand::Show { flow } => show(global, &mut client, flow.as_deref()).await,
            RecordCommand::Confirm { task, choice, step } => {
                let id = ids::resolve(&mut client, ids::Kind::Task, task).await?;
                let tree = client.call("hub/tasks/tree", json!({ "id": id })).await?;
                let agent = text(&tree["tasks"][0]["agentId"]);
                let action = format!("confirm a choice of the task {id}");
                require_flow(&mut client, agent, &action).await?;
                let confirm = json!({ "task": id, "choice": choice, "step": step });
                let task = request(&mut client, agent, &json!({ "confirm": confirm })).await?;
                let output = output(&task, NOT_CONFIRMED)?;
                global.show(&output, || Ok(format!("{}\n", fold(message_text(&task))).into()))?;
                Ok(Exit::Done)
            }
        }
    })
}

async fn show(global: &Global, client: &mut Client, flow: Option<&str>) -> anyhow::Result<Exit> {
    let flow = flow.unwrap_or(RUNNER);
    require_flow(client, flow, "print a record").await?;
    let task = request(client, flow, &json!({ "record": true })).await?;
    let output = output(&task, NO_FLOW)?;
    let rows = list(&output["record"]);
    let columns = global.console().columns();
    global.show(&output, || Ok(record_text(rows, columns)))?;
    Ok(Exit::Done)
}

/// Renders a record as a table.
fn record_text(rows: &[Value], columns: Option<usize>) -> Text {
    if rows.is_empty() {
        let none = "No result counts yet. Once you know which choice of a vote by record was right:\n\
                    a2a-hub record confirm TASK CHOICE\n";
        return none.into();
    }
    let mut table = Table::new(["AGENT", "RIGHT", "WRONG", "WEIGHT"]);
    for row in rows {
        let weight = row["weight"].as_f64().unwrap_or(1.0);
        table.row([
            Cell::from(fold(text(&row["agent"]))),
            row["right"].to_string().into(),
            row["wrong"].to_string().into(),
            format!("{weight:.2}").into(),
        ]);
    }
    table.text(columns)
}

/// Refuses agents that are no flows: they would take the request for work.
async fn require_flow(client: &mut Client, agent: &str, action: &str) -> anyhow::Result<()> {
    let agents = client.call("hub/agents/list", json!({})).await?;
    let source = list(&agents).iter().find(|it| it["id"] == agent).map(|it| text(&it["source"]));
    if agent == RUNNER || source.is_some_and(|source| source.starts_with("flows/")) {
        return Ok(());
    }
    let why = format!(
        "{action}: `{agent}` is no flow of this hub; `a2a-hub decide vote --rule record` and flows whose vote has \
         `rule = \"record\"` have one"
    );
    bail!(CommandError::new(NO_FLOW, why).mended_by("a2a-hub flow list"));
}

/// Asks a flow's agent; returns its task, which has ended.
async fn request(client: &mut Client, agent: &str, data: &Value) -> anyhow::Result<Value> {
    let message = json!({ "kind": "message", "messageId": MessageId::fresh(), "role": "user",
        "parts": [{ "kind": "data", "data": data }], "metadata": { "targetAgent": agent } });
    client.call("message/send", json!({ "message": message })).await
}

fn message_text(task: &Value) -> &str {
    text(&task["status"]["message"]["parts"][0]["text"])
}

/// Output of a completed request; else an error with the words of the flow's agent.
fn output(task: &Value, reason: &'static str) -> anyhow::Result<Value> {
    if task["status"]["state"] != "completed" {
        bail!(CommandError::new(reason, fold(message_text(task))));
    }
    let artifact =
        list(&task["artifacts"]).iter().find(|artifact| artifact["artifactId"] == "output");
    Ok(artifact.map(|artifact| artifact["parts"][0]["data"].clone()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_is_shown_as_table() {
        let rows =
            [json!({ "agent": "ann\n\u{1b}[2J", "right": 3, "wrong": 1, "weight": 4.0 / 3.0 })];
        let table = record_text(&rows, None);
        assert_eq!(table.words(), "ann \\u{1b}[2J\t3\t1\t1.33\n");
        assert!(record_text(&[], None).words().starts_with("No result counts yet."));
    }

    #[test]
    fn refusals_are_errors() {
        let task = |state: &str| {
            let message = json!({ "parts": [{ "text": "Confirm a choice: no" }] });
            json!({ "status": { "state": state, "message": message },
                "artifacts": [{ "artifactId": "output", "parts": [{ "data": { "choice": "yes" } }] }] })
        };
        assert_eq!(output(&task("completed"), NO_FLOW).ok(), Some(json!({ "choice": "yes" })));
        let refused = output(&task("rejected"), NOT_CONFIRMED).map_err(|why| why.to_string());
        assert_eq!(refused, Err("Confirm a choice: no".to_owned()));
    }
}
