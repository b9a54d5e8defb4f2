//! Key `compensate` of a step: an agent or a program that undoes the completed step if the flow
//! fails later.

use crate::flow::{
    definition::Undo,
    position::{Problems, Table},
    program::{self, refuse_by_name},
    scope::{Names, SourceRange, TextScope, only, owned, template},
};

/// Reads the key of a step.
pub(super) fn parse(
    table: &Table<'_, '_>,
    texts: &mut Vec<(Names, SourceRange, TextScope)>,
    problems: &mut Problems<'_>,
) -> Option<Undo> {
    let table = Table::from_value(table.get("compensate")?, "compensate", problems)?;
    table.check_keys(&["agent", "prompt", "run", "on_restart"], problems);
    if table.get("run").is_some() {
        only(&table, &["agent", "prompt"], "a `compensate` without `run`", problems);
        return program::parse(&table, problems).map(Undo::Run);
    }
    only(&table, &["on_restart"], "a `compensate` with `run`", problems);
    let agent = table.text("agent", problems);
    let prompt = template(&table, "prompt", problems);
    if let Some((name, at)) = &agent {
        refuse_by_name(name, at, problems);
    }
    let (Some((agent, _)), Some((prompt, at))) = (agent, prompt) else {
        problems.error(&table.at, "`compensate` has an `agent` and a `prompt`, or `run`");
        return None;
    };
    let scope = TextScope { after: true, ..TextScope::default() };
    texts.push((owned(prompt.names()), at, scope));
    Some(Undo::Agent { agent, prompt })
}
