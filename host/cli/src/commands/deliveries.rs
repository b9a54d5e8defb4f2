//! `deliveries`: state of push notifications on their way to clients.

use super::{
    completion,
    tasks::{note_more, one_more},
};
use crate::{
    Exit, Global, ask, block_on,
    client::{
        hub_client::Client,
        ids::{self, Kind},
    },
    ui::{
        render::{ago, ahead, counted, list, shell_word, text},
        table::{Cell, Table},
        text::{Text, style_of},
    },
};
use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

#[derive(Debug, Args)]
pub(crate) struct Deliveries {
    /// Only notifications that the hub no longer retries
    #[arg(long)]
    dead: bool,
    /// Retry the failed notifications of this task at once
    #[arg(long, value_name = "TASK", conflicts_with = "dead", add = completion::tasks())]
    retry: Option<String>,
    /// Maximum number of entries, oldest tasks first
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    limit: u32,
}

pub(crate) fn deliveries(global: &Global, args: &Deliveries) -> anyhow::Result<Exit> {
    let answer = match &args.retry {
        Some(task) => block_on(async {
            let mut client = Client::connect(global).await?;
            let task = ids::resolve(&mut client, Kind::Task, task).await?;
            client.call("hub/deliveries/retry", json!({ "taskId": task })).await
        })?,
        None => {
            let params = json!({ "dead": args.dead, "limit": one_more(args.limit) });
            let mut answer = ask(global, "hub/deliveries/list", params)?;
            note_more(global, &mut answer, args.limit, None, "notifications");
            answer
        }
    };
    let columns = global.console().columns();
    let none = if args.dead {
        "no notifications were given up\n"
    } else {
        "no notifications are pending\n"
    };
    global.show(&answer, || {
        let all = list(&answer);
        Ok(if all.is_empty() {
            none.into()
        } else {
            deliveries_text(all, Timestamp::now(), columns)
        })
    })?;
    Ok(Exit::Done)
}

/// Renders deliveries as a table, with the error below each row.
fn deliveries_text(deliveries: &[Value], now: Timestamp, columns: Option<usize>) -> Text {
    let ids = || deliveries.iter().map(|delivery| text(&delivery["taskId"]));
    let mut table = Table::new(["TASK", "STATE", "WAITING", "RECEIVER"]);
    for delivery in deliveries {
        let [task, receiver, state] =
            ["taskId", "receiver", "state"].map(|name| text(&delivery[name]));
        table.row([
            Cell::id(task, ids::short(task, &ids())),
            Cell::styled(style_of(state), state),
            delivery["waiting"].to_string().into(),
            receiver.into(),
        ]);
        let (error, attempts) = (text(&delivery["error"]), delivery["attempts"].as_u64());
        let attempts = attempts.and_then(|it| usize::try_from(it).ok()).unwrap_or_default();
        let (since, next) = (&delivery["failingSince"], &delivery["retryAt"]);
        match state {
            "held" => table.add_note(format!(
                "paused, because others to this receiver failed in a row: {error}"
            )),
            "failing" | "dead" => {
                let times = counted(attempts, "time");
                table.add_note(format!("failed {times} since {}: {error}", ago(since, now)));
            }
            _ => {}
        }
        if !next.is_null() {
            table.add_note(format!("next try: {}", ahead(next, now)));
        }
        if state == "dead" {
            table.add_note(format!("try again: a2a-hub deliveries --retry {}", shell_word(task)));
        }
    }
    table.text(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delivery_table_fits_terminal_width() {
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
        let deliveries = [fine, again, held, failing("dead")];
        let shown = |columns| deliveries_text(&deliveries, now, columns).words();
        insta::assert_snapshot!(shown(Some(100)), @"
        TASK  STATE    WAITING  RECEIVER
        t1    fine     0        https://example.com
        t2    failing  3        https://example.com:8443
            failed 5 times since 2 min ago: connection refused
            next try: in 40 s
        t3    held     2        https://example.com:8443
            paused, because others to this receiver failed in a row: connection refused
            next try: in 25 s
        t2    dead     3        https://example.com:8443
            failed 5 times since 2 min ago: connection refused
            try again: a2a-hub deliveries --retry t2
        ");
        insta::assert_snapshot!(shown(Some(44)), @"
        TASK  STATE    WAITING  RECEIVER
        t1    fine     0        https://example.com
        t2    failing  3        https://example.com…
            failed 5 times since 2 min ago:
            connection refused
            next try: in 40 s
        t3    held     2        https://example.com…
            paused, because others to this receiver
            failed in a row: connection refused
            next try: in 25 s
        t2    dead     3        https://example.com…
            failed 5 times since 2 min ago:
            connection refused
            try again: a2a-hub deliveries --retry t2
        ");
        insta::assert_snapshot!(shown(None).replace('\t', " → "), @"
        t1 → fine → 0 → https://example.com
        t2 → failing → 3 → https://example.com:8443
         → failed 5 times since 2 min ago: connection refused
         → next try: in 40 s
        t3 → held → 2 → https://example.com:8443
         → paused, because others to this receiver failed in a row: connection refused
         → next try: in 25 s
        t2 → dead → 3 → https://example.com:8443
         → failed 5 times since 2 min ago: connection refused
         → try again: a2a-hub deliveries --retry t2
        ");
    }
}
