//! Beginning of a run: the definition, and its input.

use a2a_hub_coordination::flow::{Definition, first_text_input};
use a2a_hub_sdk::prelude::*;
use a2a_hub_sdk::serde_json::Value;

use crate::{driver, problems::list};

/// Passes on the definition, or fails with the file's problems.
pub(crate) fn parsed(
    ctx: &Context,
    text: &str,
    then: impl FnOnce(&Context, Definition) -> Run,
) -> Run {
    match Definition::parse(text) {
        Ok(definition) => then(ctx, definition),
        Err(problems) => ctx.fail("invalid_flow", list(&problems)),
    }
}

/// Runs the flow with this input and its defaults, or rejects the task.
pub(crate) fn begin(
    ctx: &Context,
    task: &Task,
    definition: Definition,
    input: Result<Value, String>,
) -> Run {
    match input.and_then(|input| definition.with_defaults(input)) {
        Ok(input) => driver::run(ctx, task, definition, input),
        Err(why) => {
            // A shell gives texts: `--input names=a,b`.
            let is_text = why.ends_with("of type array, and is string");
            let help = if is_text { "; a list is JSON, such as [\"a\", \"b\"]" } else { "" };
            ctx.reject(format!("this input cannot be used: {why}{help}"))
        }
    }
}

/// Input of a plain text: the first input that takes one gets it.
pub(crate) fn input_of_text(definition: &Definition, text: &str) -> Result<Value, String> {
    match first_text_input(&definition.input) {
        Some(_) if text.is_empty() => Ok(json!({})),
        Some(name) => Ok(json!({ name: text })),
        None if text.trim().is_empty() || definition.input.is_empty() => Ok(json!({})),
        None => Err("the flow takes no text; send its input as JSON data".to_owned()),
    }
}
