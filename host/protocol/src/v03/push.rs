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

/// `PushNotificationConfig` of A2A 0.3 as a client sends it, before validation.
#[derive(Deserialize, JsonSchema)]
pub struct OfferedConfig {
    /// Id of the configuration, at most 128 bytes; the task's id by default. A configuration
    /// replaces the previous one with the same id.
    id: Option<String>,
    /// URL of the receiver, at most 2,048 bytes.
    url: String,
    /// Token that identifies notifications to the receiver, at most 4,096 printable ASCII
    /// characters.
    token: Option<Secret>,
    /// Credentials with which the hub authenticates at the receiver; absent if it needs none.
    authentication: Option<OfferedAuthentication>,
}

#[derive(Deserialize, JsonSchema)]
struct OfferedAuthentication {
    /// Authentication schemes that the receiver accepts, best first; the hub uses the first one.
    schemes: Option<Vec<String>>,
    /// Credentials for the first scheme, at most 4,096 printable ASCII characters.
    credentials: Option<Secret>,
}

/// Converts a configuration to the model; [`OfferedPush::check`] validates it.
pub fn read(offered: OfferedConfig) -> OfferedPush {
    let OfferedConfig { id, url, token, authentication } = offered;
    // Some clients write absent texts as empty ones.
    let token = token.filter(|token| !token.expose().is_empty());
    let id = id.filter(|id| !id.is_empty());
    let authentication =
        authentication.and_then(|OfferedAuthentication { schemes, credentials }| {
            let credentials = credentials.filter(|it| !it.expose().is_empty());
            let scheme = schemes.into_iter().flatten().find(|scheme| !scheme.is_empty());
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
        let read =
            read(serde_json::from_value(given.clone()).unwrap()).for_task(TaskId::new("task"));
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
        assert_eq!(scheme(json!({ "schemes": null, "credentials": "s" })).unwrap(), "Bearer");
        assert_eq!(scheme(json!({ "schemes": [""], "credentials": "" })), None);
    }

    #[test]
    fn empty_optional_text_is_absent() {
        let given = json!({ "url": "u", "id": "", "token": "",
            "authentication": { "schemes": ["Bearer"], "credentials": "" } });
        let read = read(serde_json::from_value(given).unwrap());
        assert_eq!((read.id, read.token), (None, None));
        assert_eq!(read.authentication.unwrap().credentials, None);
    }
}
