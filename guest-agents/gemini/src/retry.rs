//! Detection of retries of the CLI after refusals by its vendor. In the Agent Client Protocol it
//! reports them to nobody, for minutes. Its debug log, redirected to standard error, has them:
//!
//! ```text
//! [2026-11-21T19:56:47.251Z] [WARN] Attempt 1 failed with status 429. Retrying with backoff... …
//! [2026-11-21T19:56:52.418Z] [WARN] Attempt 2 failed: Quota exceeded. Retrying after 9000ms...
//! ```

use a2a_hub_sdk::cli::{Action, End, FailureReason, cut};
use a2a_hub_sdk::foreign;

/// Retry that a line of the debug log reports, if any.
pub fn parse(line: &str) -> Option<Action> {
    // The other mode prints the same without the time and the level.
    let message = match line.strip_prefix('[') {
        Some(entry) => entry.split_once("] [WARN] ")?.1,
        None => line,
    };
    let (attempt, message) = message.strip_prefix("Attempt ")?.split_once(" failed")?;
    let attempt: u32 = attempt.parse().ok()?;
    let (detail, why) = message.split_once("Retrying ")?;
    let status: Option<u16> = detail
        .strip_prefix(" with status ")
        .and_then(|status| status.trim_end_matches([' ', '.']).parse().ok());
    let why = match detail.strip_prefix(": ") {
        Some(why) => why.trim_end_matches([' ', '.']).to_owned(),
        None => words(why.strip_prefix("with backoff...").unwrap_or(why).trim()),
    };
    let end = match status {
        Some(status) => End::of_status(status, why.clone()),
        None if detail.contains("429") || why.to_lowercase().contains("quota") => {
            End::failed(FailureReason::RateLimited, why.clone())
        }
        None => End::failed(FailureReason::ApiError, why.clone()),
    };
    Some(Action::Retrying { status: cut(&format!("retrying after attempt {attempt}: {why}")), end })
}

/// Text of an error such as `_ApiError: {"error":{"message":"…"}}`.
fn words(error: &str) -> String {
    let text = error.split_once(": ").map_or(error, |(_, text)| text);
    let json = foreign::read(text).unwrap_or_default();
    json["error"]["message"].as_str().unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retrying(line: &str) -> Option<(String, &'static str, String)> {
        let Action::Retrying { status, end } = parse(line)? else { panic!("{line}") };
        let End::Failed { reason, text, .. } = end else { panic!("{end:?}") };
        Some((status, reason.name(), text))
    }

    #[test]
    fn debug_log_lines_report_retries() {
        let limited = r#"[2026-11-21T19:56:47.251Z] [WARN] Attempt 1 failed with status 429. Retrying with backoff... _ApiError: {"error":{"code":429,"message":"mock error 429","status":"RESOURCE_EXHAUSTED"}}"#;
        let unreachable =
            "[now] [WARN] Attempt 10 failed. Retrying with backoff... TypeError: fetch failed";
        let quota =
            "[now] [WARN] Attempt 2 failed: Quota exceeded for model. Retrying after 9000ms...";
        let broken = r#"[now] [WARN] Attempt 3 failed with status 500. Retrying with backoff... _ApiError: {"error":{"message":"boom"}}"#;
        let of = |line| retrying(line).unwrap();
        let expect =
            |status: &str, reason, text: &str| (status.to_owned(), reason, text.to_owned());
        assert_eq!(
            of(limited),
            expect("retrying after attempt 1: mock error 429", "rate_limited", "mock error 429")
        );
        assert_eq!(
            of(unreachable),
            expect("retrying after attempt 10: fetch failed", "api_error", "fetch failed")
        );
        assert_eq!(
            of(quota),
            expect(
                "retrying after attempt 2: Quota exceeded for model",
                "rate_limited",
                "Quota exceeded for model"
            )
        );
        assert_eq!(of(broken), expect("retrying after attempt 3: boom", "api_error", "boom"));
        assert_eq!(retrying(broken.split_once("[WARN] ").unwrap().1), retrying(broken));
    }

    #[test]
    fn other_log_lines_are_ignored() {
        for line in [
            "",
            "Attempt at last failed. Retrying with backoff... x",
            "    at retryWithBackoff (file:///bundle/chunk.js:308039:23)",
            "[now] [DEBUG] Attempt 1 failed. Retrying with backoff... x",
            "[now] [WARN] Attempt 3 failed: no. Max attempts reached",
            "[now] [WARN] Ripgrep is not available. Falling back to GrepTool.",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
