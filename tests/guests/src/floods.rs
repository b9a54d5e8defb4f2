//! Behaviours that keep the hub busy with little work in the guest. They go on until the hub
//! refuses more.

use crate::input::{argument, number};
use a2a_hub_sdk::{Need, Part, PartContent, prelude::*};
use std::{hint::black_box, thread, time::Duration};

/// Number of arguments of a program, the largest that is allowed.
const ARGUMENTS: usize = 4_096;

/// `flood-data BYTES`: emits data parts of this size, filled with the shortest values.
pub(crate) fn data(ctx: &Context, task: &Task) -> Run {
    let bytes = number(task)?;
    let json = format!("[{}0]", "0,".repeat(bytes / 2));
    loop {
        let part = Part::new(PartContent::Data(json.clone()));
        ctx.append(Artifact::new("flood", vec![part]), false)?;
    }
}

/// `flood-text BYTES`: emits texts of this size.
pub(crate) fn text(ctx: &Context, task: &Task) -> Run {
    let much = "x".repeat(number(task)?);
    loop {
        ctx.append(Artifact::text("flood", &much), false)?;
    }
}

/// `end-long BYTES [HOW]`: ends with a text of this size, as a reply or in the form HOW.
pub(crate) fn end(ctx: &Context, task: &Task) -> Run {
    let argument = argument(task);
    let (bytes, how) = argument.split_once(' ').unwrap_or((&argument, "reply"));
    let invalid = || Failure::Invalid(format!("`{argument}` is not `BYTES [HOW]`"));
    let text = "x".repeat(bytes.parse().map_err(|_| invalid())?);
    match how {
        "reply" => ctx.reply(text),
        "done" => ctx.done(text),
        "fail" => ctx.fail("broken", text),
        "fix" => ctx.fail_with_fix("broken", "no", text),
        "error" => Err(Failure::Internal(text)),
        "ask" => ctx.ask(text).map(|answer| Outcome::completed(answer.text())),
        "panic" => panic!("{text}"),
        _ => Err(invalid()),
    }
}

/// Prints lines on standard output, which nobody reads.
#[expect(clippy::print_stdout, reason = "that is the behaviour")]
pub(crate) fn stdout(_: &Context, _: &Task) -> Run {
    let line = "x".repeat(1 << 10);
    loop {
        println!("{line}");
    }
}

/// Prints lines on standard error, of which the hub keeps some in case of a panic.
#[expect(clippy::print_stderr, reason = "that is the behaviour")]
pub(crate) fn stderr(_: &Context, _: &Task) -> Run {
    let line = "x".repeat(1 << 10);
    loop {
        eprintln!("{line}");
    }
}

/// Requests random bytes.
pub(crate) fn random(_: &Context, _: &Task) -> Run {
    let mut bytes = [0; 256];
    loop {
        fill(&mut bytes);
        black_box(&bytes);
    }
}

/// Waits with a timeout of zero, again and again.
pub(crate) fn glances(ctx: &Context, _: &Task) -> Run {
    loop {
        ctx.sleep(Duration::ZERO)?;
    }
}

#[cfg(target_arch = "wasm32")]
#[expect(unsafe_code, reason = "the standard library has no function for it")]
fn fill(bytes: &mut [u8; 256]) {
    unsafe extern "C" {
        fn getentropy(bytes: *mut u8, length: usize) -> i32;
    }
    // SAFETY: the pointer and the length are those of one slice, and the C library writes into it
    // only.
    unsafe {
        getentropy(bytes.as_mut_ptr(), bytes.len());
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn fill(bytes: &mut [u8; 256]) {
    bytes.fill(4);
}

/// Stores values in memory, which overwrite one another.
pub(crate) fn memory(ctx: &Context, _: &Task) -> Run {
    for n in 0_u64.. {
        ctx.remember(&format!("key {}", n % 8), &n)?;
    }
    ctx.done("remembered everything")
}

/// Starts a program with the maximum number of arguments, which almost match its patterns in an
/// exponential number of ways.
pub(crate) fn arguments(ctx: &Context, _: &Task) -> Run {
    let mut arguments = vec!["a"; ARGUMENTS - 1];
    arguments.push("--not-this");
    loop {
        let formed = Command::new("formed").args(arguments.iter().copied());
        if let Err(failure @ Failure::Cancelled) = ctx.spawn(formed).map(drop) {
            return Err(failure);
        }
    }
}

/// `drop-questions N`: asks N questions, and drops each one before the next.
pub(crate) fn dropped_questions(ctx: &Context, task: &Task) -> Run {
    let wanted = number(task)?;
    for n in 0..wanted {
        drop(ctx.pose(Need::Input, format!("question {n}?"), None)?);
    }
    ctx.done(format!("{wanted} questions"))
}

/// `flood-questions N`: asks N questions at once, and waits for none.
pub(crate) fn questions(ctx: &Context, task: &Task) -> Run {
    let mut open = Vec::new();
    for n in 0..number(task)? {
        match ctx.pose(Need::Input, format!("question {n}?"), None) {
            Ok(question) => open.push(question),
            Err(failure) => {
                let so_far = open.len();
                drop(open);
                ctx.say(format!("{so_far} questions"))?;
                return crate::input::tell(ctx, Err(failure));
            }
        }
    }
    ctx.done(format!("{} questions", open.len()))
}

/// `hang SECONDS`: sleeps without calling the hub.
#[expect(clippy::disallowed_methods, reason = "a guest has a thread and a time of its own")]
pub(crate) fn hang(ctx: &Context, task: &Task) -> Run {
    thread::sleep(Duration::from_secs(argument(task).parse().unwrap_or(3_600)));
    ctx.done("waited")
}
