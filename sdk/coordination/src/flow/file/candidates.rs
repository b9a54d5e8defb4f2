//! Key `pick` of a step: the steps with its candidates and their judges.

use super::draft::Draft;
use crate::flow::{
    definition::{Definition, StepWorktree},
    kinds::pick::Pick,
    position::{Problems, Table, did_you_mean},
};

/// Reads the key of a step; the steps of `definition` have their worktrees.
pub(super) fn parse(
    draft: &Draft<'_, '_>,
    step: usize,
    definition: &Definition,
    problems: &mut Problems<'_>,
) -> Option<Pick> {
    let table = Table::from_value(draft.table.get("pick")?, "pick", problems)?;
    table.check_keys(&["from", "judges", "by", "tie"], problems);
    let Some((name, at)) = table.text("from", problems) else {
        if table.get("from").is_none() {
            problems.error(&table.at, "`pick` has a `from`: the step with the candidates");
        }
        return None;
    };
    let named = |name: &str| definition.step_ids().position(|id| id == name);
    let Some(from) = named(&name) else {
        let near = did_you_mean(&name, definition.step_ids());
        problems.error(&at, format!("`from`: there is no step `{name}`{near}"));
        return None;
    };
    let is_over = |other: usize| definition.is_before(other, step);
    let candidates = &definition.steps[from];
    if candidates.worktree != Some(StepWorktree::New) || candidates.each.is_none() {
        let rule = format!(
            "`from`: the step `{name}` has no candidates: give it `agents` or `for_each`, and `worktree = \"new\"`"
        );
        problems.error(&at, rule);
        return None;
    }
    if !is_over(from) {
        let rule = format!("`from`: the step `{name}` may not be over by then; add it to `needs`");
        problems.error(&at, rule);
    }
    let mut judges = Vec::new();
    for (judge, at) in table.texts("judges", problems) {
        let Some(index) = named(&judge) else {
            let near = did_you_mean(&judge, definition.step_ids());
            problems.error(&at, format!("`judges`: there is no step `{judge}`{near}"));
            continue;
        };
        let works_in = definition.steps[index].worktree;
        let is_run = definition.steps[index].work.kind().program().is_some();
        if !is_run || works_in != Some(StepWorktree::Of(from)) {
            let rule = format!(
                "`judges`: the step `{judge}` has no `run` with `worktree = \"{name}\"`, and judges no candidate"
            );
            problems.error(&at, rule);
        } else if !is_over(index) {
            let rule =
                format!("`judges`: the step `{judge}` may not be over by then; add it to `needs`");
            problems.error(&at, rule);
        }
        judges.push(index);
    }
    let asks = |word: Option<String>| word.as_deref() == Some("ask");
    let asks_always = asks(table.word("by", &["lines", "ask"], problems));
    let asks_at_tie = asks(table.word("tie", &["first", "ask"], problems));
    Some(Pick { from, judges, asks_always, asks_at_tie })
}
