//! Quiet hours: a part of each day, in local time, in which people are left alone.

use jiff::{Timestamp, civil::Time, tz::TimeZone};

/// Part of each day, from one time to another; over midnight if it ends before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuietHours {
    from: Time,
    to: Time,
}

impl QuietHours {
    /// Parses `22:00-07:00`: hours and minutes of the day, each with two digits. None if the text
    /// is something else, or both times are the same.
    pub fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('-')?;
        let (from, to) = (time(from.trim())?, time(to.trim())?);
        (from != to).then_some(Self { from, to })
    }

    /// End of the quiet hours that last at `now` in this zone; none outside them.
    pub fn until(self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let local = now.to_zoned(zone.clone());
        let time = local.time();
        let is_quiet = match self.from < self.to {
            true => self.from <= time && time < self.to,
            false => time >= self.from || time < self.to,
        };
        if !is_quiet {
            return None;
        }
        let is_tomorrow = time >= self.to;
        let day = if is_tomorrow { local.date().tomorrow().ok()? } else { local.date() };
        // A time in a gap of the clock is moved behind it, and of a repeated one the first counts.
        let end = day.to_datetime(self.to).to_zoned(zone.clone()).ok()?.timestamp();
        // The end may be the second of two equal times; then the quiet hours last until it.
        Some(if end > now { end } else { now + jiff::SignedDuration::from_mins(1) })
    }
}

/// Time of day from two digits of hours and minutes.
fn time(text: &str) -> Option<Time> {
    let (hour, minute) = text.split_once(':')?;
    let number = |digits: &str| {
        let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<i8>().ok().filter(|_| is_number)
    };
    Time::new(number(hour)?, number(minute)?, 0, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until(hours: &str, now: &str, zone: &str) -> Option<String> {
        let zone = TimeZone::get(zone).unwrap();
        let now: Timestamp = now.parse().unwrap();
        let end = QuietHours::parse(hours).unwrap().until(now, &zone)?;
        Some(end.to_zoned(zone).strftime("%Y-%m-%dT%H:%M%:z").to_string())
    }

    #[test]
    fn hours_are_two_times_of_day() {
        for text in ["22:00-07:00", "00:00-23:59", "9", "13:00 - 14:30"] {
            assert_eq!(QuietHours::parse(text).is_some(), text != "9", "{text}");
        }
        for text in [
            "",
            "-",
            "22:00",
            "22:00-",
            "22-7",
            "24:00-07:00",
            "22:60-07:00",
            "7:00-8:00",
            "22:00-22:00",
            "+1:00-07:00",
            "22:00-07:00-08:00",
            "22:00:00-07:00",
            "２２:00-07:00",
        ] {
            assert_eq!(QuietHours::parse(text), None, "{text}");
        }
    }

    #[test]
    fn end_is_found_over_midnight_and_clock_changes() {
        let (night, noon, berlin) = ("22:00-07:00", "12:00-13:00", "Europe/Berlin");
        for (hours, now, zone, expected) in [
            (night, "2026-06-01T19:59:59Z", berlin, None),
            (night, "2026-06-01T20:00:00Z", berlin, Some("2026-06-02T07:00+02:00")),
            (night, "2026-06-01T22:30:00Z", berlin, Some("2026-06-02T07:00+02:00")),
            (night, "2026-06-02T04:59:59Z", berlin, Some("2026-06-02T07:00+02:00")),
            (night, "2026-06-02T05:00:00Z", berlin, None),
            (noon, "2026-06-02T10:30:00Z", berlin, Some("2026-06-02T13:00+02:00")),
            (noon, "2026-06-02T11:00:00Z", berlin, None),
            // The clock goes forward at 2:00 and back at 3:00.
            (night, "2026-03-28T22:00:00Z", berlin, Some("2026-03-29T07:00+02:00")),
            (night, "2026-10-24T21:00:00Z", berlin, Some("2026-10-25T07:00+01:00")),
            ("22:00-02:30", "2026-03-28T23:00:00Z", berlin, Some("2026-03-29T03:30+02:00")),
            ("22:00-02:30", "2026-10-24T23:00:00Z", berlin, Some("2026-10-25T02:30+02:00")),
            // The repeated hour is quiet again.
            ("22:00-02:30", "2026-10-25T01:10:00Z", berlin, Some("2026-10-25T02:11+01:00")),
            ("22:00-02:30", "2026-10-25T01:30:00Z", berlin, None),
            // The last day of the year, and a zone east of UTC by half an hour.
            (night, "2026-12-31T18:00:00Z", "Asia/Kolkata", Some("2027-01-01T07:00+05:30")),
            (night, "2026-12-31T18:00:00Z", "UTC", None),
        ] {
            assert_eq!(until(hours, now, zone).as_deref(), expected, "{hours} {now}");
        }
    }
}
