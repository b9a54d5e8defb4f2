//! Time or revisions of a question: "last week", "since v1.1", "in March 2025".

use jiff::civil::{Date, Weekday, date};
use jiff::{Span as Length, ToSpan};

use crate::words::Word;

/// Part of the history that is meant. Days are in UTC.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Span {
    /// Not specified.
    #[default]
    Unsaid,
    /// From the first day to the last, inclusive.
    Days { first: Date, last: Option<Date> },
    /// Commits of `to`, or else of HEAD, that `from` does not have.
    Revs { from: String, to: Option<String> },
    /// Commits since the latest release.
    Unreleased,
}

/// Span with the number of its words.
type SpanMatch = (Span, usize);

/// Range of days with the number of its words.
type Days = (Date, Date, usize);

/// First span in the words, with the indices of its words.
pub(crate) fn find(words: &[Word], today: Date) -> Option<(Span, std::ops::Range<usize>)> {
    (0..words.len()).find_map(|at| {
        let (span, length) = starting(&words[at..], today)?;
        Some((span, at..at + length))
    })
}

fn starting(words: &[Word], today: Date) -> Option<SpanMatch> {
    let first = words.first()?;
    if let Some((from, to)) = first.text.split_once("..")
        && !from.is_empty()
        && !from.contains('/')
    {
        let to = to.trim_start_matches('.');
        let to = (!to.is_empty()).then(|| to.to_owned());
        return Some((Span::Revs { from: from.to_owned(), to }, 1));
    }
    match first.lower.as_str() {
        "unreleased" => Some((Span::Unreleased, 1)),
        "since" | "after" => since(words, today),
        "between" => pair(words, today, "and"),
        "from" => pair(words, today, "to"),
        "in" | "during" | "on" => {
            let (first, last, length) = stretch(&words[1..], today)?;
            Some((Span::Days { first, last: Some(last) }, length + 1))
        }
        _ => {
            let (first, last, length) = phrase(words, today)?;
            Some((Span::Days { first, last: Some(last) }, length))
        }
    }
}

fn since(words: &[Word], today: Date) -> Option<SpanMatch> {
    let mut at = 1 + usize::from(is(words.get(1), &["the", "my", "our"]));
    if let Some((first, _, length)) = stretch(&words[at..], today) {
        return Some((Span::Days { first, last: None }, at + length));
    }
    let latest = is(words.get(at), &["last", "latest", "previous", "newest"]);
    if latest && is(words.get(at + 1), &["release", "tag", "version"]) {
        return Some((Span::Unreleased, at + 2));
    }
    at += usize::from(is(words.get(at), &["release", "tag", "version", "commit", "branch"]));
    let from = words.get(at)?.text.clone();
    Some((Span::Revs { from, to: None }, at + 1))
}

/// Parses "between a and b", where both are times or both are revisions.
fn pair(words: &[Word], today: Date, joint: &str) -> Option<SpanMatch> {
    if let Some((first, _, length)) = stretch(&words[1..], today)
        && is(words.get(1 + length), &[joint])
        && let Some((_, last, more)) = stretch(&words[length + 2..], today)
    {
        return Some((Span::Days { first, last: Some(last) }, length + 2 + more));
    }
    let (from, middle, to) = (words.get(1)?, words.get(2)?, words.get(3)?);
    let span = Span::Revs { from: from.text.clone(), to: Some(to.text.clone()) };
    (middle.lower == joint).then_some((span, 4))
}

/// Parses words that mean days only after "in" or "since", where "may" is a month; or else a
/// phrase.
fn stretch(words: &[Word], today: Date) -> Option<Days> {
    named_days(words, today).or_else(|| phrase(words, today))
}

fn named_days(words: &[Word], today: Date) -> Option<Days> {
    let word = words.first()?;
    if let Ok(day) = word.text.parse::<Date>() {
        return Some((day, day, 1));
    }
    if let Some(month) = month(&word.lower) {
        let named = words.get(1).and_then(|word| year(&word.text));
        let this = date(today.year(), month, 1);
        let first = match named {
            Some(year) => date(year, month, 1),
            None if this > today => date(today.year() - 1, month, 1),
            None => this,
        };
        return Some((first, first.last_of_month(), 1 + usize::from(named.is_some())));
    }
    if let Some((named, month)) = word.text.split_once('-')
        && let (Some(year), Ok(month)) = (year(named), month.parse())
        && let Ok(first) = Date::new(year, month, 1)
    {
        return Some((first, first.last_of_month(), 1));
    }
    let year = year(&word.text)?;
    Some((date(year, 1, 1), date(year, 12, 31), 1))
}

/// Parses words that mean days anywhere. "Last week" is the seven days before today, and today.
fn phrase(words: &[Word], today: Date) -> Option<Days> {
    let the = usize::from(is(words.first(), &["the"]));
    let (word, next) = (words.get(the)?, words.get(the + 1));
    let until_today = |first, length| Some((first, today, the + length));
    if let Some(day) = weekday(&word.lower) {
        return until_today(latest(day, today)?, 1);
    }
    match word.lower.as_str() {
        "today" => until_today(today, 1),
        "yesterday" => {
            let day = today.yesterday().ok()?;
            Some((day, day, the + 1))
        }
        "recently" | "lately" => until_today(back(today, 2.weeks())?, 1),
        "this" => until_today(beginning(next?, today)?, 2),
        "last" | "past" | "previous" => match next {
            Some(next) if weekday(&next.lower).is_some() => {
                until_today(latest(weekday(&next.lower)?, today)?, 2)
            }
            Some(next) if number(&next.lower).is_some() => {
                let length = length(number(&next.lower)?, &words.get(the + 2)?.lower)?;
                until_today(back(today, length)?, 3)
            }
            next => until_today(back(today, length(1, &next?.lower)?)?, 2),
        },
        other => {
            let length = length(number(other)?, &next?.lower)?;
            let ago = usize::from(is(words.get(the + 2), &["ago"]));
            until_today(back(today, length)?, 2 + ago)
        }
    }
}

fn is(word: Option<&Word>, any: &[&str]) -> bool {
    word.is_some_and(|word| any.contains(&word.lower.as_str()))
}

fn back(today: Date, length: Length) -> Option<Date> {
    today.checked_sub(length).ok()
}

fn latest(day: Weekday, today: Date) -> Option<Date> {
    if today.weekday() == day { Some(today) } else { today.nth_weekday(-1, day).ok() }
}

fn beginning(unit: &Word, today: Date) -> Option<Date> {
    match unit.lower.as_str() {
        "week" => latest(Weekday::Monday, today),
        "month" => Some(today.first_of_month()),
        "year" => Some(today.first_of_year()),
        _ => None,
    }
}

fn length(count: i64, unit: &str) -> Option<Length> {
    let length = match unit.strip_suffix('s').unwrap_or(unit) {
        "hour" => Length::new().try_days(count / 24),
        "day" => Length::new().try_days(count),
        "week" => Length::new().try_weeks(count),
        "fortnight" => Length::new().try_weeks(count.checked_mul(2)?),
        "month" => Length::new().try_months(count),
        "quarter" => Length::new().try_months(count.checked_mul(3)?),
        "year" => Length::new().try_years(count),
        _ => return None,
    };
    length.ok()
}

fn number(word: &str) -> Option<i64> {
    const WORDS: [&str; 12] = [
        "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
        "twelve",
    ];
    let named = WORDS.iter().zip(1..).find(|(name, _)| **name == word);
    if matches!(word, "a" | "an") {
        return Some(1);
    }
    named.map(|(_, number)| number).or_else(|| word.parse().ok().filter(|number| *number > 0))
}

fn year(word: &str) -> Option<i16> {
    word.parse().ok().filter(|year| (1970..2100).contains(year))
}

fn month(word: &str) -> Option<i8> {
    const NAMES: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let named = |name: &str| name == word || (word.len() == 3 && name.starts_with(word));
    NAMES.iter().zip(1..).find(|(name, _)| named(name)).map(|(_, month)| month)
}

fn weekday(word: &str) -> Option<Weekday> {
    Some(match word {
        "monday" => Weekday::Monday,
        "tuesday" => Weekday::Tuesday,
        "wednesday" => Weekday::Wednesday,
        "thursday" => Weekday::Thursday,
        "friday" => Weekday::Friday,
        "saturday" => Weekday::Saturday,
        "sunday" => Weekday::Sunday,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words;

    /// A Saturday.
    const TODAY: Date = date(2026, 11, 21);

    fn said(text: &str) -> String {
        match find(&words::split(text), TODAY) {
            None => "-".into(),
            Some((Span::Days { first, last: None }, _)) => format!("{first}.."),
            Some((Span::Days { first, last: Some(last) }, _)) => format!("{first}..{last}"),
            Some((Span::Revs { from, to }, _)) => format!("{from}..{}", to.unwrap_or_default()),
            Some((Span::Unreleased, _)) => "unreleased".into(),
            Some((Span::Unsaid, _)) => "unsaid".into(),
        }
    }

    #[test]
    fn spans_are_parsed_from_words() {
        let cases = [
            ("what changed today?", "2026-11-21..2026-11-21"),
            ("what changed yesterday?", "2026-11-20..2026-11-20"),
            ("what changed last week?", "2026-11-14..2026-11-21"),
            ("what changed in the last 3 months", "2026-08-21..2026-11-21"),
            ("what changed in the past two days", "2026-11-19..2026-11-21"),
            ("anything new this week", "2026-11-16..2026-11-21"),
            ("changes this year", "2026-01-01..2026-11-21"),
            ("changes since monday", "2026-11-16.."),
            ("changes since last friday", "2026-11-20.."),
            ("changes since 2 weeks ago", "2026-11-07.."),
            ("changes since 2026-02-03", "2026-02-03.."),
            ("changes since march", "2026-03-01.."),
            ("changes in december", "2025-12-01..2025-12-31"),
            ("changes in May 2024", "2024-05-01..2024-05-31"),
            ("changes in 2024", "2024-01-01..2024-12-31"),
            ("changes in 2024-02", "2024-02-01..2024-02-29"),
            ("changes between march and april", "2026-03-01..2026-04-30"),
            ("changes since v1.1 in src/", "v1.1.."),
            ("changes since the release v1.1", "v1.1.."),
            ("changes since the last release", "unreleased"),
            ("unreleased changes", "unreleased"),
            ("changes between v1.0 and v1.1", "v1.0..v1.1"),
            ("changes from v1.0 to v1.1", "v1.0..v1.1"),
            ("diff v1.0..v1.1", "v1.0..v1.1"),
            ("what may have changed in src", "-"),
            ("who knows ../x.rs", "-"),
            ("changes in the last 99999999999999 years", "-"),
        ];
        for (text, expected) in cases {
            assert_eq!(said(text), expected, "{text}");
        }
    }
}
