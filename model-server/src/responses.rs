//! OpenAI's Responses, as Codex speaks it.

use super::{
    dialect::{Dialect, Turn, error_names},
    parsed_request::{ParsedRequest, Tool, list},
    plan::Reply,
    script::Script,
};
use serde_json::{Value, json};

pub(super) struct Responses;

impl Dialect for Responses {
    fn parse_request(&self, request: &Value) -> ParsedRequest {
        let name = |tool: &Value| tool.get("name").unwrap_or(&tool["type"]).clone();
        let tools = list(&request["tools"]);
        let mut parsed = ParsedRequest {
            tools: tools.iter().map(|tool| Tool::new(&name(tool), &tool["parameters"])).collect(),
            ..ParsedRequest::default()
        };
        let input = &request["input"];
        if input.is_string() {
            parsed.user(input);
        }
        for item in list(input) {
            match item["type"].as_str().unwrap_or("message") {
                "message" if item["role"] == "user" => parsed.user(&item["content"]),
                "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
                    let output = &item["output"];
                    match output.as_str() {
                        Some(text) => parsed.tool(text, false),
                        None => parsed.tool(&output.to_string(), false),
                    }
                }
                _ => {}
            }
        }
        parsed
    }

    fn document(&self, turn: &Turn) -> Value {
        completed(turn, &items(turn))
    }

    fn script(&self, turn: &Turn) -> Script {
        let mut script = Script::default();
        send(&mut script, json!({"type": "response.created", "response": response(turn)}));
        send(&mut script, json!({"type": "response.in_progress", "response": response(turn)}));
        let items = items(turn);
        for (index, item) in items.iter().enumerate() {
            stream_item(&mut script, turn, index, item);
        }
        let response = completed(turn, &items);
        send(&mut script, json!({"type": "response.completed", "response": response}));
        script
    }

    fn refusal(&self, status: u16, message: &str) -> Value {
        let name = error_names(status).0;
        json!({"error": {"type": name, "code": name, "message": message, "param": null}})
    }
}

/// The response before it has output.
fn response(turn: &Turn) -> Value {
    json!({
        "id": format!("resp_{}", turn.id),
        "object": "response",
        "created_at": 0,
        "status": "in_progress",
        "model": turn.model,
        "output": [],
        "error": null,
        "usage": null,
    })
}

fn completed(turn: &Turn, items: &[Value]) -> Value {
    let (input, output) = (turn.input_tokens, turn.output_tokens());
    let mut response = response(turn);
    response["status"] = "completed".into();
    response["output"] = items.into();
    response["usage"] = json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input + output,
    });
    response
}

fn items(turn: &Turn) -> Vec<Value> {
    let id = &turn.id;
    let mut items = Vec::new();
    if turn.plan.thinks {
        let summary = json!([{"type": "summary_text", "text": "mock thinking about it"}]);
        items.push(json!({
            "type": "reasoning", "id": format!("rs_{id}"), "summary": summary, "encrypted_content": null,
        }));
    }
    items.push(match &turn.plan.reply {
        Reply::Text(text) => json!({
            "type": "message",
            "id": format!("msg_{id}"),
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }),
        Reply::Call { tool, arguments } => {
            let mut call = json!({
                "type": "function_call",
                "id": format!("fc_{id}"),
                "call_id": format!("call_{id}"),
                "name": tool,
                "arguments": arguments.to_string(),
                "status": "completed",
            });
            // Tools of MCP servers are in a namespace for each server.
            if let Some((namespace, name)) = tool.split_once('/') {
                (call["namespace"], call["name"]) = (namespace.into(), name.into());
            }
            call
        }
    });
    items
}

/// One output item: it is added empty, grows by deltas, and is done.
fn stream_item(script: &mut Script, turn: &Turn, index: usize, item: &Value) {
    let mut empty = item.clone();
    match item["type"].as_str() {
        Some("message") => {
            (empty["status"], empty["content"]) = ("in_progress".into(), json!([]));
            add(script, index, &empty);
            stream_text(script, turn, index, item);
        }
        Some("reasoning") => {
            empty["summary"] = json!([]);
            add(script, index, &empty);
            let tell = |script: &mut Script, event: &str, name: &str, value: Value| {
                send(
                    script,
                    json!({
                        "type": format!("response.{event}"), "item_id": item["id"], "output_index": index,
                        "summary_index": 0, name: value,
                    }),
                );
            };
            let part = json!({"type": "summary_text", "text": ""});
            tell(script, "reasoning_summary_part.added", "part", part);
            let text = item["summary"][0]["text"].clone();
            tell(script, "reasoning_summary_text.delta", "delta", text);
        }
        _ => {
            (empty["status"], empty["arguments"]) = ("in_progress".into(), "".into());
            add(script, index, &empty);
            for (event, name) in [("delta", "delta"), ("done", "arguments")] {
                send(
                    script,
                    json!({
                        "type": format!("response.function_call_arguments.{event}"), "item_id": item["id"],
                        "output_index": index, name: item["arguments"],
                    }),
                );
            }
        }
    }
    send(script, json!({"type": "response.output_item.done", "output_index": index, "item": item}));
}

fn add(script: &mut Script, index: usize, item: &Value) {
    send(
        script,
        json!({"type": "response.output_item.added", "output_index": index, "item": item}),
    );
}

/// The one content part of a message.
fn stream_text(script: &mut Script, turn: &Turn, index: usize, item: &Value) {
    let tell = |script: &mut Script, event: &str, name: &str, value: Value| {
        send(
            script,
            json!({
                "type": format!("response.{event}"), "item_id": item["id"], "output_index": index,
                "content_index": 0, name: value,
            }),
        );
    };
    let part = &item["content"][0];
    let empty = json!({"type": "output_text", "text": "", "annotations": []});
    tell(script, "content_part.added", "part", empty);
    let word =
        |script: &mut Script, word: &str| tell(script, "output_text.delta", "delta", word.into());
    script.stream_words(part["text"].as_str().unwrap_or_default(), &turn.plan, word, |script| {
        let mut failed = response(turn);
        failed["status"] = "failed".into();
        failed["error"] = json!({"code": "server_error", "message": "mock mid-stream error"});
        send(script, json!({"type": "response.failed", "response": failed}));
    });
    tell(script, "output_text.done", "text", part["text"].clone());
    tell(script, "content_part.done", "part", part.clone());
}

/// Here events are numbered, and their names are also their types.
fn send(script: &mut Script, mut data: Value) {
    data["sequence_number"] = script.events().into();
    script.event(data["type"].as_str().unwrap_or_default(), &data);
}
