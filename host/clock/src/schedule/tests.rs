//! Tests of schedules: tables of clock jumps, clock changes, missed times and overlaps.

use super::*;
use proptest::prelude::*;

/// Central European time, whose clock goes forward on 2026-03-29 and back on 2026-10-25.
fn berlin() -> TimeZone {
    TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
}

fn plan(cron: &str) -> SchedulePlan {
    let times = Times::parse(cron, berlin()).unwrap();
    let (overlap, missed) = (Overlap::Skip, Missed::Once);
    SchedulePlan { times, overlap, missed, jitter: Duration::ZERO }
}

fn time(text: &str) -> Timestamp {
    let text = if text.ends_with('Z') { text.to_owned() } else { format!("{text}Z") };
    text.parse().unwrap()
}

fn since(text: &str) -> State {
    State::new("", time(text))
}

/// Looks at the clock at each of these times, carries the steps out, and lists the planned times
/// that got a run.
fn runs(plan: &SchedulePlan, begun: &str, looks: &[&str]) -> Vec<String> {
    let mut state = since(begun);
    let mut found = Vec::new();
    for now in looks {
        state.follow("", time(now));
        // One look may find several steps due, such as a queued run and a planned one.
        loop {
            match plan.step("x", &state, false, time(now)) {
                Step::Start(due) => {
                    state.done(due.planned);
                    found.push(due.planned.to_string());
                }
                Step::Skip(due, _) => state.done(due.planned),
                Step::Wait(_) | Step::Queue(_) | Step::Replace(_) => break,
            }
        }
    }
    found
}

#[test]
fn cron_errors_say_rule_and_way_out() {
    let error = |cron: &str| Times::parse(cron, TimeZone::UTC).unwrap_err().to_string();
    for (cron, why) in [
        ("", "it has 0 fields and needs five"),
        ("0 3 * *", "it has 4 fields and needs five"),
        ("0 0 3 * * *", "it has 6 fields and needs five"),
        ("@daily", "it has 1 fields"),
        ("61 3 * * *", "its minute is `61`, and may be 0 to 59, `*`, a list such as `1,3`"),
        ("0 25 * * *", "its hour is `25`, and may be 0 to 23"),
        ("0 3 x * *", "its day of month is `x`, and may be 1 to 31"),
        ("0 3 * 13 *", "its month is `13`, and may be 1 to 12 or JAN to DEC"),
        ("0 3 * * someday", "its day of week is `someday`, and may be 0 (Sunday) to 6"),
        ("*/0 3 * * *", "its minute is `*/0`"),
        ("0 3 30 2 *", "no day ever matches it"),
    ] {
        assert!(error(cron).contains(why), "{cron}: {}", error(cron));
    }
    for good in ["*/5 * * * *", "0 3 * * MON-FRI", "0 3 29 2 *", "0 0 1,15 * 7"] {
        assert!(Times::parse(good, TimeZone::UTC).is_ok(), "{good}");
    }
}

#[test]
fn planned_time_runs_once_over_clock_jumps() {
    let daily = plan("0 3 * * *");
    let ran = "2026-06-02T01:00:00Z";
    for (what, looks) in [
        ("on time", &["2026-06-02T00:59:59", "2026-06-02T01:00:00", "2026-06-02T01:00:05"][..]),
        ("back by an hour", &["2026-06-02T01:00:00", "2026-06-02T00:00:00", "2026-06-02T01:00:01"]),
        ("back by a day", &["2026-06-02T01:00:00", "2026-06-01T01:00:01", "2026-06-01T12:00:00"]),
        (
            "forward by hours",
            &["2026-06-01T12:00:00", "2026-06-02T09:00:00", "2026-06-02T09:01:00"],
        ),
        ("forward by days", &["2026-05-28T12:30:00", "2026-06-02T02:00:00"]),
    ] {
        let begun =
            if what == "forward by days" { "2026-05-28T12:00:00" } else { "2026-06-01T02:00:00" };
        assert_eq!(runs(&daily, begun, looks)[..], [ran], "{what}");
    }
}

#[test]
fn clock_that_was_years_ahead_resumes() {
    let daily = plan("0 3 * * *");
    let looks = ["2040-06-02T01:00:00", "2026-06-02T00:00:00", "2026-06-02T01:00:00"];
    let ran = ["2040-06-02T01:00:00Z", "2026-06-02T01:00:00Z"];
    assert_eq!(runs(&daily, "2026-06-01T12:00:00", &looks), ran);
}

#[test]
fn clock_changes_neither_repeat_nor_lose_times() {
    let times = |cron: &str, from: &str, count: usize| {
        let (plan, mut at) = (plan(cron), time(from));
        let mut found = Vec::new();
        for _ in 0..count {
            at = plan.times.after(at).unwrap();
            assert_eq!(plan.times.until(at), Some(at), "{cron}");
            found.push(plan.times.format_local(at));
        }
        found.join(" ")
    };
    // 02:00 becomes 03:00: the time of day 02:30 does not exist.
    insta::assert_snapshot!(times("30 2 * * *", "2026-03-28T12:00:00", 2), @"2026-03-29T03:00:00+02:00 2026-03-30T02:30:00+02:00");
    insta::assert_snapshot!(times("*/30 * * * *", "2026-03-29T00:20:00", 3), @"2026-03-29T01:30:00+01:00 2026-03-29T03:00:00+02:00 2026-03-29T03:30:00+02:00");
    // 03:00 becomes 02:00: the time of day 02:30 occurs twice.
    insta::assert_snapshot!(times("30 2 * * *", "2026-10-24T12:00:00", 2), @"2026-10-25T02:30:00+02:00 2026-10-26T02:30:00+01:00");
    insta::assert_snapshot!(times("*/30 * * * *", "2026-10-25T00:20:00", 4), @"2026-10-25T02:30:00+02:00 2026-10-25T02:00:00+01:00 2026-10-25T02:30:00+01:00 2026-10-25T03:00:00+01:00");
}

#[test]
fn missed_times_get_one_run_or_none() {
    let mut hourly = plan("0 * * * *");
    let state = since("2026-06-01T00:30:00");
    let now = time("2026-06-01T05:30:00");
    let due = Due { planned: time("2026-06-01T05:00:00"), missed: 4, is_late: true };
    assert_eq!(hourly.step("x", &state, false, now), Step::Start(due));
    hourly.missed = Missed::Skip;
    assert_eq!(hourly.step("x", &state, false, now), Step::Skip(due, Skipped::Missed));
    // A run that is late by seconds is not missed: a hub was restarted just then.
    let soon = time("2026-06-01T05:00:40");
    let on_time = Due { is_late: false, ..due };
    assert_eq!(hourly.step("x", &state, false, soon), Step::Start(on_time));
    // The latest time is not missed, and gets the run of all before it.
    let year = since("2024-06-01T00:30:00");
    let every_minute = SchedulePlan { missed: Missed::Skip, ..plan("* * * * *") };
    let latest = Due { planned: now, missed: MAX_COUNTED, is_late: false };
    assert_eq!(every_minute.step("x", &year, false, now), Step::Start(latest));
}

#[test]
fn overlap_table() {
    let now = time("2026-06-01T05:00:10");
    let due = Due { planned: time("2026-06-01T05:00:00"), missed: 0, is_late: false };
    let idle = since("2026-06-01T04:30:00");
    let queued =
        State { queued_ms: Some(time("2026-06-01T04:00:00").as_millisecond()), ..idle.clone() };
    let waiting = Due { planned: time("2026-06-01T04:00:00"), ..due };
    for (overlap, state, is_running, step) in [
        (Overlap::Skip, &idle, false, Step::Start(due)),
        (Overlap::Skip, &idle, true, Step::Skip(due, Skipped::Running)),
        (Overlap::Replace, &idle, true, Step::Replace(due)),
        (Overlap::Queue, &idle, true, Step::Queue(due)),
        (Overlap::Queue, &queued, true, Step::Skip(due, Skipped::Queued)),
        (Overlap::Queue, &queued, false, Step::Start(waiting)),
    ] {
        let plan = SchedulePlan { overlap, ..plan("0 * * * *") };
        assert_eq!(plan.step("x", state, is_running, now), step, "{overlap:?} {is_running}");
    }
    let mut state = idle;
    state.queue(due.planned);
    assert_eq!(
        (state.queued_ms, state.done_until_ms),
        (Some(due.planned.as_millisecond()), due.planned.as_millisecond())
    );
    state.done(due.planned);
    assert_eq!(state.queued_ms, None, "its run has started");
}

#[test]
fn pause_and_new_rule_miss_nothing() {
    let hourly = plan("0 * * * *");
    let mut state = since("2026-06-01T00:30:00");
    state.pause(true, time("2026-06-01T00:40:00"));
    let (during, after) = (time("2026-06-01T05:30:00"), time("2026-06-01T06:00:00"));
    assert_eq!(hourly.step("x", &state, false, during), Step::Wait(None));
    assert_eq!(hourly.next(&state, during), None);
    state.pause(false, during);
    assert_eq!(hourly.step("x", &state, false, during), Step::Wait(Some(after)));
    assert_eq!(hourly.next(&state, during), Some(after));

    let mut old = State::new("0 5 * * *", time("2026-06-01T00:30:00"));
    assert!(!old.follow("0 5 * * *", during));
    assert!(old.follow("0 4 * * *", during), "04:00 of today was not missed");
    assert_eq!(old.done_until_ms, during.as_millisecond());
}

#[test]
fn jitter_is_stable_and_keeps_order() {
    let plan = SchedulePlan { jitter: Duration::from_secs(300), ..plan("* * * * *") };
    let (first, second) = (time("2026-06-01T05:00:00"), time("2026-06-01T05:01:00"));
    let delays = [first, second].map(|planned| plan.delay("x", planned));
    assert_eq!(delays, [first, second].map(|planned| plan.delay("x", planned)));
    assert_ne!(plan.delay("x", first), plan.delay("y", first));
    assert!(delays.iter().all(|delay| *delay < SignedDuration::from_mins(1)), "{delays:?}");
    let state = since("2026-06-01T04:59:30");
    assert_eq!(plan.step("x", &state, false, first), Step::Wait(Some(first + delays[0])));
}

#[test]
fn state_round_trips_as_json() {
    let mut state = State::new("0 3 * * *", time("2026-06-01T00:30:00"));
    state.last_task = Some("t".to_owned());
    let text = serde_json::to_string(&state).unwrap();
    assert_eq!(serde_json::from_str::<State>(&text).unwrap(), state);
    let later = r#"{"rule":"r","doneUntilMs":5,"later":true}"#;
    assert_eq!(serde_json::from_str::<State>(later).unwrap().done_until_ms, 5);
}

proptest! {
    /// Whatever the clock does, each planned time gets at most one run, and none before it is due.
    #[test]
    fn any_clock_runs_no_time_twice(
        looks in prop::collection::vec(0_i64..48 * 60, 1..60),
        cron in prop::sample::select(vec!["*/7 * * * *", "30 2 * * *", "0 * * * *", "15 1-4 * * *"]),
        jitter in 0_u64..600,
    ) {
        let begin = time("2026-10-24T12:00:00");
        let plan = SchedulePlan { jitter: Duration::from_secs(jitter), ..plan(cron) };
        let mut state = State::new("", begin);
        let mut ran = std::collections::BTreeSet::new();
        for minutes in looks {
            // Less than a day, beyond which a clock counts as corrected.
            let now = begin + SignedDuration::from_mins(minutes / 2);
            if let Step::Start(due) = plan.step("x", &state, false, now) {
                prop_assert!(due.planned <= now);
                prop_assert!(ran.insert(due.planned), "{} twice", due.planned);
                state.done(due.planned);
            }
        }
    }
}

/// A zone, a change of its clock, and the planned times around it, in UTC.
type ZoneCase = (&'static str, &'static str, &'static str, &'static str, &'static [&'static str]);

/// Times of day as lists and ranges, over changes in both directions: a skipped time runs once,
/// right after the gap, and a repeated one at its first occurrence.
const ZONES: &[ZoneCase] = &[
    // The clock goes forward at 01:00Z, from 2:00 to 3:00.
    (
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "30 2,14 * * *",
        "2027-03-28T00:00",
        "2027-03-28T23:00",
        &["2027-03-28T01:00", "2027-03-28T12:30"],
    ),
    (
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "15,45 2 * * *",
        "2027-03-28T00:00",
        "2027-03-28T23:00",
        &["2027-03-28T01:00"],
    ),
    (
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "15-17 2-3 * * *",
        "2027-03-28T00:00",
        "2027-03-28T23:00",
        &["2027-03-28T01:00", "2027-03-28T01:15", "2027-03-28T01:16", "2027-03-28T01:17"],
    ),
    (
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "30 2 * * *",
        "2027-03-28T00:00",
        "2027-03-28T23:00",
        &["2027-03-28T01:00"],
    ),
    // It goes back at 01:00Z, from 3:00 to 2:00.
    (
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "30 2,14 * * *",
        "2026-10-25T00:00",
        "2026-10-25T23:00",
        &["2026-10-25T00:30", "2026-10-25T13:30"],
    ),
    (
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "15,45 2 * * *",
        "2026-10-25T00:00",
        "2026-10-25T23:00",
        &["2026-10-25T00:15", "2026-10-25T00:45"],
    ),
    (
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "59 1-3 * * *",
        "2026-10-24T23:00",
        "2026-10-25T23:00",
        &["2026-10-24T23:59", "2026-10-25T00:59", "2026-10-25T02:59"],
    ),
    (
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "0 2,3 * * *",
        "2026-10-24T23:00",
        "2026-10-25T23:00",
        &["2026-10-25T00:00", "2026-10-25T02:00"],
    ),
    // New York, Chicago, London.
    (
        "EST5EDT,M3.2.0,M11.1.0",
        "30 1,2,3 * * *",
        "2026-03-08T05:00",
        "2026-03-09T03:00",
        &["2026-03-08T06:30", "2026-03-08T07:00", "2026-03-08T07:30"],
    ),
    (
        "EST5EDT,M3.2.0,M11.1.0",
        "30 0,1,2 * * *",
        "2026-11-01T04:00",
        "2026-11-02T03:00",
        &["2026-11-01T04:30", "2026-11-01T05:30", "2026-11-01T07:30"],
    ),
    (
        "CST6CDT,M3.2.0,M11.1.0",
        "0,30 2 * * *",
        "2026-03-08T06:00",
        "2026-03-09T03:00",
        &["2026-03-08T08:00"],
    ),
    (
        "GMT0BST,M3.5.0/1,M10.5.0",
        "0-2 1 * * *",
        "2026-10-24T23:00",
        "2026-10-25T23:00",
        &["2026-10-25T00:00", "2026-10-25T00:01", "2026-10-25T00:02"],
    ),
    // Lord Howe: half an hour.
    (
        "LHST-10:30LHDT-11,M10.1.0,M4.1.0",
        "15,45 2 * * *",
        "2026-10-03T12:00",
        "2026-10-04T12:00",
        &["2026-10-03T15:30", "2026-10-03T15:45"],
    ),
    (
        "LHST-10:30LHDT-11,M10.1.0,M4.1.0",
        "15,45 1 * * *",
        "2026-04-04T12:00",
        "2026-04-05T12:00",
        &["2026-04-04T14:15", "2026-04-04T14:45"],
    ),
    // Santiago and Beirut: midnight does not exist, or twice.
    (
        "<-04>4<-03>,M9.1.6/24,M4.1.6/24",
        "0,30 0 * * *",
        "2026-09-05T12:00",
        "2026-09-06T12:00",
        &["2026-09-06T04:00"],
    ),
    (
        "<-04>4<-03>,M9.1.6/24,M4.1.6/24",
        "30 23 * * *",
        "2026-04-04T12:00",
        "2026-04-05T12:00",
        &["2026-04-05T02:30"],
    ),
    (
        "EET-2EEST,M3.5.0/0,M10.5.0/0",
        "0 0,1 * * *",
        "2026-03-28T12:00",
        "2026-03-29T12:00",
        &["2026-03-28T22:00"],
    ),
    // Dublin counts winter as the exception, Chatham has three quarters, Adelaide a half.
    (
        "IST-1GMT0,M10.5.0,M3.5.0/1",
        "20,40 1 * * *",
        "2026-03-28T23:00",
        "2026-03-29T23:00",
        &["2026-03-29T01:00"],
    ),
    (
        "<+1245>-12:45<+1345>,M9.5.0/2:45,M4.1.0/3:45",
        "0,50 2 * * *",
        "2026-09-26T06:00",
        "2026-09-27T06:00",
        &["2026-09-26T13:15", "2026-09-26T14:00"],
    ),
    (
        "ACST-9:30ACDT,M10.1.0,M4.1.0/3",
        "10-12 2 * * *",
        "2026-04-04T12:00",
        "2026-04-05T12:00",
        &["2026-04-04T15:40", "2026-04-04T15:41", "2026-04-04T15:42"],
    ),
    // No change at all.
    (
        "JST-9",
        "15,45 2 * * *",
        "2026-10-24T12:00",
        "2026-10-25T12:00",
        &["2026-10-24T17:15", "2026-10-24T17:45"],
    ),
    (
        "UTC0",
        "0 0,12 * * *",
        "2026-10-25T00:00",
        "2026-10-26T00:00",
        &["2026-10-25T12:00", "2026-10-26T00:00"],
    ),
    // A step follows the clock's hands, in the repeated hour too.
    (
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "*/30 2 * * *",
        "2026-10-24T23:00",
        "2026-10-25T23:00",
        &["2026-10-25T00:00", "2026-10-25T00:30", "2026-10-25T01:00", "2026-10-25T01:30"],
    ),
];

#[test]
fn times_of_day_survive_clock_changes() {
    let seconds = |text: &&str| time(&format!("{text}:00"));
    for (zone, cron, begin, end, wanted) in ZONES {
        let times = Times::parse(cron, TimeZone::posix(zone).unwrap()).unwrap();
        let (begin, end) = (seconds(begin), seconds(end));
        let wanted: Vec<_> = wanted.iter().map(seconds).collect();
        let after = std::iter::successors(times.after(begin), |last| times.after(*last));
        let found: Vec<_> = after.take_while(|found| *found <= end).collect();
        assert_eq!(found, wanted, "{zone}: {cron}");
        // The same, from the end, and from each minute.
        let second = SignedDuration::from_secs(1);
        let until = std::iter::successors(times.until(end), |last| times.until(*last - second));
        let mut found: Vec<_> = until.take_while(|found| *found > begin).collect();
        found.reverse();
        assert_eq!(found, wanted, "{zone}: {cron}, backwards");
        let mut now = begin;
        while now <= end {
            let last = wanted.iter().filter(|planned| **planned <= now).max().copied();
            let found = times.until(now).filter(|found| *found > begin);
            assert_eq!(found, last, "{zone}: {cron} until {now}");
            let next = wanted.iter().filter(|planned| **planned > now).min().copied();
            let found = times.after(now).filter(|found| *found <= end);
            assert_eq!(found, next, "{zone}: {cron} after {now}");
            now += SignedDuration::from_mins(7);
        }
    }
}
