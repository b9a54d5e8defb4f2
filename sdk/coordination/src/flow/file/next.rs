//! Keys `next` and `on_exit` of a step: where a flow goes on after it.

use super::draft::Draft;
use crate::flow::{
    definition::{Go, Next},
    limits::MAX_JUMPS,
    position::{Problems, Table, did_you_mean},
    scope::{SourceRange, TextScope, condition, only, owned},
    template::Condition,
};

/// Continuations of a step; `ids` are all steps, and `step` is the index of this one.
pub(super) fn parse(
    draft: &mut Draft<'_, '_>,
    step: usize,
    ids: &[String],
    is_before: impl Fn(usize, usize) -> bool,
    problems: &mut Problems<'_>,
) -> Vec<Next> {
    let mut found = Vec::new();
    let targets = Targets { step, ids, is_before: &is_before };
    found.extend(on_exit(&draft.table, &targets, problems));
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

/// Continuation of `on_exit` after an exit code other than 0.
fn on_exit(
    table: &Table<'_, '_>,
    targets: &Targets<'_>,
    problems: &mut Problems<'_>,
) -> Option<Next> {
    let table = Table::from_value(table.get("on_exit")?, "on_exit", problems)?;
    table.check_keys(&["nonzero"], problems);
    let Some(value) = table.get("nonzero") else {
        problems.error(&table.at, "`on_exit` has the key `nonzero`");
        return None;
    };
    if value.get_ref().as_str() == Some("continue") {
        return None;
    }
    if !value.get_ref().is_table() {
        let rule = "`nonzero` is \"continue\", or a table such as { goto = \"STEP\", max = 3 }";
        problems.error(&value.span(), rule);
        return None;
    }
    let inner = Table::from_value(value, "nonzero", problems)?;
    inner.check_keys(&["goto", "max", "at_max"], problems);
    let Some((name, at)) = inner.text("goto", problems) else {
        problems.error(&inner.at, "`nonzero` names the step to go back to: add `goto`");
        return None;
    };
    let go: Go = goto_of(&inner, &name, &at, targets, problems)?;
    let when = Condition::parse("exit != 0").ok();
    Some(Next { when, go })
}

/// Steps that a `goto` may name.
struct Targets<'a> {
    step: usize,
    ids: &'a [String],
    is_before: &'a dyn Fn(usize, usize) -> bool,
}

/// Way back of a table with `goto`, `max` and `at_max`.
fn goto_of(
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
