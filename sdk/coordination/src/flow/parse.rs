//! Reads a flow file: from TOML to a [`Definition`].

use std::ops::Range;

use serde_json::{Map, Value};
use toml::{Spanned, de::DeTable};

use super::{
    check,
    definition::{
        Definition, Go, MAX_JUMPS, MAX_STEPS, Next, Problem, Step, TreeBudget, Work, is_elevated,
    },
    interaction,
    pick::Pick,
    position::{KeyName as _, Problems, Table, did_you_mean, json},
    repetition::{self, EachLimits, Join},
    schema, script, stream,
    template::{Condition, Template},
    toml_words::plain,
    undo, vote_step, worktree,
};

/// Largest flow file, in bytes.
const MAX_BYTES: usize = 64 << 10;

/// Most minutes of a budget: 366 days.
const MAX_MINUTES: u32 = 366 * 24 * 60;

/// Keys of a flow.
const FLOW: [&str; 8] =
    ["description", "listed", "input", "budget", "timeout", "worktree", "result", "step"];

/// Keys of a step.
const STEP: [&str; 38] = [
    "id",
    "needs",
    "join",
    "agent",
    "prompt",
    "permissions",
    "flow",
    "input",
    "ask",
    "choices",
    "default",
    "wait",
    "for_each",
    "concurrency",
    "allow_failures",
    "retry",
    "fallback",
    "compensate",
    "timeout",
    "output",
    "next",
    "description",
    "run",
    "on_exit",
    "on_restart",
    "skill",
    "vote",
    "inherit",
    "agents",
    "worktree",
    "pick",
    "auction",
    "blackboard",
    "contract_net",
    "delphi",
    "election",
    "negotiation",
    "stream",
];

/// Keys that say the kind of a step.
const KINDS: [&str; 15] = [
    "agent",
    "agents",
    "skill",
    "flow",
    "ask",
    "wait",
    "run",
    "vote",
    "pick",
    "auction",
    "blackboard",
    "contract_net",
    "delphi",
    "election",
    "negotiation",
];

/// Place of a value in the file.
pub(super) type SourceRange = Range<usize>;

/// A step with the positions that later checks need.
pub(super) struct Draft<'a, 't> {
    pub(super) step: Step,
    pub(super) at: SourceRange,
    pub(super) table: Table<'a, 't>,
    pub(super) needs: Vec<(String, SourceRange)>,
    pub(super) join: Join,
    pub(super) texts: Texts,
    pub(super) each_limits: EachLimits,
}

/// Variables of one text or condition.
pub(super) type Names = Vec<String>;

/// Variables of all texts of a step.
pub(super) type Texts = Vec<(Names, SourceRange, TextScope)>;

/// Variables beyond those of every text.
#[derive(Clone, Copy, Default)]
pub(super) struct TextScope {
    pub(super) has_item: bool,
    pub(super) has_output: bool,
    /// The text is rendered after the step itself.
    pub(super) after: bool,
}

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
        table.check_keys(&STEP, problems);
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
    let kinds: Vec<_> = KINDS.into_iter().filter(|kind| table.get(kind).is_some()).collect();
    let [kind] = kinds.as_slice() else {
        let rule = format!("{} needs one of the keys {}", table.name, KINDS.join(", "));
        problems.error(&table.at, rule);
        return None;
    };
    let mut texts = Vec::new();
    let each_limits = repetition::limits(&table, problems);
    let each = repetition::each(&table, each_limits, &mut texts, problems);
    let scope = TextScope { has_item: each.is_some(), ..TextScope::default() };
    let work = work(kind, &table, scope, &mut texts, problems)?;
    let is_call = matches!(work, Work::Agent { .. } | Work::Flow { .. });
    if !is_call {
        let calls = ["fallback", "output", "inherit"];
        only(&table, &calls, "a step that calls an agent or a flow", problems);
    }
    let is_vote = matches!(work, Work::Vote(_) | Work::Interaction(_));
    if !is_call && !matches!(work, Work::Run(_)) {
        let of = "a step that calls an agent, a flow or a program";
        only(&table, if is_vote { &["for_each"] } else { &["for_each", "retry"] }, of, problems);
    }
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
        script::refuse_by_name(name, at, problems);
    }
    let fallback = fallback.into_iter().map(|(name, _)| name).collect();
    let description = table.text("description", problems).map(|(text, _)| text);
    let timeout_ms = table.duration("timeout", problems);
    if let Some((Work::Wait { .. }, at)) = timeout_ms.map(|_| (&work, table.at.clone())) {
        problems.error(&at, format!("{} waits, and has no other `timeout`", table.name));
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

/// Adds an error for each of these keys, which belong to other steps.
pub(super) fn only(table: &Table<'_, '_>, keys: &[&str], to: &str, problems: &mut Problems<'_>) {
    for (key, value) in keys.iter().filter_map(|key| Some((key, table.get(key)?))) {
        problems.error(&value.span(), format!("`{key}` is a key of {to}"));
    }
}

fn work(
    kind: &str,
    table: &Table<'_, '_>,
    scope: TextScope,
    texts: &mut Texts,
    problems: &mut Problems<'_>,
) -> Option<Work> {
    let is_interaction = interaction::KEYS.contains(&kind);
    if !matches!(kind, "agent" | "agents" | "skill") && !is_interaction {
        only(table, &["permissions"], "a step with `agent`, `agents` or `skill`", problems);
    }
    if !matches!(kind, "agent" | "agents" | "skill" | "vote") && !is_interaction {
        only(table, &["prompt"], "a step with `agent`, `agents`, `skill` or `vote`", problems);
    }
    if kind != "run" {
        only(table, &["on_exit", "on_restart"], "a step with `run`", problems);
    }
    if kind != "flow" {
        only(table, &["input"], "a step with `flow`", problems);
    }
    if kind != "ask" {
        only(table, &["choices", "default"], "a step with `ask`", problems);
    }
    match kind {
        "run" => script::parse(table, problems).map(Work::Run),
        _ if is_interaction => {
            interaction::parse(kind, table, scope, texts, problems).map(Work::Interaction)
        }
        "vote" => vote_step::parse(table, scope, texts, problems).map(Work::Vote),
        // Its steps are known later.
        "pick" => Some(Work::Pick(Pick::default())),
        "agent" | "agents" | "skill" => {
            let named = match kind {
                "agents" => table.texts(kind, problems),
                _ => vec![table.text(kind, problems)?],
            };
            for (name, at) in &named {
                script::refuse_by_name(name, at, problems);
            }
            let names = named.into_iter().map(|(name, _)| name);
            // An agent's name has no colon.
            let agents: Vec<_> = match kind {
                "skill" => names.map(|name| format!("skill:{name}")).collect(),
                _ => names.collect(),
            };
            let Some((prompt, at)) = template(table, "prompt", problems) else {
                if table.get("prompt").is_none() {
                    problems.error(&table.at, format!("{} has a `prompt`", table.name));
                }
                return None;
            };
            texts.push((owned(prompt.names()), at, scope));
            let words = ["read-only", "ask", "edit", "full"];
            let permissions = table.word("permissions", &words, problems);
            let is_routed = agents.iter().any(|agent| agent.contains(':'));
            if is_routed && permissions.as_deref().is_some_and(is_elevated) {
                let at = table.get("permissions").map_or(table.at.clone(), Spanned::span);
                let rule = "permissions above \"ask\" are for one agent: name it by `agent` in place of `skill`";
                problems.error(&at, rule);
            }
            Some(Work::Agent { agents, prompt, permissions })
        }
        "flow" => {
            let (flow, at) = table.text("flow", problems)?;
            script::refuse_by_name(&flow, &at, problems);
            let input_table =
                table.get("input").and_then(|it| Table::from_value(it, "input", problems));
            let mut input = Vec::new();
            for (key, _) in input_table.iter().flat_map(|input_table| input_table.table) {
                let name = key.to_string_key();
                let input_table = input_table.as_ref()?;
                let Some((text, at)) = template(input_table, &name, problems) else { continue };
                texts.push((owned(text.names()), at, scope));
                input.push((name, text));
            }
            Some(Work::Flow { flow, input })
        }
        "ask" => {
            let (text, at) = template(table, "ask", problems)?;
            texts.push((owned(text.names()), at, scope));
            let choices: Vec<_> = table.texts("choices", problems);
            let choices: Vec<_> = choices.into_iter().map(|(choice, _)| choice).collect();
            let default = table.text("default", problems);
            if let Some((default, at)) = &default
                && !choices.is_empty()
                && !choices.contains(default)
            {
                problems
                    .error(at, format!("`default` is one of the choices {}", choices.join(", ")));
            }
            if let Some((_, at)) = &default
                && table.get("timeout").is_none()
            {
                problems.error(at, "`default` is the answer after `timeout`, which is missing");
            }
            Some(Work::Ask { text, choices, default: default.map(|(text, _)| text) })
        }
        _ => Some(Work::Wait { ms: table.duration("wait", problems)? }),
    }
}

pub(super) fn owned<'a>(names: impl Iterator<Item = &'a str>) -> Names {
    names.map(str::to_owned).collect()
}

/// Text with variables of a key. Warns of expressions without the filter `data`.
pub(super) fn template(
    table: &Table<'_, '_>,
    key: &str,
    problems: &mut Problems<'_>,
) -> Option<(Template, SourceRange)> {
    let (text, at) = table.text(key, problems)?;
    let is_result = key == "result" && table.get("step").is_some();
    let parsed = if is_result { Template::parse_result(&text) } else { Template::parse(&text) };
    match parsed {
        Ok(template) => {
            for expression in &template.unmarked {
                problems.warning(
                    &at,
                    format!(
                        "`{key}`: `{expression}` may hold an agent's text, which is marked as data; write `{{{{ {expression} | data }}}}`"
                    ),
                );
            }
            Some((template, at))
        }
        Err(why) => {
            problems.error(&at, format!("`{key}`: {why}"));
            None
        }
    }
}

/// Condition of a key.
pub(super) fn condition(
    table: &Table<'_, '_>,
    key: &str,
    problems: &mut Problems<'_>,
) -> Option<(Condition, SourceRange)> {
    let (text, at) = table.text(key, problems)?;
    match Condition::parse(&text) {
        Ok(condition) => Some((condition, at)),
        Err(why) => {
            problems.error(&at, format!("`{key}`: {why}"));
            None
        }
    }
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

/// Continuations of a step; `ids` are all steps, and `step` is the index of this one.
pub(super) fn next(
    draft: &mut Draft<'_, '_>,
    step: usize,
    ids: &[String],
    is_before: impl Fn(usize, usize) -> bool,
    problems: &mut Problems<'_>,
) -> Vec<Next> {
    let mut found = Vec::new();
    let targets = Targets { step, ids, is_before: &is_before };
    found.extend(script::on_exit(&draft.table, &targets, problems));
    let Some(value) = draft.table.get("next") else { return found };
    let Some(all) = value.get_ref().as_array() else {
        problems.error(&value.span(), "`next` is a list of tables");
        return found;
    };
    for one in all.iter() {
        let Some(table) = Table::from_value(one, "next", problems) else { continue };
        table.check_keys(&["when", "goto", "max", "at_max", "end"], problems);
        let when = condition(&table, "when", problems).map(|(when, at)| {
            let scope = TextScope { has_output: true, after: true, ..TextScope::default() };
            draft.texts.push((owned(when.names()), at, scope));
            when
        });
        let end = table.word("end", &["completed", "failed"], problems);
        let goto = table.text("goto", problems);
        let go = match (goto, end) {
            (Some((name, at)), None) => match goto_of(&table, &name, &at, &targets, problems) {
                Some(go) => go,
                None => continue,
            },
            (None, Some(end)) => {
                only(&table, &["max", "at_max"], "a `goto`", problems);
                Go::End { completed: end == "completed" }
            }
            (Some(_), Some(_)) | (None, None) => {
                problems.error(&table.at, "an entry of `next` has either `goto` or `end`");
                continue;
            }
        };
        found.push(Next { when, go });
    }
    found
}

/// Steps that a `goto` may name.
pub(super) struct Targets<'a> {
    step: usize,
    ids: &'a [String],
    is_before: &'a dyn Fn(usize, usize) -> bool,
}

/// Way back of a table with `goto`, `max` and `at_max`.
pub(super) fn goto_of(
    table: &Table<'_, '_>,
    name: &str,
    at: &SourceRange,
    Targets { step, ids, is_before }: &Targets<'_>,
    problems: &mut Problems<'_>,
) -> Option<Go> {
    let Some(target) = ids.iter().position(|id| id == name) else {
        let near = did_you_mean(name, ids.iter().map(String::as_str));
        problems.error(at, format!("`goto`: there is no step `{name}`{near}"));
        return None;
    };
    if target != *step && !is_before(target, *step) {
        let rule = format!(
            "`goto` leads back: to the step itself, or to one that it needs; `{name}` is neither"
        );
        problems.error(at, rule);
    }
    if table.get("max").is_none() {
        let rule = "a `goto` has a cap: add `max`, the number of times that it is followed";
        problems.error(&table.at, rule);
        return None;
    }
    let max = table.number("max", (1, MAX_JUMPS), problems).unwrap_or(1);
    let at_max = table.word("at_max", &["fail", "continue"], problems);
    Some(Go::To { step: target, max, continues_at_max: at_max.as_deref() == Some("continue") })
}
