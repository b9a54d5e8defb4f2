//! Limits of `never` rules: programs do some things without asking, so no rule is asked.

use super::finding::{CheckResult, warn};
use crate::{
    client::hub_client::Client,
    ui::render::{list, text},
};
use serde_json::{Value, json};

/// Checks the rules of a running hub; one of an older version has none.
pub(super) async fn check(client: &mut Client, agents: &[&Value]) -> Vec<CheckResult> {
    let rules = client.call("hub/permissions/list", json!({})).await.unwrap_or_default();
    verdicts(&rules, agents)
}

/// Warns about each agent whose unconfined program acts without asking, if a rule says never.
fn verdicts(rules: &Value, agents: &[&Value]) -> Vec<CheckResult> {
    let unseen = agents.iter().filter_map(|agent| {
        let id = text(&agent["id"]);
        let is_for = |rule: &&Value| rule["agent"].is_null() || rule["agent"] == agent["id"];
        let never = |rule: &&Value| rule["effect"] == "never" && is_for(rule);
        let rule = list(&rules["rules"]).iter().find(never)?;
        let unseen = unseen_by(id).filter(|_| agent["tier"] == "plain")?;
        let found = format!("the rule {} is not asked about {unseen}", text(&rule["id"]));
        let fix = format!("`agents.{id}.confine = true` in the configuration holds what its program may do unasked");
        Some(warn(&format!("never: {id}"), found, fix))
    });
    unseen.collect()
}

/// Actions that the program of a built-in agent takes without asking.
fn unseen_by(agent: &str) -> Option<&'static str> {
    Some(match agent {
        "claude-code" => {
            "commands that Claude Code holds safe (`ls`, `git status`), and the reading of files"
        }
        "codex" => {
            "what Codex runs within its own sandbox: all but the network and files elsewhere"
        }
        "gemini" => "the reading of files",
        "vibe" => {
            "commands that Vibe holds safe (`ls`, `cat`, `git diff`), and the reading of files"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_rule_names_what_plain_programs_do_unasked() {
        let agents = [
            json!({ "id": "claude-code", "tier": "plain" }),
            json!({ "id": "codex", "tier": "confined" }),
            json!({ "id": "vibe", "tier": "plain" }),
            json!({ "id": "echo" }),
        ];
        let agents: Vec<_> = agents.iter().collect();
        let about = |rules: Value| {
            let found = verdicts(&json!({ "rules": rules }), &agents);
            found.into_iter().map(|it| it.about).collect::<Vec<_>>()
        };
        assert!(about(json!([{ "id": "a", "effect": "deny" }])).is_empty());
        let never = json!({ "id": "a", "effect": "never", "agent": null });
        assert_eq!(about(json!([&never])), ["never: claude-code", "never: vibe"]);
        let of_one = json!({ "id": "a", "effect": "never", "agent": "vibe" });
        assert_eq!(about(json!([&of_one])), ["never: vibe"]);
        assert_eq!(about(json!([of_one, never])).len(), 2, "the second rule is for all");
    }
}
