//! Requests of Codex for approval, by the methods of its app server.
//!
//! Codex asks for what its sandbox would refuse, so each request is one to act outside of it. The
//! command is read from `command` only: `commandActions` is for display, and the proposed amendment
//! leaves parts of the command out.

use super::codex_command::script;
use super::members::{ObjectForm, absolute_each, run};
use a2a_hub_protocol::permission::Action;
use serde_json::Value;

/// Name by which its driver calls the program.
pub(super) const VENDOR: &str = "codex";

const COMMAND: ObjectForm = ObjectForm::of(&[
    "kind",
    "threadId",
    "turnId",
    "itemId",
    "startedAtMs",
    "environmentId",
    "reason",
    "command",
    "cwd",
    "commandActions",
    "proposedExecpolicyAmendment",
    "availableDecisions",
]);

const FILE_CHANGE: ObjectForm = ObjectForm::of(&[
    "threadId",
    "turnId",
    "itemId",
    "startedAtMs",
    "reason",
    "availableDecisions",
]);

/// Action of a request, or the reason why the hub cannot read it exactly.
pub(super) fn action(facts: &Value) -> Result<Action, String> {
    let params = &facts["request"];
    match facts["method"].as_str() {
        Some("item/commandExecution/requestApproval") => command(params),
        Some("item/fileChange/requestApproval") => {
            FILE_CHANGE.check(params)?;
            let paths = facts["paths"].as_array().into_iter().flatten();
            Ok(Action::Edit { paths: absolute_each(paths)? })
        }
        Some(_) | None => Err("the hub does not know this kind of request".to_owned()),
    }
}

fn command(params: &Value) -> Result<Action, String> {
    COMMAND.check(params)?;
    let is = |member: &str, expected: &str| {
        params[member].is_null() || params[member].as_str() == Some(expected)
    };
    if !is("kind", "command") {
        return Err("it is no request to start a command".to_owned());
    }
    if !is("environmentId", "local") {
        return Err("the command runs on another machine".to_owned());
    }
    run(&Value::String(script(&params["command"])?), &params["cwd"])
}
