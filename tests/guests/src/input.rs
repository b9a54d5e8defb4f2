//! Argument of a behaviour, and the report of its result.

use a2a_hub_sdk::prelude::*;

/// Text after the behaviour's name.
pub(crate) fn argument(task: &Task) -> String {
    let text = task.text();
    text.trim_start()
        .split_once(char::is_whitespace)
        .map(|(_, rest)| rest.trim().to_owned())
        .unwrap_or_default()
}

/// The argument as a number.
pub(crate) fn number(task: &Task) -> Result<usize, Failure> {
    let argument = argument(task);
    argument.parse().map_err(|_| Failure::Invalid(format!("`{argument}` is not a number")))
}

/// Completes the task with the result of an attempt; a failure is reported as text, such as
/// `denied: …`. Only cancellation is returned as a failure.
pub(crate) fn tell(ctx: &Context, attempt: Result<String, Failure>) -> Run {
    let failure = match attempt {
        Ok(text) => return ctx.done(text),
        Err(failure) => failure,
    };
    ctx.done(match &failure {
        Failure::Cancelled => return Err(failure),
        Failure::Invalid(why) => format!("invalid: {why}"),
        Failure::Unsupported(why) => format!("unsupported: {why}"),
        Failure::Denied(why) => format!("denied: {why}"),
        Failure::Timeout => "timeout".to_owned(),
        Failure::Unavailable(why) => format!("unavailable: {why}"),
        Failure::Exhausted(why) => format!("exhausted: {why}"),
        Failure::Internal(why) => format!("internal: {why}"),
    })
}
