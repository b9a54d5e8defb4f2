//! Push configurations in the wire form of A2A 0.3.

use crate::{
    codec::members::object,
    model::{
        id::PushConfigId,
        push::{OfferedPush, PushAuthentication, PushConfig, PushForm, Secret},
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// A `PushNotificationConfig` as a client offers it, not yet looked at.
#[derive(Deserialize, JsonSchema)]
pub struct OfferedConfig {
    /// The configuration's id, which the client chooses; the next one without an id takes its place.
    id: Option<String>,
    /// The URL of the receiver.
    url: String,
    /// The token that the receiver knows notifications by.
    token: Option<Secret>,
    /// How the hub proves to the receiver on whose behalf it comes.
    authentication: Option<OfferedAuthentication>,
}

#[derive(Deserialize, JsonSchema)]
struct OfferedAuthentication {
    /// Schemes that the receiver knows, the best first.
    schemes: Vec<String>,
    /// The credentials that go with the first of the schemes.
    credentials: Option<Secret>,
}

/// Converts a configuration to the model; [`OfferedPush::check`] validates it.
pub fn read(offered: OfferedConfig) -> OfferedPush {
    let OfferedConfig { id, url, token, authentication } = offered;
    let authentication =
        authentication.and_then(|OfferedAuthentication { schemes, credentials }| {
            let scheme = schemes.into_iter().next();
            // Credentials without a scheme are a bearer token in OAuth's terms.
            let scheme = scheme.or_else(|| credentials.is_some().then(|| "Bearer".to_owned()))?;
            Some(PushAuthentication { scheme, credentials })
        });
    let id = id.map(PushConfigId::new);
    OfferedPush { id, url, token, authentication, form: PushForm::V03 }
}

/// Writes a `TaskPushNotificationConfig` including its secrets. Only callers that may see the task
/// receive it, and they supplied the secrets.
pub fn write(config: &PushConfig) -> Value {
    let PushConfig { id, task, url, token, authentication, form } = config.clone();
    let offered = OfferedPush { id: Some(id), url, token, authentication, form };
    json!({ "taskId": task, "pushNotificationConfig": write_offered(&offered) })
}

/// Writes a `PushNotificationConfig` as a client sends it.
pub fn write_offered(push: &OfferedPush) -> Value {
    let OfferedPush { id, url, token, authentication, form: _ } = push;
    let secret = |secret: &Option<Secret>| json!(secret.as_ref().map(Secret::expose));
    let authentication =
        authentication.as_ref().map(|PushAuthentication { scheme, credentials }| {
            object([("schemes", json!([scheme])), ("credentials", secret(credentials))])
        });
    object([
        ("id", json!(id)),
        ("url", json!(url)),
        ("token", secret(token)),
        ("authentication", json!(authentication)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::TaskId;

    #[test]
    fn push_config_round_trips() {
        let given = json!({
            "id": "c", "url": "https://example.com/", "token": "t",
            "authentication": { "schemes": ["Bearer"], "credentials": "s" },
        });
        let read = read(serde_json::from_value(given.clone()).unwrap()).of(TaskId::new("task"));
        let told = json!({ "taskId": "task", "pushNotificationConfig": given });
        assert_eq!(write(&read), told);
    }

    #[test]
    fn first_authentication_scheme_is_used() {
        let scheme = |authentication: Value| {
            let given = json!({ "url": "u", "authentication": authentication });
            let read = read(serde_json::from_value(given).unwrap());
            read.authentication.map(|it| it.scheme)
        };
        assert_eq!(scheme(json!({ "schemes": ["Basic", "Bearer"] })).unwrap(), "Basic");
        assert_eq!(scheme(json!({ "schemes": [], "credentials": "s" })).unwrap(), "Bearer");
        assert_eq!(scheme(json!({ "schemes": [] })), None);
    }
}
