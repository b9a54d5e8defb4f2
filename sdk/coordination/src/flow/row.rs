//! State of one step in a run, and its record for templates.

use serde_json::{Value, json};

use super::{
    definition::{Items, Step, Work},
    event::ChildEnd,
    interaction::{MidTurnChange, Turn, Verdict},
    state::Handed,
    worktree,
};

/// State of one step.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub(super) phase: StepPhase,
    pub(super) round: u32,
    pub(super) items: Vec<StepCall>,
    /// Elements of the list of a `for_each`.
    pub(super) list: Vec<Value>,
    pub(super) record: Option<Value>,
    pub(super) previous: Option<Value>,
    /// End of an interaction.
    pub(super) verdict: Option<Verdict>,
    /// Changes of a blackboard by agents at work, in the order in which they arrived.
    pub(super) changes: Vec<MidTurnChange>,
    /// Times that each entry of `next` was followed.
    pub(super) jumps: Vec<u32>,
    /// Text that a step with `stream` has written so far.
    pub(super) written: String,
    /// Input of a task that reads a step while it is written.
    pub(super) handed: Option<Handed>,
    /// True once a pause is over, and what was written meanwhile is handed over.
    pub(super) is_due: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum StepPhase {
    #[default]
    Waiting,
    Running,
    Done,
    Failed,
    /// Not needed any more: the steps after it have begun without it.
    Dropped,
}

/// One call of a step; a step without `for_each` has one.
#[derive(Clone, Debug, Default)]
pub(super) struct StepCall {
    pub(super) attempt: u32,
    pub(super) retries: u32,
    /// Index of the agent: the first one, or one of `fallback`.
    pub(super) agent: usize,
    /// Reason why the last answer does not fit the schema.
    pub(super) correction: Option<String>,
    /// Task of one agent in an interaction.
    pub(super) turn: Option<Turn>,
    pub(super) done: Option<ItemEnd>,
}

#[derive(Clone, Debug)]
pub(super) struct ItemEnd {
    pub(super) completed: bool,
    pub(super) end: ChildEnd,
    pub(super) output: Option<Value>,
    pub(super) agent: String,
    /// Exit code of a program.
    pub(super) exit: Option<i64>,
}

/// Reason of an item that was not done, because what it works on is missing.
pub(super) const SKIPPED: &str = "skipped";

impl ItemEnd {
    /// True if the item was done, and failed.
    pub(super) fn is_failed(&self) -> bool {
        !self.completed && self.end.reason != SKIPPED
    }

    /// State for templates.
    fn state(&self) -> &'static str {
        match (self.completed, self.is_failed()) {
            (true, _) => "completed",
            (false, true) => "failed",
            (false, false) => SKIPPED,
        }
    }
}

/// Failure of an item.
pub(super) struct CallFailure {
    pub(super) reason: String,
    pub(super) text: String,
}

/// Agent of an attempt: the first one, or one of `fallback`.
pub(super) fn agents<'a>(first: &'a str, fallback: &'a [String], which: usize) -> &'a str {
    which.checked_sub(1).and_then(|it| fallback.get(it)).map_or(first, String::as_str)
}

/// Progress text of a step that starts.
pub(super) fn progress(step: &Step, round: u32, items: usize) -> String {
    let work = match &step.work {
        _ if let Some(description) = &step.description => &one_line(description),
        Work::Agent { agents, .. } => &agents.join(", "),
        Work::Flow { flow, .. } => flow,
        Work::Ask { .. } => "asks",
        Work::Wait { .. } => "waits",
        Work::Pick(_) => "picks",
        Work::Vote(vote) => &one_line(&vote.label()),
        Work::Interaction(interaction) => &one_line(&interaction.label()),
        Work::Run(script) => &format!("runs {}", one_line(&script.command.join(" "))),
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
    if !matches!(step.work, Work::Agent { .. } | Work::Flow { .. } | Work::Run(_)) {
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
    let mut record = if let Work::Vote(vote) = &step.work {
        vote.record(row, &items)
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

/// Record of one item.
pub(super) fn of_item(item: &StepCall) -> Value {
    let Some(done) = &item.done else { return Value::Null };
    let ItemEnd { completed: _, end, output, agent, exit } = done;
    json!({
        "state": done.state(),
        "text": end.text,
        "output": output,
        "artifacts": end.artifacts,
        "agent": agent,
        "exit": exit,
        "worktree": end.worktree.as_ref().map(worktree::record),
    })
}

/// Shortens a text to `max_bytes` bytes, and says so.
pub(super) fn cut(text: &mut String, max_bytes: usize) {
    const CUT: &str = "\n[cut]";
    if text.len() > max_bytes {
        let mut end = max_bytes.saturating_sub(CUT.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(CUT);
    }
}

/// First line of a text, shortened.
pub(super) fn one_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    line.chars().take(200).collect()
}
