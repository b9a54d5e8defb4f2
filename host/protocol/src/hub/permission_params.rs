//! Parameters of the methods for standing permissions.

use crate::{
    model::{
        error::A2aError,
        id::AgentId,
        operation::{NewRule, Operation, RuleRequest, TestedAction, TestedRequest},
        permission::{ActionPattern, DEFAULT_RULE_MS, RuleEffect},
    },
    v03::params::read,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Largest number of rules that are removed by one request.
const MAX_REMOVED: usize = 1_000;

/// Longest text of a rule for the agent, in bytes.
const MAX_RULE_TEXT: usize = 4_096;

/// Longest tested text, in bytes.
const MAX_TESTED: usize = 65_536;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AddRuleParams {
    /// `allow`, `deny`, or `never`: denied over every other rule and every answer.
    effect: RuleEffect,
    /// Actions that it matches.
    pattern: ActionPattern,
    /// Text for the agent, of a rule that denies: `use pnpm`.
    text: Option<String>,
    /// Agent whose program asks; any if absent, which only a rule that denies may have.
    agent_id: Option<String>,
    /// Agents above the asking one, from the root on; none by default.
    #[serde(default)]
    through: Vec<String>,
    /// Program that asks, such as `claude`; that of the agent by default.
    vendor: Option<String>,
    /// True if it also matches requests to act outside of the program's own sandbox.
    #[serde(default)]
    outside_sandbox: bool,
    /// A directory of the repository that it is about.
    directory: Option<String>,
    /// Principal that began the tree of tasks; the one that adds the rule by default.
    principal: Option<String>,
    /// True to accept that the program may run code from the repository, which the agent may
    /// change, outside of the hub's sandbox.
    #[serde(default)]
    trusts_workspace: bool,
    /// Time until it expires, in milliseconds; 0 for never. A rule that allows expires after 30 days
    /// by default, and others never.
    for_ms: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct RemoveParams {
    /// Ids of the rules, at most 1,000.
    ids: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TestParams {
    /// Agent whose program would ask.
    agent_id: String,
    /// Agents above it, from the root on; none by default.
    #[serde(default)]
    through: Vec<String>,
    /// Program that would ask; that of the agent by default.
    vendor: Option<String>,
    /// Directory of the task.
    directory: String,
    /// Text for a shell, such as `cargo test --lib`. Exactly one of `run`, `edit` and `read`.
    run: Option<String>,
    /// File to change.
    edit: Option<String>,
    /// File to read.
    read: Option<String>,
}

fn agent_id(at: &str, id: &str) -> Result<AgentId, A2aError> {
    AgentId::parse(id).map_err(|why| A2aError::invalid(at, why.to_string()))
}

fn ancestor_agents(ids: &[String]) -> Result<Vec<AgentId>, A2aError> {
    let numbered = ids.iter().enumerate();
    numbered.map(|(at, id)| agent_id(&format!("through[{at}]"), id)).collect()
}

/// Reads `hub/permissions/list`, which has no parameters.
pub(crate) fn list(_: Value) -> Result<Operation, A2aError> {
    Ok(Operation::Permission(RuleRequest::List))
}

/// Reads `hub/permissions/suggest`, which has no parameters.
pub(crate) fn suggest(_: Value) -> Result<Operation, A2aError> {
    Ok(Operation::Permission(RuleRequest::Suggest))
}

/// Reads the parameters of `hub/permissions/add`.
pub(crate) fn add(params: Value) -> Result<Operation, A2aError> {
    let params: AddRuleParams = read(params)?;
    if params.text.as_ref().is_some_and(|text| text.is_empty() || text.len() > MAX_RULE_TEXT) {
        let why = format!("must be a text of 1 to {MAX_RULE_TEXT} bytes");
        return Err(A2aError::invalid("text", why));
    }
    let agent = params.agent_id.map(|id| agent_id("agentId", &id)).transpose()?;
    let rule = NewRule {
        effect: params.effect,
        pattern: params.pattern,
        text: params.text,
        agent,
        through: ancestor_agents(&params.through)?,
        vendor: params.vendor,
        outside_sandbox: params.outside_sandbox,
        directory: params.directory,
        principal: params.principal,
        trusts_workspace: params.trusts_workspace,
        for_ms: params.for_ms.unwrap_or(match params.effect {
            RuleEffect::Allow => DEFAULT_RULE_MS,
            RuleEffect::Deny | RuleEffect::Never => 0,
        }),
    };
    Ok(Operation::Permission(RuleRequest::Add(Box::new(rule))))
}

/// Reads the parameters of `hub/permissions/remove`.
pub(crate) fn remove(params: Value) -> Result<Operation, A2aError> {
    let RemoveParams { ids } = read(params)?;
    if ids.is_empty() || ids.len() > MAX_REMOVED || ids.iter().any(String::is_empty) {
        let why = format!("must name between 1 and {MAX_REMOVED} rules by their ids");
        return Err(A2aError::invalid("ids", why));
    }
    Ok(Operation::Permission(RuleRequest::Remove { ids }))
}

/// Reads the parameters of `hub/permissions/test`.
pub(crate) fn test(params: Value) -> Result<Operation, A2aError> {
    let params: TestParams = read(params)?;
    let action = match (params.run, params.edit, params.read) {
        (Some(script), None, None) => TestedAction::Run(script),
        (None, Some(path), None) => TestedAction::Edit(path),
        (None, None, Some(path)) => TestedAction::Read(path),
        (Some(_), ..) | (None, ..) => {
            let why = "must be the only one of `run`, `edit` and `read`, and one is required";
            return Err(A2aError::invalid("run", why));
        }
    };
    let (TestedAction::Run(text) | TestedAction::Edit(text) | TestedAction::Read(text)) = &action;
    if text.len() > MAX_TESTED {
        let why = format!("must have at most {MAX_TESTED} bytes");
        return Err(A2aError::invalid("run", why));
    }
    let request = TestedRequest {
        agent: agent_id("agentId", &params.agent_id)?,
        through: ancestor_agents(&params.through)?,
        vendor: params.vendor,
        directory: params.directory,
        action,
    };
    Ok(Operation::Permission(RuleRequest::Test(Box::new(request))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn test_names_exactly_one_action() {
        let of = |more: Value| {
            let mut params = json!({ "agentId": "codex", "directory": "/w" });
            let more = more.as_object().cloned().unwrap_or_default();
            params.as_object_mut().unwrap().extend(more);
            test(params)
        };
        for (params, is_valid) in [
            (json!({ "run": "ls" }), true),
            (json!({ "edit": "a" }), true),
            (json!({ "read": "a" }), true),
            (json!({}), false),
            (json!({ "run": "ls", "edit": "a" }), false),
            (json!({ "run": "x".repeat(MAX_TESTED + 1) }), false),
            (json!({ "run": "ls", "through": [""] }), false),
        ] {
            assert_eq!(of(params.clone()).is_ok(), is_valid, "{params}");
        }
    }

    #[test]
    fn only_allowing_rule_expires_by_default() {
        let of = |more: Value| {
            let pattern = json!({ "kind": "run", "words": ["ls"], "directory": "" });
            let mut params = json!({ "effect": "allow", "pattern": pattern });
            let more = more.as_object().cloned().unwrap_or_default();
            params.as_object_mut().unwrap().extend(more);
            add(params)
        };
        let Ok(Operation::Permission(RuleRequest::Add(rule))) = of(json!({})) else { panic!() };
        assert_eq!((rule.for_ms, rule.effect), (DEFAULT_RULE_MS, RuleEffect::Allow));
        let never = of(json!({ "effect": "never" })).unwrap();
        assert!(matches!(never, Operation::Permission(RuleRequest::Add(rule)) if rule.for_ms == 0));
        for wrong in [
            json!({ "effect": "maybe" }),
            json!({ "text": "" }),
            json!({ "pattern": { "kind": "fly" } }),
            json!({ "agentId": "a b" }),
        ] {
            assert!(of(wrong.clone()).is_err(), "{wrong}");
        }
        assert!(remove(json!({ "ids": [] })).is_err() && remove(json!({ "ids": [""] })).is_err());
    }
}
