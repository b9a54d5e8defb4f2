//! Checks of a whole flow: needs, order, and the variables of each text.

use super::{candidates, draft::Draft, inherit, next, repetition::Join, stream, worktree};
use crate::flow::{
    definition::{Definition, is_before},
    kinds::Work,
    position::{Problems, did_you_mean},
    scope::{Names, SourceRange, TextScope},
    variables,
};

/// Variables of a step's record.
const RECORD: [&str; 9] =
    ["text", "output", "artifacts", "state", "agent", "items", "round", "exit", "worktree"];

/// Functions of the template engine.
const FUNCTIONS: [&str; 4] = ["range", "dict", "namespace", "loop"];

/// Completes a definition by its steps; none if a step has an error.
pub(super) fn complete(
    mut definition: Definition,
    mut drafts: Vec<Draft<'_, '_>>,
    result: Option<(Names, SourceRange)>,
    problems: &mut Problems<'_>,
) -> Option<Definition> {
    if problems.has_errors() {
        return None;
    }
    let ids: Vec<String> = drafts.iter().map(|draft| draft.step.id.clone()).collect();
    for (index, draft) in drafts.iter_mut().enumerate() {
        let mut needs = Vec::new();
        for (name, at) in &draft.needs {
            match ids.iter().position(|id| id == name) {
                Some(there) if there == index => {
                    let rule = format!(
                        "the step `{name}` needs itself; `needs` lists steps that end before it; repeat it with `goto`"
                    );
                    problems.error(at, rule);
                }
                Some(there) if needs.contains(&there) => {
                    problems.error(at, format!("`{name}` is listed twice"));
                }
                Some(there) => needs.push(there),
                None => {
                    // A step cannot need itself.
                    let others = ids.iter().filter(|id| **id != draft.step.id);
                    let near = did_you_mean(name, others.map(String::as_str));
                    problems.error(at, format!("there is no step `{name}`{near}"));
                }
            }
        }
        draft.step.at_least = match &draft.join {
            Join::All => needs.len(),
            Join::AtLeast(min, at) => {
                if *min > needs.len() {
                    let rule = format!("`join` waits for {min} of {} steps", needs.len());
                    problems.error(at, rule);
                }
                *min
            }
        };
        draft.step.needs = needs;
    }
    definition.steps = drafts.iter().map(|draft| draft.step.clone()).collect();
    let order = order(&definition);
    for (index, draft) in drafts.iter().enumerate().filter(|(index, _)| !order.contains(index)) {
        let rule = format!(
            "the step `{}` is never reached: it needs itself through other steps; repeat steps with `goto`",
            ids[index]
        );
        problems.error(&draft.at, rule);
    }
    for (index, draft) in drafts.iter_mut().enumerate() {
        let before = |one, of| is_before(&definition.steps, one, of);
        let found = next::parse(draft, index, &ids, before, problems);
        definition.steps[index].next = found;
        let inherit = inherit::parse(&draft.table, index, &definition, problems);
        definition.steps[index].inherit = inherit;
    }
    // A step works in the worktree of an earlier one, and picks among earlier ones.
    for &index in &order {
        worktree::parse(&mut drafts[index], index, &mut definition, problems);
        if let Some(pick) = candidates::parse(&drafts[index], index, &definition, problems) {
            definition.steps[index].work = Work::Pick(pick);
        }
    }
    definition.order = order;
    stream::check(&drafts, &mut definition, problems);
    for (index, draft) in drafts.iter().enumerate() {
        for (names, at, scope) in &draft.texts {
            check_names(&definition, Some(index), names, at, *scope, problems);
        }
        check_fallback(&definition, index, draft, problems);
    }
    variables::check_variables(&definition, problems);
    if let Some((names, at)) = result {
        check_names(&definition, None, &names, &at, TextScope::default(), problems);
    }
    Some(definition)
}

/// Steps so that each comes after those it needs; without those in circles.
fn order(definition: &Definition) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    loop {
        let is_next = |step: &usize| {
            let needs = &definition.steps[*step].needs;
            !order.contains(step) && needs.iter().all(|need| order.contains(need))
        };
        let Some(step) = (0..definition.steps.len()).find(is_next) else { return order };
        order.push(step);
    }
}

/// Refuses another agent in place of a flow.
fn check_fallback(
    definition: &Definition,
    index: usize,
    draft: &Draft<'_, '_>,
    problems: &mut Problems<'_>,
) {
    let step = &definition.steps[index];
    if matches!(step.work, Work::Flow(_)) && !step.fallback.is_empty() {
        problems.error(&draft.at, "`fallback` is a key of a step with `agent`");
    }
}

/// Checks the variables of a text of a step; those of `result` have no step.
fn check_names(
    definition: &Definition,
    step: Option<usize>,
    names: &[String],
    at: &SourceRange,
    scope: TextScope,
    problems: &mut Problems<'_>,
) {
    for name in names {
        if let Err(why) = check_name(definition, step, name, scope) {
            problems.error(at, why);
        }
    }
}

fn check_name(
    definition: &Definition,
    step: Option<usize>,
    name: &str,
    scope: TextScope,
) -> Result<(), String> {
    let mut parts = name.split('.');
    let (root, member, field) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    match root {
        "input" => {
            let known = || definition.input.iter().map(|(name, _)| name.as_str());
            match member {
                Some(member) if !known().any(|it| it == member) => {
                    let near = did_you_mean(member, known());
                    Err(format!("`{name}`: [input] has no `{member}`{near}"))
                }
                Some(_) | None => Ok(()),
            }
        }
        "steps" | "previous" => {
            let Some(member) = member else {
                return Err(format!("`{name}`: name the step, as in `{root}.ID.text`"));
            };
            let Some(named) = definition.steps.iter().position(|it| it.id == member) else {
                // `previous` may name the step itself, and `steps` only after it.
                let hidden = step.filter(|_| root == "steps" && !scope.after);
                let others = definition.step_ids().enumerate();
                let others = others.filter(|(index, _)| Some(*index) != hidden);
                let near = did_you_mean(member, others.map(|(_, id)| id));
                return Err(format!("`{name}`: there is no step `{member}`{near}"));
            };
            if root == "steps" && !scope.after && step == Some(named) {
                return Err(format!(
                    "`{name}`: the step `{member}` has not run yet; write `previous.{member}` for its last run, or name another step"
                ));
            }
            let is_same_step = scope.after && step == Some(named);
            let is_there =
                step.is_none_or(|step| definition.is_before(named, step) || is_same_step);
            if root == "steps" && !is_there {
                return Err(format!(
                    "`{name}`: the step `{member}` may not be over by then; add it to `needs`"
                ));
            }
            match field {
                Some(field) if !RECORD.contains(&field) => {
                    let near = did_you_mean(field, RECORD);
                    Err(format!("`{name}`: a step has no `{field}`{near}"))
                }
                Some(_) | None => Ok(()),
            }
        }
        "flow" => match member {
            Some("id" | "round") | None => Ok(()),
            Some(other) => {
                let near = did_you_mean(other, ["id", "round"]);
                Err(format!("`{name}`: `flow` has no `{other}`{near}"))
            }
        },
        "item" | "index" if scope.has_item => Ok(()),
        "item" | "index" => {
            Err(format!("`{name}` is only there in a step with `for_each` or `agents`"))
        }
        "output" | "text" | "exit" if scope.has_output => Ok(()),
        other if FUNCTIONS.contains(&other) => Ok(()),
        "worktree" => {
            Err(format!("`{name}`: write the changes of a step as `steps.ID.worktree.diff`"))
        }
        other => {
            let near = did_you_mean(
                other,
                ["input", "steps", "previous", "flow", "output", "item", "index"],
            );
            Err(format!("there is no variable `{other}`{near}"))
        }
    }
}
