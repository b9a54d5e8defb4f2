//! `deliveries`: how notifications get to where their clients want them.

use super::{
    Exit, Global, ask,
    render::{ago, ahead, list, text},
    text::Text,
};
use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::fmt::{self, Write as _};

#[derive(Debug, Args)]
pub(super) struct Deliveries {
    /// Only what was given up
    #[arg(long)]
    dead: bool,
    /// Try at once to send what fails or was given up of this task
    #[arg(long, value_name = "TASK", conflicts_with = "dead")]
    retry: Option<String>,
    /// At most so many, the oldest tasks first
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    limit: u32,
}

pub(super) fn deliveries(global: &Global, asked: &Deliveries) -> anyhow::Result<Exit> {
    let answer = match &asked.retry {
        Some(task) => ask(global, "hub/deliveries/retry", json!({ "taskId": task }))?,
        None => {
            let params = json!({ "dead": asked.dead, "limit": asked.limit });
            ask(global, "hub/deliveries/list", params)?
        }
    };
    global.show(&answer, || Ok(deliveries_text(list(&answer), Timestamp::now())?))?;
    Ok(Exit::Done)
}

/// Deliveries, a line each, and one more for what is wrong.
fn deliveries_text(deliveries: &[Value], now: Timestamp) -> Result<Text, fmt::Error> {
    let mut out = Text::new();
    if deliveries.is_empty() {
        writeln!(out, "nothing is to be sent")?;
    }
    for delivery in deliveries {
        let [task, receiver, state] =
            ["taskId", "receiver", "state"].map(|name| text(&delivery[name]));
        writeln!(out, "{task}  {state:<7}  {} waiting  {receiver}", delivery["waiting"])?;
        let (error, attempts) = (text(&delivery["error"]), &delivery["attempts"]);
        let (since, next) = (&delivery["failingSince"], &delivery["retryAt"]);
        match state {
            "held" => writeln!(out, "    left alone, for others failed in a row there: {error}")?,
            "failing" | "dead" => {
                writeln!(out, "    failed {attempts} time(s) since {}: {error}", ago(since, now))?;
            }
            _ => {}
        }
        if !next.is_null() {
            writeln!(out, "    next try: {}", ahead(next, now))?;
        }
        if state == "dead" {
            writeln!(out, "    try again: a2a-hub deliveries --retry {task}")?;
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_as_people_see_them() {
        let now = "2026-01-31T12:00:00Z".parse().unwrap();
        let fine = json!({ "taskId": "t1", "configId": "t1", "receiver": "https://example.com", "state": "fine",
            "version": "1.0", "waiting": 0, "attempts": 0 });
        let failing = |state| {
            json!({ "taskId": "t2", "configId": "c", "receiver": "https://example.com:8443", "state": state,
                "version": "0.3", "waiting": 3, "attempts": 5, "failingSince": "2026-01-31T11:58:00Z",
                "error": "connection refused" })
        };
        let mut again = failing("failing");
        again["retryAt"] = json!("2026-01-31T12:00:40Z");
        let held = json!({ "taskId": "t3", "configId": "c", "receiver": "https://example.com:8443", "state": "held",
            "version": "1.0", "waiting": 2, "attempts": 0, "error": "connection refused",
            "retryAt": "2026-01-31T12:00:25Z" });
        let shown = deliveries_text(&[fine, again, held, failing("dead")], now).unwrap();
        insta::assert_snapshot!(shown.words(), @"
        t1  fine     0 waiting  https://example.com
        t2  failing  3 waiting  https://example.com:8443
            failed 5 time(s) since 2 min ago: connection refused
            next try: in 40 s
        t3  held     2 waiting  https://example.com:8443
            left alone, for others failed in a row there: connection refused
            next try: in 25 s
        t2  dead     3 waiting  https://example.com:8443
            failed 5 time(s) since 2 min ago: connection refused
            try again: a2a-hub deliveries --retry t2
        ");
        insta::assert_snapshot!(deliveries_text(&[], now).unwrap().words(), @"nothing is to be sent");
    }
}
