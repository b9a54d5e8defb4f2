//! Server capabilities for each caller, limited to those that the access rules allow.
//!
//! Clients use all announced capabilities, and some drop the whole server if one list is refused,
//! as Gemini CLI does for `resources/list`. An agent's program gets only tools.

use crate::mcp::model::resources::list as list_resources;
use a2a_hub_core::access_control::{Principal, needed};
use a2a_hub_protocol::operation::{EventWatch, Operation};
use rmcp::model::{
    JsonObject, PromptsCapability, ResourcesCapability, ServerCapabilities, TASKS_EXTENSION_ID,
    ToolsCapability,
};

/// True if this caller may have calls as tasks, which includes a list of its tasks.
pub(super) fn offers_tasks(caller: &Principal) -> bool {
    caller.may(needed(&list_resources(None))).is_ok()
}

/// Capabilities for this caller. Those of 2025-11-25 name tasks in another form, which `tasks`
/// writes.
pub(super) fn capabilities(caller: &Principal) -> ServerCapabilities {
    let may = |operation: &Operation| caller.may(needed(operation)).is_ok();
    let mut tools = ToolsCapability::default();
    let watches = may(&Operation::WatchHub(EventWatch::Live)).then_some(true);
    tools.list_changed = watches;
    let (mut resources, mut prompts) =
        (ResourcesCapability::default(), PromptsCapability::default());
    (resources.subscribe, prompts.list_changed) = (watches, watches);
    let mut capabilities = ServerCapabilities::default();
    capabilities.tools = Some(tools);
    if may(&list_resources(None)) {
        capabilities.resources = Some(resources);
        capabilities.prompts = Some(prompts);
        capabilities.completions = Some(JsonObject::new());
    }
    let tasks = offers_tasks(caller).then(|| (TASKS_EXTENSION_ID.to_owned(), JsonObject::new()));
    capabilities.extensions = tasks.map(|tasks| [tasks].into_iter().collect());
    capabilities
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::id::AgentId;
    use serde_json::json;

    #[test]
    fn capabilities_follow_access_of_caller() {
        let everything = json!({
            "tools": { "listChanged": true },
            "prompts": { "listChanged": true },
            "completions": {},
            "resources": { "subscribe": true },
            "extensions": { TASKS_EXTENSION_ID: {} },
        });
        let program = Principal::of_tree(AgentId::parse("gemini").unwrap(), "1");
        for (caller, announced) in [
            (Principal::Operator, everything.clone()),
            (Principal::Client("acme".to_owned()), everything),
            (program, json!({ "tools": {} })),
            (Principal::Anonymous, json!({ "tools": {} })),
        ] {
            assert_eq!(json!(capabilities(&caller)), announced, "{caller}");
        }
    }
}
