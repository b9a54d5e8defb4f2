//! Changes of what plug-ins are granted, and of which there are: for the operator by the kernel's word alone.

use super::{component::Component, plugins::PluginInfo};
use crate::model::id::AgentId;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;

/// A component to be put into the plugins folder, in place of the plug-in of that name if one is granted something.
#[derive(Clone, Debug, PartialEq)]
pub struct AddPlugin {
    /// The agent that it is to be.
    pub id: AgentId,
    /// The component, or the file of this machine that holds it.
    pub component: Component,
    /// Its SHA-256 digest, in hex: what was looked at is what is added.
    pub sha256: String,
    /// The text of its detached signature (minisign), if it is signed.
    pub signature: Option<String>,
    /// What it is granted from the start; nothing if left out.
    pub grant: Option<PluginGrant>,
}

/// A grant to a component in the plugins folder: what it may do from now on, in place of what it might before.
#[derive(Clone, Debug, PartialEq)]
pub struct GrantPlugin {
    /// The plug-in.
    pub id: AgentId,
    /// The SHA-256 digest of its component, in hex: what was looked at is what is granted.
    pub sha256: String,
    /// What it is granted.
    pub grant: PluginGrant,
}

/// What a plug-in is granted, and who goes on with it.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginGrant {
    /// All that it may do, in the shape of `[agents.<id>.grant]` of the configuration.
    pub grant: Value,
    /// The grant that this one was made from, if any: it is refused where another one counts by now (optimistic concurrency).
    pub before: Option<Value>,
    /// The minisign public key whose signature lets an update keep the grant; the one before stays if left out.
    pub key: Option<String>,
    /// Whether whatever stands in its file keeps the grant: for a development loop.
    pub dev: bool,
    /// Where the component came from, for people; its file's path if left out.
    pub source: Option<String>,
}

/// A change of one plug-in, done: the answer to `hub/plugins/add` and `hub/grants/*`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginChanged {
    /// The plug-in.
    pub agent_id: AgentId,
    /// How it stands now; none if the hub knows it no more.
    pub plugin: Option<PluginInfo>,
    /// Why the hub cannot follow what it wrote, if it cannot: the change does not count yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// A copy of the store, made: the answer to `hub/backup`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackedUp {
    /// The file that was made.
    pub file: PathBuf,
    /// How many tasks are in it.
    pub tasks: u64,
    /// How many bytes it has.
    pub bytes: u64,
}
