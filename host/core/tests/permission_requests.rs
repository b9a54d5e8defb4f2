//! Recorded requests of real programs for permission, and the actions that the hub reads in them.

use a2a_hub_core::permission::{request::read, rules::describe};
use a2a_hub_protocol::permission::Action;
use serde_json::Value;

/// One line for each recorded request: exact or other, the request's origin, and its action.
fn actions(vendor: &str) -> String {
    let path = format!("{}/tests/permission_requests/{vendor}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let recorded = std::fs::read_to_string(path).expect("the recorded requests can be read");
    let lines = recorded.lines().map(|line| {
        let facts: Value = serde_json::from_str(line).expect("each line is a request");
        let request = read(&facts);
        assert_eq!(request.vendor, vendor);
        assert_eq!(request.outside_sandbox, vendor == "codex");
        let is_other = matches!(request.action, Action::Other { .. });
        let verdict = if is_other { "other" } else { "exact" };
        let was = facts["was"].as_str().unwrap_or_default().replace('\n', "\\n");
        format!("{verdict} | {was} | {}\n", describe(&request.action).replace("other: ", ""))
    });
    lines.collect()
}

#[test]
fn claude_requests_have_known_actions() {
    insta::assert_snapshot!(actions("claude"));
}

#[test]
fn codex_requests_have_known_actions() {
    insta::assert_snapshot!(actions("codex"));
}

#[test]
fn gemini_requests_have_known_actions() {
    insta::assert_snapshot!(actions("gemini"));
}

#[test]
fn vibe_requests_have_known_actions() {
    insta::assert_snapshot!(actions("vibe"));
}

#[test]
fn opencode_requests_have_known_actions() {
    insta::assert_snapshot!(actions("opencode"));
}
