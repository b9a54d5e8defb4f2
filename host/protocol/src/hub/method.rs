//! A method of the hub's dialect: one row of its table.

use crate::{
    hub::{params, schemas},
    model::{
        error::{A2aError, ErrorKind},
        operation::Operation,
    },
};
use schemars::{JsonSchema as _, Schema, SchemaGenerator};
use serde_json::Value;

/// A method: its name, parameters and result.
pub struct HubMethod {
    /// Name of the method in requests, such as `hub/status`.
    pub name: &'static str,
    /// Description of the method in one line.
    pub summary: &'static str,
    /// Example parameters as JSON.
    pub example: &'static str,
    /// True if the method answers with a stream; each item is a result.
    pub streams: bool,
    /// True if only administrators may call the method, because it changes the hub or shows data of
    /// all tenants.
    pub admin: bool,
    pub(super) params: fn(&mut SchemaGenerator) -> Schema,
    pub(super) result: fn(&mut SchemaGenerator) -> Schema,
    pub(super) read: fn(Value) -> Result<Operation, A2aError>,
}

/// Default values of a row.
pub(super) const PLAIN: HubMethod = HubMethod {
    name: "",
    summary: "",
    example: "{}",
    streams: false,
    admin: false,
    params: params::NoParams::json_schema,
    result: schemas::task,
    read: |_| Err(A2aError::new(ErrorKind::MethodNotFound, "a method without a name")),
};
