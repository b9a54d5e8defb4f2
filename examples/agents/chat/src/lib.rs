//! Agent that talks with a model behind an OpenAI-compatible endpoint, and streams its answer.
//! Settings: `url` of the endpoint and `model`. The hub inserts the key (`headers` of the grant):
//! the agent never sees it.

use a2a_hub_sdk::{
    Exchange, Outcome, Request, Role,
    foreign::{self, JsonLines},
    prelude::*,
    serde_json::{Value, json},
};
use std::time::Duration;

/// Default endpoint.
const URL: &str = "https://api.openai.com/v1/chat/completions";

/// Default model.
const MODEL: &str = "gpt-5-mini";

/// Timeout between events of the model.
const EVENT_TIMEOUT: Duration = Duration::from_secs(120);

/// Maximum length of a reported error, in characters.
const MAX_ERROR_CHARS: usize = 300;

/// Agent that talks with a language model.
pub struct Chat;

impl Agent for Chat {
    fn card() -> Card {
        Card::new("chat", "Talks with a language model", env!("CARGO_PKG_VERSION"))
            .outputs(&["text/markdown", "text/plain"])
            .skill("chat", "Chat", "Answers in a conversation", &["chat", "llm"])
            .example("Why is the sky blue?")
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        let text = task.text();
        if text.trim().is_empty() {
            return ctx.reject("Say something: the model hears text.");
        }
        let url = ctx.setting("url").unwrap_or_else(|| URL.to_owned());
        let model = ctx.setting("model").unwrap_or_else(|| MODEL.to_owned());
        let history = task.history.iter().map(|entry| message(entry.role, &entry.text()));
        let messages: Vec<_> = history.chain([message(Role::User, &text)]).collect();
        let body = json!({ "model": model, "messages": messages, "stream": true,
            "stream_options": { "include_usage": true } });
        let request = Request::new("POST", url)
            .header("content-type", "application/json")
            .body(body.to_string());
        let answer = ctx.exchange(&request)?;
        if answer.status() == 200 {
            return listen(ctx, answer);
        }
        refused(ctx, answer)
    }
}
export!(Chat, manifest = "../manifest.toml");

fn message(role: Role, text: &str) -> Value {
    let role = match role {
        Role::User => "user",
        Role::Agent => "assistant",
    };
    json!({ "role": role, "content": text })
}

/// Streams the answer of the model.
fn listen(ctx: &Context, mut answer: Exchange) -> Run {
    let (mut stream, mut full_text) = (ctx.text_stream("answer"), String::new());
    let (mut usage, mut end) = (Value::Null, None);
    let mut lines = JsonLines::default();
    while let Some(event) = answer.next_event(Some(EVENT_TIMEOUT))? {
        if event.data == "[DONE]" {
            break;
        }
        // Invalid JSON counts as an event without content.
        let chunk = lines.read(&event.data).unwrap_or_default();
        if let Some(why) = chunk["error"]["message"].as_str() {
            return ctx.fail("model_error", short(why));
        }
        let choice = &chunk["choices"][0];
        if let Some(delta) = choice["delta"]["content"].as_str() {
            // Servers cut an emoji between two chunks; its halves are joined.
            let delta = lines.chunk(delta);
            stream.push(&delta)?;
            full_text.push_str(&delta);
        }
        end = choice["finish_reason"].as_str().map(str::to_owned).or(end);
        if chunk["usage"].is_object() {
            usage = chunk["usage"].clone();
        }
    }
    full_text.push_str(lines.end_of_message());
    stream.finish(&full_text)?;
    let Some(end) = end else {
        return ctx.fail_with_fix("cut_off", "The model's answer broke off.", "send it again");
    };
    let used = json!({ "inputTokens": usage["prompt_tokens"], "outputTokens": usage["completion_tokens"] });
    let facts = json!({ "usage": used, "finishReason": end });
    match Outcome::completed(full_text) {
        Outcome::Status(status) => Ok(status.with_metadata(&facts).into()),
        message @ Outcome::Message(_) => Ok(message),
    }
}

/// Fails the task with the server's error, and a fix.
fn refused(ctx: &Context, answer: Exchange) -> Run {
    let status = answer.status();
    let reply = foreign::read(&answer.rest()?).unwrap_or_default();
    let why = reply["error"]["message"].as_str().map(short).unwrap_or_default();
    let text = format!("The model's server answered {status}: {why}");
    match status {
        401 | 403 => {
            let fix = "put the key into `secrets/` of the data directory, and name it in `headers` of the grant";
            ctx.fail_with_fix("not_logged_in", text, fix)
        }
        404 => ctx.fail_with_fix("no_model", text, "see `url` and `model` in the agent's settings"),
        429 => ctx.fail_with_fix("rate_limited", text, "send it again later"),
        _ => ctx.fail("model_error", text),
    }
}

fn short(text: &str) -> String {
    text.chars().take(MAX_ERROR_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_sdk::{
        Response, serde_json,
        testing::{ScriptedHost, task},
    };

    #[test]
    fn answer_is_streamed_with_earlier_messages_sent() {
        let host = ScriptedHost::new();
        host.setting("url", "http://127.0.0.1:1/v1/chat/completions");
        host.respond_in_pieces(
            200,
            &[
                "data: {\"choices\":[{\"delta\":{\"content\":\"Ray\"}}]}\n\ndata: {\"choi",
                "ces\":[{\"delta\":{\"content\":\"leigh\"},\"finish_reason\":\"stop\"}]}\n\n",
                "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
            ],
        );
        let mut task = task("Why?");
        task.history = vec![Message::user(vec![Part::text("The sky is blue.")])];
        let outcome = Chat::run(&host.context(), &task).unwrap();
        assert_eq!(
            (outcome.text(), host.artifact("answer").unwrap()),
            ("Rayleigh".into(), "Rayleigh".into())
        );
        assert_eq!(outcome.metadata()["usage"]["inputTokens"], 7);
        let sent: Value = serde_json::from_slice(&host.requests()[0].body).unwrap();
        assert_eq!(sent["messages"][0]["content"], "The sky is blue.");
        assert_eq!(sent["messages"][1], json!({ "role": "user", "content": "Why?" }));
    }

    #[test]
    fn halves_of_emoji_are_joined() {
        let host = ScriptedHost::new();
        let chunk = |more: &str| format!("data: {{\"choices\":[{{{more}}}]}}\n\n");
        let pieces = [
            chunk(r#""delta":{"content":"party \ud83c"}"#),
            chunk(r#""delta":{"content":"\udf89 time\ud83d"}"#),
            chunk(r#""finish_reason":"stop""#),
        ];
        host.respond_in_pieces(200, &pieces.each_ref().map(String::as_str));
        assert_eq!(host.run::<Chat>("hi").unwrap().text(), "party 🎉 time\u{fffd}");
    }

    #[test]
    fn model_errors_fail_task_with_reason() {
        let fails = |status: u16, body: &str| {
            let host = ScriptedHost::new();
            host.respond(Response { status, headers: Vec::new(), body: body.into() });
            let outcome = host.run::<Chat>("hi").unwrap();
            (outcome.metadata()["reason"].as_str().unwrap().to_owned(), outcome.text())
        };
        let said = r#"{"error":{"message":"bad key"}}"#;
        assert_eq!(fails(401, said).1, "The model's server answered 401: bad key");
        let reasons = [(401, said), (404, ""), (429, ""), (500, "<html>"), (200, "")];
        let reasons = reasons.map(|(status, body)| fails(status, body).0);
        assert_eq!(
            reasons,
            ["not_logged_in", "no_model", "rate_limited", "model_error", "cut_off"]
        );
        let broken = "data: {\"error\":{\"message\":\"overloaded\"}}\n\n";
        assert_eq!(fails(200, broken), ("model_error".into(), "overloaded".into()));
    }
}
