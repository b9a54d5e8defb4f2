//! Timers for [`Context::wait`](crate::Context::wait).

use std::time::{Duration, Instant};

use crate::artifact::now;

/// One-shot or periodic timer that [`Context::wait`](crate::Context::wait) waits for together with
/// programs, answers and questions. In a replayed agent it fires as in the earlier run.
#[derive(Debug, Clone)]
pub struct Timer {
    due: Option<Instant>,
    period: Option<Duration>,
}

impl Timer {
    /// Creates a timer that fires once, after `time`.
    pub fn after(time: Duration) -> Self {
        Self { due: now().checked_add(time), period: None }
    }

    /// Creates a timer that fires every `period`, at most a thousand times a second. A late caller
    /// misses only the ticks that were due meanwhile.
    pub fn every(period: Duration) -> Self {
        let period = period.max(Duration::from_millis(1));
        Self { period: Some(period), ..Self::after(period) }
    }

    /// Time until the timer fires: zero if it is due, `None` if it fires no more.
    pub fn remaining(&self) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(now()))
    }

    /// Acknowledges that the timer fired and arms it for the next period, if it has one.
    pub fn rewind(&mut self) {
        self.due = self.period.and_then(|period| now().checked_add(period));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;
    use crate::testing::ScriptedHost;

    const HOUR: Duration = Duration::from_secs(3_600);

    /// A scripted hub lets no time pass: every wait ends at once.
    #[test]
    fn first_due_timer_fires() {
        let host = ScriptedHost::new();
        let ctx = host.context();
        let (mut soon, late) = (Timer::every(HOUR), Timer::after(2 * HOUR));
        let sources = [Source::Timer(&late), Source::Timer(&soon)];
        assert_eq!(ctx.wait(&sources, None).unwrap(), [1]);
        assert_eq!(ctx.wait(&sources, Some(HOUR / 2)).unwrap(), [] as [usize; 0], "that is sooner");
        soon.rewind();
        assert!(soon.remaining() > Some(HOUR / 2));
    }

    #[test]
    fn ready_source_is_returned_with_due_timer() {
        let host = ScriptedHost::new();
        host.respond_in_pieces(200, &["a\n"]);
        let ctx = host.context();
        let answer = ctx.exchange(&crate::Request::get("https://example.com")).unwrap();
        let (due, idle) = (Timer::after(Duration::ZERO), Timer::after(HOUR));
        let sources = [Source::Timer(&due), Source::Exchange(&answer), Source::Timer(&idle)];
        assert_eq!(ctx.wait(&sources, None).unwrap(), [0, 1]);
    }

    #[test]
    fn expired_timer_does_not_extend_wait() {
        let host = ScriptedHost::new();
        let mut once = Timer::after(Duration::ZERO);
        assert_eq!(once.remaining(), Some(Duration::ZERO));
        once.rewind();
        assert_eq!(once.remaining(), None);
        let answered = host.context().wait(&[Source::Timer(&once)], Some(HOUR));
        assert_eq!(answered.unwrap(), [] as [usize; 0]);
    }
}
