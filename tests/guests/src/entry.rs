//! Bad behaviour in exports that get no message. A setting selects it for `health` and `cancel`.
//! For `card`, which has no capabilities, a word within the component, which a test overwrites,
//! selects it.

use crate::input::number;
use a2a_hub_sdk::prelude::*;
use std::{hint::black_box, thread, time::Duration};

/// Behaviour of `card` after the colon, padded: `spin`, `trap`, `hang` or nothing.
static CARD: [u8; 17] = *b"card-behaves:    ";

/// Build of this component: its last byte, which a test overwrites.
static BUILD: [u8; 10] = *b"build-is:a";

/// `build MS`: reports the build twice: at once as an artifact, and after the pause as the final
/// message.
#[expect(clippy::disallowed_methods, reason = "a guest has a thread and a time of its own")]
pub(crate) fn build(ctx: &Context, task: &Task) -> Run {
    let pause = Duration::from_millis(number(task)?.try_into().unwrap_or(u64::MAX));
    let name = || String::from_utf8_lossy(black_box(&BUILD)).replace("build-is:", "");
    ctx.artifact(Artifact::text("build", name()))?;
    thread::sleep(pause);
    ctx.done(name())
}

/// Behaves before it returns the card.
pub(crate) fn card() {
    let word = String::from_utf8_lossy(black_box(&CARD));
    behave(word.rsplit(':').next().unwrap_or_default().trim());
}

/// Performs a behaviour.
#[expect(clippy::disallowed_methods, reason = "a guest has a thread and a time of its own")]
pub(crate) fn behave(behaviour: &str) {
    match behaviour {
        "spin" => crate::greed::spin_on(),
        "trap" => panic!("as told"),
        "hang" => thread::sleep(Duration::from_secs(3_600)),
        _ => {}
    }
}
