//! Limit for HTTP/2 control frames (RFC 9113, section 10.5): frames such as `WINDOW_UPDATE`, `PING`
//! and `SETTINGS`, which carry no request and cost the sender nothing. A token bucket limits their
//! burst and rate; requests and sent data earn additional frames, because they cause control
//! frames.

use a2a_hub_core::scheduling::token_bucket::{Bucket, Rate};
use std::time::Instant;

/// Control frames each second without requests: an idle client sends one every few seconds.
const PER_SECOND: u32 = 100;

/// Maximum burst of control frames.
const BURST: u32 = 1_000;

/// Control frames for each request, or for each data frame sent to the client: the client updates
/// two windows for it, and some clients also measure the round trip with a ping.
const PER_FRAME: u32 = 10;

/// Maximum saved control frames: enough for some megabytes in flight.
const MAX_SAVED: u32 = 100_000;

/// Control-frame limit of one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ControlFrames(Bucket);

/// Error for more control frames than the client's activity justifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a flood of HTTP/2 control frames: more than {PER_SECOND} a second beside what belongs to requests and data"
)]
pub(crate) struct Flood;

impl ControlFrames {
    /// Creates the limit of a new connection.
    pub(crate) fn new(now: Instant) -> Self {
        Self(Bucket::full(Rate { per_second: PER_SECOND.into(), burst: BURST.into() }, now))
    }

    /// Earns control frames for this number of requests or sent data frames.
    pub(crate) fn earn(&mut self, frames: u32) {
        self.0.earn(u64::from(frames) * u64::from(PER_FRAME), MAX_SAVED.into());
    }

    /// Spends tokens for received control frames; [`Flood`] if not enough are available.
    pub(crate) fn spend(&mut self, frames: u32, now: Instant) -> Result<(), Flood> {
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
    fn flood_is_refused_busy_client_is_not() {
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
    fn saved_frames_are_limited() {
        let begun = Instant::now();
        let mut frames = ControlFrames::new(begun);
        let late = begun + Duration::from_secs(1 << 30);
        assert_eq!(frames.spend(BURST + 1, late), Err(Flood), "waiting saves no more than a burst");
        let mut frames = ControlFrames::new(begun);
        frames.earn(u32::MAX);
        assert_eq!(frames.spend(MAX_SAVED, begun), Ok(()));
        assert_eq!(frames.spend(1, begun), Err(Flood));
        // A clock that goes back earns nothing.
        let mut frames = ControlFrames::new(late);
        assert_eq!(frames.spend(BURST, begun), Ok(()));
        assert_eq!(frames.spend(1, begun), Err(Flood));
    }
}
