//! Behaviours that keep programs between tasks.

use crate::input::{argument, number, tell};
use a2a_hub_sdk::{Child, prelude::*};
use std::time::Duration;

/// Shell script that executes its input line by line; after each line it prints a dot and executes
/// `$after`.
const SHELL: &str =
    r#"echo ready; while read -r line; do eval "$line"; echo .; eval "$after"; done"#;

/// Same shell with a helper process that runs from its start.
const HELPED: &str = "sleep 600 & echo $!";

/// Timeout for a line, longer than any of these programs needs.
const LONG: Duration = Duration::from_secs(30);

/// `keep KEY LINE`: has the shell that is parked under KEY, or a new one, execute LINE, and parks
/// it again. Reports which shell it was, and its output.
pub(crate) fn keep(ctx: &Context, task: &Task) -> Run {
    let argument = argument(task);
    let (key, line) = argument.split_once(' ').unwrap_or((&argument, "echo $$"));
    let (child, told) = match serve(ctx, key, Command::new("sh").args(["-c", SHELL]), line) {
        Ok(served) => served,
        Err(failure) => return tell(ctx, Err(failure)),
    };
    tell(ctx, child.park(key).map(|()| told))
}

/// `keep-helped KEY LINE`: like `keep`, with a shell that has a helper and calls `settled` first.
pub(crate) fn helped(ctx: &Context, task: &Task) -> Run {
    let argument = argument(task);
    let (key, line) = argument.split_once(' ').unwrap_or((&argument, "echo $$"));
    let script = format!("{HELPED}; {SHELL}");
    let (child, told) = match serve(ctx, key, Command::new("sh").args(["-c", &script]), line) {
        Ok(served) => served,
        Err(failure) => return tell(ctx, Err(failure)),
    };
    tell(ctx, child.park(key).map(|()| told))
}

/// `keep-and-hold KEY`: resumes the program parked under KEY, or starts a new one, and works with
/// it until the task is cancelled.
pub(crate) fn hold(ctx: &Context, task: &Task) -> Run {
    let shell = Command::new("sh").args(["-c", SHELL]);
    let (mut child, told) = serve(ctx, &argument(task), shell, "echo $$")?;
    ctx.say(told)?;
    while child.next_line(None)?.is_some() {}
    ctx.done("it has ended")
}

/// `keep-many N`: parks a program under each of N keys, and reports the number of successes.
pub(crate) fn many(ctx: &Context, task: &Task) -> Run {
    let wanted = number(task)?;
    let mut parked = 0;
    for key in 0..wanted {
        let child = ctx.spawn(Command::new("sleep").arg("600"))?;
        parked += usize::from(child.park(&key.to_string()).is_ok());
    }
    ctx.done(format!("{parked} parked"))
}

/// Parks programs under invalid keys, and reports the results.
pub(crate) fn badly(ctx: &Context, _: &Task) -> Run {
    let keys = [String::new(), "a\nb".to_owned(), "\u{7f}".to_owned(), "k".repeat(257)];
    let mut told = Vec::new();
    for key in keys {
        let parked = ctx.spawn(Command::new("sleep").arg("600"))?.park(&key);
        let taken = ctx.take_up(&key, Command::new("sleep").arg("600"));
        let refused = matches!(parked, Err(Failure::Invalid(_)));
        let taken = matches!(taken, Err(Failure::Invalid(_)));
        told.push(if refused && taken { "invalid" } else { "valid" });
    }
    let mut ended = ctx.spawn(Command::new("sleep").arg("0"))?;
    while ended.next_line(None)?.is_some() {}
    told.push(match ended.park("k") {
        Err(Failure::Unavailable(_)) => "unavailable",
        Ok(()) | Err(_) => "parked",
    });
    ctx.done(told.join(" "))
}

/// Has the parked program, or a new one, execute a line.
fn serve(
    ctx: &Context,
    key: &str,
    command: Command,
    line: &str,
) -> Result<(Child, String), Failure> {
    let (mut child, how) = match ctx.take_up(key, command.clone())? {
        Some(child) => (child, "kept"),
        None => (ctx.spawn(command)?, "new"),
    };
    let mut told = vec![how.to_owned()];
    if how == "new" {
        while let Some(said) = child.next_line(Some(LONG))? {
            if said == "ready" {
                break;
            }
            told.push(said);
        }
        child.settled();
    }
    child.write_line(line)?;
    loop {
        match child.next_line(Some(LONG))? {
            Some(said) if said == "." => return Ok((child, told.join(" "))),
            Some(said) => told.push(said),
            None => return Err(Failure::Unavailable("the program has ended".to_owned())),
        }
    }
}
