//! Key `worktree`: working copies of a git repository. A step gets a new one, or works in that of
//! an earlier step; the flow as a whole has one by the table `[worktree]`.

use super::draft::Draft;
use crate::flow::{
    definition::{Definition, Each, Items, StepWorktree},
    position::{Problems, Table, did_you_mean},
};

/// Value of the key for a worktree of the step itself.
const NEW: &str = "new";

/// True if a step names another one by `worktree`, and so may be done once for each of its tasks.
pub(super) fn names_step(table: &Table<'_, '_>) -> bool {
    let value = table.get("worktree").and_then(|value| value.get_ref().as_str());
    value.is_some_and(|value| value != NEW)
}

/// Commit from which the worktree of the whole flow starts.
pub(super) fn of_flow(table: &Table<'_, '_>, problems: &mut Problems<'_>) -> Option<String> {
    let table = Table::from_value(table.get("worktree")?, "[worktree]", problems)?;
    table.check_keys(&["base"], problems);
    match table.text("base", problems) {
        Some((base, at)) => {
            if base.trim().is_empty() || base.starts_with('-') {
                problems.error(&at, "`base` is a branch, a tag or a commit, such as \"main\"");
            }
            Some(base)
        }
        None => Some("HEAD".to_owned()),
    }
}

/// Reads the key of a step; the steps of `definition` have their needs. A step in the worktrees of
/// a step with several tasks becomes one with as many.
pub(super) fn parse(
    draft: &mut Draft<'_, '_>,
    step: usize,
    definition: &mut Definition,
    problems: &mut Problems<'_>,
) {
    let Some((name, at)) = draft.table.text("worktree", problems) else { return };
    let work = definition.steps[step].work.kind();
    if !work.is_delegated() && work.program().is_none() {
        let rule = "`worktree` is a key of a step that calls an agent, a flow or a program";
        return problems.error(&at, rule);
    }
    if name == NEW {
        if definition.step_ids().any(|id| id == NEW) {
            let rule =
                "`worktree`: `new` is a worktree of the step itself, and a step; rename the step";
            problems.error(&at, rule);
        }
        definition.steps[step].worktree = Some(StepWorktree::New);
        return;
    }
    let Some(from) = definition.step_ids().position(|id| id == name) else {
        let near = did_you_mean(&name, definition.step_ids().chain([NEW]));
        let rule =
            format!("`worktree` is \"new\" or a step with one: there is no step `{name}`{near}");
        return problems.error(&at, rule);
    };
    if !definition.is_before(from, step) {
        let rule =
            format!("`worktree`: the step `{name}` may not be over by then; add it to `needs`");
        return problems.error(&at, rule);
    }
    if definition.steps[from].worktree != Some(StepWorktree::New) {
        let rule = format!(
            "`worktree`: the step `{name}` has no worktree; give it one by `worktree = \"new\"`"
        );
        return problems.error(&at, rule);
    }
    if let Some(of) = definition.steps[from].each.clone() {
        if definition.steps[step].each.is_some() {
            let rule = format!(
                "a step in the worktrees of `{name}` is done once in each; remove `agents` and `for_each`"
            );
            return problems.error(&at, rule);
        }
        let limits = draft.each_limits;
        definition.steps[step].each = Some(Each {
            items: Items::Worktrees(from),
            concurrency: limits.concurrency.unwrap_or(of.concurrency),
            allow_failures: limits.allow_failures.unwrap_or(0),
        });
        for (_, _, scope) in &mut draft.texts {
            scope.has_item |= !scope.after;
        }
    }
    definition.steps[step].worktree = Some(StepWorktree::Of(from));
}
