//! Bad behaviour in the functions of an agent that hear no message: a setting selects it for `health` and `cancel`; for
//! `card`, which is asked without any, a word in the component itself that a test writes over.

use crate::number;
use a2a_hub_sdk::prelude::*;
use std::{hint::black_box, thread, time::Duration};

/// What `card` does after the colon, in as many bytes: `spin`, `trap`, `hang` or nothing.
static CARD: [u8; 17] = *b"card-behaves:    ";

/// Which build this is: the last byte, which a test writes over.
static BUILD: [u8; 10] = *b"build-is:a";

/// `build MS`: which build this is, twice: at once as an artifact, and after so long in its last words.
#[expect(clippy::disallowed_methods, reason = "a guest has a thread and a time of its own")]
pub(crate) fn build(ctx: &Context, task: &Task) -> Run {
    let pause = Duration::from_millis(number(task)?.try_into().unwrap_or(u64::MAX));
    let name = || String::from_utf8_lossy(black_box(&BUILD)).replace("build-is:", "");
    ctx.artifact(Artifact::text("build", name()))?;
    thread::sleep(pause);
    ctx.done(name())
}

/// Behaves before it says its card.
pub(crate) fn card() {
    let word = String::from_utf8_lossy(black_box(&CARD));
    behave(word.rsplit(':').next().unwrap_or_default().trim());
}

/// Behaves as it is told.
#[expect(clippy::disallowed_methods, reason = "a guest has a thread and a time of its own")]
pub(crate) fn behave(behaviour: &str) {
    match behaviour {
        "spin" => crate::greed::spin_on(),
        "trap" => panic!("as told"),
        "hang" => thread::sleep(Duration::from_secs(3_600)),
        _ => {}
    }
}
