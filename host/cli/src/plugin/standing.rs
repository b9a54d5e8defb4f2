//! What a change of the grants came to: the hub is told to look at once, and says how the plug-in stands now.

use crate::{
    Global, block_on,
    client::Client,
    failure::{CommandError, HUB_NOT_RUNNING},
    render::{list, text},
};
use a2a_hub_protocol::id::AgentId;
use anyhow::bail;
use serde_json::{Value, json};

/// Has a running hub follow the grants, and returns how `id` stands now; none if no hub runs.
///
/// # Errors
///
/// If the hub cannot follow them: then what was changed does not count yet.
pub(super) fn follow(global: &Global, id: &AgentId) -> anyhow::Result<Option<Value>> {
    block_on(followed(global, id))
}

/// The same for somebody who waits for other things, too.
pub(super) async fn followed(global: &Global, id: &AgentId) -> anyhow::Result<Option<Value>> {
    let mut client = match Client::connect(global).await {
        Ok(client) => client,
        Err(why) if CommandError::of(&why).is(HUB_NOT_RUNNING) => return Ok(None),
        Err(why) => return Err(why),
    };
    let refreshed = client.call("hub/plugins/refresh", json!({})).await?;
    if let Some(trouble) = refreshed["trouble"].as_str() {
        bail!("the hub does not follow the grants: {trouble}");
    }
    let all = client.call("hub/plugins/list", json!({})).await?;
    let one = list(&all).iter().find(|plugin| text(&plugin["agentId"]) == id.as_str());
    Ok(Some(one.cloned().unwrap_or(Value::Null)))
}

/// The same in a line for people.
pub(super) fn line(standing: Option<&Value>) -> String {
    let Some(plugin) = standing else {
        return "no hub runs: it counts from its next start".to_owned();
    };
    if plugin.is_null() {
        return "the hub knows it no more".to_owned();
    }
    if let Some(why) = plugin["error"].as_str() {
        return format!("it is not loaded: {why}");
    }
    if plugin["joined"] == false {
        return "it joins once it is compiled, which `a2a-hub agents` tells".to_owned();
    }
    let lacks: Vec<_> =
        list(&plugin["notGranted"]).iter().map(|lack| text(&lack["what"])).collect();
    match lacks.as_slice() {
        [] => "it counts now, and the plug-in holds all that it asks for".to_owned(),
        lacks => format!("it counts now; the plug-in may not {}", lacks.join(", ")),
    }
}

/// Whether the hub refused to load it.
pub(super) fn is_refused(standing: Option<&Value>) -> bool {
    standing.is_some_and(|plugin| plugin["error"].is_string() && plugin["joined"] != true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_plugin_stands_is_told_in_a_line() {
        assert!(line(None).contains("next start"));
        assert_eq!(line(Some(&Value::Null)), "the hub knows it no more");
        assert_eq!(line(Some(&json!({ "error": "it traps" }))), "it is not loaded: it traps");
        let compiles = json!({ "joined": false, "notGranted": [] });
        assert!(line(Some(&compiles)).contains("once it is compiled"));
        let lacks = json!({ "notGranted": [{ "what": "run `git`" }, { "what": "remember" }] });
        assert_eq!(line(Some(&lacks)), "it counts now; the plug-in may not run `git`, remember");
        assert!(line(Some(&json!({ "notGranted": [] }))).ends_with("holds all that it asks for"));
    }
}
