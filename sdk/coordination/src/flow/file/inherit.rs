//! Key `inherit` of a step: memory that its agent gets before it begins.

use crate::flow::{
    definition::{Definition, Inherit},
    position::{Problems, Table, did_you_mean},
};

/// Name of the flow's caller.
const CALLER: &str = "caller";

/// Parts of a memory; the first one is the default.
const SCOPES: [&str; 3] = ["full", "minimal", "summary"];

/// Reads the key of a step; the steps of `definition` have their needs.
pub(super) fn parse(
    table: &Table<'_, '_>,
    step: usize,
    definition: &Definition,
    problems: &mut Problems<'_>,
) -> Option<Inherit> {
    let table = Table::from_value(table.get("inherit")?, "inherit", problems)?;
    table.check_keys(&["from", "scope"], problems);
    let scope = match table.get("scope") {
        Some(_) => table.word("scope", &SCOPES, problems)?,
        None => SCOPES[0].to_owned(),
    };
    let Some((name, at)) = table.text("from", problems) else {
        if table.get("from").is_none() {
            problems.error(&table.at, "`inherit` has a `from`: \"caller\", or the id of a step");
        }
        return None;
    };
    let named = definition.step_ids().position(|id| id == name);
    let from = match (named, name.as_str()) {
        (None, CALLER) => return Some(Inherit { from: None, scope }),
        (Some(_), CALLER) => {
            problems.error(
                &at,
                "`from`: `caller` is the caller of the flow, and a step; rename the step",
            );
            return None;
        }
        (Some(from), _) => from,
        (None, _) => {
            let near = did_you_mean(&name, definition.step_ids().chain([CALLER]));
            problems.error(&at, format!("`from`: there is no step `{name}`{near}"));
            return None;
        }
    };
    if !definition.is_before(from, step) {
        let rule = format!("`from`: the step `{name}` may not be over by then; add it to `needs`");
        problems.error(&at, rule);
        return None;
    }
    let giver = &definition.steps[from];
    if !giver.work.kind().is_delegated() || giver.each.is_some() {
        let rule =
            format!("`from`: the step `{name}` is no single task of an agent, and has no memory");
        problems.error(&at, rule);
        return None;
    }
    Some(Inherit { from: Some(from), scope })
}
