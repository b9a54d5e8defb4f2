//! Key `stream` of a step: what it writes is handed to its readers while it is written. A reader is
//! a step with `agent` or `skill` that needs the step, and whose prompt has its text.

use super::draft::Draft;
use crate::flow::{
    definition::{Definition, Step, StepWorktree},
    kinds::Work,
    position::{Problems, Table},
};

/// Reads the key: true if the step streams.
pub(super) fn parse(
    table: &Table<'_, '_>,
    work: &Work,
    has_items: bool,
    problems: &mut Problems<'_>,
) -> bool {
    let Some(value) = table.get("stream") else { return false };
    let at = value.span();
    let Some(streams) = value.get_ref().as_bool() else {
        problems.error(&at, "`stream` is true or false");
        return false;
    };
    if !matches!(work, Work::Agent(_)) {
        problems.error(&at, "`stream` is a key of a step with `agent` or `skill`");
    } else if has_items {
        let rule = "`stream` is a key of a step that is done once: remove `for_each` or `agents`";
        problems.error(&at, rule);
    } else if streams && table.get("output").is_some() {
        let rule = "a step with `stream` has no `output`: its answer is read in pieces, and JSON is read as a whole";
        problems.error(&at, rule);
    }
    streams
}

/// Finds the readers of each step with `stream`, and checks them.
pub(super) fn check(
    drafts: &[Draft<'_, '_>],
    definition: &mut Definition,
    problems: &mut Problems<'_>,
) {
    for (writer, draft) in drafts.iter().enumerate() {
        if !definition.steps[writer].stream {
            continue;
        }
        let at = draft.table.get("stream").map_or(draft.at.clone(), |value| value.span());
        let id = definition.steps[writer].id.clone();
        let readers: Vec<_> = (0..drafts.len())
            .filter(|&reader| is_reader(&definition.steps[reader], writer, &id))
            .collect();
        if readers.is_empty() {
            let rule = format!(
                "`stream`: no step reads `{id}` while it writes; a reader has `agent` or `skill`, `needs` with \"{id}\" and the \
                 default `join`, no `for_each`, and `{{{{ steps.{id}.text | data }}}}` in its `prompt`"
            );
            problems.error(&at, rule);
        }
        for reader in readers {
            check_reader(&drafts[reader], reader, (writer, &id), definition, problems);
            definition.steps[reader].reads = Some(writer);
        }
    }
}

fn is_reader(step: &Step, writer: usize, id: &str) -> bool {
    let Work::Agent(agent) = &step.work else { return false };
    let is_joined = step.at_least == step.needs.len() && step.needs.contains(&writer);
    let text = format!("steps.{id}.text");
    is_joined && step.each.is_none() && agent.prompt.names().any(|name| name == text)
}

fn check_reader(
    draft: &Draft<'_, '_>,
    reader: usize,
    (writer, id): (usize, &str),
    definition: &Definition,
    problems: &mut Problems<'_>,
) {
    let step = &definition.steps[reader];
    let at = |key| draft.table.get(key).map_or(draft.at.clone(), |value| value.span());
    let of = format!("`{}` begins before `{id}` has ended, which has `stream`", step.id);
    if step.reads.is_some() {
        let rule = format!("`{}` reads two steps with `stream`: remove one `stream`", step.id);
        problems.error(&at("prompt"), rule);
    }
    if let Work::Agent(agent) = &step.work {
        let record = format!("steps.{id}");
        let parts = |name: &str| name == record || name.starts_with(&format!("{record}."));
        let text = format!("{record}.text");
        for name in agent.prompt.names().filter(|name| parts(name) && *name != text) {
            problems.error(&at("prompt"), format!("`{name}`: {of}; only `{text}` is there"));
        }
    }
    if step.worktree == Some(StepWorktree::Of(writer)) {
        problems.error(&at("worktree"), format!("`worktree`: {of}; remove one of the two"));
    }
    if step.inherit.as_ref().is_some_and(|inherit| inherit.from == Some(writer)) {
        problems.error(&at("inherit"), format!("`inherit`: {of}; remove one of the two"));
    }
}
