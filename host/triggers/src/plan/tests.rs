//! Tables of steps, and properties over arbitrary observations.

use super::*;
use crate::trigger_event::{CommitEvent, FileChange, FileEvent};
use proptest::prelude::*;

fn plan(overlap: Overlap) -> TriggerPlan {
    TriggerPlan { overlap, debounce: Duration::from_secs(2), limit: 3 }
}

fn file(path: &str) -> TriggerEvent {
    TriggerEvent::File(FileEvent { path: path.to_owned(), change: FileChange::Changed })
}

fn heads(commit: &str) -> Heads {
    Heads::from([("main".to_owned(), commit.to_owned())])
}

#[test]
fn run_starts_after_pause() {
    let plan = plan(Overlap::Skip);
    let mut state = TriggerState::default();
    assert_eq!(plan.step(&state, false, 0), TriggerStep::Wait(None));
    state.observe(&plan, vec![file("a")], false, 1_000);
    assert_eq!(plan.step(&state, false, 2_999), TriggerStep::Wait(Some(3_000)));
    state.observe(&plan, vec![file("b")], false, 2_500);
    assert_eq!(plan.step(&state, false, 3_000), TriggerStep::Wait(Some(4_500)));
    assert_eq!(plan.step(&state, false, 4_500), TriggerStep::Start);
    let pending = state.pending.clone().unwrap();
    assert_eq!((pending.number, pending.happenings.count()), (1, 2));
    state.begin_run();
    state.started("t", 4_500);
    assert_eq!(plan.step(&state, true, 9_000), TriggerStep::Wait(None));
}

#[test]
fn endless_changes_do_not_delay_forever() {
    let plan = plan(Overlap::Skip);
    let mut state = TriggerState::default();
    for now in 0..=20 {
        state.observe(&plan, vec![file("log")], false, now * 1_000);
    }
    assert_eq!(plan.step(&state, false, 20_000), TriggerStep::Start);
}

#[test]
fn clock_set_back_delays_nothing() {
    let plan = plan(Overlap::Skip);
    let mut state = TriggerState::default();
    state.observe(&plan, vec![file("a")], false, 1_000_000);
    assert_eq!(plan.step(&state, false, 5_000), TriggerStep::Start);
}

#[test]
fn overlapping_events_follow_rule() {
    for (overlap, step) in [
        // The events came before the run, which the operator started.
        (Overlap::Skip, TriggerStep::Skip),
        (Overlap::Queue, TriggerStep::Wait(None)),
        (Overlap::Replace, TriggerStep::Replace),
    ] {
        let plan = plan(overlap);
        let mut state = TriggerState::default();
        state.observe(&plan, vec![file("a")], false, 0);
        assert_eq!(plan.step(&state, true, 5_000), step);
        if overlap == Overlap::Queue {
            assert_eq!(plan.step(&state, false, 5_000), TriggerStep::Start);
        }
    }
}

/// The first look after the end of a run still sees what the run did.
#[test]
fn own_effects_start_no_run() {
    let plan = plan(Overlap::Skip);
    let mut state = TriggerState::default();
    state.begin_run();
    state.started("t", 0);
    state.observe(&plan, vec![file("a")], true, 1_000);
    state.observe(&plan, vec![file("b")], false, 2_000);
    assert_eq!(state.pending, None);
    let note = state.note.clone().unwrap();
    assert!(note.contains("one event during the latest run got no run"), "{note}");
    state.observe(&plan, vec![file("c")], false, 3_000);
    assert_eq!(plan.step(&state, false, 9_000), TriggerStep::Start);
    let queues = TriggerPlan { overlap: Overlap::Queue, ..plan };
    state.begin_run();
    state.started("t", 9_000);
    state.observe(&queues, vec![file("a")], true, 10_000);
    assert_eq!(queues.step(&state, false, 20_000), TriggerStep::Start);
}

#[test]
fn limit_stops_until_resumed() {
    let plan = plan(Overlap::Queue);
    let mut state = TriggerState::default();
    let mut now = 0;
    for _ in 0..3 {
        now += 60_000;
        state.observe(&plan, vec![file("a")], false, now - 10_000);
        assert_eq!(plan.step(&state, false, now), TriggerStep::Start);
        state.begin_run();
        state.started("t", now);
    }
    state.observe(&plan, vec![file("a")], false, now + 1);
    assert_eq!(plan.step(&state, false, now + 10_000), TriggerStep::Stop);
    // An hour later the first start no longer counts.
    assert_eq!(plan.step(&state, false, 60_000 + HOUR_MS), TriggerStep::Start);
    state.stop(plan.limit);
    assert!(state.note.as_ref().is_some_and(|note| note.contains("after 3 runs")));
    state.observe(&plan, vec![file("b")], false, now + HOUR_MS * 2);
    assert_eq!(plan.step(&state, false, now + HOUR_MS * 3), TriggerStep::Wait(None));
    state.pause(false);
    state.observe(&plan, vec![file("b")], false, now);
    assert_eq!(plan.step(&state, false, now + 10_000), TriggerStep::Start);
    assert_eq!(state.note, None);
}

#[test]
fn pause_and_new_rule_forget_events() {
    let plan = plan(Overlap::Skip);
    let mut state = TriggerState::default();
    assert!(state.follow("files"));
    assert!(!state.follow("files"));
    state.observe(&plan, vec![file("a")], false, 0);
    assert_eq!(state.see_heads(heads("1")), []);
    state.pause(true);
    state.observe(&plan, vec![file("b")], false, 1_000);
    assert_eq!(plan.step(&state, false, 60_000), TriggerStep::Wait(None));
    state.pause(false);
    assert_eq!((state.pending.clone(), state.see_heads(heads("2"))), (None, vec![]));
    state.observe(&plan, vec![file("c")], false, 2_000);
    state.pause(false);
    assert!(state.pending.is_some(), "it was not paused");
    assert!(state.follow("others"));
    assert_eq!((state.pending.clone(), state.heads), (None, None));
}

#[test]
fn commits_during_downtime_are_seen() {
    let mut state = TriggerState::default();
    assert_eq!(state.see_heads(heads("1")), [], "the first look finds nothing new");
    let stored = serde_json::to_string(&state).unwrap();
    let mut restarted: TriggerState = serde_json::from_str(&stored).unwrap();
    let (branch, before, after) = ("main".to_owned(), Some("1".to_owned()), "2".to_owned());
    let event = TriggerEvent::Commit(CommitEvent { branch, before, after });
    assert_eq!(restarted.see_heads(heads("2")), [event]);
}

#[test]
fn state_round_trips_with_pending_events() {
    let plan = plan(Overlap::Skip);
    let mut state = TriggerState::default();
    state.follow("files");
    state.observe(&plan, vec![file("a\n\"b\"")], false, 5);
    let stored = serde_json::to_string(&state).unwrap();
    assert_eq!(serde_json::from_str::<TriggerState>(&stored).unwrap(), state);
}

proptest! {
    /// Whatever is observed and however the clock goes on, no hour has more runs than the limit.
    #[test]
    fn no_hour_exceeds_limit(
        looks in prop::collection::vec((0_i64..400_000, any::<bool>(), any::<bool>()), 1..200),
        queues in any::<bool>(),
    ) {
        let plan = plan(if queues { Overlap::Queue } else { Overlap::Replace });
        let (mut state, mut now, mut starts) = (TriggerState::default(), 0, Vec::new());
        for (pause, is_running, has_event) in looks {
            now += pause;
            let events = if has_event { vec![file("a")] } else { Vec::new() };
            state.observe(&plan, events, is_running, now);
            match plan.step(&state, is_running, now) {
                TriggerStep::Start | TriggerStep::Replace => {
                    state.begin_run();
                    state.started("t", now);
                    starts.push(now);
                }
                TriggerStep::Stop => state.stop(plan.limit),
                TriggerStep::Skip => state.skip(),
                TriggerStep::Wait(_) => {}
            }
        }
        for start in &starts {
            let within = starts.iter().filter(|it| (*start..*start + HOUR_MS).contains(it));
            prop_assert!(within.count() <= 3);
        }
    }
}

#[test]
fn repeated_webhook_is_taken_once() {
    let mut state = TriggerState::default();
    assert_eq!(state.take_delivery("a", 0), DeliveryNews::New);
    assert_eq!(state.take_delivery("a", 0), DeliveryNews::Repeated);
    let take = |state: &mut TriggerState, number: usize, now_ms| {
        state.take_delivery(&number.to_string(), now_ms)
    };
    for number in 1..MAX_DELIVERIES {
        assert_eq!(take(&mut state, number, 1_000), DeliveryNews::New);
    }
    assert_eq!(take(&mut state, 1_000, 599_999), DeliveryNews::RateLimited);
    assert_eq!(take(&mut state, 1_000, 600_000), DeliveryNews::New, "the oldest is forgotten");
    assert_eq!(
        take(&mut state, 1_001, 600_001),
        DeliveryNews::RateLimited,
        "the next one is young"
    );
    assert_eq!(state.deliveries.len(), MAX_DELIVERIES);
    // A clock that was set back must not refuse for ever.
    assert_eq!(take(&mut state, 1_001, -1), DeliveryNews::New);
    assert_eq!(state.take_delivery("2", 0), DeliveryNews::Repeated);
    // After four days nobody delivers it again.
    let days = |days: i64| days * 24 * 60 * 60 * 1_000;
    assert_eq!(state.take_delivery("2", days(3)), DeliveryNews::Repeated);
    assert_eq!(state.take_delivery("2", days(4) + 700_000), DeliveryNews::New);
    assert_eq!(state.deliveries.len(), 1);
}

#[test]
fn events_before_run_wait_for_its_end() {
    let plan = plan(Overlap::Skip);
    let mut state = TriggerState::default();
    state.observe(&plan, vec![file("a")], false, 0);
    assert!(state.begin_run().is_some());
    // The hub was killed, and finds an event that came meanwhile.
    state.observe(&plan, vec![file("b")], false, 5_000);
    assert_eq!(plan.step(&state, false, 5_000), TriggerStep::Start);
    state.started("t", 5_000);
    assert_eq!(plan.step(&state, true, 9_000), TriggerStep::Wait(None));
    assert_eq!(plan.step(&state, false, 9_000), TriggerStep::Start);
    // An event while it runs may be its effect.
    assert!(!state.observe(&plan, vec![file("c")], true, 9_000));
    let pending = state.begin_run().unwrap();
    assert_eq!((pending.number, pending.happenings.count()), (2, 1));
}

/// A hub that is killed at any step of starting a run.
#[derive(Default)]
struct KilledHub {
    /// State in the store, which a new process reads.
    stored: TriggerState,
    /// Events of the tasks that were created, by their ids.
    tasks: std::collections::BTreeMap<(i64, u64), Vec<String>>,
    now_ms: i64,
}

impl KilledHub {
    fn event(&mut self, name: &str) {
        let plan = TriggerPlan { limit: u32::MAX, ..plan(Overlap::Queue) };
        self.stored.observe(&plan, vec![file(name)], false, self.now_ms);
    }

    /// Carries out the step that is due, as far as a kill lets it: 0 is before the events are
    /// frozen, 3 is no kill.
    fn step(&mut self, kill: u8) {
        let plan = TriggerPlan { limit: u32::MAX, ..plan(Overlap::Queue) };
        if plan.step(&self.stored, false, self.now_ms) != TriggerStep::Start || kill == 0 {
            return;
        }
        let mut state = self.stored.clone();
        let events = state.begin_run().unwrap();
        self.stored = state.clone();
        if kill == 1 {
            return;
        }
        let names = events.happenings.events.iter().filter_map(|event| {
            if let TriggerEvent::File(file) = event { Some(file.path.clone()) } else { None }
        });
        self.tasks.entry((events.first_ms, events.number)).or_insert_with(|| names.collect());
        if kill == 2 {
            return;
        }
        state.started("task", self.now_ms);
        self.stored = state;
    }
}

proptest! {
    /// Each event that was stored is in exactly one run.
    #[test]
    fn kills_lose_and_repeat_no_event(steps in prop::collection::vec(0_u8..7, 1..80)) {
        let mut hub = KilledHub::default();
        let mut events = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                kill @ 0..=3 => hub.step(kill),
                4 => hub.now_ms += 1_500,
                _ => {
                    events.push(format!("f{number}"));
                    hub.event(&format!("f{number}"));
                }
            }
            let text = serde_json::to_string(&hub.stored).unwrap();
            hub.stored = serde_json::from_str(&text).unwrap();
        }
        for _ in 0..100 {
            hub.now_ms += 10_000;
            hub.step(3);
        }
        let mut run: Vec<_> = hub.tasks.into_values().flatten().collect();
        run.sort();
        events.sort();
        prop_assert_eq!(run, events);
    }
}
