//! `task watch`: prints the events of a task until it ends.

use super::{output::TaskOutput, question};
use crate::commands::{
    follow::{follow, follow_handoff},
    leave::OnLeave,
};
use crate::{
    Exit, Format, Global, block_on,
    client::{hub_client::Client, sent},
};
use serde_json::{Map, json};

/// Prints the events of the task, and of those that it is handed over to. Ctrl-C cancels none.
pub(super) fn watch(global: &Global, typed: Option<&str>) -> anyhow::Result<Exit> {
    block_on(async {
        let mut client = Client::connect(global).await?;
        let mut task = sent::resolve_or_latest(global, &mut client, typed).await?;
        loop {
            let id = client.ask("tasks/resubscribe", json!({ "id": task })).await?;
            let mut shown = TaskOutput::new(global, true);
            // A watched task has no moving progress line.
            let mut still = global.progress(&task, false);
            let followed = follow(&mut client, id, &mut shown, &mut still, OnLeave::LetBe).await;
            let exit = followed.map_err(|why| shown.broken_off(&why, ""))?;
            if let Some((_, next)) = follow_handoff(global, &mut shown)? {
                task = next;
                continue;
            }
            shown.finish(exit, Map::new())?;
            if exit == Exit::NeedsInput && global.format == Format::Pretty {
                question::print_question(global.console(), &shown, &format!("task {task}"));
            }
            return Ok(exit);
        }
    })
}
