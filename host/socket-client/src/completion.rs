//! Shell completions from the running hub: its agents, tasks and conversations.

#[cfg(not(feature = "hub"))]
use crate::remote_hub;
use crate::{hub_client::Client, runtime::block_on};
use a2a_hub_config::Settings;
use a2a_hub_protocol::member;
use a2a_hub_terminal::{
    render::{list, parts_text, text},
    width::{cut, fold},
};
use anyhow::Context as _;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// Environment variable that a shell's completion script sets to request completions.
pub const VARIABLE: &str = "_A2A_HUB_COMPLETE";

/// Timeout of a request to the hub, short because the user has pressed a key and waits.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(500);

/// Maximum number of candidates; the newest come first.
const OFFERED: usize = 50;

/// Width, in columns, at which a candidate's description is cut.
const COLUMNS: usize = 60;

/// Completes ids of the hub's agents.
pub fn agents() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let mut agents = call_hub("hub/agents/list", json!({}));
        if let Some(all) = agents.as_array_mut() {
            all.retain(is_listed);
        }
        offered(&agents, |agent| text(&agent["card"]["description"]).to_owned())
    })
}

/// True if lists for people name the agent.
pub fn is_listed(agent: &Value) -> bool {
    agent["unlisted"] != true
}

/// Completes ids of the hub's plug-ins, also of those that have not joined.
pub fn plugins() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let mut plugins = call_hub("hub/plugins/list", json!({}));
        for plugin in plugins.as_array_mut().into_iter().flatten() {
            let id = member::take(plugin, "agentId");
            member::set(plugin, "id", id);
        }
        offered(&plugins, |plugin| text(&plugin["description"]).to_owned())
    })
}

/// Completes ids of the newest tasks.
pub fn tasks() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let params = json!({ "limit": OFFERED, "historyLength": 1 });
        candidates("hub/tasks/list", params, |task| {
            let request =
                list(&task["history"]).first().map(|message| parts_text(&message["parts"]));
            let state = text(&task["status"]["state"]);
            format!("{} {state}: {}", text(&task["agentId"]), request.unwrap_or_default())
        })
    })
}

/// Completes ids of tasks that wait for an answer.
pub fn waiting_tasks() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let params = json!({ "limit": OFFERED, "state": "input-required", "historyLength": 0 });
        candidates("hub/tasks/list", params, |task| {
            let question = parts_text(&task["status"]["message"]["parts"]);
            format!("{} asks: {question}", text(&task["agentId"]))
        })
    })
}

/// Completes names of flows, also of those that are held back.
pub fn flows() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let mut flows = call_hub("hub/agents/list", json!({}));
        if let Some(all) = flows.as_array_mut() {
            all.retain(|agent| is_listed(agent) && text(&agent["source"]).starts_with("flows/"));
            let status = call_hub("hub/status", json!({}));
            let known = |name: &str, all: &[Value]| all.iter().any(|flow| flow["id"] == name);
            for refused in list(&status["rejectedPlugins"]) {
                let file = text(&refused["file"]).strip_prefix("flows/");
                let name = file.and_then(|file| file.strip_suffix(".flow.toml"));
                if let Some(name) = name.filter(|name| !known(name, all)) {
                    let about = text(&refused["error"]);
                    all.push(json!({ "id": name, "card": { "description": about } }));
                }
            }
        }
        offered(&flows, |flow| text(&flow["card"]["description"]).to_owned())
    })
}

/// Completes ids of the newest conversations.
pub fn contexts() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        candidates("hub/contexts/list", json!({ "limit": OFFERED }), |context| {
            list(&context["agents"]).iter().map(text).collect::<Vec<_>>().join(", ")
        })
    })
}

/// Lists candidates with their descriptions.
fn candidates(
    method: &str,
    params: Value,
    about: impl Fn(&Value) -> String,
) -> Vec<CompletionCandidate> {
    offered(&call_hub(method, params), about)
}

/// Calls the hub; returns JSON null if it does not answer, because an error would not be visible.
fn call_hub(method: &str, params: Value) -> Value {
    let request = async {
        let settings = Settings::load(None, &[])?;
        #[cfg(feature = "hub")]
        let mut client = Client::to(&settings.config.socket.path).await?;
        #[cfg(not(feature = "hub"))]
        let mut client = Client::to_joined(remote_hub::find_only(settings.config.data_dir()?)?)?;
        client.call(method, params).await
    };
    let listed =
        block_on(async { timeout(REQUEST_TIMEOUT, request).await.context("ask the hub")? });
    listed.unwrap_or_default()
}

/// Keeps candidates that are safe in a shell: clients choose ids, and an id could be a command.
fn offered(listed: &Value, about: impl Fn(&Value) -> String) -> Vec<CompletionCandidate> {
    let is_plain = |id: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !id.is_empty() && !id.starts_with('-') && id.chars().all(plain)
    };
    let plain = list(listed).iter().filter(|one| is_plain(text(&one["id"])));
    let candidates = plain.enumerate().map(|(at, one)| {
        let about = cut(&fold(&about(one)), COLUMNS);
        // Keeps the order of the list: the newest first.
        CompletionCandidate::new(text(&one["id"])).help(Some(about.into())).display_order(Some(at))
    });
    candidates.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_exclude_unsafe_ids_and_escapes() {
        let listed = json!([{ "id": "echo" }, { "id": "x; rm -rf ~" }, { "id": "-rf" }, { "id": "c\x1b[2J" }, { "id": "t-1" }]);
        let offered = offered(&listed, |_| "says\n\x1b[2J it".to_owned());
        let shown: Vec<_> = offered
            .iter()
            .map(|one| format!("{:?} {}", one.get_value(), one.get_help().unwrap()))
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        "echo" says \u{1b}[2J it
        "t-1" says \u{1b}[2J it
        "#);
    }
}
