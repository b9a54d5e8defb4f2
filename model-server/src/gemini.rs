//! Google's generateContent, as Gemini CLI speaks it.

use super::{
    dialect::{Dialect, Turn, error_names},
    parsed_request::{ParsedRequest, Tool, list},
    plan::Reply,
    script::Script,
};
use serde_json::{Map, Value, json};

pub(super) struct GenerateContent;

impl Dialect for GenerateContent {
    fn parse_request(&self, request: &Value) -> ParsedRequest {
        let functions =
            list(&request["tools"]).iter().flat_map(|tool| list(&tool["functionDeclarations"]));
        let mut parsed = ParsedRequest {
            tools: functions.map(tool).collect(),
            dictated: dictated(&request["generationConfig"]),
            ..ParsedRequest::default()
        };
        for content in list(&request["contents"]).iter().filter(|content| content["role"] == "user")
        {
            let parts = &content["parts"];
            let mut responses =
                list(parts).iter().filter_map(|part| part.get("functionResponse")).peekable();
            if responses.peek().is_none() {
                parsed.user(parts);
            }
            for response in responses {
                parsed.tool(&response["response"].to_string(), false);
            }
        }
        parsed
    }

    fn document(&self, turn: &Turn) -> Value {
        chunk(turn, &part(turn), Some("STOP"))
    }

    fn script(&self, turn: &Turn) -> Script {
        let mut script = Script::default();
        if turn.plan.thinks {
            let thought = json!({"text": "**Mock** thinking about it", "thought": true});
            script.data(chunk(turn, &thought, None));
        }
        match &turn.plan.reply {
            Reply::Text(text) => {
                let word = |script: &mut Script, word: &str| {
                    script.data(chunk(turn, &json!({"text": word}), None));
                };
                script.stream_words(text, &turn.plan, word, |script| {
                    script.data(json!({"error": {
                        "code": 503, "message": "mock mid-stream error", "status": "UNAVAILABLE",
                    }}));
                });
            }
            Reply::Call { .. } => script.data(chunk(turn, &part(turn), None)),
        }
        script.data(chunk(turn, &json!({"text": ""}), Some("STOP")));
        script
    }

    fn refusal(&self, status: u16, message: &str) -> Value {
        json!({"error": {"code": status, "message": message, "status": error_names(status).1}})
    }
}

fn tool(function: &Value) -> Tool {
    let schema = function.get("parametersJsonSchema").unwrap_or(&function["parameters"]);
    Tool::new(&function["name"], schema)
}

fn part(turn: &Turn) -> Value {
    match &turn.plan.reply {
        Reply::Text(text) => json!({"text": text}),
        Reply::Call { tool, arguments } => {
            json!({"functionCall": {"name": tool, "args": arguments}})
        }
    }
}

fn chunk(turn: &Turn, part: &Value, finish_reason: Option<&str>) -> Value {
    let (input, output) = (turn.input_tokens, turn.output_tokens());
    let mut candidate = json!({"content": {"role": "model", "parts": [part]}, "index": 0});
    if let Some(reason) = finish_reason {
        candidate["finishReason"] = reason.into();
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": input,
            "candidatesTokenCount": output,
            "totalTokenCount": input + output,
        },
        "modelVersion": turn.model,
        "responseId": turn.id,
    })
}

/// The smallest object of the schema that a side question (which model? who speaks next?) asks for.
fn dictated(config: &Value) -> Option<String> {
    let schema = config.get("responseJsonSchema").or_else(|| config.get("responseSchema"));
    if schema.is_none() && config["responseMimeType"] != "application/json" {
        return None;
    }
    let properties = schema.and_then(|schema| schema["properties"].as_object());
    let example =
        |property: &Value| match property["type"].as_str().map(str::to_lowercase).as_deref() {
            _ if property["enum"].is_array() => property["enum"][0].clone(),
            Some("integer" | "number") => 1.into(),
            Some("boolean") => false.into(),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => "mock".into(),
        };
    let object: Map<String, Value> = properties
        .into_iter()
        .flatten()
        .map(|(name, property)| (name.clone(), example(property)))
        .collect();
    Some(Value::from(object).to_string())
}
