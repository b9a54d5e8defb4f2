//! End of a run that the program refused with an error. The protocol has one code, for a missing
//! login; many programs send "internal error" instead, with an HTTP status, a name or a text.

use a2a_hub_sdk::cli::acp::Refusal;
use a2a_hub_sdk::cli::{End, FailureReason};
use a2a_hub_sdk::serde_json::Value;

/// Code of the protocol for a missing login.
const AUTH_REQUIRED: i64 = -32000;

/// Code of JSON-RPC for a failure of the program, which says nothing about its cause.
const INTERNAL_ERROR: i64 = -32603;

/// Members of an error's data in which programs report the HTTP status of the model's API.
const STATUS_MEMBERS: [&str; 4] = ["status", "statusCode", "httpStatus", "http_status"];

/// Parts of texts about a missing or refused login, in small letters.
const LOGIN_WORDS: [&str; 13] = [
    "invalid api key",
    "incorrect api key",
    "invalid x-api-key",
    "api key not valid",
    "missing api key",
    "api key is missing",
    "no api key",
    "not logged in",
    "not authenticated",
    "authentication required",
    "authentication failed",
    "401 unauthorized",
    "please log in",
];

/// Parts of texts about a rate limit or a quota.
const LIMIT_WORDS: [&str; 4] = ["rate limit", "too many requests", "quota exceeded", "error 429"];

/// Maps an error to the end of the run.
pub(super) fn end(refusal: &Refusal) -> End {
    let text = refusal.text.strip_prefix("Internal error: ").unwrap_or(&refusal.text);
    let status = match refusal.code {
        AUTH_REQUIRED => return End::LoginNeeded(text.to_owned()),
        code @ 400..600 => u16::try_from(code).ok(),
        INTERNAL_ERROR => status(&refusal.data),
        _ => return End::failed(FailureReason::AgentError, text),
    };
    if let Some(status) = status {
        return End::of_status(status, text);
    }
    let lower = text.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|part| lower.contains(part));
    let name = refusal.data["errorName"].as_str().unwrap_or_default();
    match name {
        "ProviderAuthError" => End::LoginNeeded(text.to_owned()),
        _ if has(&LOGIN_WORDS) => End::LoginNeeded(text.to_owned()),
        _ if has(&LIMIT_WORDS) => End::failed(FailureReason::RateLimited, text),
        "APIError" => End::failed(FailureReason::ApiError, text),
        "MessageOutputLengthError" => End::failed(FailureReason::MaxTokens, text),
        _ => End::failed(FailureReason::AgentError, text),
    }
}

/// HTTP status in an error's data, or in an error within it.
fn status(data: &Value) -> Option<u16> {
    let member = |data: &Value| {
        let found = STATUS_MEMBERS.iter().find_map(|name| data[*name].as_u64());
        found.and_then(|status| u16::try_from(status).ok()).filter(|it| (400..600).contains(it))
    };
    member(data).or_else(|| member(&data["error"]))
}

#[cfg(test)]
mod tests {
    use a2a_hub_sdk::serde_json::json;

    use super::*;

    fn end_of(code: i64, text: &str, data: Value) -> End {
        end(&Refusal { code, text: text.to_owned(), data })
    }

    #[test]
    fn every_form_of_missing_login_counts() {
        for (code, text, data) in [
            (-32000, "log in", Value::Null),
            (401, "no", Value::Null),
            (-32603, "no", json!({ "statusCode": 403 })),
            (-32603, "no", json!({ "error": { "status": 401 } })),
            (-32603, "no", json!({ "errorName": "ProviderAuthError" })),
            (-32603, "Internal error: Invalid API key", json!({ "errorName": "APIError" })),
        ] {
            let end = end_of(code, text, data);
            let End::LoginNeeded(why) = end else { panic!("{code} {text}: {end:?}") };
            assert!(!why.starts_with("Internal"), "{why}");
        }
    }

    #[test]
    fn other_errors_keep_their_reason() {
        use FailureReason::{AgentError, ApiError, MaxTokens, RateLimited};
        let name = |name: &str| json!({ "errorName": name });
        for (code, text, data, wanted) in [
            (-32603, "mock error 400", name("APIError"), ApiError),
            (-32603, "mock error 429", name("APIError"), RateLimited),
            (-32603, "no", json!({ "status": 429 }), RateLimited),
            (-32603, "too long", name("MessageOutputLengthError"), MaxTokens),
            (-32603, "no", json!({ "status": 7 }), AgentError),
            (-32602, "the parameter `api key` is missing: not logged in", Value::Null, AgentError),
            (-32603, "no", json!([]), AgentError),
        ] {
            assert_eq!(end_of(code, text, data), End::failed(wanted, text));
        }
    }
}
