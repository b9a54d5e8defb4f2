//! Methods for the notifiers of the configuration, and their parameters.

use crate::{
    hub::method::{HubMethod, PLAIN},
    model::{
        error::A2aError,
        operation::{NotifierInfo, NotifierRequest, NotifierTest, Operation},
    },
    v03::params::read,
};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize, JsonSchema)]
struct OneNotifier {
    /// Name of the notifier in the configuration.
    name: String,
}

/// `hub/notifiers/list`.
pub(super) const LIST: HubMethod = HubMethod {
    name: "hub/notifiers/list",
    summary: "List the notifiers with their latest message and failure",
    admin: true,
    result: SchemaGenerator::subschema_for::<Vec<NotifierInfo>>,
    read: |_| Ok(Operation::Notifier(NotifierRequest::List)),
    ..PLAIN
};

/// `hub/notifiers/test`.
pub(super) const TEST: HubMethod = HubMethod {
    name: "hub/notifiers/test",
    summary: "Send a test message by a notifier now, and say what came of it",
    example: r#"{"name": "phone"}"#,
    admin: true,
    params: OneNotifier::json_schema,
    result: SchemaGenerator::subschema_for::<NotifierTest>,
    read: test,
    ..PLAIN
};

fn test(params: Value) -> Result<Operation, A2aError> {
    read(params).map(|OneNotifier { name }| Operation::Notifier(NotifierRequest::Test(name)))
}
