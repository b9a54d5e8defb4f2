//! Methods for people, their API keys, and automation that passes to them.

use crate::{
    hub::{
        method::{HubMethod, PLAIN},
        params, people_params, trigger_params,
    },
    model::operation::{
        CallerInfo, InvitationReport, KeyInfo, NewKeyReport, Operation, PeopleList, PersonInfo,
        RemovalReport, ScheduleInfo, TriggerInfo,
    },
};
use schemars::{JsonSchema as _, SchemaGenerator};

/// `hub/people/list`.
pub(super) const LIST: HubMethod = HubMethod {
    name: "hub/people/list",
    summary: "List the people whom the operator let in, with their keys",
    example: "{}",
    params: params::NoParams::json_schema,
    result: SchemaGenerator::subschema_for::<PeopleList>,
    read: people_params::list,
    admin: true,
    ..PLAIN
};

/// `hub/people/add`.
pub(super) const ADD: HubMethod = HubMethod {
    name: "hub/people/add",
    summary: "Add a person to the tenant of the request; only for programs of the hub's own user, \
              over the unix socket",
    example: r#"{"name": "ada", "role": "member"}"#,
    params: people_params::PersonParams::json_schema,
    result: SchemaGenerator::subschema_for::<PersonInfo>,
    read: people_params::add,
    admin: true,
    ..PLAIN
};

/// `hub/people/role`.
pub(super) const ROLE: HubMethod = HubMethod {
    name: "hub/people/role",
    summary: "Give a person another role; only for programs of the hub's own user, over the unix \
              socket",
    example: r#"{"name": "ada", "role": "viewer"}"#,
    params: people_params::PersonParams::json_schema,
    result: SchemaGenerator::subschema_for::<PersonInfo>,
    read: people_params::role,
    admin: true,
    ..PLAIN
};

/// `hub/people/remove`.
pub(super) const REMOVE: HubMethod = HubMethod {
    name: "hub/people/remove",
    summary: "Remove a person, end the person's keys and streams, and stop the schedules and \
              triggers or pass them on",
    example: r#"{"name": "ada"}"#,
    params: people_params::RemovePersonParams::json_schema,
    result: SchemaGenerator::subschema_for::<RemovalReport>,
    read: people_params::remove,
    admin: true,
    ..PLAIN
};

/// `hub/people/invite`.
pub(super) const INVITE: HubMethod = HubMethod {
    name: "hub/people/invite",
    summary: "Make an invitation, with which a person gets a key once; only for programs of the \
              hub's own user, over the unix socket",
    example: r#"{"name": "ada"}"#,
    params: people_params::InviteParams::json_schema,
    result: SchemaGenerator::subschema_for::<InvitationReport>,
    read: people_params::invite,
    admin: true,
    ..PLAIN
};

/// `hub/people/me`.
pub(super) const ME: HubMethod = HubMethod {
    name: "hub/people/me",
    summary: "Describe the caller: the person, the role, and the scopes of the key",
    example: "{}",
    params: params::NoParams::json_schema,
    result: SchemaGenerator::subschema_for::<CallerInfo>,
    read: people_params::me,
    ..PLAIN
};

/// `hub/keys/new`.
pub(super) const NEW_KEY: HubMethod = HubMethod {
    name: "hub/keys/new",
    summary: "Make an API key for a person, and show it once; only for programs of the hub's own \
              user, over the unix socket",
    example: r#"{"person": "ada", "label": "laptop", "scopes": ["read", "send:echo"]}"#,
    params: people_params::NewKeyParams::json_schema,
    result: SchemaGenerator::subschema_for::<NewKeyReport>,
    read: people_params::new_key,
    admin: true,
    ..PLAIN
};

/// `hub/keys/revoke`.
pub(super) const REVOKE_KEY: HubMethod = HubMethod {
    name: "hub/keys/revoke",
    summary: "Revoke an API key, and end its streams",
    example: r#"{"id": "0a1b2c3d4e5f"}"#,
    params: people_params::RevokeKeyParams::json_schema,
    result: SchemaGenerator::subschema_for::<KeyInfo>,
    read: people_params::revoke_key,
    admin: true,
    ..PLAIN
};

/// `hub/schedules/accept`.
pub(super) const ACCEPT_SCHEDULE: HubMethod = HubMethod {
    name: "hub/schedules/accept",
    summary: "Accept a schedule that passed from a removed person: it then runs as its new \
              owner; for that person and the operator",
    example: r#"{"name": "nightly"}"#,
    admin: true,
    params: params::OneSchedule::json_schema,
    result: SchemaGenerator::subschema_for::<ScheduleInfo>,
    read: |value| Ok(Operation::AcceptSchedule { name: params::one_schedule(value)? }),
    ..PLAIN
};

/// `hub/triggers/accept`.
pub(super) const ACCEPT_TRIGGER: HubMethod = HubMethod {
    name: "hub/triggers/accept",
    summary: "Accept a trigger that passed from a removed person: it then runs as its new \
              owner; for that person and the operator",
    example: r#"{"name": "review"}"#,
    admin: true,
    params: trigger_params::OneTrigger::json_schema,
    result: SchemaGenerator::subschema_for::<TriggerInfo>,
    read: trigger_params::accept,
    ..PLAIN
};
