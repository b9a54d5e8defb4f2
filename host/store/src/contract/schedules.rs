//! Contract tests for states of schedules.

use crate::Storage;
use a2a_hub_clock::schedule::State;

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
