//! Wall-clock time in the formats of A2A and HTTP, and planned times.

pub mod quiet_hours;
pub mod quota_reset;
pub mod schedule;

use std::time::Duration;

/// Converts an RFC 3339 time of any offset and precision to A2A's format.
pub fn canonical(time: &str) -> Option<String> {
    time.parse::<jiff::Timestamp>().ok().map(|time| format!("{time:.3}"))
}

/// Converts an RFC 3339 time to HTTP's format (RFC 9110, section 5.6.7).
pub fn http_date(time: &str) -> Option<String> {
    let time = time.parse::<jiff::Timestamp>().ok()?;
    jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&time).ok()
}

/// True if a representation of the time `modified` has not changed since the HTTP date `since`, in
/// any of the three formats of HTTP (RFC 9110, section 5.6.7). An invalid date is no condition.
pub fn is_unmodified(modified: &str, since: &str) -> bool {
    let (modified, since) = (parse_http_date(modified), parse_http_date(since));
    matches!((modified, since), (Some(modified), Some(since)) if modified <= since)
}

fn parse_http_date(date: &str) -> Option<jiff::Timestamp> {
    let date = date.trim();
    if let Ok(time) = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date) {
        return Some(time);
    }
    // The obsolete formats of RFC 850 and of C's `asctime`, both in UTC.
    let obsolete = ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];
    obsolete.iter().find_map(|format| {
        let time = jiff::civil::DateTime::strptime(format, date).ok()?;
        time.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|time| time.timestamp())
    })
}

/// Remaining time of an HTTP `Retry-After` value (RFC 9110, section 10.2.3), which is seconds or a
/// date.
pub fn retry_after(value: &str) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits that overflow the number type also mean a long time.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let then = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
    Some(until_time(then))
}

/// Duration until a time in the format of [`now`]; zero if it has passed, or is invalid.
pub fn until(time: &str) -> Duration {
    time.parse().map(until_time).unwrap_or_default()
}

fn until_time(then: jiff::Timestamp) -> Duration {
    jiff::Timestamp::now().duration_until(then).try_into().unwrap_or_default()
}

/// Current time in A2A's format: RFC 3339 in UTC with milliseconds.
pub fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// Current time in milliseconds since the Unix epoch.
pub fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or_default()
}

/// A time in milliseconds since the Unix epoch, in the format of [`now`]; `None` if it is after the
/// year 9999.
pub fn at_ms(ms: u64) -> Option<String> {
    let time = jiff::Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok()?;
    Some(format!("{time:.3}"))
}

/// Time after a pause, in the format of [`now`].
pub fn after(pause: Duration) -> String {
    let then = jiff::Timestamp::now().saturating_add(pause);
    // The addition saturates at the year 9999, so it never fails.
    then.map(|then| format!("{then:.3}")).unwrap_or_else(|_| now())
}

/// Time before a duration, in the format of [`now`]. The order of such texts is the order of their
/// times.
pub fn before(age: Duration) -> String {
    let then = jiff::Timestamp::now().checked_sub(age).unwrap_or(jiff::Timestamp::MIN);
    format!("{then:.3}")
}

/// Duration since a time in the format of [`now`]; zero if it is in the future, or is invalid.
pub fn age(time: &str) -> Duration {
    let since =
        time.parse().map(|then: jiff::Timestamp| then.duration_until(jiff::Timestamp::now()));
    since.ok().and_then(|since| since.try_into().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc_with_milliseconds() {
        for time in [
            "2026-01-31T10:30:00Z",
            "2026-01-31T12:30:00.000000+02:00",
            "2026-01-31T10:30:00.0004Z",
        ] {
            assert_eq!(canonical(time).as_deref(), Some("2026-01-31T10:30:00.000Z"), "{time}");
        }
        for none in ["", "now", "2026-01-31", "2026-01-31T10:30:00"] {
            assert_eq!(canonical(none), None, "{none}");
        }
        assert_eq!(canonical(&now()).unwrap().len(), "2026-01-31T10:30:00.000Z".len());
        assert_eq!(at_ms(1_645_557_742_000).as_deref(), Some("2022-02-22T19:22:22.000Z"));
        assert_eq!([at_ms(1 << 60), at_ms(u64::MAX)], [None, None]);
        assert_eq!(
            http_date("2026-01-31T10:30:00Z").as_deref(),
            Some("Sat, 31 Jan 2026 10:30:00 GMT")
        );
    }

    #[test]
    fn http_dates_of_all_formats_are_compared() {
        let modified = "Sun, 06 Nov 1994 08:49:37 GMT";
        for since in [
            modified,
            " Sun, 06 Nov 1994 08:49:38 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Mon, 07 Nov 1994 00:00:00 GMT",
        ] {
            assert!(is_unmodified(modified, since), "{since}");
        }
        for since in ["Sun, 06 Nov 1994 08:49:36 GMT", "Sun Nov  6 08:49:36 1994", "", "today", "1"]
        {
            assert!(!is_unmodified(modified, since), "{since}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(60);
        let date = http_date(&soon.to_string()).unwrap();
        let told = retry_after(&date).unwrap();
        assert!((57..=60).contains(&told.as_secs()), "{date}: {told:?}");
        let seconds = |said: &str| retry_after(said).map(|it| it.as_secs());
        assert_eq!([" 120 ", "0"].map(seconds), [Some(120), Some(0)]);
        assert_eq!(seconds(&"9".repeat(30)), Some(u64::MAX));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(0), "it is over");
        assert_eq!(["", "-1", "1.5", "soon", "1h"].map(seconds), [None; 5]);
    }

    #[test]
    fn until_is_zero_for_past_times() {
        let told = until(&after(Duration::from_secs(60)));
        assert!((57..=60).contains(&told.as_secs()), "{told:?}");
        let over = before(Duration::from_secs(60));
        assert_eq!([over.as_str(), "soon"].map(until), [Duration::ZERO; 2]);
    }
}
