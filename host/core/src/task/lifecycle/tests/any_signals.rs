//! Invariants of the state machine for any signals at any times.

use super::*;
use proptest::prelude::*;

fn any_signal() -> impl Strategy<Value = Signal> {
    let states = prop_oneof![
        Just(TaskState::Completed),
        Just(TaskState::Failed),
        Just(TaskState::Rejected),
        Just(TaskState::Canceled)
    ];
    let holds = prop_oneof![
        Just(Resumability::Nothing),
        Just(Resumability::Session),
        Just(Resumability::Work)
    ];
    prop_oneof![
        3 => Just(Signal::Turn),
        3 => any::<bool>().prop_map(|working| Signal::AgentEvent { working }),
        3 => Just(ASKED),
        1 => Just(Signal::WentOn),
        1 => Just(Signal::Tended),
        1 => (0_u64..2_000).prop_map(|wait| Signal::QuotaUsedUp(start() + Duration::from_secs(wait))),
        1 => (0_u64..2_000).prop_map(|wait| Signal::AccountClosed(start() + Duration::from_secs(wait))),
        1 => Just(Signal::QuotaReset),
        3 => Just(Signal::ClientMessage),
        1 => Just(Signal::Read),
        3 => Just(Signal::Time),
        1 => states.prop_map(Signal::Ended),
        1 => Just(Signal::Lost(Fault::Unreadable)),
        1 => Just(Signal::Cancel),
        1 => Just(Signal::Exhausted),
        1 => Just(Signal::Park),
        1 => Just(Signal::Shutdown),
        1 => any::<bool>().prop_map(Signal::Detached),
        1 => holds.prop_map(Signal::Resumability),
    ]
}

/// A task at its start in a process, and the number of messages queued in an earlier process.
fn any_beginning(start: Instant) -> impl Strategy<Value = (Lifecycle, usize)> {
    let queued = move |state, entry| Lifecycle::queued(state, entry, PATIENCE, start);
    let begun = prop_oneof![
        Just(queued(TaskState::Submitted, AgentEntry::New)),
        Just(queued(TaskState::Submitted, AgentEntry::Queued)),
        Just(queued(TaskState::Submitted, AgentEntry::Follow)),
        Just(queued(TaskState::Working, AgentEntry::Follow)),
        Just(queued(TaskState::Working, AgentEntry::Tend)),
        Just(queued(TaskState::AuthRequired, AgentEntry::Tend)),
        Just(Lifecycle::evicted(TaskState::AuthRequired, PATIENCE, start)),
        Just(Lifecycle::waiting(TaskState::Working, PATIENCE, start + QUOTA)),
    ];
    (begun, 0..MAX_PENDING_MESSAGES).prop_map(|(task, kept)| (task.keeping(kept), kept))
}

proptest! {
    /// For any signals at any times: records are allowed transitions; the agent starts once, and
    /// once more after each eviction; each message is accepted or refused; each question is
    /// answered at most once; the queue for the agent is bounded, and each queued message is
    /// delivered once; nothing happens after the end; no timer runs after the end.
    #[test]
    fn any_signals_keep_lifecycle_invariants(
        (task, kept_before) in any_beginning(start()),
        signals in proptest::collection::vec((any_signal(), 0_u64..700), 0..60),
    ) {
        let mut task = task;
        let (mut state, mut now) = (task.state, start());
        let (mut begun, mut parked, mut questions, mut answers) = (0, 0, 0, 0);
        let (mut kept, mut again, mut read) = (kept_before, 0, 0);
        for (signal, pause) in signals {
            now += Duration::from_secs(pause);
            let (was_over, waited) = (task.is_over(), task.asks());
            let effects = task.step(now, signal);
            prop_assert!(!was_over || effects.iter().all(|effect| *effect == Effect::Refuse));
            let told = effects.iter().filter(|it| matches!(it, Effect::Acknowledge | Effect::Refuse));
            prop_assert_eq!(told.count(), usize::from(signal == Signal::ClientMessage));
            for effect in &effects {
                match effect {
                    Effect::Record(record) => {
                        let next = match record {
                            Record::Working | Record::Interim | Record::Continues => {
                                Some(TaskState::Working)
                            }
                            Record::Waits => {
                                parked += 1;
                                Some(TaskState::Working)
                            }
                            Record::Canceled => Some(TaskState::Canceled),
                            Record::Failed(_) => Some(TaskState::Failed),
                            Record::Interrupted => Some(TaskState::InputRequired),
                            Record::Itself => signal.state(),
                            Record::Evicted => {
                                parked += 1;
                                None
                            }
                            Record::Again => None,
                            Record::Stranded => {
                                parked += 1;
                                Some(TaskState::InputRequired)
                            }
                        };
                        if let Some(next) = next {
                            prop_assert!(state::allows(state, next), "{state:?} to {next:?} by {signal:?}");
                            state = next;
                        }
                    }
                    Effect::Start | Effect::Follow | Effect::Tend => begun += 1,
                    Effect::Keep => kept += 1,
                    Effect::Retire if effects.contains(&Effect::Record(Record::Stranded)) => {}
                    Effect::Retire => again += 1,
                    Effect::Deliver => read += 1,
                    Effect::Answer => answers += 1,
                    Effect::Acknowledge => prop_assert!(waited || effects.contains(&Effect::Keep)),
                    Effect::ComeBack | Effect::GiveTurnBack | Effect::Refuse | Effect::Leave
                    | Effect::Stop | Effect::CleanUp | Effect::AskHold | Effect::Pause => {}
                }
            }
            questions += usize::from(signal == ASKED && !effects.is_empty());
            prop_assert!(begun <= 1 + again + parked && answers <= questions);
            prop_assert!(again + read <= kept && kept - again - read <= MAX_PENDING_MESSAGES);
            prop_assert_eq!(task.state, state);
            prop_assert!(!state.is_final() || task.is_over());
            prop_assert!(!task.is_over() || task.wake_at().is_none());
            prop_assert!(task.warn_at().is_none_or(|at| task.answer_until().is_some_and(|end| at < end)));
            if task.take_warning(now) {
                prop_assert!(task.is_expiring(now) && !task.take_warning(now), "it warns once");
            }
            // Two timers may expire at once: an unanswered question, and the task's own deadline.
            let mut woken = task;
            let _ = (0..3).map(|_| woken.step(now, Signal::Time)).count();
            prop_assert!(woken.wake_at().is_none_or(|then| then > now), "it would be woken for ever");
        }
    }
}
