//! Anthropic's Messages, as Claude Code speaks it.

use super::{
    dialect::{Dialect, Turn, error_names},
    marker::is_marked,
    parsed_request::{ParsedRequest, Tool, list, spoken, texts},
    plan::Reply,
    script::Script,
};
use serde_json::{Value, json};

pub(super) struct Messages;

impl Dialect for Messages {
    fn parse_request(&self, request: &Value) -> ParsedRequest {
        let tools = list(&request["tools"]);
        let mut parsed = ParsedRequest {
            tools: tools
                .iter()
                .map(|tool| Tool::new(&tool["name"], &tool["input_schema"]))
                .collect(),
            ..ParsedRequest::default()
        };
        for message in list(&request["messages"]).iter().filter(|message| message["role"] == "user")
        {
            let content = &message["content"];
            let results = || list(content).iter().filter(|block| block["type"] == "tool_result");
            for result in results() {
                parsed.tool(&texts(&result["content"]).join(" "), result["is_error"] == true);
            }
            // Beside results stand remarks of the agent's own; the user speaks there only with a
            // marker.
            let marked = || spoken(&texts(content)).is_some_and(is_marked);
            if results().next().is_none() || marked() {
                parsed.user(content);
            }
        }
        parsed
    }

    fn document(&self, turn: &Turn) -> Value {
        let mut message = envelope(turn);
        message["content"] = blocks(turn).into();
        message["stop_reason"] = stop_reason(turn).into();
        message["usage"]["output_tokens"] = turn.output_tokens().into();
        message
    }

    fn script(&self, turn: &Turn) -> Script {
        let mut script = Script::default();
        send(&mut script, &json!({"type": "message_start", "message": envelope(turn)}));
        send(&mut script, &json!({"type": "ping"}));
        for (index, block) in blocks(turn).iter().enumerate() {
            stream_block(&mut script, turn, index, block);
        }
        let delta = json!({"stop_reason": stop_reason(turn), "stop_sequence": null});
        let usage = json!({"output_tokens": turn.output_tokens()});
        send(&mut script, &json!({"type": "message_delta", "delta": delta, "usage": usage}));
        send(&mut script, &json!({"type": "message_stop"}));
        script
    }

    fn refusal(&self, status: u16, message: &str) -> Value {
        let error = json!({"type": error_names(status).0, "message": message});
        json!({"type": "error", "error": error, "request_id": "req_mock"})
    }
}

/// The message before it has content.
fn envelope(turn: &Turn) -> Value {
    json!({
        "id": format!("msg_{}", turn.id),
        "type": "message",
        "role": "assistant",
        "model": turn.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": {
            "input_tokens": turn.input_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 1,
        },
    })
}

fn blocks(turn: &Turn) -> Vec<Value> {
    let mut blocks = Vec::new();
    if turn.plan.thinks {
        blocks.push(json!({
            "type": "thinking", "thinking": "mock thinking about it", "signature": "c2ln",
        }));
    }
    match &turn.plan.reply {
        Reply::Text(text) => blocks.push(json!({"type": "text", "text": text})),
        Reply::Call { tool, arguments } => {
            let id = format!("toolu_{}", turn.id);
            blocks.push(json!({"type": "tool_use", "id": id, "name": tool, "input": arguments}));
        }
    }
    blocks
}

fn stop_reason(turn: &Turn) -> &'static str {
    match turn.plan.reply {
        Reply::Text(_) => "end_turn",
        Reply::Call { .. } => "tool_use",
    }
}

/// One content block: it starts empty, grows by deltas, and stops.
fn stream_block(script: &mut Script, turn: &Turn, index: usize, block: &Value) {
    let start = |script: &mut Script, empty: Value| {
        send(
            script,
            &json!({"type": "content_block_start", "index": index, "content_block": empty}),
        );
    };
    let delta = |script: &mut Script, delta: Value| {
        send(script, &json!({"type": "content_block_delta", "index": index, "delta": delta}));
    };
    let mut empty = block.clone();
    if let Some(text) = block["text"].as_str() {
        empty["text"] = "".into();
        start(script, empty);
        let word = |script: &mut Script, word: &str| {
            delta(script, json!({"type": "text_delta", "text": word}));
        };
        script.stream_words(text, &turn.plan, word, |script| {
            let error = json!({"type": "overloaded_error", "message": "mock mid-stream error"});
            send(script, &json!({"type": "error", "error": error}));
        });
    } else if block["type"] == "thinking" {
        (empty["thinking"], empty["signature"]) = ("".into(), "".into());
        start(script, empty);
        delta(script, json!({"type": "thinking_delta", "thinking": block["thinking"]}));
        delta(script, json!({"type": "signature_delta", "signature": block["signature"]}));
    } else {
        empty["input"] = json!({});
        start(script, empty);
        let input = block["input"].to_string();
        delta(script, json!({"type": "input_json_delta", "partial_json": input}));
    }
    send(script, &json!({"type": "content_block_stop", "index": index}));
}

/// Here an event's name is also its type.
fn send(script: &mut Script, data: &Value) {
    script.event(data["type"].as_str().unwrap_or_default(), data);
}
