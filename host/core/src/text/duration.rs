//! Durations in readable units: never `0ns` or `5400s`.

use std::{fmt, time::Duration};

/// Duration for messages, such as `250 ms`, `1.5 s` or `1 h 30 min`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (millis, seconds) = (self.0.as_millis(), self.0.as_secs());
        match (seconds, millis % 1_000 / 100) {
            (0, _) if millis > 0 => write!(f, "{millis} ms"),
            (0..60, tenths @ 1..) => write!(f, "{seconds}.{tenths} s"),
            (0..60, 0) => write!(f, "{seconds} s"),
            (60..3_600, _) if seconds % 60 > 0 => {
                write!(f, "{} min {} s", seconds / 60, seconds % 60)
            }
            (60..3_600, _) => write!(f, "{} min", seconds / 60),
            (_, _) => write!(f, "{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_shown_in_readable_units() {
        let spans = [0, 7, 700, 1_000, 1_550, 10_000, 59_999, 60_000, 90_000, 5_400_000];
        let spans = spans.map(|millis| Span(Duration::from_millis(millis)).to_string()).join(", ");
        insta::assert_snapshot!(spans, @"0 s, 7 ms, 700 ms, 1 s, 1.5 s, 10 s, 59.9 s, 1 min, 1 min 30 s, 1 h 30 min");
        assert_eq!(Span(Duration::from_nanos(1)).to_string(), "0 s");
    }
}
