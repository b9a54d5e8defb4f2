//! `usage`: tokens, cost, time and questions of tasks.

use crate::{
    Exit, Global,
    client::{hub_client::ask, ids, sent::agent_name},
    since::{Since, since},
    ui::{
        render::{counted, duration, list, text},
        table::{Cell, Table},
        text::{FAINT, Text},
    },
};
use a2a_hub_core::text::{number::grouped, plain_text::line};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Most characters of a key, such as the name of a model.
const MAX_KEY: usize = 80;

/// Sign of a figure that nobody reported.
const NO_FIGURE: &str = "-";

/// Key by which usage is summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// Day, in UTC
    Day,
    /// Agent
    Agent,
    /// Model, as agents name it
    Model,
    /// Tenant, over all tenants
    Tenant,
    /// Person, program or automation that began the task
    Person,
    /// Agent at the root of the task's tree, such as a flow
    Flow,
    /// Task; deleted ones together
    Task,
}

impl By {
    /// Name of the key, as the user types it and the hub knows it.
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

#[derive(Debug, Args)]
pub(crate) struct UsageArgs {
    /// Sum by this key
    #[arg(long, value_enum, default_value = "day", value_name = "KEY")]
    by: By,
    /// Only usage within this time (`7d`, `2w`) or since this date, in whole days (UTC)
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Since>,
    /// Maximum number of rows
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    limit: u32,
}

/// Prints the usage of tasks.
pub(crate) fn usage(global: &Global, args: &UsageArgs) -> anyhow::Result<Exit> {
    let since = args.since.map(|since| since.moment(Timestamp::now()));
    let params = json!({ "by": args.by.name(), "since": since, "limit": args.limit });
    let report = ask(global, "hub/usage", params)?;
    let columns = global.console().columns();
    global.show(&report, || Ok(usage_text(args.by, &report, columns)))?;
    for note in notes(&report) {
        global.console().note(Text::styled(FAINT, note));
    }
    Ok(Exit::Done)
}

/// Remarks on figures that are missing or not complete.
fn notes(report: &Value) -> Vec<String> {
    let count = |of: &Value| of.as_u64().and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0);
    let total = &report["total"];
    let mut notes = Vec::new();
    if let Some(tasks) = count(&total["withoutCost"]) {
        notes.push(format!("no cost was reported for {}", counted(tasks, "task")));
    }
    if total["pricedUsd"].is_number() {
        let why = "PRICED is by your `[prices.MODEL]`, where the vendor reports tokens only";
        notes.push(why.to_owned());
    }
    if let Some(rows) = count(&report["omitted"]) {
        notes.push(format!("{} not shown: `--limit COUNT` shows more", counted(rows, "row")));
    }
    if let Some(tasks) = count(&report["uncounted"]) {
        let tasks = counted(tasks, "task");
        notes.push(format!(
            "{tasks} not counted yet, as the index is behind; try again in a moment"
        ));
    }
    notes
}

/// Renders the groups, and their sum on a terminal.
fn usage_text(by: By, report: &Value, columns: Option<usize>) -> Text {
    let groups = list(&report["groups"]);
    if groups.is_empty() {
        return "no task has used anything\n".into();
    }
    let ids = || groups.iter().map(|group| text(&group["key"]));
    let is_priced = columns.is_none() || report["total"]["pricedUsd"].is_number();
    let mut headers = vec![by.name().to_uppercase(), "TASKS".to_owned()];
    headers.extend(["INPUT", "CACHED", "OUTPUT", "COST"].map(str::to_owned));
    headers.extend(is_priced.then(|| "PRICED".to_owned()));
    headers.extend(["TIME", "ASKED", "BY RULE"].map(str::to_owned));
    headers.extend((by == By::Task).then(|| "AGENT".to_owned()));
    let mut table = Table::new(headers);
    for group in groups {
        let key = text(&group["key"]);
        let is_id = by == By::Task && !key.is_empty();
        let first =
            if is_id { Cell::id(key, ids::short(key, &ids())) } else { key_cell(by, key, columns) };
        let agent = (by == By::Task).then(|| agent_name(text(&group["agentId"])).into());
        table.row(row(first, group, is_priced, columns).chain(agent).collect::<Vec<_>>());
    }
    if columns.is_some() && groups.len() > 1 {
        let first = Cell::styled(FAINT, "total");
        table.row(row(first, &report["total"], is_priced, columns).collect::<Vec<_>>());
    }
    table.text(columns)
}

/// Cell of a key. Programs get an empty one as it is.
fn key_cell(by: By, key: &str, columns: Option<usize>) -> Cell {
    if !key.is_empty() || columns.is_none() {
        return line(key, MAX_KEY).into();
    }
    Cell::styled(
        FAINT,
        match by {
            By::Tenant => "(default)",
            By::Task => "(deleted)",
            By::Model => "(not named)",
            By::Day | By::Agent | By::Person | By::Flow => "(unknown)",
        },
    )
}

fn row(
    first: Cell,
    of: &Value,
    is_priced: bool,
    columns: Option<usize>,
) -> impl Iterator<Item = Cell> {
    let number = |name: &str| match of[name].as_u64() {
        Some(number) if columns.is_some() => grouped(number),
        Some(number) => number.to_string(),
        None => NO_FIGURE.to_owned(),
    };
    let dollars = |name: &str| match of[name].as_f64() {
        Some(dollars) if columns.is_some() => format!("${dollars:.2}"),
        Some(dollars) => dollars.to_string(),
        None => NO_FIGURE.to_owned(),
    };
    let work_ms = of["workMs"].as_u64().unwrap_or_default();
    let time = if columns.is_some() { duration(work_ms / 1_000) } else { work_ms.to_string() };
    let mut cells = vec![first, number("tasks").into(), number("inputTokens").into()];
    cells.extend([number("cachedTokens").into(), number("outputTokens").into()]);
    cells.push(dollars("costUsd").into());
    cells.extend(is_priced.then(|| dollars("pricedUsd").into()));
    cells.extend([time, number("questions"), number("answeredByRule")].map(Cell::from));
    cells.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::operation::UsageKey;

    fn report() -> Value {
        json!({ "by": "model", "groups": [
            { "key": "claude-sonnet-4-5", "tasks": 3, "inputTokens": 1_234_567, "outputTokens": 900,
                "cachedTokens": 45_000, "costUsd": 1.239, "workMs": 61_000, "questions": 4,
                "answeredByRule": 12, "withoutTokens": 0, "withoutCost": 0 },
            { "key": "hidden\u{1b}[2J\u{202e}\nrow", "tasks": 1, "inputTokens": 7, "outputTokens": 1,
                "cachedTokens": 0, "pricedUsd": 0.5, "workMs": 0, "questions": 0,
                "answeredByRule": 0, "withoutTokens": 0, "withoutCost": 0 },
            { "key": "", "tasks": 2, "workMs": 500, "questions": 0, "answeredByRule": 0,
                "withoutTokens": 2, "withoutCost": 2 },
        ], "omitted": 1, "uncounted": 1, "total": { "tasks": 6, "inputTokens": 1_234_574,
            "outputTokens": 901, "cachedTokens": 45_000, "costUsd": 1.239, "pricedUsd": 0.5,
            "workMs": 61_500, "questions": 4, "answeredByRule": 12, "withoutTokens": 2,
            "withoutCost": 2 } })
    }

    #[test]
    fn usage_is_table_with_sum() {
        let shown = usage_text(By::Model, &report(), Some(120)).words();
        assert_eq!(shown.lines().count(), 5, "{shown}");
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
        for words in ["1,234,567", "$1.24", "$0.50", "(not named)", "total", "PRICED", "BY RULE"] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
        let missing = shown.lines().nth(3).unwrap();
        assert_eq!(missing.split_whitespace().filter(|cell| *cell == "-").count(), 5, "{missing}");
        let notes = notes(&report());
        assert_eq!(notes.len(), 4, "{notes:?}");
        assert_eq!(notes[0], "no cost was reported for 2 tasks");
    }

    #[test]
    fn piped_usage_has_whole_numbers() {
        let piped = usage_text(By::Model, &report(), None).words();
        let first = "claude-sonnet-4-5\t3\t1234567\t45000\t900\t1.239\t-\t61000\t4\t12\n";
        assert!(piped.starts_with(first), "{piped}");
        assert_eq!(piped.lines().count(), 3, "{piped}");
        let none = json!({ "groups": [], "total": {} });
        assert_eq!(usage_text(By::Day, &none, Some(80)).words(), "no task has used anything\n");
    }

    #[test]
    fn keys_are_those_of_hub() {
        let names = By::value_variants().iter().map(|by| by.name());
        assert_eq!(names.collect::<Vec<_>>(), UsageKey::ALL.map(UsageKey::name));
    }
}
