//! Parameters of the methods for people and their API keys.

use crate::{
    model::{
        error::A2aError,
        operation::{KeyTerms, Operation, PeopleRequest},
    },
    v03::params::read,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Longest name, role, label, scope or id, in bytes.
const MAX_WORD: usize = 256;

/// Longest invitation, in bytes.
const MAX_INVITATION: usize = 512;

/// Largest number of scopes.
const MAX_SCOPES: usize = 50;

/// Default time until a key expires: 90 days in milliseconds.
const KEY_MS: u64 = 90 * DAY_MS;

/// Default time until an invitation expires: a day in milliseconds.
const INVITATION_MS: u64 = DAY_MS;

/// Longest time until an invitation expires: 30 days in milliseconds.
const MAX_INVITATION_MS: u64 = 30 * DAY_MS;

/// Longest time until a key expires: ten years in milliseconds.
const MAX_KEY_MS: u64 = 3_650 * DAY_MS;

const DAY_MS: u64 = 86_400_000;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RemovePersonParams {
    /// Name of the person.
    name: String,
    /// Person of the same tenant, to whom the schedules and triggers pass once accepted; by default
    /// they stop.
    to: Option<String>,
    /// True to describe what the removal would end, and to change nothing.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct PersonParams {
    /// Name of the person: 1 to 63 lower-case letters, digits, hyphens and dots.
    name: String,
    /// Role in the tenant: `owner`, `member` or `viewer`.
    role: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InviteParams {
    /// Name of the person.
    name: String,
    /// Scopes of the key; by default all of the person's role.
    #[serde(default)]
    scopes: Vec<String>,
    /// Time until the invitation expires, in milliseconds: a day by default, at most 30 days.
    for_ms: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewKeyParams {
    /// Name of the person.
    person: String,
    /// Label of the key, such as the name of a machine.
    #[serde(default)]
    label: String,
    /// Scopes of the key, such as `read` and `send:echo`; by default all of the person's role.
    #[serde(default)]
    scopes: Vec<String>,
    /// Time until the key expires, in milliseconds: 90 days by default, 0 for never.
    for_ms: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct RevokeKeyParams {
    /// Id of the key.
    id: String,
}

/// Body of `POST /join`.
#[derive(Deserialize)]
struct JoinParams {
    invitation: String,
    #[serde(default)]
    label: String,
}

fn bounded(at: &str, text: String, max: usize) -> Result<String, A2aError> {
    if text.len() > max {
        return Err(A2aError::invalid(at, format!("must have at most {max} bytes")));
    }
    Ok(text)
}

fn scopes_of(scopes: Vec<String>) -> Result<Vec<String>, A2aError> {
    if scopes.len() > MAX_SCOPES {
        let why = format!("must have at most {MAX_SCOPES} entries");
        return Err(A2aError::invalid("scopes", why));
    }
    scopes.into_iter().map(|scope| bounded("scopes", scope, MAX_WORD)).collect()
}

fn name_and_role(params: Value) -> Result<(String, String), A2aError> {
    let PersonParams { name, role } = read(params)?;
    Ok((bounded("name", name, MAX_WORD)?, bounded("role", role, MAX_WORD)?))
}

/// Reads `hub/people/list`, which has no parameters.
pub(crate) fn list(_: Value) -> Result<Operation, A2aError> {
    Ok(Operation::People(PeopleRequest::List))
}

/// Reads `hub/people/me`, which has no parameters.
pub(crate) fn me(_: Value) -> Result<Operation, A2aError> {
    Ok(Operation::People(PeopleRequest::Me))
}

/// Reads the parameters of `hub/people/add`.
pub(crate) fn add(params: Value) -> Result<Operation, A2aError> {
    let (name, role) = name_and_role(params)?;
    Ok(Operation::People(PeopleRequest::Add { name, role }))
}

/// Reads the parameters of `hub/people/role`.
pub(crate) fn role(params: Value) -> Result<Operation, A2aError> {
    let (name, role) = name_and_role(params)?;
    Ok(Operation::People(PeopleRequest::SetRole { name, role }))
}

/// Reads the parameters of `hub/people/remove`.
pub(crate) fn remove(params: Value) -> Result<Operation, A2aError> {
    let RemovePersonParams { name, to, dry_run } = read(params)?;
    let name = bounded("name", name, MAX_WORD)?;
    let to = to.map(|to| bounded("to", to, MAX_WORD)).transpose()?;
    Ok(Operation::People(PeopleRequest::Remove { name, to, dry_run }))
}

/// Reads the parameters of `hub/people/invite`.
pub(crate) fn invite(params: Value) -> Result<Operation, A2aError> {
    let InviteParams { name, scopes, for_ms } = read(params)?;
    let for_ms = for_ms.unwrap_or(INVITATION_MS);
    if !(1..=MAX_INVITATION_MS).contains(&for_ms) {
        let why = format!("must be between 1 and {MAX_INVITATION_MS}: an invitation expires");
        return Err(A2aError::invalid("forMs", why));
    }
    Ok(Operation::People(PeopleRequest::Invite(KeyTerms {
        person: bounded("name", name, MAX_WORD)?,
        label: String::new(),
        scopes: scopes_of(scopes)?,
        for_ms,
    })))
}

/// Reads the parameters of `hub/keys/new`.
pub(crate) fn new_key(params: Value) -> Result<Operation, A2aError> {
    let NewKeyParams { person, label, scopes, for_ms } = read(params)?;
    let for_ms = for_ms.unwrap_or(KEY_MS);
    if for_ms > MAX_KEY_MS {
        let why = format!("must be at most {MAX_KEY_MS}; 0 makes a key that does not expire");
        return Err(A2aError::invalid("forMs", why));
    }
    Ok(Operation::People(PeopleRequest::NewKey(KeyTerms {
        person: bounded("person", person, MAX_WORD)?,
        label: bounded("label", label, MAX_WORD)?,
        scopes: scopes_of(scopes)?,
        for_ms,
    })))
}

/// Reads the parameters of `hub/keys/revoke`.
pub(crate) fn revoke_key(params: Value) -> Result<Operation, A2aError> {
    let RevokeKeyParams { id } = read(params)?;
    Ok(Operation::People(PeopleRequest::RevokeKey { id: bounded("id", id, MAX_WORD)? }))
}

/// Reads the body of `POST /join`: an invitation, and the label of the key.
///
/// # Errors
///
/// If the body is not of this form.
pub fn join(body: Value) -> Result<Operation, A2aError> {
    let JoinParams { invitation, label } = read(body)?;
    Ok(Operation::People(PeopleRequest::Join {
        invitation: bounded("invitation", invitation, MAX_INVITATION)?,
        label: bounded("label", label, MAX_WORD)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn terms(operation: Operation) -> KeyTerms {
        let Operation::People(PeopleRequest::NewKey(terms) | PeopleRequest::Invite(terms)) =
            operation
        else {
            panic!("{operation:?}");
        };
        terms
    }

    #[test]
    fn keys_and_invitations_expire_by_default() {
        assert_eq!(terms(new_key(json!({ "person": "ada" })).unwrap()).for_ms, KEY_MS);
        assert_eq!(terms(new_key(json!({ "person": "ada", "forMs": 0 })).unwrap()).for_ms, 0);
        assert_eq!(terms(invite(json!({ "name": "ada" })).unwrap()).for_ms, INVITATION_MS);
        for for_ms in [0, MAX_INVITATION_MS + 1, u64::MAX] {
            assert!(invite(json!({ "name": "ada", "forMs": for_ms })).is_err(), "{for_ms}");
        }
        assert!(new_key(json!({ "person": "ada", "forMs": MAX_KEY_MS + 1 })).is_err());
    }

    #[test]
    fn texts_are_limited() {
        let long = "x".repeat(MAX_WORD + 1);
        assert!(add(json!({ "name": long, "role": "member" })).is_err());
        assert!(revoke_key(json!({ "id": long })).is_err());
        assert!(new_key(json!({ "person": "ada", "scopes": [long] })).is_err());
        assert!(new_key(json!({ "person": "ada", "scopes": vec!["read"; 51] })).is_err());
        assert!(join(json!({ "invitation": "x".repeat(MAX_INVITATION + 1) })).is_err());
        assert!(join(json!({ "label": "laptop" })).is_err(), "no invitation");
    }
}
