//! Agent that has a person approve its message, then goes on: it calls the agent that the setting
//! `then` names, or completes the task as approved. The setting `within_hours` is the time after
//! which a missing answer counts as a no; the default is 24. The agent's tasks survive restarts of
//! the hub.

use a2a_hub_sdk::{CallOptions, Need, Outcome, Part, prelude::*, serde_json::json};
use std::time::Duration;

/// Words that count as a yes. Any other word counts as a no, so an unforeseen answer approves
/// nothing.
const YES: &[&str] = &["allow", "approve", "approved", "ja", "ok", "y", "yes"];

/// Agent that asks a person for approval.
pub struct ApprovalGate;

impl Agent for ApprovalGate {
    fn card() -> Card {
        Card::new("approval-gate", "Has a person approve, then goes on", env!("CARGO_PKG_VERSION"))
            .skill("approve", "Approve", "Asks its client before anything is done", &["approval"])
            .example("Delete the branch `old` of the repository")
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        let wish = task.text();
        if wish.trim().is_empty() {
            return ctx.reject("Say what is to be approved.");
        }
        let hours = ctx.setting("within_hours").and_then(|hours| hours.parse::<u32>().ok());
        let within = Duration::from_secs(u64::from(hours.unwrap_or(24).max(1)) * 3_600);
        let answer = match ctx.ask_within(Need::Input, question(&wish), Some(within)) {
            Ok(answer) => answer.text(),
            Err(Failure::Timeout) => {
                let fix = "send it again when somebody is there to answer";
                return ctx.fail_with_fix("not_approved", "Nobody answered in time: no.", fix);
            }
            Err(why) => return Err(why),
        };
        if !approves(&answer) {
            return ctx.reject("It was not approved.");
        }
        let Some(then) = ctx.setting("then") else {
            return ctx.done("Approved.");
        };
        ctx.say(format!("approved; {then} goes on"))?;
        // With the key, a restart of the hub in between joins the existing task.
        let options = CallOptions::new().key("approved");
        let outcome = ctx.call_with(&then, wish, &options)?.outcome()?;
        Ok(match outcome {
            Outcome::Message(message) => Outcome::completed(message.text()),
            Outcome::Status(status) => status.into(),
        })
    }
}
export!(ApprovalGate, manifest = "../manifest.toml");

/// Question for permission. Clients show it as such, with two buttons, and no agent may answer it.
fn question(wish: &str) -> Message {
    let text = format!("Is this to be done? Answer `allow` or `deny`.\n\n{wish}");
    let choices = Part::data(&json!({ "choices": ["allow", "deny"] }));
    Message::agent(vec![Part::text(text), choices])
        .with_metadata(&json!({ "question": { "kind": "permission" } }))
}

fn approves(answer: &str) -> bool {
    let answer = answer.trim().trim_end_matches(['.', '!']).to_lowercase();
    YES.contains(&answer.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_sdk::{TaskState, Update, testing::ScriptedHost};

    fn told(answer: &str) -> (ScriptedHost, Outcome) {
        let host = ScriptedHost::new();
        host.setting("then", "deployer");
        host.agent("deployer", vec![Update::Finished(Outcome::completed("deployed"))]);
        host.answer(answer);
        let outcome = host.run::<ApprovalGate>("deploy to production").unwrap();
        (host, outcome)
    }

    #[test]
    fn approved_task_calls_next_agent() {
        let (host, outcome) = told(" Yes! ");
        assert_eq!(
            (outcome.state(), outcome.text()),
            (Some(TaskState::Completed), "deployed".into())
        );
        assert_eq!(host.said(), ["approved; deployer goes on"]);
        let (need, asked) = host.asked().remove(0);
        assert_eq!(need, Need::Input);
        assert!(asked.text().ends_with("deploy to production"), "{}", asked.text());
        assert_eq!(asked.data(), Some(json!({ "choices": ["allow", "deny"] })));
    }

    #[test]
    fn any_other_answer_rejects_task() {
        for answer in ["no", "", "not yes", "yes, but not today", "allowed?", "deny"] {
            let (host, outcome) = told(answer);
            assert_eq!(outcome.state(), Some(TaskState::Rejected), "{answer}");
            assert!(host.said().is_empty(), "{answer}: nobody else heard of it");
        }
        let host = ScriptedHost::new();
        host.fail_answer(Failure::Timeout);
        let late = host.run::<ApprovalGate>("deploy").unwrap();
        assert_eq!(late.metadata()["reason"], "not_approved");
    }

    #[test]
    fn approval_without_next_agent_completes_task() {
        let host = ScriptedHost::new();
        host.answer("allow");
        assert_eq!(host.run::<ApprovalGate>("deploy").unwrap().text(), "Approved.");
    }
}
