//! Behaviours that use too many resources, or crash.

use crate::input::{argument, number, tell};
use a2a_hub_sdk::{Need, Part, TaskState, TaskStatus, prelude::*, serde_json::json};
use std::{hint::black_box, time::Duration};

/// Size of the pieces in which memory is allocated and touched.
const PIECE: usize = 1 << 20;

/// Default number of lines of `log-flood`.
const LOG_LINES: usize = 100_000;

/// Panics with a message on standard error.
pub(crate) fn panic(_: &Context, task: &Task) -> Run {
    panic!("as told: {}", argument(task));
}

/// Traps without a message.
pub(crate) fn trap(_: &Context, _: &Task) -> Run {
    #[cfg(target_arch = "wasm32")]
    core::arch::wasm32::unreachable();
    #[cfg(not(target_arch = "wasm32"))]
    std::process::abort()
}

/// Loops for ever without calling the hub.
pub(crate) fn spin(_: &Context, _: &Task) -> Run {
    spin_on()
}

/// Loops for ever.
pub(crate) fn spin_on() -> ! {
    loop {
        black_box(());
    }
}

/// Allocates memory until an allocation fails.
pub(crate) fn bomb(ctx: &Context, _: &Task) -> Run {
    let mut hoard: Vec<Vec<u8>> = Vec::new();
    loop {
        let mut piece = Vec::new();
        if hoard.try_reserve(1).is_err() || piece.try_reserve_exact(PIECE).is_err() {
            let pieces = hoard.len();
            drop(hoard);
            return ctx.done(format!("refused after {pieces} MiB"));
        }
        piece.resize(PIECE, 1);
        hoard.push(black_box(piece));
    }
}

/// Overflows the stack.
pub(crate) fn recurse(ctx: &Context, _: &Task) -> Run {
    ctx.done(format!("came back from {}", deeper(0)))
}

#[expect(unconditional_recursion, reason = "the behaviour is to recurse without end")]
fn deeper(depth: u64) -> u64 {
    let frame = black_box([depth; 32]);
    // Used after the call, so that the compiler cannot turn the recursion into a loop.
    deeper(depth + 1) + black_box(frame)[0]
}

/// `flood N`: emits N chunks of an artifact as fast as the hub accepts them.
pub(crate) fn flood(ctx: &Context, task: &Task) -> Run {
    let count = number(task)?;
    for n in 1..=count {
        ctx.append(Artifact::text("flood", format!("{n}\n")), n == count)?;
    }
    ctx.done(format!("{count} pieces"))
}

/// `flood-forever [WHERE]`: emits chunks of an artifact until the hub accepts no more, each with a
/// kilobyte in its text or in another place.
pub(crate) fn flood_forever(ctx: &Context, task: &Task) -> Run {
    let (place, much) = (argument(task), "x".repeat(1024));
    let empty = || Artifact::text("flood", "");
    let message = || Message::from("");
    let status = |message| [TaskStatus::saying(TaskState::Working, message)];
    loop {
        let told = match place.as_str() {
            "artifact" => ctx.append(Artifact::text(&much, ""), false),
            "name" => ctx.append(empty().named(&much), false),
            "description" => ctx.append(empty().described(&much), false),
            "extension" => ctx.append(empty().with_extension(&much), false),
            "filename" => ctx.append(empty().with(Part::text("").named(&much)), false),
            "media-type" => ctx.append(empty().with(Part::text("").of_type(&much)), false),
            "message" => ctx.emit(status(Message { id: much.clone(), ..message() })),
            "reference" => ctx.emit(status(message().about(&much))),
            "question" => {
                let question = message().with_metadata(&json!({ "much": much }));
                ctx.ask_within(Need::Input, question, Some(Duration::ZERO)).map(drop)
            }
            _ => ctx.append(Artifact::text("flood", &much), false),
        };
        match told {
            Ok(()) | Err(Failure::Timeout) => {}
            Err(failure) => return Err(failure),
        }
    }
}

/// `big N`: emits one event of N bytes.
pub(crate) fn big(ctx: &Context, task: &Task) -> Run {
    let bytes = number(task)?;
    let sent = ctx.artifact(Artifact::text("big", "x".repeat(bytes)));
    tell(ctx, sent.map(|()| format!("{bytes} bytes")))
}

/// `log-flood [N]`: writes very many log lines.
pub(crate) fn log_flood(ctx: &Context, task: &Task) -> Run {
    let lines = number(task).unwrap_or(LOG_LINES);
    for n in 1..=lines {
        ctx.log(Level::Info, format!("line {n}"));
    }
    ctx.done(format!("{lines} lines"))
}

/// Writes as many empty log lines.
pub(crate) fn log_nothing(ctx: &Context, _: &Task) -> Run {
    for _ in 0..LOG_LINES {
        ctx.log(Level::Info, "");
    }
    ctx.done("said nothing")
}
