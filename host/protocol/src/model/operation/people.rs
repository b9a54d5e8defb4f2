//! People whom the operator let in: the requests for them and their API keys, and the answers.

use crate::model::id::TaskId;
use schemars::JsonSchema;
use serde::Serialize;

/// Request for the people of a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeopleRequest {
    /// Lists the people with their keys.
    List,
    /// Adds a person to the tenant of the request.
    Add {
        /// Name of the person.
        name: String,
        /// Role in the tenant.
        role: String,
    },
    /// Gives a person another role.
    SetRole {
        /// Name of the person.
        name: String,
        /// New role in the tenant.
        role: String,
    },
    /// Removes a person: all keys end at once.
    Remove {
        /// Name of the person.
        name: String,
        /// Person to whom the schedules and triggers pass, once that person accepts them; without
        /// one, they stop.
        to: Option<String>,
        /// True for a description of what a removal would end, which changes nothing.
        dry_run: bool,
    },
    /// Makes a key for a person.
    NewKey(KeyTerms),
    /// Revokes a key.
    RevokeKey {
        /// Id of the key.
        id: String,
    },
    /// Makes an invitation, with which a person gets a key once.
    Invite(KeyTerms),
    /// Exchanges an invitation for a key. No method of JSON-RPC sends this.
    Join {
        /// The invitation: a secret.
        invitation: String,
        /// Label of the key, such as the name of the machine.
        label: String,
    },
    /// Describes the calling person and key.
    Me,
}

/// Terms of a new key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyTerms {
    /// Name of the person.
    pub person: String,
    /// Label of the key; an invitation has none.
    pub label: String,
    /// Scopes that narrow the role; empty for none.
    pub scopes: Vec<String>,
    /// Time until the key or the invitation expires, in milliseconds; 0 for never.
    pub for_ms: u64,
}

impl PeopleRequest {
    /// Name of the operation, for metrics.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::List => "list_people",
            Self::Add { .. } => "add_person",
            Self::SetRole { .. } => "set_role",
            Self::Remove { .. } => "remove_person",
            Self::NewKey(_) => "new_key",
            Self::RevokeKey { .. } => "revoke_key",
            Self::Invite(_) => "invite_person",
            Self::Join { .. } => "join",
            Self::Me => "describe_caller",
        }
    }
}

/// Answer to a [`PeopleRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum PeopleReport {
    /// People.
    List(PeopleList),
    /// Person that was added or changed.
    Person(PersonInfo),
    /// Person that was removed, or would be.
    Removed(RemovalReport),
    /// Key that was made, with its secret.
    NewKey(NewKeyReport),
    /// Key that was revoked.
    Revoked(KeyInfo),
    /// Invitation that was made.
    Invitation(InvitationReport),
    /// The calling person.
    Me(CallerInfo),
}

/// People of a hub: the answer to `hub/people/list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PeopleList {
    /// The people, by their names.
    pub people: Vec<PersonInfo>,
}

/// A person whom the operator let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersonInfo {
    /// Name.
    pub name: String,
    /// Tenant; absent for the default tenant.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// Role in the tenant: `owner`, `member` or `viewer`.
    pub role: String,
    /// Time at which the operator added the person: RFC 3339 in UTC.
    pub added_at: String,
    /// Keys, the oldest first.
    pub keys: Vec<KeyInfo>,
    /// Number of invitations that can still be used.
    pub invitations: usize,
}

/// Effects of a removal: the answer to `hub/people/remove`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemovalReport {
    /// The person, with the keys that end.
    #[serde(flatten)]
    pub person: PersonInfo,
    /// Unfinished tasks that the person began, the newest first. They go on.
    pub tasks: Vec<TaskId>,
    /// Names of the schedules and triggers that ran as the person.
    pub automation: Vec<String>,
    /// Person who may accept them; absent if they stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// True if the person was removed; false for a description of the effects.
    pub removed: bool,
}

/// An API key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyInfo {
    /// Id: a part of the key.
    pub id: String,
    /// Person of the key.
    pub person: String,
    /// Label.
    pub label: String,
    /// Scopes that narrow the role; empty for none.
    pub scopes: Vec<String>,
    /// Time of its making: RFC 3339 in UTC.
    pub created_at: String,
    /// Time from which it counts no more: RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Time of a late request, at most an hour before the latest: RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
    /// Address from which that request came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_from: Option<String>,
}

/// A new key: the answer to `hub/keys/new`, and to a person that joins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewKeyReport {
    /// The key with its secret, which is shown this once.
    pub secret: String,
    /// Name of the person.
    pub person: String,
    /// Tenant; absent for the default tenant.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// Role in the tenant.
    pub role: String,
    /// The key without its secret.
    pub key: KeyInfo,
}

/// A new invitation: the answer to `hub/people/invite`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InvitationReport {
    /// The invitation: a secret, which gives a key once.
    pub invitation: String,
    /// Name of the person.
    pub person: String,
    /// Time until which it can be used: RFC 3339 in UTC.
    pub expires_at: String,
    /// URL of the hub, as other machines reach it; absent if the hub has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The caller, as the hub knows it: the answer to `hub/people/me`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallerInfo {
    /// The caller in words, such as `ada` or `the operator`.
    pub caller: String,
    /// The person; absent for other callers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub person: Option<PersonInfo>,
    /// Id of the key that the person used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}
