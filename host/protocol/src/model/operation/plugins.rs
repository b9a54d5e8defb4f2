//! Plug-ins as the operator sees them: requested and granted capabilities, reasons, and components
//! that wait for approval.

use super::tier::ProgramTier;
use crate::model::id::AgentId;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A plug-in: an element of the answer to `hub/plugins/list`. Its own words (`version`, `publisher`, `description`, reasons) are
/// lines that it says of itself, checked to be plain lines and nothing else.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginInfo {
    /// The agent that it is on this hub.
    pub agent_id: AgentId,
    /// Its file's name in the plugins folder.
    pub file: String,
    /// Whether it has joined: another component may wait in its file all the same.
    pub joined: bool,
    /// The SHA-256 digest of the component that serves, in hex; none if it has not joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The name of the operator's key that signed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
    /// How its programs are held; nothing if it may run none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<ProgramTier>,
    /// Its version, as it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Who made it, as it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publisher: Option<String>,
    /// What it is, as it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What the component that serves asks for.
    pub asks: Vec<AskedCapability>,
    /// What it asks for and was not granted.
    pub not_granted: Vec<NotGranted>,
    /// The record of what was granted; none if nothing ever was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installation: Option<InstallationInfo>,
    /// The component that waits for the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_back: Option<HeldBack>,
    /// Why it has not joined, or what in its file waits, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A capability that a plug-in asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskedCapability {
    /// Its place in the manifest, such as `process.git` or `memory`.
    pub capability: String,
    /// What it allows, in plain words that begin with a verb.
    pub what: String,
    /// Why it is asked for, in its maker's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it asks for in particular, such as forms of arguments, a line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

/// Something that an agent asks for and was not granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotGranted {
    /// Its place in the manifest, such as `process.git`, `process.git.set` or `memory`.
    pub capability: String,
    /// What the agent cannot do without it, in plain words that begin with a verb.
    pub what: String,
    /// Why it asks, in its maker's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What in `[agents.<id>.grant]` of the configuration would allow it.
    pub setting: String,
    /// The command that would allow it to a plug-in whose grant the configuration says nothing of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// The record of what was granted to a plug-in.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallationInfo {
    /// What the plug-in's memory and home are kept under.
    pub id: String,
    /// The SHA-256 digest of the component that the grant is for, in hex.
    pub sha256: String,
    /// Where that came from.
    pub source: String,
    /// When it was granted last: RFC 3339 in UTC.
    pub granted_at: String,
    /// The public key whose signature lets another component keep the grant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether any component in its file keeps the grant.
    pub dev: bool,
    /// Whether it follows the configuration; otherwise it was granted by command, which counts more.
    pub from_configuration: bool,
    /// Who changed it last, and from where, for people; none of a record from before this was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_by: Option<String>,
    /// What is granted, as the file of grants has it.
    pub grant: Value,
}

/// A component that waits for the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldBack {
    /// The SHA-256 digest of the component that waits, in hex.
    pub sha256: String,
    /// The digest of the one that was granted.
    pub granted: String,
    /// Whether the one that was granted serves on.
    pub serves: bool,
    /// What the waiting one asks for that the granted one does not, and the other way round: a line each, beginning with `+`, `-` or
    /// `~`. Empty if both ask for the same, or the granted one is not kept any more.
    pub changes: Vec<String>,
}

/// What looking for new grants has changed: the answer to `hub/plugins/refresh`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginsRefreshed {
    /// The plug-ins whose grant, component or standing changed; it counts now.
    pub changed: Vec<PluginChange>,
    /// What keeps the hub from following the file of grants, if something does: nothing was changed then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// A plug-in that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginChange {
    /// The agent that the plug-in is.
    pub agent_id: AgentId,
    /// What it is now, in plain words.
    pub now: String,
}
