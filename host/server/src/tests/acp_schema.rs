//! Check of the lines of the ACP endpoint against the published JSON schema of ACP
//! (`tests/schemas/acp-v1.json`: Apache-2.0, from the package `@agentclientprotocol/sdk` 2.4.0).

use jsonschema::Validator;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex},
};

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../../tests/schemas/acp-v1.json")).unwrap()
});

static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

/// Members of a message by method: the schema of a request's parameters or of its result.
const REQUESTS: [(&str, &str); 4] = [
    ("session/update", "SessionNotification"),
    ("session/request_permission", "RequestPermissionRequest"),
    ("elicitation/create", "CreateElicitationRequest"),
    ("$/cancel_request", "CancelRequestNotification"),
];
const RESULTS: [(&str, &str); 11] = [
    ("initialize", "InitializeResponse"),
    ("authenticate", "AuthenticateResponse"),
    ("session/new", "NewSessionResponse"),
    ("session/load", "LoadSessionResponse"),
    ("session/resume", "ResumeSessionResponse"),
    ("session/list", "ListSessionsResponse"),
    ("session/close", "CloseSessionResponse"),
    ("session/delete", "DeleteSessionResponse"),
    ("session/prompt", "PromptResponse"),
    ("session/set_mode", "SetSessionModeResponse"),
    ("session/set_config_option", "SetSessionConfigOptionResponse"),
];

/// Schema check of a connection, which knows the methods of its requests.
#[derive(Default)]
pub(crate) struct AcpSchema {
    asked: HashMap<u64, String>,
}

impl AcpSchema {
    /// Notes the method of a request.
    pub(super) fn asked(&mut self, id: u64, method: &str) {
        self.asked.insert(id, method.to_owned());
    }

    /// Panics if a line of the hub does not conform.
    pub(crate) fn check(&self, line: &Value) {
        assert_eq!(line["jsonrpc"], "2.0", "{line}");
        if let Some(method) = line["method"].as_str() {
            let of = REQUESTS.iter().find(|(name, _)| *name == method);
            let (_, schema) = of.unwrap_or_else(|| panic!("the method is unknown: {line}"));
            return conforms(schema, &line["params"]);
        }
        if let Some(error) = line.get("error") {
            return conforms("Error", error);
        }
        let method = line["id"].as_u64().and_then(|id| self.asked.get(&id));
        if let Some((_, schema)) =
            RESULTS.iter().find(|(name, _)| Some(*name) == method.map(|it| &**it))
        {
            conforms(schema, &line["result"]);
        }
    }
}

/// Panics if the value does not conform to this definition of the schema.
fn conforms(definition: &str, value: &Value) {
    let validator = {
        let mut validators = VALIDATORS.lock().unwrap();
        let validator = validators.entry(definition.to_owned()).or_insert_with(|| {
            let schema =
                json!({ "$ref": format!("#/$defs/{definition}"), "$defs": SCHEMA["$defs"] });
            Arc::new(jsonschema::draft202012::new(&schema).unwrap())
        });
        Arc::clone(validator)
    };
    if let Err(why) = validator.validate(value) {
        panic!("{definition}: {why}: {value}");
    }
}

#[test]
#[should_panic(expected = "SessionNotification")]
fn nonconforming_line_fails_schema_check() {
    let update = json!({ "sessionUpdate": "tool_call", "title": "no id" });
    let params = json!({ "sessionId": "s", "update": update });
    AcpSchema::default()
        .check(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
}
