//! Measured record of the agents of a flow: kept in the memory of the flow's agent, a value a run.

use std::collections::BTreeMap;

use a2a_hub_coordination::record::{self, Record, RunResults};
use a2a_hub_sdk::prelude::*;
use a2a_hub_sdk::serde_json::Value;

use crate::origin::is_child;

/// Beginning of the keys; the id of the run's task follows, so that their order is that of time.
const RUN: &str = "run.";

/// Most runs that count; the oldest ones are forgotten.
const MAX_RUNS: usize = 200;

/// Member of a request that confirms a choice: `task`, `choice`, and `step` of a flow with several.
const CONFIRM: &str = "confirm";

/// Member of a request that asks for the record: `true`.
const RECORD: &str = "record";

/// Answers a request about the record; none if the message is no such request.
pub(crate) fn answer(ctx: &Context, task: &Task, inputs: impl Fn(&str) -> bool) -> Option<Run> {
    let data = task.message.data()?;
    let request = data.as_object().filter(|request| request.len() == 1)?;
    let (name, value) = request.iter().next()?;
    match (name.as_str(), value) {
        (CONFIRM, Value::Object(_)) if !inputs(CONFIRM) => Some(confirm(ctx, task, value)),
        (RECORD, Value::Bool(true)) if !inputs(RECORD) => Some(show(ctx)),
        _ => None,
    }
}

/// Records of the latest runs.
pub(crate) fn read(ctx: &Context) -> Result<BTreeMap<String, Record>, Failure> {
    let counts = ctx.step_with("record", StepMode::Again, || {
        let mut runs = Vec::new();
        for key in ctx.remembered(RUN)? {
            runs.extend(ctx.recall::<Value>(&key)?.map(|run| RunResults::of_json(&run)));
        }
        let counts = record::records(&runs).into_iter();
        Ok(counts.map(|(agent, Record { right, wrong })| (agent, right, wrong)).collect::<Vec<_>>())
    })?;
    let counts = counts.into_iter();
    Ok(counts.map(|(agent, right, wrong)| (agent, Record { right, wrong })).collect())
}

/// Keeps the results of a run. A record that cannot be kept is no reason to fail the run.
pub(crate) fn store_results(
    ctx: &Context,
    task: &Task,
    results: &RunResults,
) -> Result<(), Failure> {
    if results.is_empty() {
        return Ok(());
    }
    let value = results.to_json();
    let stored = ctx.step_with("keep-record", StepMode::Again, || store(ctx, &task.id, &value));
    match stored {
        Ok(()) => Ok(()),
        Err(Failure::Cancelled) => Err(Failure::Cancelled),
        Err(why) => ctx.say(format!("The record of this run was not kept: {}", why.text())),
    }
}

/// Stores a run, and forgets the oldest ones above the limit, or as many as the memory needs.
fn store(ctx: &Context, task: &str, value: &Value) -> Result<(), Failure> {
    let key = format!("{RUN}{task}");
    let mut others = ctx.remembered(RUN)?;
    others.retain(|other| *other != key);
    let excess = (others.len() + 1).saturating_sub(MAX_RUNS);
    for old in others.drain(..excess) {
        ctx.forget(&old)?;
    }
    let mut others = others.into_iter();
    loop {
        match ctx.remember(&key, value) {
            Err(Failure::Exhausted(why)) => match others.next() {
                Some(old) => ctx.forget(&old)?,
                None => return Err(Failure::Exhausted(why)),
            },
            stored => return stored,
        }
    }
}

/// Notes which choice of an earlier run's vote was right.
fn confirm(ctx: &Context, task: &Task, request: &Value) -> Run {
    // Else an agent could raise its own weight.
    if is_child(task) {
        return ctx.reject("Confirm a choice: another agent asks, and only a client may.");
    }
    let text = |name: &str| request[name].as_str();
    let (Some(of), Some(choice)) = (text("task"), text("choice")) else {
        let form = r#"{"confirm": {"task": "ID", "choice": "yes"}}"#;
        return ctx.reject(format!("Confirm a choice: name `task` and `choice`, as in {form}."));
    };
    let confirmed = ctx.step_with("confirm", StepMode::Again, || {
        let Some(stored) = ctx.recall::<Value>(&format!("{RUN}{of}"))? else {
            let why = "no ballots of it are kept; votes with `rule = \"record\"` keep them, those of the latest 200 runs";
            return Ok(json!({ "refused": why }));
        };
        let mut results = RunResults::of_json(&stored);
        let vote = match results.confirm(text("step"), choice) {
            Ok(vote) => vote.clone(),
            Err(why) => return Ok(json!({ "refused": why })),
        };
        store(ctx, of, &results.to_json())?;
        let (right, wrong) = vote.right_and_wrong();
        Ok(json!({ "choice": choice, "right": right, "wrong": wrong }))
    })?;
    if let Some(why) = confirmed["refused"].as_str() {
        return ctx.reject(format!("Confirm a choice of the task `{of}`: {why}."));
    }
    let names = |of: &Value| {
        let names = of.as_array().into_iter().flatten().filter_map(Value::as_str);
        names.collect::<Vec<_>>().join(", ")
    };
    let mut summary = format!("`{choice}` was right.");
    for (word, agents) in [("Right", &confirmed["right"]), ("Wrong", &confirmed["wrong"])] {
        let agents = names(agents);
        if !agents.is_empty() {
            summary.push_str(&format!(" {word}: {agents}."));
        }
    }
    ctx.artifact(Artifact::new("output", vec![Part::data(&confirmed)]))?;
    ctx.done(summary)
}

/// Shows the record.
fn show(ctx: &Context) -> Run {
    let records = read(ctx)?;
    if records.is_empty() {
        return ctx.done("No result counts yet: confirm a choice, or judge candidates.");
    }
    let line = |(agent, record): (&String, &Record)| {
        let Record { right, wrong } = record;
        format!("{agent}: {right} right, {wrong} wrong, weight {:.2}", record.weight())
    };
    let lines: Vec<_> = records.iter().map(line).collect();
    let row = |(agent, record): (&String, &Record)| {
        let Record { right, wrong } = record;
        json!({ "agent": agent, "right": right, "wrong": wrong, "weight": record.weight() })
    };
    let rows: Vec<_> = records.iter().map(row).collect();
    ctx.artifact(Artifact::new("output", vec![Part::data(&json!({ "record": rows }))]))?;
    ctx.done(lines.join("\n"))
}
