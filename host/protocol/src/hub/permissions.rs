//! Methods for standing permissions.

use crate::{
    hub::{
        method::{HubMethod, PLAIN},
        params, permission_params,
    },
    model::operation::{ListedRule, RemovedRules, RuleList, RuleTest, SuggestedRules},
};
use schemars::{JsonSchema as _, SchemaGenerator};

/// `hub/permissions/list`.
pub(super) const LIST: HubMethod = HubMethod {
    name: "hub/permissions/list",
    summary: "List the standing permissions, with the number of requests that each has answered",
    example: "{}",
    params: params::NoParams::json_schema,
    result: SchemaGenerator::subschema_for::<RuleList>,
    read: permission_params::list,
    ..PLAIN
};

/// `hub/permissions/add`.
pub(super) const ADD: HubMethod = HubMethod {
    name: "hub/permissions/add",
    summary: "Add a standing permission: a rule that allows or denies requests of programs",
    example: r#"{"effect": "allow", "agentId": "claude-code", "directory": "/src/shop", "pattern": {"kind": "run", "words": ["git", "status"], "directory": ""}}"#,
    params: permission_params::AddRuleParams::json_schema,
    result: SchemaGenerator::subschema_for::<ListedRule>,
    read: permission_params::add,
    admin: true,
    ..PLAIN
};

/// `hub/permissions/remove`.
pub(super) const REMOVE: HubMethod = HubMethod {
    name: "hub/permissions/remove",
    summary: "Remove standing permissions",
    example: r#"{"ids": ["k3w9"]}"#,
    params: permission_params::RemoveParams::json_schema,
    result: SchemaGenerator::subschema_for::<RemovedRules>,
    read: permission_params::remove,
    admin: true,
    ..PLAIN
};

/// `hub/permissions/test`.
pub(super) const TEST: HubMethod = HubMethod {
    name: "hub/permissions/test",
    summary: "Test which standing permissions would answer a request of an agent's program",
    example: r#"{"agentId": "claude-code", "directory": "/src/shop", "run": "cargo test --lib"}"#,
    params: permission_params::TestParams::json_schema,
    result: SchemaGenerator::subschema_for::<RuleTest>,
    read: permission_params::test,
    admin: true,
    ..PLAIN
};

/// `hub/permissions/suggest`.
pub(super) const SUGGEST: HubMethod = HubMethod {
    name: "hub/permissions/suggest",
    summary: "Suggest standing permissions by the latest answers of people, tested on these answers",
    example: "{}",
    params: params::NoParams::json_schema,
    result: SchemaGenerator::subschema_for::<SuggestedRules>,
    read: permission_params::suggest,
    ..PLAIN
};
