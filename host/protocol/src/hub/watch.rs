//! Method that streams the events of the hub.

use crate::{
    hub::{
        event::HubEvent,
        method::{HubMethod, PLAIN},
    },
    model::{
        error::A2aError,
        operation::{EventWatch, Operation},
    },
    v03::params::read,
};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde_json::Value;

/// `hub/events`.
pub(super) const EVENTS: HubMethod = HubMethod {
    name: "hub/events",
    summary: "Stream the events of the hub: tasks and agents. With the cursor of an earlier event, \
              the changes of tasks since then come first, also over a restart",
    streams: true,
    params: WatchParams::json_schema,
    result: SchemaGenerator::subschema_for::<HubEvent>,
    read: watch,
    ..PLAIN
};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct WatchParams {
    /// Value of `cursor` of the last event that the client received; from now on by default.
    after: Option<String>,
}

/// Reads the parameters of `hub/events`.
fn watch(params: Value) -> Result<Operation, A2aError> {
    // The method took no parameters once, and so any.
    let WatchParams { after } = match params.is_object() {
        true => read(params)?,
        false => WatchParams { after: None },
    };
    Ok(Operation::WatchHub(EventWatch::Resumable { after }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cursor_of_param_precedes_last_event_id() {
        let after = |params: Value, last: Option<&str>| {
            let mut operation = watch(params).unwrap();
            operation.go_on_after(last);
            let Operation::WatchHub(EventWatch::Resumable { after }) = operation else { panic!() };
            after
        };
        assert_eq!(after(json!({}), None), None);
        assert_eq!(after(json!(null), Some("h-7")).as_deref(), Some("h-7"));
        assert_eq!(after(json!({ "after": "h-8" }), Some("h-7")).as_deref(), Some("h-8"));
        assert!(watch(json!({ "after": 8 })).is_err());
    }
}
