//! `inbox --history`: the questions that were answered or closed, and all notices.

use super::{notices, shown::SHOWN};
use crate::{
    Exit, Global,
    client::hub_client::Client,
    ui::{
        render::{ago, list, text},
        table::{Cell, Table},
        text::Text,
    },
};
use a2a_hub_core::text::plain_text::line;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Lists up to `limit` questions that are not open any more, and up to `limit` notices.
pub(super) async fn show(global: &Global, client: &mut Client, limit: u32) -> anyhow::Result<Exit> {
    let mut past = client.call("hub/questions/history", json!({ "limit": limit })).await?;
    notices::attach(client, &mut past, limit, true).await?;
    let columns = global.console().columns();
    global.show(&past, || {
        let now = Timestamp::now();
        let mut output = history_text(&past, now, columns);
        output.append(notices::notices_text(&past, now, columns));
        Ok(output)
    })?;
    Ok(Exit::Done)
}

/// Renders closed questions, each with its answer.
fn history_text(past: &Value, now: Timestamp, columns: Option<usize>) -> Text {
    let questions = list(&past["questions"]);
    if questions.is_empty() {
        return "no question was answered yet\n".into();
    }
    let mut table = Table::new(["KIND", "AGENT", "CLOSED", "OUTCOME", "BY"]);
    for question in questions {
        table.row([
            text(&question["kind"]).into(),
            text(&question["agentId"]).into(),
            ago(&question["closedAt"], now).into(),
            text(&question["outcome"]).into(),
            Cell::from(question["rule"].as_str().unwrap_or(text(&question["answeredBy"]))),
        ]);
        table.add_note(line(text(&question["text"]), SHOWN.1));
        if let Some(answer) = question["answer"].as_str() {
            table.add_note(format!("answer: {}", line(answer, SHOWN.1)));
        }
    }
    table.text(columns)
}
