//! Keys of a step that say how often it is done, and after how many others: `for_each`, `agents`,
//! `concurrency`, `allow_failures`, `retry` and `join`.

use crate::flow::{
    definition::{Each, Items, Retry},
    limits::{MAX_AGENTS, MAX_AT_ONCE, MAX_ITEMS, MAX_STEPS},
    position::{Problems, Table},
    scope::{SourceRange, TextScope, Texts, condition, only, owned},
};

/// Keys `concurrency` and `allow_failures` of a step, as far as it has them.
#[derive(Clone, Copy, Default)]
pub(super) struct EachLimits {
    pub(super) concurrency: Option<usize>,
    pub(super) allow_failures: Option<usize>,
}

/// Number of needs that have to be done.
pub(super) enum Join {
    All,
    AtLeast(usize, SourceRange),
}

/// Items of a step with `for_each` or `agents`.
pub(super) fn each(
    table: &Table<'_, '_>,
    limits: EachLimits,
    texts: &mut Texts,
    problems: &mut Problems<'_>,
) -> Option<Each> {
    let (items, default_concurrency) = if let Some(value) = table.get("agents") {
        let named = table.texts("agents", problems);
        if !(2..=MAX_AGENTS).contains(&named.len()) {
            let rule = format!("`agents` is a list of 2 to {MAX_AGENTS} agents");
            problems.error(&value.span(), rule);
        }
        only(table, &["for_each"], "a step without `agents`", problems);
        let names: Vec<_> = named.into_iter().map(|(name, _)| name).collect();
        let default_concurrency = names.len().clamp(1, MAX_AT_ONCE);
        (Items::Agents(names), default_concurrency)
    } else {
        let (list, at) = condition(table, "for_each", problems)?;
        texts.push((owned(list.names()), at, TextScope::default()));
        (Items::List(list), 4)
    };
    let EachLimits { concurrency, allow_failures } = limits;
    Some(Each {
        items,
        concurrency: concurrency.unwrap_or(default_concurrency),
        allow_failures: allow_failures.unwrap_or(0),
    })
}

pub(super) fn limits(table: &Table<'_, '_>, problems: &mut Problems<'_>) -> EachLimits {
    let [max_items, at_once] =
        [MAX_ITEMS, MAX_AT_ONCE].map(|it| u32::try_from(it).unwrap_or(u32::MAX));
    let as_size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    EachLimits {
        concurrency: table.number("concurrency", (1, at_once), problems).map(as_size),
        allow_failures: table.number("allow_failures", (0, max_items), problems).map(as_size),
    }
}

/// Further attempts of a step.
pub(super) fn retry(table: &Table<'_, '_>, problems: &mut Problems<'_>) -> Retry {
    let Some(table) = table.get("retry").and_then(|it| Table::from_value(it, "retry", problems))
    else {
        return Retry::default();
    };
    table.check_keys(&["times", "backoff", "on"], problems);
    Retry {
        times: table.number("times", (1, 10), problems).unwrap_or(1),
        backoff_ms: table.duration("backoff", problems).unwrap_or(0),
        on: table.texts("on", problems).into_iter().map(|(reason, _)| reason).collect(),
    }
}

/// Number of needs that a step waits for.
pub(super) fn join(table: &Table<'_, '_>, problems: &mut Problems<'_>) -> Join {
    let Some(value) = table.get("join") else { return Join::All };
    if value.get_ref().is_table() {
        let Some(inner) = Table::from_value(value, "join", problems) else { return Join::All };
        inner.check_keys(&["at_least"], problems);
        let max = u32::try_from(MAX_STEPS).unwrap_or(u32::MAX);
        let number = inner.number("at_least", (1, max), problems).unwrap_or(1);
        return Join::AtLeast(usize::try_from(number).unwrap_or(usize::MAX), value.span());
    }
    match table.word("join", &["all", "any"], problems).as_deref() {
        Some("any") => Join::AtLeast(1, value.span()),
        Some(_) | None => Join::All,
    }
}
