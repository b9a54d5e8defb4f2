//! Contract tests for states of schedules, triggers and notifiers.

use crate::Storage;
use a2a_hub_clock::schedule::State;
use a2a_hub_core::notify::plan::NotifierState;
use a2a_hub_triggers::plan::TriggerState;

pub(super) async fn schedule_states_are_replaced_by_name(storage: &impl Storage) {
    assert_eq!(storage.schedules().await, Ok(Vec::new()));
    let state = |done_until_ms| State {
        rule: "0 3 * * * in Europe/Berlin".to_owned(),
        done_until_ms,
        last_task: Some("t".to_owned()),
        ..State::default()
    };
    let paused = State { paused: true, note: Some("\"quoted\" \n".to_owned()), ..state(5) };
    storage.set_schedule("weekly", &state(1)).await.unwrap();
    storage.set_schedule("nightly", &state(2)).await.unwrap();
    storage.set_schedule("nightly", &paused).await.unwrap();
    let both = [("nightly".to_owned(), paused), ("weekly".to_owned(), state(1))];
    assert_eq!(storage.schedules().await.unwrap(), both);
    storage.forget_schedule("nightly").await.unwrap();
    storage.forget_schedule("nightly").await.unwrap();
    assert_eq!(storage.schedules().await.unwrap(), both[1..]);
}

pub(super) async fn trigger_states_are_replaced_by_name(storage: &impl Storage) {
    assert_eq!(storage.triggers().await, Ok(Vec::new()));
    let state = |rule: &str| TriggerState { rule: rule.to_owned(), ..TriggerState::default() };
    let paused = TriggerState { paused: true, starts_ms: vec![1, 2], ..state("\"files\"\n*") };
    storage.set_trigger("files", &state("a")).await.unwrap();
    storage.set_trigger("commits", &state("b")).await.unwrap();
    storage.set_trigger("commits", &paused).await.unwrap();
    let both = [("commits".to_owned(), paused), ("files".to_owned(), state("a"))];
    assert_eq!(storage.triggers().await.unwrap(), both);
    storage.forget_trigger("commits").await.unwrap();
    storage.forget_trigger("commits").await.unwrap();
    assert_eq!(storage.triggers().await.unwrap(), both[1..]);
}

pub(super) async fn notifier_states_are_replaced_by_name(storage: &impl Storage) {
    assert_eq!(storage.notifiers().await, Ok(Vec::new()));
    let state = |sent| {
        let mut state = NotifierState::default();
        state.sent = sent;
        state
    };
    let mut failing = state(2);
    failing.failed("\"no\"\n route".to_owned(), "2026".to_owned(), None);
    storage.set_notifier("phone", &state(1)).await.unwrap();
    storage.set_notifier("desk", &state(1)).await.unwrap();
    storage.set_notifier("desk", &failing).await.unwrap();
    let both = [("desk".to_owned(), failing), ("phone".to_owned(), state(1))];
    assert_eq!(storage.notifiers().await.unwrap(), both);
    storage.forget_notifier("desk").await.unwrap();
    storage.forget_notifier("desk").await.unwrap();
    assert_eq!(storage.notifiers().await.unwrap(), both[1..]);
}
