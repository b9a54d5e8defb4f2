//! Lower bounds of time ranges that the user types.

use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};
use std::time::Duration;

/// Lower bound of a time range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// A duration before now.
    Ago(Duration),
    /// A timestamp.
    At(Timestamp),
}

/// Parses the bound that the user typed.
pub(crate) fn since(typed: &str) -> Result<Since, String> {
    let why = || {
        format!(
            "`{typed}` is not a time: give a duration such as 30m, 2h or 1d, a day such as \
             2026-01-31, or a timestamp such as 2026-01-31T12:00:00Z"
        )
    };
    if let Ok(moment) = typed.parse() {
        return Ok(Since::At(moment));
    }
    // A day begins in the user's time zone.
    if let Ok(day) = typed.parse::<Date>() {
        let begins = day.to_zoned(TimeZone::system()).map_err(|_| why())?;
        return Ok(Since::At(begins.timestamp()));
    }
    let unit = typed.chars().next_back().ok_or_else(why)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return Err(why()),
    };
    let count: u64 = typed[..typed.len() - unit.len_utf8()].parse().map_err(|_| why())?;
    let long = count.checked_mul(seconds).filter(|long| *long < i64::MAX.unsigned_abs());
    Ok(Since::Ago(Duration::from_secs(long.ok_or_else(why)?)))
}

impl Since {
    /// Resolves the bound to a timestamp in the hub's format.
    pub(crate) fn moment(self, now: Timestamp) -> String {
        let moment = match self {
            Self::At(moment) => moment,
            // A duration beyond the range of timestamps selects all tasks.
            Self::Ago(long) => SignedDuration::try_from(long)
                .ok()
                .and_then(|long| now.checked_sub(long).ok())
                .unwrap_or(Timestamp::UNIX_EPOCH),
        };
        format!("{moment:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-31T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn since_accepts_durations_days_and_timestamps() {
        let typed = ["90s", "30m", "2h", "1d", "2w", "2026-01-31T10:30:00+01:00"];
        let moments = typed.map(|typed| since(typed).unwrap().moment(now()));
        insta::assert_snapshot!(moments.join("\n"), @"
        2026-01-31T11:58:30.000Z
        2026-01-31T11:30:00.000Z
        2026-01-31T10:00:00.000Z
        2026-01-30T12:00:00.000Z
        2026-01-17T12:00:00.000Z
        2026-01-31T09:30:00.000Z
        ");
        for wrong in ["", "h", "1y", "yesterday", "-1h", "9999999999999999999d", "1ü"] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
        let day = since("2026-01-31").unwrap();
        assert_eq!(
            day,
            Since::At(
                "2026-01-31"
                    .parse::<Date>()
                    .unwrap()
                    .to_zoned(TimeZone::system())
                    .unwrap()
                    .timestamp()
            )
        );
        let ever = Since::Ago(Duration::from_secs(u64::MAX / 2)).moment(now());
        assert_eq!(ever, "1970-01-01T00:00:00.000Z");
    }
}
