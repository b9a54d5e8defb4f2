//! Robustness tests: every JSON reader of this crate accepts or refuses JSON of any shape and never
//! panics.

use super::*;
use crate::{
    binding::rest::Verb,
    card::{AgentCard, Endpoints, extended::extend, normal_card, read_interfaces},
    hub::{answer, methods::METHODS, registry},
    model::{
        error::{A2aError, ErrorKind},
        id::AgentId,
        operation::{Answer, CardOf, FoundAgent, FoundAgents, HealthStatus, Operated},
    },
    shapes::{reshaped, shapes},
};

fn read(text: &str, spelled: Dialect) -> Vec<jsonrpc::Request> {
    match jsonrpc::read(text.as_bytes(), spelled, ParamsSource::Metadata) {
        Frame::One(request) => vec![*request],
        Frame::Batch(requests) => requests,
    }
}

#[test]
fn non_object_line_is_invalid_request() {
    for spelled in [Dialect::Hub, official(Version::V1, Binding::JsonRpc)] {
        for shape in shapes() {
            let requests = read(&shape.to_string(), spelled);
            assert_eq!(requests.len(), 1, "{shape}");
            let request = &requests[0];
            assert_eq!(json!(request.id), Value::Null, "{shape}");
            let why = request.operation.as_ref().unwrap_err();
            assert_eq!(why.kind, ErrorKind::InvalidRequest, "{shape}: {why}");
        }
    }
}

#[test]
fn mutated_jsonrpc_requests_never_panic() {
    let mut seen = 0;
    let mut feed = |spelled, method: &str, params: &Value| {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        for other in reshaped(&request) {
            // Every input yields a request to answer, unless it is a notification.
            assert!(!read(&other.to_string(), spelled).is_empty(), "{other}");
            seen += 1;
        }
    };
    for method in METHODS {
        feed(Dialect::Hub, method.name, &serde_json::from_str(method.example).unwrap());
    }
    for (version, all) in [(Version::V1, asked(PushForm::V1)), (Version::V03, asked_of_old())] {
        for asks in all {
            let (name, params) = jsonrpc::write(version, Some("me"), &asks).unwrap();
            feed(official(version, Binding::JsonRpc), name, &params);
        }
    }
    assert!(seen > 3_000, "{seen} requests");
}

#[test]
fn mutated_rest_bodies_never_panic() {
    for (version, all) in [(Version::V1, asked(PushForm::V1)), (Version::V03, asked_of_old())] {
        for asks in all {
            let written = rest::write(version, None, &asks).unwrap();
            let WrittenRequest { verb: Verb::Post, target, body: Some(body) } = written else {
                continue;
            };
            for other in reshaped(&body) {
                let _ = rest::read(Verb::Post, &target, None, other.to_string().as_bytes());
            }
        }
    }
}

#[test]
fn mutated_answers_never_panic() {
    let part = json!({ "text": "hi", "metadata": { "a": 1 } });
    let status = json!({ "state": "TASK_STATE_WORKING", "timestamp": "2026-01-01T00:00:00Z",
        "message": { "messageId": "m", "role": "ROLE_AGENT", "parts": [part] } });
    let artifact =
        json!({ "artifactId": "a", "parts": [{ "data": { "n": 1 } }, { "raw": "AA==" }] });
    let task = json!({ "id": "t", "contextId": "c", "status": status, "artifacts": [artifact],
        "history": [status["message"]], "metadata": { "a": 1 } });
    let update = json!({ "taskId": "t", "contextId": "c", "status": status, "final": true });
    let made = json!({ "taskId": "t", "contextId": "c", "artifact": artifact, "append": true });
    let old_part = json!({ "kind": "text", "text": "hi" });
    let old = json!({ "kind": "task", "id": "t", "contextId": "c", "status": { "state": "working",
        "message": { "kind": "message", "messageId": "m", "role": "agent", "parts": [old_part] } },
        "artifacts": [{ "artifactId": "a", "parts": [{ "kind": "file", "file": { "bytes": "AA==" } }] }] });
    let all = [
        json!({ "task": task }),
        json!({ "message": status["message"] }),
        json!({ "statusUpdate": update }),
        json!({ "artifactUpdate": made }),
        old.clone(),
        json!({ "kind": "status-update", "taskId": "t", "contextId": "c", "status": old["status"], "final": true }),
        json!({ "kind": "artifact-update", "taskId": "t", "contextId": "c", "artifact": old["artifacts"][0] }),
    ];
    for version in Version::ALL {
        for binding in Binding::ALL {
            let wire = Wire { version, binding };
            for other in all.iter().flat_map(reshaped) {
                let _ = wire.read_stream_response(other);
            }
            for other in reshaped(&task).into_iter().chain(reshaped(&old)) {
                let _ = wire.read_task(other);
            }
        }
    }
}

#[test]
fn mutated_errors_never_panic() {
    let error = A2aError::invalid("message", "is missing");
    for other in reshaped(&error.to_v1_json()) {
        let _ = A2aError::read_official(&other);
    }
    for other in reshaped(&error.to_v03_rest_json()) {
        let _ = A2aError::read_rest(400, &other);
    }
    // Details may come from a remote server; every error form must write them.
    for details in shapes() {
        let error = A2aError::new(ErrorKind::InvalidParams, "no").with(details);
        for dialect in [Dialect::Hub, official(Version::V1, Binding::JsonRpc)] {
            assert_eq!(dialect.write_error(&error)["message"], "no");
        }
        let _ = (error.to_rest_json(), error.to_v03_rest_json());
    }
}

/// Cards of components and of remote hubs contain arbitrary JSON, and are written again in four
/// forms.
#[test]
fn mutated_cards_never_panic() {
    let card = json!({
        "name": "n", "description": "d", "version": "1", "url": "http://a/", "iconUrl": "i",
        "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC",
        "provider": { "name": "Acme", "organization": "Acme", "url": "http://a/" },
        "capabilities": { "streaming": true, "extensions": [{ "uri": "urn:x", "required": true }] },
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{ "id": "s", "name": "S", "description": "does", "tags": ["t"], "examples": ["e"],
            "inputModes": ["text/plain"], "inputSchema": { "type": "object", "required": ["a"] } }],
        "supportedInterfaces": [{ "url": "http://a/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }],
        "additionalInterfaces": [{ "url": "http://a/", "transport": "JSONRPC" }],
        "signatures": [{ "protected": "e30", "signature": "AA", "header": {} }],
        "endpoints": { "submit_task": "http://a/submit_task" },
        "securitySchemes": { "x": { "type": "http" } }, "security": [{ "x": [] }],
    });
    let id = AgentId::parse("n").unwrap();
    let status = HealthStatus::Healthy;
    let operated = Operated { status, task_timeout_ms: 1, max_running: 1, max_queued: 1 };
    let endpoints = Endpoints {
        base: "http://hub".to_owned(),
        root: "http://hub".to_owned(),
        grpc: None,
        socket: None,
        tenant: None,
        needs_token: true,
    };
    let mut published = 0;
    for other in reshaped(&card) {
        let _ = (read_interfaces(&other), normal_card(&other));
        let found = FoundAgent {
            id: id.clone(),
            aliases: Vec::new(),
            card: other.clone(),
            score: 1.0,
            why: Vec::new(),
        };
        let found = FoundAgents { agents: vec![found], ..FoundAgents::default() };
        registry::write(found, "http://hub/");
        let Ok(card) = AgentCard::parse(&other.to_string()) else { continue };
        let operated = vec![(id.clone(), operated)];
        let of = CardOf { agent: Some(id.clone()), card, since: String::new(), operated };
        for mut written in [of.card.v1(&endpoints), of.card.hybrid(&endpoints)] {
            extend(&mut written, &of);
            of.card.add_local_hub(&mut written);
            assert_eq!(written["capabilities"]["stateTransitionHistory"], true, "{other}");
        }
        let _ =
            (of.card.input_modes(), of.card.check_input_schemas(), of.card.extensions().count());
        answer::write(Answer::Card(Box::new(of)), "http://hub/");
        published += 1;
    }
    assert!(published > 200, "{published} cards are published");
}
