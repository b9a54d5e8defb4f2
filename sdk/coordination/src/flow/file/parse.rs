//! Reads a flow file: from TOML to a [`Definition`].

use serde_json::{Map, Value};
use toml::de::DeTable;

use super::{check, draft::Draft, repetition, stream, undo, worktree};
use crate::flow::{
    definition::{Definition, Step, TreeBudget},
    kinds::{Work, kind::StepReader},
    limits::MAX_STEPS,
    position::{KeyName as _, Problems, Table, json},
    problem::Problem,
    program::refuse_by_name,
    schema,
    scope::{TextScope, only, template},
    toml_words::plain,
};

/// Largest flow file, in bytes.
const MAX_BYTES: usize = 64 << 10;

/// Most minutes of a budget: 366 days.
const MAX_MINUTES: u32 = 366 * 24 * 60;

/// Keys of a flow.
const FLOW: [&str; 8] =
    ["description", "listed", "input", "budget", "timeout", "worktree", "result", "step"];

/// Keys of all steps.
const STEP: [&str; 12] = [
    "id",
    "needs",
    "join",
    "concurrency",
    "allow_failures",
    "compensate",
    "timeout",
    "next",
    "description",
    "worktree",
    "stream",
    "agents",
];

/// Keys that steps of some kinds have, and the words for these steps.
const LIMITED: [(&str, &str); 12] = [
    ("permissions", "a step with `agent`, `agents` or `skill`"),
    ("prompt", "a step with `agent`, `agents`, `skill` or `vote`"),
    ("on_exit", "a step with `run`"),
    ("on_restart", "a step with `run`"),
    ("input", "a step with `flow`"),
    ("choices", "a step with `ask`"),
    ("default", "a step with `ask`"),
    ("fallback", "a step that calls an agent or a flow"),
    ("output", "a step that calls an agent or a flow"),
    ("inherit", "a step that calls an agent or a flow"),
    ("for_each", "a step that calls an agent, a flow or a program"),
    ("retry", "a step that calls an agent, a flow or a program"),
];

impl Definition {
    /// Parses and checks a flow file.
    ///
    /// # Errors
    ///
    /// All problems of the file, warnings included, in its order.
    pub fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        let mut problems = Problems::new(text);
        if text.len() > MAX_BYTES {
            problems.error(&(0..0), format!("a flow file has at most {} KiB", MAX_BYTES >> 10));
            return Err(problems.into_sorted());
        }
        let parsed = match DeTable::parse(text) {
            Ok(parsed) => parsed,
            Err(why) => {
                problems.error(&why.span().unwrap_or(0..0), plain(why.message()));
                return Err(problems.into_sorted());
            }
        };
        let at = parsed.span();
        let table = Table { table: parsed.get_ref(), at, name: "a flow".to_owned() };
        let definition = flow(&table, &mut problems);
        match definition {
            Some(definition) if !problems.has_errors() => {
                Ok(Self { warnings: problems.into_sorted(), ..definition })
            }
            Some(_) | None => Err(problems.into_sorted()),
        }
    }
}

fn flow(table: &Table<'_, '_>, problems: &mut Problems<'_>) -> Option<Definition> {
    table.check_keys(&FLOW, problems);
    let description = table.text("description", problems).map(|(text, _)| text);
    let description = description.unwrap_or_default();
    if description.trim().is_empty() {
        let rule = "a flow has a `description`: other agents and people choose by it";
        problems.error(&(0..0), rule);
    }
    let is_listed = table.flag("listed", problems).unwrap_or(true);
    let input = input(table, problems);
    let budget = table.get("budget").and_then(|it| Table::from_value(it, "[budget]", problems));
    let (mut limits, mut minutes) = (TreeBudget::default(), None);
    let max_calls = budget.and_then(|budget| {
        budget.check_keys(&["tasks", "depth", "tokens", "costUsd", "minutes"], problems);
        minutes = budget.number("minutes", (1, MAX_MINUTES), problems);
        limits = TreeBudget {
            depth: budget.number("depth", (1, 100), problems),
            tokens: budget.number("tokens", (1, u32::MAX), problems),
            cost_usd: budget.amount("costUsd", problems),
        };
        budget.number("tasks", (1, 100_000), problems)
    });
    let timeout_ms = table.duration("timeout", problems);
    let worktree = worktree::of_flow(table, problems);
    let drafts = steps(table, problems);
    let result = template(table, "result", problems);
    let definition = Definition {
        description,
        is_listed,
        input,
        warnings: Vec::new(),
        max_calls,
        budget: limits,
        minutes,
        timeout_ms,
        worktree,
        result: result.as_ref().map(|(it, _)| it.clone()),
        steps: Vec::new(),
        order: Vec::new(),
    };
    let result = result.map(|(it, at)| (it.names().map(str::to_owned).collect(), at));
    check::complete(definition, drafts, result, problems)
}

fn input(table: &Table<'_, '_>, problems: &mut Problems<'_>) -> Vec<(String, Value)> {
    let Some(input) = table.get("input").and_then(|it| Table::from_value(it, "[input]", problems))
    else {
        return Vec::new();
    };
    let mut members: Vec<_> = input.table.iter().collect();
    members.sort_by_key(|(key, _)| key.span().start);
    let mut found = Vec::new();
    for (key, value) in members {
        let schema = json(value.get_ref());
        let checked = schema::check_schema(&schema, 0).and_then(|()| match schema.get("default") {
            Some(default) => schema::check_value(default, &schema, "default"),
            None => Ok(()),
        });
        if let Err(why) = checked {
            problems.error(&value.span(), format!("the input `{}`: {why}", key.get_ref()));
        }
        if !is_name(key.get_ref()) {
            problems.error(&key.span(), format!("the input `{}`: {NAME_RULE}", key.get_ref()));
        }
        found.push((key.to_string_key(), schema));
    }
    found
}

/// Rule of names that templates use.
const NAME_RULE: &str = "a name begins with a letter and has letters, digits and `_`";

fn is_name(name: &str) -> bool {
    name.starts_with(|it: char| it.is_ascii_alphabetic())
        && name.len() <= 64
        && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
}

fn steps<'a, 't>(table: &Table<'a, 't>, problems: &mut Problems<'_>) -> Vec<Draft<'a, 't>> {
    let Some(value) = table.get("step") else {
        problems.error(&(0..0), "a flow has at least one [[step]]");
        return Vec::new();
    };
    let Some(all) = value.get_ref().as_array() else {
        problems.error(&value.span(), "steps are written as [[step]]");
        return Vec::new();
    };
    if all.len() > MAX_STEPS {
        problems.error(&value.span(), format!("a flow has at most {MAX_STEPS} steps"));
    }
    let kinds = Work::keys().map(|(name, _)| name);
    let known: Vec<_> = STEP.into_iter().chain(LIMITED.map(|(key, _)| key)).chain(kinds).collect();
    let mut drafts: Vec<Draft<'a, 't>> = Vec::new();
    for one in all.iter() {
        let Some(mut table) = Table::from_value(one, "[[step]]", problems) else { continue };
        let id = match table.text("id", problems) {
            Some((id, at)) => {
                if !is_name(&id) {
                    problems.error(&at, format!("the step `{id}`: {NAME_RULE}"));
                }
                if drafts.iter().any(|draft| draft.step.id == id) {
                    problems.error(&at, format!("two steps have the id `{id}`"));
                }
                id
            }
            None => {
                problems.error(&table.at, "a step has an `id`");
                continue;
            }
        };
        table.name = format!("the step `{id}`");
        table.check_keys(&known, problems);
        if let Some(draft) = step(id, table, problems) {
            drafts.push(draft);
        }
    }
    drafts
}

fn step<'a, 't>(
    id: String,
    table: Table<'a, 't>,
    problems: &mut Problems<'_>,
) -> Option<Draft<'a, 't>> {
    let named: Vec<_> = Work::keys().filter(|(key, _)| table.get(key).is_some()).collect();
    let [(key, with)] = named.as_slice() else {
        let all: Vec<_> = Work::keys().map(|(key, _)| key).collect();
        let rule = format!("{} needs one of the keys {}", table.name, all.join(", "));
        problems.error(&table.at, rule);
        return None;
    };
    let mut texts = Vec::new();
    let each_limits = repetition::limits(&table, problems);
    let each = repetition::each(&table, each_limits, &mut texts, problems);
    let scope = TextScope { has_item: each.is_some(), ..TextScope::default() };
    for (other, of) in LIMITED.iter().filter(|(other, _)| !with.contains(other)) {
        only(&table, &[other], of, problems);
    }
    let mut reader = StepReader { key, table: &table, scope, texts: &mut texts, problems };
    let work = Work::parse(&mut reader)?;
    if each.is_none() && !worktree::names_step(&table) {
        let of = "a step with `for_each` or `agents`";
        only(&table, &["concurrency", "allow_failures"], of, problems);
    }
    let stream = stream::parse(&table, &work, each.is_some(), problems);
    let compensate = undo::parse(&table, &mut texts, problems);
    let output =
        if let Work::Vote(vote) = &work { Some(vote.ballot()) } else { output(&table, problems) };
    let retry = repetition::retry(&table, problems);
    let needs = table.texts("needs", problems);
    let join = repetition::join(&table, problems);
    let fallback = table.texts("fallback", problems);
    for (name, at) in &fallback {
        refuse_by_name(name, at, problems);
    }
    let fallback = fallback.into_iter().map(|(name, _)| name).collect();
    let description = table.text("description", problems).map(|(text, _)| text);
    let timeout_ms = table.duration("timeout", problems);
    if timeout_ms.is_some() && matches!(work, Work::Wait(_)) {
        problems.error(&table.at, format!("{} waits, and has no other `timeout`", table.name));
    }
    let step = Step {
        id,
        description,
        needs: Vec::new(),
        at_least: 0,
        work,
        each,
        retry,
        fallback,
        compensate,
        inherit: None,
        worktree: None,
        timeout_ms,
        output,
        next: Vec::new(),
        stream,
        reads: None,
    };
    Some(Draft { step, at: table.at.clone(), table, needs, join, texts, each_limits })
}

fn output(table: &Table<'_, '_>, problems: &mut Problems<'_>) -> Option<Value> {
    let value = table.get("output")?;
    let Value::Object(properties) = json(value.get_ref()) else {
        let rule = "`output` is a table of JSON schemas, such as { verdict = { enum = [\"yes\", \"no\"] } }";
        problems.error(&value.span(), rule);
        return None;
    };
    let schema = schema::object(properties.into_iter().collect::<Map<_, _>>());
    if let Err(why) = schema::check_schema(&schema, 0) {
        problems.error(&value.span(), format!("`output`: {why}"));
    }
    Some(schema)
}
