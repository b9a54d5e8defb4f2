//! Behaviours that keep programs between tasks.

use crate::{argument, number, tell};
use a2a_hub_sdk::{Child, prelude::*};
use std::time::Duration;

/// Has a shell do one line after the other: each is followed by a dot, and then by what `$after` says.
const SHELL: &str =
    r#"echo ready; while read -r line; do eval "$line"; echo .; eval "$after"; done"#;

/// The same, with a helper of its own that is there from its start.
const HELPED: &str = "sleep 600 & echo $!";

/// Longer than any program of these takes for a line.
const LONG: Duration = Duration::from_secs(30);

/// `keep KEY LINE`: has the shell that is kept under KEY, or a new one, do LINE, and parks it again. Tells which it was and what it
/// printed.
pub(crate) fn keep(ctx: &Context, task: &Task) -> Run {
    let argument = argument(task);
    let (key, line) = argument.split_once(' ').unwrap_or((&argument, "echo $$"));
    let (child, told) = match serve(ctx, key, Command::new("sh").args(["-c", SHELL]), line) {
        Ok(served) => served,
        Err(failure) => return tell(ctx, Err(failure)),
    };
    tell(ctx, child.park(key).map(|()| told))
}

/// `keep-helped KEY LINE`: the same with a shell that has a helper, which settles before it does anything.
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

/// `keep-and-hold KEY`: takes up what is kept under KEY, or starts a new one, and works with it until it is cancelled.
pub(crate) fn hold(ctx: &Context, task: &Task) -> Run {
    let shell = Command::new("sh").args(["-c", SHELL]);
    let (mut child, told) = serve(ctx, &argument(task), shell, "echo $$")?;
    ctx.say(told)?;
    while child.next_line(None)?.is_some() {}
    ctx.done("it has ended")
}

/// `keep-many N`: parks a program under each of N keys, and tells how many that worked for.
pub(crate) fn many(ctx: &Context, task: &Task) -> Run {
    let wanted = number(task)?;
    let mut parked = 0;
    for key in 0..wanted {
        let child = ctx.spawn(Command::new("sleep").arg("600"))?;
        parked += usize::from(child.park(&key.to_string()).is_ok());
    }
    ctx.done(format!("{parked} parked"))
}

/// Parks programs under keys that are none, and tells what it was told.
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

/// Has a program do a line: the one that is kept, or a new one.
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
