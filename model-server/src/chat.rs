//! OpenAI's chat completions, as Mistral's Vibe speaks them.

use super::{
    dialect::{Dialect, Turn, error_names},
    parsed_request::{ParsedRequest, Tool, list, texts},
    plan::Reply,
    script::Script,
};
use serde_json::{Value, json};

const THOUGHT: &str = "mock thinking about it";

pub(super) struct ChatCompletions;

impl Dialect for ChatCompletions {
    fn parse_request(&self, request: &Value) -> ParsedRequest {
        let functions = list(&request["tools"]).iter().map(|tool| &tool["function"]);
        let mut parsed = ParsedRequest {
            tools: functions.map(|tool| Tool::new(&tool["name"], &tool["parameters"])).collect(),
            ..ParsedRequest::default()
        };
        for message in list(&request["messages"]) {
            match message["role"].as_str() {
                Some("user") => parsed.user(&message["content"]),
                Some("tool") => parsed.tool(&texts(&message["content"]).join(" "), false),
                _ => {}
            }
        }
        parsed
    }

    fn document(&self, turn: &Turn) -> Value {
        let message = match &turn.plan.reply {
            Reply::Text(text) => json!({"role": "assistant", "content": text}),
            Reply::Call { tool, arguments } => json!({
                "role": "assistant", "content": "", "tool_calls": tool_calls(turn, tool, arguments),
            }),
        };
        let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason(turn)});
        let mut completion = envelope(turn, "chat.completion", &choice);
        completion["usage"] = usage(turn);
        completion
    }

    fn script(&self, turn: &Turn) -> Script {
        let mut script = Script::default();
        let tell = |script: &mut Script, delta: Value| script.data(chunk(turn, &delta));
        tell(&mut script, json!({"role": "assistant", "content": ""}));
        if turn.plan.thinks {
            tell(&mut script, thinking(&turn.model));
        }
        match &turn.plan.reply {
            Reply::Text(text) => {
                let word = |script: &mut Script, word: &str| tell(script, json!({"content": word}));
                script.stream_words(text, &turn.plan, word, |script| {
                    script.data(json!({
                        "object": "error",
                        "message": "mock mid-stream error",
                        "type": "service_unavailable",
                        "code": "3505",
                    }));
                });
            }
            Reply::Call { tool, arguments } => {
                tell(&mut script, json!({"tool_calls": tool_calls(turn, tool, arguments)}));
            }
        }
        let mut last = chunk(turn, &json!({"content": ""}));
        last["choices"][0]["finish_reason"] = finish_reason(turn).into();
        last["usage"] = usage(turn);
        script.data(last);
        script.data("[DONE]");
        script
    }

    fn refusal(&self, status: u16, message: &str) -> Value {
        let name = error_names(status).0;
        let error = json!({"type": name, "code": name, "message": message, "param": null});
        json!({"error": error, "message": message})
    }
}

fn envelope(turn: &Turn, object: &str, choice: &Value) -> Value {
    json!({
        "id": format!("cmpl-{}", turn.id),
        "object": object,
        "created": 0,
        "model": turn.model,
        "choices": [choice],
    })
}

fn chunk(turn: &Turn, delta: &Value) -> Value {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
    envelope(turn, "chat.completion.chunk", &choice)
}

/// Reasoning, which Mistral's models put into the content, and others beside it.
fn thinking(model: &str) -> Value {
    if model.contains("mistral") {
        let thinking = json!([{"type": "text", "text": THOUGHT}]);
        json!({"content": [{"type": "thinking", "thinking": thinking}]})
    } else {
        json!({"reasoning_content": THOUGHT})
    }
}

fn tool_calls(turn: &Turn, tool: &str, arguments: &Value) -> Value {
    // Mistral's ids have nine characters; the last ones of a UUIDv7 are random.
    let id = &turn.id[turn.id.len() - 9..];
    let function = json!({"name": tool, "arguments": arguments.to_string()});
    json!([{"id": id, "type": "function", "index": 0, "function": function}])
}

fn finish_reason(turn: &Turn) -> &'static str {
    match turn.plan.reply {
        Reply::Text(_) => "stop",
        Reply::Call { .. } => "tool_calls",
    }
}

fn usage(turn: &Turn) -> Value {
    let (input, output) = (turn.input_tokens, turn.output_tokens());
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
}
