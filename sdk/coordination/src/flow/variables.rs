//! Variables that the programs of a flow get: inputs, texts of earlier steps, and the item.

use serde_json::{Map, Value};

use super::{
    definition::{Definition, INDEX, ITEM, input_variable, text_variable},
    position::Problems,
    row::Row,
    text::cut,
};

/// Most bytes of one variable. Linux takes 128 KiB for one.
const MAX_VARIABLE: usize = 32 << 10;

/// Most bytes of all variables together.
const MAX_VARIABLES: usize = 256 << 10;

/// Refuses names that differ only in case if a program gets them: their variables would be one.
pub(super) fn check_variables(definition: &Definition, problems: &mut Problems<'_>) {
    if !definition.runs_programs() {
        return;
    }
    let inputs = definition.input.iter().map(|(name, _)| (name.as_str(), input_variable(name)));
    let steps = definition.step_ids().map(|id| (id, text_variable(id)));
    let mut known: Vec<(&str, String)> = Vec::new();
    for (name, variable) in inputs.chain(steps) {
        if let Some((other, _)) = known.iter().find(|(_, it)| *it == variable) {
            let rule = format!(
                "`{other}` and `{name}` differ in case only, and are one variable of a program; rename one"
            );
            problems.error(&(0..0), rule);
        }
        known.push((name, variable));
    }
}

/// Environment of the program of a step.
///
/// # Errors
///
/// If the variables are too long: a text for the client.
pub(super) fn environment(
    definition: &Definition,
    step: usize,
    rows: &[Row],
    input: &Value,
    item: Option<&(usize, Value)>,
) -> Result<Map<String, Value>, String> {
    let mut env = Map::new();
    for (name, value) in input.as_object().into_iter().flatten() {
        env.insert(input_variable(name), text_of(value).into());
    }
    for (other, row) in rows.iter().enumerate() {
        // A step has a record of its own when its program undoes it.
        let is_visible = other == step || definition.is_before(other, step);
        let record = row.record.as_ref().filter(|_| is_visible);
        if let Some(text) = record.and_then(|record| record["text"].as_str()) {
            env.insert(text_variable(&definition.steps[other].id), text.into());
        }
    }
    if let Some((index, item)) = item {
        env.insert(ITEM.to_owned(), text_of(item).into());
        env.insert(INDEX.to_owned(), index.to_string().into());
    }
    let mut size = 0;
    for (name, value) in &mut env {
        // A variable ends at a zero byte.
        let mut text = value.as_str().unwrap_or_default().replace('\0', "");
        cut(&mut text, MAX_VARIABLE);
        size += name.len() + text.len() + 2;
        *value = text.into();
    }
    if size > MAX_VARIABLES {
        let max_kib = MAX_VARIABLES >> 10;
        return Err(format!("the variables of the program have more than {max_kib} KiB"));
    }
    Ok(env)
}

/// Text of a value: a text as it is, and JSON otherwise.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
