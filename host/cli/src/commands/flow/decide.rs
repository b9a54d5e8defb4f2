//! `decide`: several agents vote, bid, estimate or negotiate by a flow in the message.

use super::{RUNNER, agents::require_agents};
use crate::automation::decide::{Decide, DecisionRequest};
use crate::{
    Exit, Global, block_on,
    commands::{
        send::{Send, send},
        start,
    },
};
use serde_json::json;

/// Has the agents decide, and prints the decision.
pub(crate) fn decide(global: &Global, decide: Decide) -> anyhow::Result<Exit> {
    let DecisionRequest { rule, flow, of, message, cwd, worktree, timeout, start } =
        decide.request()?;
    let message = Send::to(RUNNER.to_owned(), message);
    let Some(message) = message.with_message(global)? else { return Ok(Exit::Interrupted) };
    block_on(async {
        let mut client = start::client(global, start).await?;
        require_agents(global, &mut client, &of).await
    })?;
    let data = json!({ "do": "run", "flow": flow, "text": message.message });
    let decides = Some(rule);
    let (data, message) = (Some(data), Send { message: String::new(), ..message });
    send(global, Send { data, cwd, worktree, timeout, start, decides, ..message })
}
