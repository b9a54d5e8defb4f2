//! Floods of HTTP/2's control frames (RFC 9113, section 10.5): frames that carry nothing of a request and cost their sender
//! nothing, such as `WINDOW_UPDATE`, `PING` and `SETTINGS`. A token bucket: so many at once, so many a second, and more for who
//! makes requests and is sent data, for each of those has its own.

use crate::bucket::{Bucket, Rate};
use std::time::Instant;

/// How many it may send each second for nothing: a client that only waits sends one every few seconds.
const PER_SECOND: u32 = 100;

/// How many control frames a client may send at once.
const BURST: u32 = 1_000;

/// How many belong to a request that it makes, or to a frame of data that it is sent: two windows are opened again for that,
/// and some clients measure the way with a ping as well.
const PER_FRAME: u32 = 10;

/// How many it may have left over: those of some megabytes that are on their way.
const MOST: u32 = 100_000;

/// The control frames of one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlFrames(Bucket);

/// A client sends more control frames than belong to what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a flood of HTTP/2 control frames: more than {PER_SECOND} a second beside what belongs to requests and data"
)]
pub struct Flood;

impl ControlFrames {
    /// Those of a connection that begins.
    pub fn new(now: Instant) -> Self {
        Self(Bucket::full(Rate { per_second: PER_SECOND.into(), burst: BURST.into() }, now))
    }

    /// A request was made, or a frame of data was sent, so often.
    pub fn earn(&mut self, frames: u32) {
        self.0.earn(u64::from(frames) * u64::from(PER_FRAME), MOST.into());
    }

    /// Takes so many tokens out of the bucket, for as many control frames that came; [`Flood`] if it is empty.
    pub fn spend(&mut self, frames: u32, now: Instant) -> Result<(), Flood> {
        if self.0.try_take(frames.into(), now) { Ok(()) } else { Err(Flood) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn after(ms: u64) -> impl Fn(Instant) -> Instant {
        move |begun| begun + Duration::from_millis(ms)
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "an arbitrary starting point")]
    fn a_flood_is_found_and_a_client_that_is_busy_is_none() {
        let begun = Instant::now();
        let mut frames = ControlFrames::new(begun);
        assert_eq!(frames.spend(BURST, begun), Ok(()));
        assert_eq!(frames.spend(1, after(9)(begun)), Err(Flood), "it has none left");
        assert_eq!(frames.spend(1, after(10)(begun)), Ok(()), "one comes every ten milliseconds");
        assert_eq!(frames.spend(1, after(19)(begun)), Err(Flood));
        assert_eq!(frames.spend(1, after(20)(begun)), Ok(()), "and none is lost between");
        frames.earn(3);
        assert_eq!(frames.spend(3 * PER_FRAME, after(20)(begun)), Ok(()), "some belong to data");
        assert_eq!(frames.spend(1, after(20)(begun)), Err(Flood));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "an arbitrary starting point")]
    fn no_more_is_saved_than_one_may_send_at_once() {
        let begun = Instant::now();
        let mut frames = ControlFrames::new(begun);
        let late = begun + Duration::from_secs(1 << 30);
        assert_eq!(frames.spend(BURST + 1, late), Err(Flood), "waiting saves no more than a burst");
        let mut frames = ControlFrames::new(begun);
        frames.earn(u32::MAX);
        assert_eq!(frames.spend(MOST, begun), Ok(()));
        assert_eq!(frames.spend(1, begun), Err(Flood));
        // A clock that goes back gives nothing.
        let mut frames = ControlFrames::new(late);
        assert_eq!(frames.spend(BURST, begun), Ok(()));
        assert_eq!(frames.spend(1, begun), Err(Flood));
    }
}
