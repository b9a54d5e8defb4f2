//! Ids of tasks, conversations, messages, artifacts, push configurations, agents and tenants, each
//! a separate type. Clones share their text, because a task's id is part of every event of the
//! task.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};
use std::{borrow::Cow, fmt, sync::Arc};
use uuid::Uuid;

/// Maximum length in bytes of an id that a client chooses.
pub const MAX_ID: usize = 128;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Creates an id from its text.
            pub fn new(name: impl Into<Arc<str>>) -> Self {
                Self(name.into())
            }

            /// Generates a version 7 UUID (RFC 9562); later ids sort after earlier ones.
            pub fn fresh() -> Self {
                Self(fresh())
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

/// Generates a version 7 UUID.
fn fresh() -> Arc<str> {
    let mut text = Uuid::encode_buffer();
    Uuid::now_v7().hyphenated().encode_lower(&mut text)[..].into()
}

id!(
    /// Id of a task, valid until the hub deletes the task. The hub generates it; of all clients,
    /// only the program that embeds the hub may choose it.
    TaskId
);

impl TaskId {
    /// Time of the task's creation in milliseconds since the Unix epoch, from an id that the hub
    /// generated; `None` for others.
    pub fn created_ms(&self) -> Option<u64> {
        let id = Uuid::try_parse(&self.0).ok().filter(|id| id.get_version_num() == 7)?;
        // The first 48 bits (RFC 9562, section 5.7).
        u64::try_from(id.as_u128() >> 80).ok()
    }
}

id!(
    /// Id of a message, chosen by its sender.
    MessageId
);
id!(
    /// Id of an artifact, unique within its task.
    ArtifactId
);
id!(
    /// Id of a question that a task asks its client; each question has a new id.
    QuestionId
);
id!(
    /// Id of a push configuration, which names a receiver of a task's notifications; unique within
    /// the task.
    PushConfigId
);

/// Id of an agent of this hub, `^[a-z][a-z0-9-]{0,62}$`: safe in a path, a URL and a table.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct AgentId(Arc<str>);

/// Error for a text that is not a valid agent id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot name an agent: use 1 to 63 lower-case letters, digits and hyphens, beginning with a letter"
)]
pub struct InvalidAgentId(String);

impl AgentId {
    /// Parses an agent id.
    pub fn parse(name: impl Into<String>) -> Result<Self, InvalidAgentId> {
        let name = name.into();
        let mut bytes = name.bytes();
        let begins = bytes.next().is_some_and(|b| b.is_ascii_lowercase());
        let goes_on = bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if begins && goes_on && name.len() <= 63 {
            Ok(Self(name.into()))
        } else {
            Err(InvalidAgentId(name))
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl JsonSchema for AgentId {
    fn schema_name() -> Cow<'static, str> {
        "AgentId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[a-z][a-z0-9-]{0,62}$" })
    }
}

impl TryFrom<String> for AgentId {
    type Error = InvalidAgentId;

    fn try_from(name: String) -> Result<Self, InvalidAgentId> {
        Self::parse(name)
    }
}

impl Serialize for AgentId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl From<AgentId> for String {
    fn from(id: AgentId) -> Self {
        id.as_str().to_owned()
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Id of a tenant. Tenants share a hub and cannot see each other's data. The default tenant has no
/// name and owns all requests that name no tenant.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct TenantId(Option<Arc<str>>);

/// Error for a text that is not a valid tenant name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot name a tenant: use 1 to 63 lower-case letters, digits and hyphens, beginning with a letter or a digit"
)]
pub struct InvalidTenantId(String);

impl TenantId {
    /// Parses a tenant's name: 1 to 63 lower-case letters, digits and hyphens, not beginning with a
    /// hyphen.
    pub fn parse(name: impl Into<String>) -> Result<Self, InvalidTenantId> {
        let name = name.into();
        let is_plain =
            name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if is_plain && !name.starts_with('-') && (1..=63).contains(&name.len()) {
            Ok(Self(Some(name.into())))
        } else {
            Err(InvalidTenantId(name))
        }
    }

    /// Name of the tenant; `None` for the default tenant.
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Name of the tenant; empty for the default tenant.
    pub fn as_str(&self) -> &str {
        self.name().unwrap_or_default()
    }

    /// True for the default tenant.
    pub fn is_default(&self) -> bool {
        self.0.is_none()
    }
}

impl TryFrom<String> for TenantId {
    type Error = InvalidTenantId;

    fn try_from(name: String) -> Result<Self, InvalidTenantId> {
        if name.is_empty() { Ok(Self::default()) } else { Self::parse(name) }
    }
}

impl Serialize for TenantId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl From<TenantId> for String {
    fn from(id: TenantId) -> Self {
        id.as_str().to_owned()
    }
}

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Debug for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Id of a conversation (A2A's context), which groups tasks and messages. Two tenants may use the
/// same name for different conversations. Only the name appears on the wire and in logs.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(from = "String")]
pub struct ContextId {
    name: Arc<str>,
    tenant: TenantId,
}

impl ContextId {
    /// Creates the id of a conversation of the default tenant.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), tenant: TenantId::default() }
    }

    /// Generates a version 7 UUID (RFC 9562) as the name; later ids sort after earlier ones.
    pub fn fresh() -> Self {
        Self::new(fresh())
    }

    /// The conversation of the same name in another tenant.
    #[must_use]
    pub fn of_tenant(self, tenant: &TenantId) -> Self {
        Self { tenant: tenant.clone(), ..self }
    }

    /// Tenant that owns the conversation.
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// Name of the conversation, without its tenant.
    pub fn as_str(&self) -> &str {
        &self.name
    }
}

impl From<String> for ContextId {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

impl Serialize for ContextId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl From<ContextId> for String {
    fn from(id: ContextId) -> Self {
        id.as_str().to_owned()
    }
}

impl JsonSchema for ContextId {
    fn schema_name() -> Cow<'static, str> {
        "ContextId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

impl fmt::Display for ContextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

impl fmt::Debug for ContextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_tuple("ContextId");
        debug.field(&self.name);
        if let Some(tenant) = self.tenant.name() {
            debug.field(&tenant);
        }
        debug.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_tenant_name_is_refused() {
        for good in ["a", "acme", "7", "team-b", &"a".repeat(63)] {
            let tenant = TenantId::parse(good).unwrap();
            assert_eq!((tenant.as_str(), tenant.is_default()), (good, false));
        }
        for bad in ["", "-a", "A", "a/b", "a.b", "a\u{1f}", "a b", &"a".repeat(64)] {
            assert!(TenantId::parse(bad).is_err(), "{bad}");
        }
        assert!(TenantId::default().is_default() && TenantId::default().name().is_none());
        assert_eq!(TenantId::try_from(String::new()).unwrap(), TenantId::default());
    }

    #[test]
    fn same_context_name_differs_per_tenant() {
        let acme = ContextId::new("c").of_tenant(&TenantId::parse("acme").unwrap());
        assert_ne!(acme, ContextId::new("c"));
        assert_eq!(serde_json::to_string(&acme).unwrap(), "\"c\"");
        assert_eq!((acme.as_str(), acme.to_string().as_str()), ("c", "c"));
        let read: ContextId = serde_json::from_str("\"c\"").unwrap();
        assert!(read.tenant().is_default());
    }

    #[test]
    fn unsafe_agent_id_is_refused() {
        for good in ["a", "echo", "git-historian", "gpt4", &"a".repeat(63)] {
            assert!(AgentId::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "4gpt", "-a", "Echo", "a_b", "../a", "a/b", "a.b", "é", &"a".repeat(64)] {
            assert!(AgentId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn fresh_ids_sort_by_age() {
        let ids: Vec<_> = (0..100).map(|_| TaskId::fresh()).collect();
        assert!(ids.is_sorted());
    }
}
