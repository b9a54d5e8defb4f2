//! Plug-ins as the operator sees them: requested and granted capabilities, reasons, and components
//! that wait for approval.

use super::{CompilingPlugin, tier::ProgramTier};
use crate::model::id::AgentId;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Plug-in of the hub: an element of the answer to `hub/plugins/list`. `version`, `publisher`,
/// `description` and the reasons are the plug-in's own claims; the hub checks only that they are
/// plain lines.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginInfo {
    /// Id of the plug-in's agent on this hub.
    pub agent_id: AgentId,
    /// Name of the plug-in's file in the plugins folder.
    pub file: String,
    /// True if the plug-in serves as an agent; another component may wait in its file nevertheless.
    pub joined: bool,
    /// SHA-256 digest of the serving component, in hex; absent if the plug-in has not joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Name of the operator's key that signed the serving component; absent if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
    /// Confinement of the plug-in's programs; absent if the plug-in may run none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<ProgramTier>,
    /// Version, as the plug-in states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Publisher, as the plug-in states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publisher: Option<String>,
    /// Description, as the plug-in states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Capabilities that the serving component requests.
    pub asks: Vec<AskedCapability>,
    /// Requested capabilities that are not granted.
    pub not_granted: Vec<NotGranted>,
    /// Record of the plug-in's grant; absent if nothing was ever granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installation: Option<InstallationInfo>,
    /// Component that waits for the operator's approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_back: Option<HeldBack>,
    /// The load of the plug-in's file, while it is under way; a joined plug-in serves with the
    /// component before it until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compiling: Option<CompilingPlugin>,
    /// Reason, for people, why the plug-in has not joined or why a component in its file waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Capability that a plug-in requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskedCapability {
    /// Path of the capability in the manifest, such as `process.git` or `memory`.
    pub capability: String,
    /// Effect of the capability, in plain words that begin with a verb.
    pub what: String,
    /// Reason for the request, in the words of the plug-in's author.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Details of the request, such as argument patterns, one per element.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

/// Capability that an agent requests and that is not granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotGranted {
    /// Path of the capability in the manifest, such as `process.git`, `process.git.set` or
    /// `memory`.
    pub capability: String,
    /// Action that the agent cannot do without the capability, in plain words that begin with a
    /// verb.
    pub what: String,
    /// Reason for the request, in the words of the agent's author.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Setting in `[agents.<id>.grant]` of the configuration that would grant the capability.
    pub setting: String,
    /// Command that would grant the capability; absent if only the configuration can grant it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// Record of a plug-in's grant.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallationInfo {
    /// Id under which the plug-in's memory and home directory are stored.
    pub id: String,
    /// SHA-256 digest of the granted component, in hex.
    pub sha256: String,
    /// Origin of the granted component, for people: a file's name, a path or a URL.
    pub source: String,
    /// Time of the latest grant: RFC 3339 in UTC.
    pub granted_at: String,
    /// Minisign public key whose signature lets another component keep the grant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// True if any component in the plug-in's file keeps the grant.
    pub dev: bool,
    /// True if the grant follows the configuration; false if it was made by command, which takes
    /// precedence.
    pub from_configuration: bool,
    /// Author and origin of the last change, for people; absent in records of older hubs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_by: Option<String>,
    /// Granted capabilities, in the form of the file of grants.
    pub grant: Value,
}

/// Component that waits for the operator's approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldBack {
    /// SHA-256 digest of the waiting component, in hex.
    pub sha256: String,
    /// SHA-256 digest of the granted component, in hex.
    pub granted: String,
    /// True if the granted component keeps serving.
    pub serves: bool,
    /// Differences between the capabilities that the waiting and the granted component request, one
    /// per element: added (`+`) or removed (`-`) requests, or a changed description (`~`). Empty if
    /// both request the same, or if the hub has no copy of the granted one.
    pub changes: Vec<String>,
}

/// Changes found by a refresh of the plug-ins: the answer to `hub/plugins/refresh`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginsRefreshed {
    /// Plug-ins whose grant, component or status changed; the changes are effective.
    pub changed: Vec<PluginChange>,
    /// Reason why the hub cannot apply the file of grants, in which case no grant was changed;
    /// absent if the hub can apply it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// Plug-in that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginChange {
    /// Id of the plug-in's agent.
    pub agent_id: AgentId,
    /// Status of the plug-in after the change, in plain words.
    pub now: String,
}
