//! Parameters of `hub/backup` and of the methods that change plug-ins and their grants.
//! `rpc.discover` publishes their JSON schemas.

use super::params::component;
use crate::{
    model::{
        error::A2aError,
        id::AgentId,
        operation::{AddPlugin, GrantPlugin, Operation, PluginGrant},
    },
    v03::params::read,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;

/// Maximum number of capabilities to deny in one request.
const MAX_DENIED: usize = 256;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AddParams {
    /// Id of the new agent.
    agent_id: AgentId,
    /// Absolute path of the component on the hub's machine; required unless `component` is given.
    path: Option<PathBuf>,
    /// Component in base64, in place of `path`.
    component: Option<String>,
    /// SHA-256 digest of the component, in hex; a component with another digest is refused.
    sha256: String,
    /// Text of the component's detached minisign signature; absent if the component is unsigned.
    signature: Option<String>,
    /// Initial grant; if absent, this request grants nothing.
    grant: Option<GrantedParams>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GrantParams {
    /// Id of the plug-in.
    agent_id: AgentId,
    /// SHA-256 digest of the component in the plugins folder, in hex; a component with another
    /// digest is granted nothing.
    sha256: String,
    #[serde(flatten)]
    granted: GrantedParams,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GrantedParams {
    /// Whole new grant, in the form of `[agents.<id>.grant]` of the configuration.
    grant: Value,
    /// Grant that the new one is based on, as `hub/plugins/list` returns it; the request is refused
    /// if another grant is in force by now.
    before: Option<Value>,
    /// Minisign public key whose signature lets updates keep the grant; if absent, the previous key
    /// stays.
    key: Option<String>,
    /// True if any component in the plug-in's file keeps the grant, for a development loop; false
    /// ends that. If absent, the previous mark stays, which is false for a first grant.
    dev: Option<bool>,
    /// Origin of the component, for people; the path of its file by default.
    source: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DenyParams {
    /// Id of the plug-in.
    agent_id: AgentId,
    /// Capabilities to revoke, 1 to 256 of them, such as `process.git`, `http.api.example.com`,
    /// `memory` or `delegate.codex`.
    capabilities: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct BackUpParams {
    /// Absolute path of the new file on the hub's machine; the file must not exist yet.
    file: PathBuf,
}

/// Reads the parameters of `hub/plugins/add`.
pub(crate) fn add(params: Value) -> Result<Operation, A2aError> {
    let AddParams { agent_id: id, path, component: bytes, sha256, signature, grant } =
        read(params)?;
    let component = component(path, bytes)?;
    let (sha256, grant) = (digest(&sha256)?, grant.map(granted).transpose()?);
    Ok(Operation::AddPlugin(Box::new(AddPlugin { id, component, sha256, signature, grant })))
}

/// Reads the parameters of `hub/grants/grant`.
pub(crate) fn grant(params: Value) -> Result<Operation, A2aError> {
    let GrantParams { agent_id: id, sha256, granted: grant_params } = read(params)?;
    let (sha256, grant) = (digest(&sha256)?, granted(grant_params)?);
    Ok(Operation::GrantPlugin(Box::new(GrantPlugin { id, sha256, grant })))
}

/// Reads the parameters of `hub/grants/deny`.
pub(crate) fn deny(params: Value) -> Result<Operation, A2aError> {
    let DenyParams { agent_id: id, capabilities } = read(params)?;
    if !(1..=MAX_DENIED).contains(&capabilities.len()) {
        let why = format!("name 1 to {MAX_DENIED} of them");
        return Err(A2aError::invalid("capabilities", why));
    }
    Ok(Operation::DenyPlugin { id, capabilities })
}

/// Reads the parameters of `hub/backup`.
pub(crate) fn back_up(params: Value) -> Result<Operation, A2aError> {
    let BackUpParams { file } = read(params)?;
    if !file.is_absolute() {
        let why = "must be absolute: the hub does not know where you are";
        return Err(A2aError::invalid("file", why));
    }
    Ok(Operation::BackUp { file })
}

fn granted(params: GrantedParams) -> Result<PluginGrant, A2aError> {
    let GrantedParams { grant, before, key, dev, source } = params;
    if !grant.is_object() {
        let why = "must be an object, in the shape of `[agents.<id>.grant]` of the configuration";
        return Err(A2aError::invalid("grant", why));
    }
    Ok(PluginGrant { grant, before, key, dev, source })
}

fn digest(sha256: &str) -> Result<String, A2aError> {
    if sha256.len() == 64 && sha256.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(sha256.to_ascii_lowercase());
    }
    Err(A2aError::invalid("sha256", "must be a SHA-256 digest: 64 hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn wrong_grant_parameters_are_refused_by_name() {
        let digest = "ab".repeat(32);
        let refused = [
            grant(json!({ "agentId": "notes", "sha256": "ab", "grant": {} })),
            grant(json!({ "agentId": "notes", "sha256": digest, "grant": [] })),
            grant(json!({ "agentId": "notes", "sha256": digest })),
            deny(json!({ "agentId": "notes", "capabilities": [] })),
            back_up(json!({ "file": "copy.db" })),
            add(json!({ "agentId": "notes", "path": "notes.wasm", "sha256": digest })),
            add(json!({ "agentId": "notes", "sha256": digest })),
        ]
        .map(|read| read.unwrap_err().to_string());
        insta::assert_snapshot!(refused.join("\n"), @r"
        `sha256`: must be a SHA-256 digest: 64 hexadecimal digits
        `grant`: must be an object, in the shape of `[agents.<id>.grant]` of the configuration
        `params`: missing field `grant`
        `capabilities`: name 1 to 256 of them
        `file`: must be absolute: the hub does not know where you are
        `path`: must be absolute: the hub does not know where you are
        `path`: give either `path` or `component`
        ");
    }

    #[test]
    fn grant_request_is_read_with_conditions() {
        let said = json!({ "agentId": "notes", "sha256": "AB".repeat(32), "grant": { "memory": true },
            "before": {}, "dev": true });
        let Operation::GrantPlugin(read) = grant(said).unwrap() else { panic!("no grant") };
        assert_eq!(read.sha256, "ab".repeat(32));
        assert_eq!(
            (read.grant.grant, read.grant.before),
            (json!({ "memory": true }), Some(json!({})))
        );
        assert!(read.grant.dev == Some(true) && read.grant.key.is_none());
    }
}
