//! Texts and records of steps: what a step begins, what came of it, and its variables.

use serde_json::{Value, json};

use super::{
    definition::{Items, Step},
    row::{Row, of_item},
    text::one_line,
    turn::Verdict,
};

/// Progress text of a step that starts.
pub(super) fn begun(step: &Step, round: u32, items: usize) -> String {
    let work = match &step.description {
        Some(description) => one_line(description),
        None => step.work.kind().progress(),
    };
    let round = if round > 1 { format!(", round {round}") } else { String::new() };
    let items = match step.each.as_ref().map(|each| &each.items) {
        Some(Items::List(_) | Items::Worktrees(_)) => format!(", {items} items"),
        Some(Items::Agents(_)) | None => String::new(),
    };
    format!("{}: {work}{items}{round}", step.id)
}

/// Text about a step that an agent, a flow or a program has done: its structured answer, its exit
/// code or the begin of its text; none if it has none of them.
pub(super) fn ended(step: &Step, record: &Value) -> Option<String> {
    let work = step.work.kind();
    if !work.is_delegated() && work.program().is_none() {
        return None;
    }
    let text = record["text"].as_str().unwrap_or_default();
    let summary = match (&record["output"], &record["exit"]) {
        (Value::Object(answer), _) => {
            let member = |(name, value): (&String, &Value)| {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                format!("{name} {value}")
            };
            one_line(&answer.iter().map(member).collect::<Vec<_>>().join(", ").replace('\n', " "))
        }
        (_, Value::Number(exit)) => format!("exit {exit}"),
        _ => one_line(text),
    };
    (!summary.is_empty()).then(|| format!("{}: done: {summary}", step.id))
}

/// Record of a step for templates.
pub(super) fn record(row: &Row, step: &Step) -> Value {
    let mut items: Vec<Value> = row.items.iter().map(of_item).collect();
    let mut record = if let Some(record) = step.work.kind().record(row, &items) {
        record
    } else if let Some(Verdict { failure: _, text, output }) = &row.verdict {
        json!({ "state": "completed", "text": text, "output": output, "items": items })
    } else if step.each.is_some() {
        let of = |name: &str| items.iter().map(|item| item[name].clone()).collect::<Vec<_>>();
        let (texts, outputs) = (of("text"), of("output"));
        let completed = items.iter().zip(texts).filter(|(item, _)| item["state"] == "completed");
        let texts: Vec<_> =
            completed.filter_map(|(_, text)| text.as_str().map(str::to_owned)).collect();
        json!({ "state": "completed", "text": texts.join("\n"), "output": outputs, "items": items })
    } else {
        items.pop().unwrap_or_default()
    };
    if let Value::Object(members) = &mut record {
        members.insert("round".to_owned(), row.round.into());
    }
    record
}
