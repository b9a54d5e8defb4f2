//! Time at which a used-up quota resets, as the programs of vendors write it in their errors.
//!
//! The texts are for people and change between versions, so anything unknown has no time: a caller
//! must not guess one.

use jiff::{
    SignedDuration, Span, SpanRelativeTo, Timestamp, Zoned,
    civil::{Date, Time},
    tz::TimeZone,
};

/// Longest time until a reset that is believed: quotas reset each month at least.
const MAX_AHEAD: SignedDuration = SignedDuration::from_hours(32 * 24);

/// Time since a reset that is believed: an error may arrive late, and clocks differ.
const MAX_PAST: SignedDuration = SignedDuration::from_hours(1);

/// Most bytes of a text that are read.
const MAX_TEXT: usize = 4_000;

/// Longest text of a duration, in bytes.
const MAX_DURATION: usize = 60;

/// Most phrases that are tried, so that no text takes long.
const MAX_PHRASES: usize = 16;

/// Phrases before a time of day, a date or a duration.
const PHRASES: [&str; 5] = ["resets", "reset", "try again", "retry", "waits until"];

/// Words between a phrase and its time.
const FILLERS: [&str; 7] = ["at", "on", "in", "after", "about", "will", "~"];

/// Names of members of JSON with a time (seconds or milliseconds since 1970, or RFC 3339).
const TIME_MEMBERS: [&str; 3] = ["resetsat", "resets_at", "reset_at"];

/// Names of members of JSON with a number of seconds.
const SECONDS_MEMBERS: [&str; 3] = ["resets_in_seconds", "resetsinseconds", "retry_after_seconds"];

/// Reads the time of the reset from an error of a vendor. `local` is the zone of times without one.
/// A time of day without a date is the next one after `now`. None if the text has no time, an
/// unknown zone, or a time that is no reset of a quota.
///
/// Sources: messages of Claude Code (`…limit reached|1764230400`, `resets 3pm (Europe/Berlin)`), of
/// Codex (`try again in 3 days 4 hours`, `try again at Dec 5th, 2026 3:05 PM`, `resets_in_seconds`)
/// and of Gemini (`Please retry in 22.5s`, `reset after 18h22m45s`).
pub fn quota_reset(text: &str, now: Timestamp, local: &TimeZone) -> Option<Timestamp> {
    let text = &text[..text.floor_char_boundary(MAX_TEXT)];
    let lower = text.to_ascii_lowercase();
    let found = after_bar(&lower)
        .or_else(|| member(&lower, &TIME_MEMBERS).and_then(instant))
        .or_else(|| in_seconds(&lower, now))
        .or_else(|| later(now, retry_after(&lower)?))
        .or_else(|| phrase(text, &lower, now, local))?;
    plausible(found, now)
}

/// The time, if it may be that of a reset: one that has just passed is now.
fn plausible(time: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let ahead = time.duration_since(now);
    (-MAX_PAST <= ahead && ahead <= MAX_AHEAD).then(|| time.max(now))
}

/// Seconds or milliseconds since 1970, or a time in RFC 3339.
fn instant(text: &str) -> Option<Timestamp> {
    let digits = text.split('.').next()?;
    match digits.parse::<i64>() {
        Ok(number) if digits.len() >= 13 => Timestamp::from_millisecond(number).ok(),
        Ok(number) => Timestamp::from_second(number).ok(),
        Err(_) => text.to_ascii_uppercase().parse().ok(),
    }
}

/// Time after a vertical bar: `limit reached|1764230400`.
fn after_bar(lower: &str) -> Option<Timestamp> {
    let (_, rest) = lower.split_once("limit reached|")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    instant(&rest[..end]).filter(|_| end >= 10)
}

/// Value of the first of these members of JSON in a text.
fn member<'t>(lower: &'t str, names: &[&str]) -> Option<&'t str> {
    names.iter().find_map(|name| {
        let quoted = format!("\"{name}\"");
        let (_, rest) = lower.split_once(&quoted)?;
        let value = rest.trim_start().strip_prefix(':')?.trim_start();
        match value.strip_prefix('"') {
            Some(text) => text.split_once('"').map(|(value, _)| value),
            None => {
                let is_number = |c: char| c.is_ascii_digit() || c == '.';
                let end = value.find(|c| !is_number(c)).unwrap_or(value.len());
                let is_complete = !value[end..].starts_with(|c: char| c.is_ascii_alphabetic());
                Some(&value[..end]).filter(|value| !value.is_empty() && is_complete)
            }
        }
    })
}

fn in_seconds(lower: &str, now: Timestamp) -> Option<Timestamp> {
    let seconds: f64 = member(lower, &SECONDS_MEMBERS)?.parse().ok()?;
    later(now, SignedDuration::try_from_secs_f64(seconds).ok()?)
}

/// Seconds of the header field `Retry-After` (RFC 9110, section 10.2.3).
fn retry_after(lower: &str) -> Option<SignedDuration> {
    let (_, rest) = lower.split_once("retry-after")?;
    let rest = rest.trim_start_matches(['"', '\'', ':', '=', ' ']);
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    // A date begins with the name of a day.
    rest[..end].parse().ok().map(SignedDuration::from_secs)
}

fn later(now: Timestamp, time: SignedDuration) -> Option<Timestamp> {
    now.checked_add(time).ok()
}

/// Time after a phrase such as `resets at`; the first phrase with a time counts.
fn phrase(text: &str, lower: &str, now: Timestamp, local: &TimeZone) -> Option<Timestamp> {
    let mut starts: Vec<usize> = PHRASES
        .iter()
        .flat_map(|phrase| lower.match_indices(phrase).map(|(at, _)| at + phrase.len()))
        .collect();
    starts.sort_unstable();
    starts.dedup();
    starts.into_iter().take(MAX_PHRASES).find_map(|at| {
        let rest = without_fillers(&lower[at..]);
        // Names of zones have upper case letters; both texts have the same length.
        let original = &text[text.len() - rest.len()..];
        duration(rest)
            .and_then(|time| later(now, time))
            .or_else(|| date_and_time(rest, original, now, local))
    })
}

fn without_fillers(mut rest: &str) -> &str {
    loop {
        rest = rest.trim_start_matches([' ', ':', ',', '\n', '\t']);
        let next = FILLERS.iter().find_map(|word| {
            let rest = rest.strip_prefix(word)?;
            (*word == "~" || rest.starts_with(' ')).then_some(rest)
        });
        match next {
            Some(next) => rest = next,
            None => return rest,
        }
    }
}

/// Duration at the beginning of a text: `3 days 4 hours`, `18h22m45s`, `22.5s`.
fn duration(rest: &str) -> Option<SignedDuration> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || " .,".contains(c);
    let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len()).min(MAX_DURATION);
    let mut text = rest[..end].trim_end_matches([' ', '.', ',']).replace(" and ", " ");
    // Words after the duration are cut off one by one.
    loop {
        if let Ok(span) = text.parse::<Span>() {
            let is_positive = span.is_positive();
            let time = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
            return Some(time).filter(|_| is_positive);
        }
        let cut = text.rfind(' ')?;
        text.truncate(cut);
        text.truncate(text.trim_end_matches([' ', '.', ',']).len());
    }
}

/// Time of day with an optional date and zone: `3pm (Europe/Berlin)`, `Dec 5th, 2026 3:05 PM`.
fn date_and_time(
    rest: &str,
    original: &str,
    now: Timestamp,
    local: &TimeZone,
) -> Option<Timestamp> {
    let first = rest.split_whitespace().next()?;
    if let Ok(time) = first.trim_end_matches(['.', ',', ')']).to_ascii_uppercase().parse() {
        return Some(time);
    }
    let (date, rest_of_date) = match month_and_day(rest) {
        Some((date, rest)) => (Some(date), without_fillers(rest)),
        None => (None, rest),
    };
    let (time, after) = time_of_day(rest_of_date)?;
    let zone = match zone_of(&original[original.len() - after.len()..]) {
        NamedZone::None => local.clone(),
        NamedZone::Known(zone) => zone,
        NamedZone::Unknown => return None,
    };
    let here = now.to_zoned(zone.clone());
    let on = |date: Date| date.to_datetime(time).to_zoned(zone.clone()).ok();
    match date {
        None => next_after(now, here.date(), on),
        Some((month, day, year)) => {
            let of_year = |year: i16| Date::new(year, month, day).ok().and_then(on);
            match year {
                Some(year) => of_year(year).map(|time| time.timestamp()),
                // In December, January is one of the next year.
                None => {
                    let this = of_year(here.year()).map(|time| time.timestamp());
                    let next = || of_year(here.year() + 1).map(|time| time.timestamp());
                    this.and_then(|time| plausible(time, now)).or_else(next)
                }
            }
        }
    }
}

/// First time after `now`, today or tomorrow. An hour that the clock repeats has two such times.
fn next_after(
    now: Timestamp,
    today: Date,
    on: impl Fn(Date) -> Option<Zoned>,
) -> Option<Timestamp> {
    let today_at = on(today)?;
    let repeated = today_at
        .timestamp()
        .checked_add(SignedDuration::from_hours(1))
        .ok()
        .filter(|again| again.to_zoned(today_at.time_zone().clone()).time() == today_at.time());
    let tomorrow = today.tomorrow().ok().and_then(on).map(|time| time.timestamp());
    let times = [Some(today_at.timestamp()), repeated, tomorrow];
    times.into_iter().flatten().find(|time| *time > now)
}

/// Month, day and optional year.
type WrittenDate = (i8, i8, Option<i16>);

/// Date at the beginning of a text, and the text after it.
fn month_and_day(rest: &str) -> Option<(WrittenDate, &str)> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let (word, after) = rest.split_once(' ')?;
    let month = MONTHS.iter().position(|month| word.starts_with(month))?;
    let (day, after) = number(after.trim_start())?;
    let after = ["st", "nd", "rd", "th"]
        .iter()
        .find_map(|ending| after.strip_prefix(ending))
        .unwrap_or(after)
        .trim_start_matches([',', ' ']);
    let year = number(after)
        .filter(|(year, rest)| (2000..3000).contains(year) && rest.starts_with([' ', ',']));
    let (year, after) = match year {
        Some((year, rest)) => (i16::try_from(year).ok(), rest),
        None => (None, after),
    };
    Some(((i8::try_from(month + 1).ok()?, i8::try_from(day).ok()?, year), after))
}

/// Number at the beginning of a text, and the text after it.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text.get(..end)?.parse().ok()?, &text[end..]))
}

/// Time of day at the beginning of a text, and the text after it: `3pm`, `3:05 PM`, `15:00`.
fn time_of_day(rest: &str) -> Option<(Time, &str)> {
    let (hour, after) = number(rest)?;
    let (minute, after) = match after.strip_prefix(':') {
        Some(after) => {
            let (minute, after) = number(after)?;
            (Some(minute), after)
        }
        None => (None, after),
    };
    let word = after.trim_start();
    let half = [("am", 0), ("a.m.", 0), ("pm", 12), ("p.m.", 12)]
        .into_iter()
        .find_map(|(name, hours)| word.strip_prefix(name).map(|after| (hours, after)));
    let (hour, after) = match half {
        Some((hours, after)) if (1..=12).contains(&hour) => (hour % 12 + hours, after),
        Some(_) => return None,
        // A number alone may be anything.
        None => (hour, minute.map(|_| after)?),
    };
    let minute = minute.unwrap_or_default();
    let time = Time::new(i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, 0, 0).ok()?;
    Some((time, after))
}

/// Zone after a time.
enum NamedZone {
    None,
    Known(TimeZone),
    Unknown,
}

/// Zone at the beginning of a text: `(Europe/Berlin)` or `UTC`.
fn zone_of(after: &str) -> NamedZone {
    let after = after.trim_start();
    let name = match after.strip_prefix('(') {
        Some(inner) => inner.split_once(')').map(|(name, _)| name.trim()),
        None => ["UTC", "GMT"].into_iter().find(|zone| after.starts_with(zone)),
    };
    match name {
        None => NamedZone::None,
        Some("GMT") => NamedZone::Known(TimeZone::UTC),
        Some(name) => TimeZone::get(name).map_or(NamedZone::Unknown, NamedZone::Known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-06-01T10:00:00Z";

    fn read(text: &str, now: &str) -> Option<String> {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let time = quota_reset(text, now.parse().unwrap(), &zone)?;
        Some(format!("{time:.0}"))
    }

    /// At 10:00 UTC, which is noon in Berlin.
    #[test]
    fn texts_of_vendors_have_their_times() {
        for (text, expected) in [
            ("Claude AI usage limit reached|1780318800", "2026-06-01T13:00:00Z"),
            ("Claude AI usage limit reached|1780318800123 x", "2026-06-01T13:00:00Z"),
            (
                r#"{"rateLimitInfo":{"status":"rejected","resetsAt":1780318800}}"#,
                "2026-06-01T13:00:00Z",
            ),
            (r#"{"resets_at": "2026-06-01T13:00:00Z"}"#, "2026-06-01T13:00:00Z"),
            (
                r#"{"type":"usage_limit_reached","resets_in_seconds":3600.0}"#,
                "2026-06-01T11:00:00Z",
            ),
            ("You've hit your limit · resets 3pm", "2026-06-01T13:00:00Z"),
            ("You've hit your limit · resets 3pm (America/New_York)", "2026-06-01T19:00:00Z"),
            ("5-hour limit reached ∙ resets 11am", "2026-06-02T09:00:00Z"),
            ("5-hour limit reached - resets at 12:30 a.m.", "2026-06-01T22:30:00Z"),
            ("Weekly limit reached ∙ resets Jun 5, 3pm (UTC)", "2026-06-05T15:00:00Z"),
            ("Your limit will reset at 15:30 UTC.", "2026-06-01T15:30:00Z"),
            (
                "You've hit your usage limit. Try again in 3 days 4 hours 12 minutes.",
                "2026-06-04T14:12:00Z",
            ),
            (
                "You've hit your usage limit. Upgrade to Pro or try again in 5 minutes and more",
                "2026-06-01T10:05:00Z",
            ),
            ("try again at Jun 5th, 2026 3:05 PM.", "2026-06-05T13:05:00Z"),
            ("try again at 3:05 PM.", "2026-06-01T13:05:00Z"),
            ("Quota exceeded. Please retry in 22.5s.", "2026-06-01T10:00:22Z"),
            ("Your quota will reset after 18h22m45s.", "2026-06-02T04:22:45Z"),
            ("resets at 2026-06-01T13:00:00Z", "2026-06-01T13:00:00Z"),
            (
                "You've hit your limit The task waits until 2026-06-01T13:00:00.250Z.",
                "2026-06-01T13:00:00Z",
            ),
            ("429 Too Many Requests; Retry-After: 3600", "2026-06-01T11:00:00Z"),
            (r#"{"headers":{"retry-after":"60"}}"#, "2026-06-01T10:01:00Z"),
            // It has just passed.
            ("limit reached|1780307999", NOW),
        ] {
            assert_eq!(read(text, NOW).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn next_day_and_clock_changes_count() {
        for (text, now, expected) in [
            ("resets 1am", "2026-06-01T21:59:00Z", "2026-06-01T23:00:00Z"),
            ("resets 12am", "2026-12-31T22:30:00Z", "2026-12-31T23:00:00Z"),
            ("resets Jan 2, 9am", "2026-12-31T22:30:00Z", "2027-01-02T08:00:00Z"),
            // The clock goes forward at 2:00 and back at 3:00.
            ("resets 2:30am", "2026-03-28T23:30:00Z", "2026-03-29T01:30:00Z"),
            ("resets 2:30am", "2026-10-24T23:30:00Z", "2026-10-25T00:30:00Z"),
            ("resets 2:30am", "2026-10-25T00:45:00Z", "2026-10-25T01:30:00Z"),
            ("resets 7am", "2026-10-24T20:00:00Z", "2026-10-25T06:00:00Z"),
        ] {
            assert_eq!(read(text, now).as_deref(), Some(expected), "{text} {now}");
        }
    }

    #[test]
    fn text_without_time_has_none() {
        for text in [
            "",
            "Rate limit reached",
            "resets",
            "resets soon",
            "resets 3",
            "resets 25:00",
            "resets 13pm",
            "resets 3pm (Mars/Olympus)",
            "resets Jun 31, 3pm",
            "resets in -5 minutes",
            "resets in 0 seconds",
            "try again in 9999 days",
            "limit reached|17",
            "limit reached|99999999999999999999",
            "limit reached|1680318800",
            r#"{"resets_in_seconds":-1}"#,
            r#"{"resets_in_seconds":1e999}"#,
            r#"{"resetsAt":null}"#,
            "the presets at work were retried",
            "retry é·ß (",
            "resets \u{1b}[2J",
        ] {
            assert_eq!(read(text, NOW), None, "{text}");
        }
        let long = "resets ".repeat(10_000);
        assert_eq!(read(&long, NOW), None);
    }
}
