//! OpenRPC document of the method table (spec.open-rpc.org, 1.3.2), for client generators.
//!
//! OpenRPC has no terms for streams and administrators, so the extensions `x-streams` and `x-admin`
//! mark these methods.

use crate::{
    hub::methods::{HubMethod, METHODS},
    model::error::ErrorKind,
};
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

/// Description of the interface as a whole.
const DESCRIPTION: &str = "Over HTTP, each method `hub/...` is also `POST /hub/...` with the parameters as a JSON object: \
    docs/reference/http.md";

/// OpenRPC document for a hub of this `version`.
pub fn discover(version: &str) -> Value {
    // OpenRPC uses JSON Schema draft 7.
    let settings =
        SchemaSettings::draft07().with(|it| it.definitions_path = "/components/schemas".into());
    let mut schemas = settings.into_generator();
    let methods: Vec<_> = METHODS.iter().map(|it| method(it, &mut schemas)).collect();
    let errors = ErrorKind::ALL.map(|kind| {
        let error = json!({ "code": kind.hub_code(), "message": kind.reason() });
        (kind.reason().to_owned(), error)
    });
    json!({
        "openrpc": "1.3.2",
        "info": { "title": "a2a-hub", "description": DESCRIPTION, "version": version },
        "methods": methods,
        "components": { "schemas": schemas.take_definitions(true), "errors": Map::from_iter(errors) },
    })
}

fn method(method: &HubMethod, schemas: &mut SchemaGenerator) -> Value {
    let mut params = (method.params)(schemas);
    let params = params.ensure_object();
    let required = params.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let properties = params.get("properties").and_then(Value::as_object).cloned();
    let params: Vec<_> = properties
        .unwrap_or_default()
        .into_iter()
        .map(|(name, schema)| {
            let required = required.iter().any(|it| *it == name);
            json!({ "name": name, "required": required, "schema": schema })
        })
        .collect();
    let mut descriptor = json!({
        "name": method.name,
        "summary": method.summary,
        "paramStructure": "by-name",
        "params": params,
        "result": { "name": "result", "schema": (method.result)(schemas) },
        "examples": [example(method)],
    });
    for (mark, holds) in [("x-streams", method.streams), ("x-admin", method.admin)] {
        if holds {
            descriptor[mark] = json!(true);
        }
    }
    descriptor
}

fn example(method: &HubMethod) -> Value {
    // Always valid: a test parses every example.
    let params: Map<String, Value> = serde_json::from_str(method.example).unwrap_or_default();
    let params: Vec<_> =
        params.into_iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    json!({ "name": "example", "params": params })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(value: &Value) -> &[Value] {
        value.as_array().unwrap()
    }

    /// The document contains every method, and each example names only existing parameters and all
    /// required ones.
    #[test]
    fn every_method_appears_in_document() {
        let document = discover("1.2.3");
        let methods = list(&document["methods"]);
        assert_eq!(methods.len(), METHODS.len());
        for (method, told) in METHODS.iter().zip(methods) {
            assert_eq!(told["name"], method.name);
            let params = list(&told["params"]);
            let example: Map<_, _> = serde_json::from_str(method.example).unwrap();
            for name in example.keys() {
                assert!(params.iter().any(|it| it["name"] == **name), "{}: {name}", method.name);
            }
            for must in params.iter().filter(|it| it["required"] == true) {
                let name = must["name"].as_str().unwrap();
                assert!(example.contains_key(name), "{}: {name}", method.name);
            }
        }
    }

    #[test]
    fn every_schema_reference_resolves() {
        let document = discover("1.2.3");
        let text = document.to_string();
        let mut found = 0;
        for rest in text.split("\"$ref\":\"#").skip(1) {
            let pointer = rest.split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer}");
            found += 1;
        }
        assert!(found > 5, "{found}");
    }

    #[test]
    fn register_method_has_expected_schema() {
        let document = discover("1.2.3");
        let register = list(&document["methods"])
            .iter()
            .find(|it| it["name"] == "hub/agents/register")
            .unwrap();
        let params: Vec<_> = list(&register["params"]).iter().map(Value::to_string).collect();
        insta::assert_snapshot!(params.join("\n"), @r##"
        {"name":"agentId","required":true,"schema":{"$ref":"#/components/schemas/AgentId","description":"Id of the new agent, which no other agent has."}}
        {"name":"component","required":false,"schema":{"description":"Component in base64, in place of `path`.","type":["string","null"]}}
        {"name":"path","required":false,"schema":{"description":"Absolute path of the component on the hub's machine; required unless `component` is given.","type":["string","null"]}}
        "##);
        assert_eq!(register["x-admin"], true);
    }
}
