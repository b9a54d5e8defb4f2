//! Completions that know the hub: its agents, tasks and conversations, asked for while somebody types.

use super::{
    block_on,
    client::Client,
    fit::{cut, fold},
    render::{list, parts_text, text},
};
use a2a_hub_config::Settings;
use anyhow::Context as _;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// What asks the program for completions, as the script for a shell sets it.
pub(super) const VARIABLE: &str = "_A2A_HUB_COMPLETE";

/// How long the hub may take: somebody pressed a key and waits.
const PATIENCE: Duration = Duration::from_millis(500);

/// How many of the newest are offered.
const OFFERED: usize = 50;

/// What is said of a candidate is cut after so many columns.
const COLUMNS: usize = 60;

/// The agents of the hub.
pub(super) fn agents() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        candidates("hub/agents/list", json!({}), |agent| {
            text(&agent["card"]["description"]).to_owned()
        })
    })
}

/// The newest tasks.
pub(super) fn tasks() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let params = json!({ "limit": OFFERED, "historyLength": 1 });
        candidates("hub/tasks/list", params, |task| {
            let said = list(&task["history"]).first().map(|said| parts_text(&said["parts"]));
            let state = text(&task["status"]["state"]);
            format!("{} {state}: {}", text(&task["agentId"]), said.unwrap_or_default())
        })
    })
}

/// The newest conversations.
pub(super) fn contexts() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        candidates("hub/contexts/list", json!({ "limit": OFFERED }), |context| {
            list(&context["agents"]).iter().map(text).collect::<Vec<_>>().join(", ")
        })
    })
}

/// What the hub lists, each with what is said of it; nothing if the hub does not answer, for nobody would see why.
fn candidates(
    method: &str,
    params: Value,
    about: impl Fn(&Value) -> String,
) -> Vec<CompletionCandidate> {
    let asked = async {
        let settings = Settings::load(None, &[])?;
        let mut client = Client::to(&settings.config.socket.path).await?;
        client.call(method, params).await
    };
    let listed = block_on(async { timeout(PATIENCE, asked).await.context("ask the hub")? });
    offered(&listed.unwrap_or_default(), about)
}

/// Those that a shell may be handed: a name that a client chose could be a command.
fn offered(listed: &Value, about: impl Fn(&Value) -> String) -> Vec<CompletionCandidate> {
    let is_plain = |id: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !id.is_empty() && !id.starts_with('-') && id.chars().all(plain)
    };
    let plain = list(listed).iter().filter(|one| is_plain(text(&one["id"])));
    let candidates = plain.enumerate().map(|(at, one)| {
        let about = cut(&fold(&about(one)), COLUMNS);
        // In the order of the list: the newest first.
        CompletionCandidate::new(text(&one["id"])).help(Some(about.into())).display_order(Some(at))
    });
    candidates.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_offered_and_nothing_that_a_terminal_obeys() {
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
