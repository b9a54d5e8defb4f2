//! Changes of plug-ins and of their grants. For the operator only, identified by the kernel and not
//! by a token.

use super::{component::ComponentSource, plugins::PluginInfo};
use crate::model::id::AgentId;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;

/// Request to put a component into the plugins folder. An existing plug-in of that name is replaced
/// if it has a grant; otherwise the request is refused.
#[derive(Clone, Debug, PartialEq)]
pub struct AddPlugin {
    /// Id of the new agent.
    pub id: AgentId,
    /// The component, or the local file that holds it.
    pub component: ComponentSource,
    /// SHA-256 digest of the component in hex, so that the operator adds the component that was
    /// inspected.
    pub sha256: String,
    /// Text of the component's detached signature (minisign), if it is signed.
    pub signature: Option<String>,
    /// Initial grant; nothing is granted, if `None`.
    pub grant: Option<PluginGrant>,
}

/// Request to replace the grant of a component in the plugins folder.
#[derive(Clone, Debug, PartialEq)]
pub struct GrantPlugin {
    /// Plug-in to change.
    pub id: AgentId,
    /// SHA-256 digest of the component in hex, so that the grant applies to the component that was
    /// inspected.
    pub sha256: String,
    /// The new grant.
    pub grant: PluginGrant,
}

/// Grant of a plug-in, and the conditions under which updates keep it.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginGrant {
    /// All granted capabilities, in the format of `[agents.<id>.grant]` in the configuration.
    pub grant: Value,
    /// Grant that this one was derived from, if any. The request is refused if a different grant is
    /// effective (optimistic concurrency).
    pub before: Option<Value>,
    /// Minisign public key whose signed updates keep the grant; the previous key stays, if `None`.
    pub key: Option<String>,
    /// True if any component in the plug-in's file keeps the grant, for a development loop; the
    /// previous mark stays, if `None`.
    pub dev: Option<bool>,
    /// Origin of the component, for people; the path of its file, if `None`.
    pub source: Option<String>,
}

/// Changed plug-in: the answer to `hub/plugins/add` and `hub/grants/*`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginChanged {
    /// Id of the plug-in.
    pub agent_id: AgentId,
    /// Plug-in after the change; `null` if it was removed.
    pub plugin: Option<PluginInfo>,
    /// Reason why the written change is not effective yet; absent if the change is effective.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// Backup of the store: the answer to `hub/backup`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackedUp {
    /// Path of the backup.
    pub file: PathBuf,
    /// Number of tasks in the backup.
    pub tasks: u64,
    /// Size of the backup in bytes.
    pub bytes: u64,
}
