//! Tests of every signal in every phase, of the clock, and of the invariants.

use super::*;
use proptest::prelude::*;
use std::fmt::Write as _;

const PATIENCE: TaskTimeouts =
    TaskTimeouts { task: Duration::from_secs(60), answer: Duration::from_secs(600) };

const ASKED: Signal =
    Signal::AgentQuestion { state: TaskState::InputRequired, timeout: None, waits: true };

#[expect(clippy::disallowed_methods, reason = "any instant will do: the tests add to it")]
fn start() -> Instant {
    Instant::now()
}

/// A task in each phase, and the instant at which it got there.
fn phases(start: Instant) -> Vec<(&'static str, Lifecycle, Instant)> {
    let new = |state, entry| Lifecycle::queued(state, entry, PATIENCE, start);
    let after = |mut task: Lifecycle, signals: &[Signal]| {
        for signal in signals {
            task.step(start, *signal);
        }
        task
    };
    let fresh = || new(TaskState::Submitted, AgentEntry::New);
    let parked = || Lifecycle::evicted(TaskState::InputRequired, PATIENCE, start);
    let told = Signal::AgentEvent { working: true };
    let at = |name, task| (name, task, start);
    vec![
        at("new", fresh()),
        at("queued", new(TaskState::Submitted, AgentEntry::Queued)),
        at("answered", after(parked(), &[Signal::ClientMessage])),
        at("elsewhere", new(TaskState::Working, AgentEntry::Follow)),
        at(
            "childrens",
            new(TaskState::InputRequired, AgentEntry::Tend).with_pending_question(true),
        ),
        at("tending", after(new(TaskState::Working, AgentEntry::Tend), &[Signal::Turn])),
        at("parked", parked()),
        at("started", after(fresh(), &[Signal::Turn])),
        at("working", after(fresh(), &[Signal::Turn, told])),
        at("asking", after(fresh(), &[Signal::Turn, ASKED])),
        at("returning", after(fresh(), &[Signal::Turn, ASKED, Signal::ClientMessage])),
        at("leaving", after(fresh(), &[Signal::Turn, told, Signal::Shutdown])),
        at("over", after(fresh(), &[Signal::Cancel])),
    ]
}

fn signals() -> [(&'static str, Signal); 18] {
    [
        ("turn", Signal::Turn),
        ("told", Signal::AgentEvent { working: false }),
        ("asked", ASKED),
        ("went on", Signal::WentOn),
        ("withdrawn", Signal::Withdrawn),
        ("completed", Signal::Ended(TaskState::Completed)),
        ("failed", Signal::Ended(TaskState::Failed)),
        ("tended", Signal::Tended),
        ("lost", Signal::Lost(Fault::Unreadable)),
        ("said", Signal::ClientMessage),
        ("read", Signal::Read),
        ("cancel", Signal::Cancel),
        ("exhausted", Signal::Exhausted),
        ("park", Signal::Park),
        ("shutdown", Signal::Shutdown),
        ("left", Signal::Detached(false)),
        ("hold", Signal::Resumability(Resumability::Session)),
        ("time", Signal::Time),
    ]
}

fn shown(effects: &[Effect]) -> String {
    let shown = effects.iter().map(|effect| {
        let Effect::Record(record) = effect else { return format!("{effect:?}") };
        if let Record::Failed(fault) = record {
            return format!("failed:{fault:?}");
        }
        format!("{record:?}").to_lowercase()
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Records are in lower case.
#[test]
fn signal_and_phase_determine_effects() {
    let mut table = String::new();
    for (name, task, now) in phases(start()) {
        writeln!(table, "{name}").unwrap();
        for (told, signal) in signals() {
            let mut task = task;
            // `Time` arrives when it is due.
            let now = if signal == Signal::Time { task.wake_at().unwrap_or(now) } else { now };
            let effects = task.step(now, signal);
            if !effects.is_empty() {
                let end = if task.is_over() { " ." } else { "" };
                writeln!(table, "  {told}: {}{end}", shown(&effects)).unwrap();
            } else if task.is_over() && name != "over" {
                writeln!(table, "  {told}: .").unwrap();
            }
        }
    }
    insta::assert_snapshot!(table, @"
    new
      turn: Start
      said: itself Keep Acknowledge
      cancel: canceled .
      exhausted: itself .
      shutdown: .
      time: failed:Queued .
    queued
      turn: working Start
      said: itself Keep Acknowledge
      cancel: canceled .
      exhausted: itself .
      shutdown: .
      time: failed:Queued .
    answered
      turn: working Start
      said: itself Keep Acknowledge
      cancel: CleanUp canceled .
      exhausted: CleanUp itself .
      shutdown: .
      time: failed:Queued .
    elsewhere
      turn: Follow
      said: itself Keep Acknowledge
      cancel: CleanUp canceled .
      exhausted: CleanUp itself .
      shutdown: .
      time: failed:Queued .
    childrens
      turn: Tend
      said: itself Acknowledge
      cancel: CleanUp canceled .
      exhausted: CleanUp itself .
      shutdown: .
      time: failed:Queued .
    tending
      told: itself
      asked: itself GiveTurnBack
      went on: working
      completed: itself .
      failed: itself .
      tended: stranded Retire GiveTurnBack
      lost: failed:Unreadable .
      said: itself Keep Acknowledge
      cancel: Stop CleanUp canceled .
      exhausted: Stop CleanUp itself .
      shutdown: Leave
      time: Stop failed:TooLong .
    parked
      said: itself ComeBack Acknowledge
      cancel: CleanUp canceled .
      exhausted: CleanUp itself .
      shutdown: .
      time: failed:Unanswered .
    started
      told: working itself
      asked: working itself GiveTurnBack
      went on: working
      completed: working itself .
      failed: itself .
      tended: working stranded Retire GiveTurnBack
      lost: failed:Unreadable .
      said: itself Keep Acknowledge
      cancel: Stop CleanUp canceled .
      exhausted: Stop CleanUp itself .
      shutdown: Leave
      time: working
    working
      told: itself
      asked: itself GiveTurnBack
      went on: working
      completed: itself .
      failed: itself .
      tended: stranded Retire GiveTurnBack
      lost: failed:Unreadable .
      said: itself Keep Acknowledge
      cancel: Stop CleanUp canceled .
      exhausted: Stop CleanUp itself .
      shutdown: Leave
      time: Stop failed:TooLong .
    asking
      told: itself
      asked: itself GiveTurnBack
      went on: working
      withdrawn: ComeBack
      completed: working itself .
      failed: itself .
      tended: stranded Retire GiveTurnBack
      lost: failed:Unreadable .
      said: itself ComeBack Acknowledge
      cancel: Stop CleanUp canceled .
      exhausted: Stop CleanUp itself .
      park: evicted Stop
      shutdown: Leave
      time: ComeBack
    returning
      turn: working Answer
      told: itself
      asked: itself GiveTurnBack
      went on: working
      completed: working itself .
      failed: itself .
      tended: stranded Retire GiveTurnBack
      lost: failed:Unreadable .
      said: itself Keep Acknowledge
      cancel: Stop CleanUp canceled .
      exhausted: Stop CleanUp itself .
      shutdown: Leave
      time: Stop failed:TooLong .
    leaving
      said: Refuse
      left: Stop AskHold
      hold: interrupted .
    over
      said: Refuse .
    ");
}

#[test]
fn waiting_for_client_extends_task_deadline() {
    let start = start();
    let at = |secs| start + Duration::from_secs(secs);
    let mut task = Lifecycle::queued(TaskState::Submitted, AgentEntry::New, PATIENCE, start);
    task.step(start, Signal::Turn);
    task.step(at(10), ASKED);
    assert_eq!(task.wake_at(), Some(at(610)), "as long as an answer may take");
    task.step(at(110), Signal::ClientMessage);
    assert_eq!(task.wake_at(), Some(at(160)), "fifty seconds of the sixty are left");
    task.step(at(120), Signal::Turn);
    assert_eq!(task.wake_at(), Some(at(160)));
    assert_eq!(task.step(at(159), Signal::Time), []);
    let cut = [Effect::Stop, Effect::Record(Record::Failed(Fault::TooLong))];
    assert_eq!(task.step(at(160), Signal::Time), cut);
}

#[test]
fn working_beside_question_uses_task_time() {
    let start = start();
    let at = |secs| start + Duration::from_secs(secs);
    let mut task = Lifecycle::queued(TaskState::Submitted, AgentEntry::New, PATIENCE, start);
    task.step(start, Signal::Turn);
    let posed =
        Signal::AgentQuestion { state: TaskState::InputRequired, timeout: None, waits: false };
    let told = [Effect::Record(Record::Working), Effect::Record(Record::Itself)];
    assert_eq!(task.step(at(10), posed), told, "its turn is its own");
    assert!(task.asks() && !task.only_waits());
    assert_eq!(task.wake_at(), Some(at(60)));
    task.step(at(20), Signal::Waits(true));
    assert!(task.only_waits());
    assert_eq!(task.wake_at(), Some(at(610)));
    task.step(at(120), Signal::Waits(false));
    assert_eq!(task.wake_at(), Some(at(160)), "forty seconds are left");
    let cut = [Effect::Stop, Effect::Record(Record::Failed(Fault::TooLong))];
    assert_eq!(task.clone().step(at(160), Signal::Time), cut);
    task.step(at(130), Signal::ClientMessage);
    assert_eq!(task.wake_at(), Some(at(160)));
}

/// A record holds one question, and a question of another kind needs the state `working` in
/// between.
#[test]
fn login_question_replaces_input_question() {
    let start = start();
    let mut task = Lifecycle::queued(TaskState::Submitted, AgentEntry::New, PATIENCE, start);
    task.step(start, Signal::Turn);
    task.step(start, ASKED);
    let login =
        Signal::AgentQuestion { state: TaskState::AuthRequired, timeout: None, waits: true };
    let records = [Record::Working, Record::Itself].map(Effect::Record);
    assert_eq!(task.step(start, login)[..2], records);
}

#[test]
fn answer_timeout_is_shorter_of_both() {
    let start = start();
    for (secs, until) in [(Some(5), 5), (Some(6000), 600), (None, 600)] {
        let mut task = Lifecycle::queued(TaskState::Submitted, AgentEntry::New, PATIENCE, start);
        task.step(start, Signal::Turn);
        let patience = secs.map(Duration::from_secs);
        task.step(
            start,
            Signal::AgentQuestion {
                state: TaskState::AuthRequired,
                timeout: patience,
                waits: true,
            },
        );
        assert_eq!(task.wake_at(), Some(start + Duration::from_secs(until)), "{secs:?}");
        task.step(start + Duration::from_secs(until), Signal::Time);
        assert!(!task.asks(), "{secs:?}");
    }
}

#[test]
fn every_fault_has_reason_and_text() {
    let told =
        Fault::ALL.map(|fault| format!("{}: {}", fault.reason().name(), fault.text(PATIENCE)));
    insta::assert_snapshot!(told.join("\n"), @r"
    timeout: The agent was busy for longer than the 1 min that the task was given.
    timeout: The task exceeded its time limit of 1 min.
    timeout: Nobody answered in time.
    hub_stopped: The hub was stopped while the agent was at work.
    hub_restarted: The agent that had this task is another one now.
    internal: The hub cannot read what was said before; its log says why.
    ");
}

/// Includes a message that was sent before the question: it is no answer to it.
#[test]
fn message_during_work_starts_another_run() {
    let start = start();
    let mut task = Lifecycle::queued(TaskState::Submitted, AgentEntry::New, PATIENCE, start);
    task.step(start, Signal::Turn);
    let kept = [Effect::Record(Record::Itself), Effect::Keep, Effect::Acknowledge];
    assert_eq!(task.step(start, Signal::ClientMessage), kept);
    task.step(start, ASKED);
    assert!(task.asks(), "nobody has answered");
    task.step(start, Signal::ClientMessage);
    task.step(start, Signal::Turn);
    let again = [Effect::Record(Record::Interim), Effect::Retire, Effect::Start];
    assert_eq!(task.step(start, Signal::Ended(TaskState::Completed)), again);
    task.step(start, Signal::Ended(TaskState::Completed));
    assert!(task.is_over());

    // A remote agent may end while its own question is pending.
    let mut task = Lifecycle::queued(TaskState::Submitted, AgentEntry::New, PATIENCE, start);
    for signal in [Signal::Turn, Signal::ClientMessage, ASKED] {
        task.step(start, signal);
    }
    let ended = task.step(start, Signal::Ended(TaskState::Completed));
    assert_eq!(ended[1..], [Effect::Retire, Effect::GiveTurnBack, Effect::ComeBack]);
    assert_eq!(task.step(start, Signal::Turn), [Effect::Start]);

    let mut task = Lifecycle::queued(TaskState::Submitted, AgentEntry::New, PATIENCE, start);
    for _ in 0..MAX_PENDING_MESSAGES {
        assert_eq!(task.step(start, Signal::ClientMessage), kept);
    }
    assert_eq!(task.step(start, Signal::ClientMessage), [Effect::Refuse]);
    task.step(start, Signal::Turn);
    task.step(start, Signal::Ended(TaskState::Failed));
    assert!(task.is_over(), "an agent that gave up hears no more");
}

#[test]
fn agent_at_work_reads_oldest_message() {
    let start = start();
    let mut task = Lifecycle::queued(TaskState::Submitted, AgentEntry::New, PATIENCE, start);
    for signal in [Signal::ClientMessage, Signal::Turn, Signal::ClientMessage] {
        task.step(start, signal);
    }
    let reads = [Effect::Record(Record::Itself), Effect::Deliver];
    let begins = [Effect::Record(Record::Working), reads[0], reads[1]];
    assert_eq!(task.step(start, Signal::Read), begins);
    // While the agent asks, the next message is the answer.
    task.step(start, ASKED);
    assert_eq!(task.step(start, Signal::Read), []);
    task.step(start, Signal::ClientMessage);
    task.step(start, Signal::Turn);
    assert_eq!(task.step(start, Signal::Read), reads);
    assert!(!task.may_read());
    let end = [Effect::Record(Record::Itself)];
    assert_eq!(task.step(start, Signal::Ended(TaskState::Completed)), end, "all is read");
}

/// The agent that asked is replayed, and reaches its question later.
#[test]
fn pending_question_takes_answer_during_replay() {
    let start = start();
    let replayed = || {
        let state = TaskState::InputRequired;
        let task = Lifecycle::queued(state, AgentEntry::Replay, PATIENCE, start)
            .with_pending_question(true);
        assert!(task.has_pending_question());
        task
    };
    let taken = [Effect::Record(Record::Itself), Effect::Acknowledge];
    let told = Signal::AgentEvent { working: true };
    for before in [&[][..], &[Signal::Turn], &[Signal::Turn, told]] {
        let mut task = replayed();
        for signal in before {
            task.step(start, *signal);
        }
        assert_eq!(task.step(start, Signal::ClientMessage), taken, "{before:?}");
        assert!(!task.has_pending_question(), "it is answered once");
    }
    for gone in [Signal::WentOn, ASKED, Signal::Ended(TaskState::Completed)] {
        let mut task = replayed();
        task.step(start, Signal::Turn);
        task.step(start, gone);
        assert!(!task.has_pending_question(), "{gone:?}");
    }
}

/// The agent is restarted after their end.
#[test]
fn children_of_lost_run_finish_before_restart() {
    let start = start();
    let tending = || {
        let state = TaskState::InputRequired;
        let mut task =
            Lifecycle::queued(state, AgentEntry::Tend, PATIENCE, start).with_pending_question(true);
        assert_eq!(task.step(start, Signal::Turn), [Effect::Tend], "what the child asks stands");
        task
    };
    let mut task = tending();
    assert_eq!(task.step(start, ASKED), [Effect::Record(Record::Itself), Effect::GiveTurnBack]);
    task.step(start, Signal::ClientMessage);
    let answers = [Effect::Record(Record::Working), Effect::Answer];
    assert_eq!(task.step(start, Signal::Turn), answers);
    let stranded = [Effect::Record(Record::Stranded), Effect::Retire, Effect::GiveTurnBack];
    assert_eq!(task.step(start, Signal::Tended), stranded);
    let sent_on = [Effect::Record(Record::Itself), Effect::ComeBack, Effect::Acknowledge];
    assert_eq!(task.step(start, Signal::ClientMessage), sent_on);
    let started = [Effect::Record(Record::Working), Effect::Start];
    assert_eq!(task.step(start, Signal::Turn), started);

    // A message that the client sent meanwhile restarts the agent.
    let mut task = Lifecycle::queued(TaskState::Working, AgentEntry::Tend, PATIENCE, start);
    for signal in [Signal::Turn, Signal::ClientMessage] {
        task.step(start, signal);
    }
    let again = task.step(start, Signal::Tended);
    let told = [Effect::Record(Record::Interim), Effect::Retire];
    assert_eq!(again[..2], told);
    assert_eq!(task.step(start, Signal::Turn), [Effect::Start]);

    // A question without a pending asker is closed.
    let state = TaskState::AuthRequired;
    let mut task = Lifecycle::queued(state, AgentEntry::Tend, PATIENCE, start);
    let over = [Effect::Record(Record::Working), Effect::Tend];
    assert_eq!(task.step(start, Signal::Turn), over);
}

/// The rule counts for every agent, except one that the next process replays.
#[test]
fn shutdown_leaves_unattended_run_to_rule() {
    use Interruption::{AskClient, Fail, StartAgain};
    use Resumability::{Nothing, Replay, Session};
    let (start, told) = (start(), Signal::AgentEvent { working: true });
    let interrupted = vec![Effect::Record(Record::Interrupted)];
    let fails = vec![Effect::Record(Record::Failed(Fault::HubStopped))];
    for (rule, hold, begun, effects) in [
        (AskClient, Session, true, &interrupted),
        (AskClient, Nothing, true, &fails),
        (StartAgain, Session, true, &interrupted),
        (StartAgain, Nothing, true, &interrupted),
        (StartAgain, Nothing, false, &vec![]),
        (Fail, Session, true, &fails),
        (Fail, Nothing, true, &fails),
        (Fail, Replay, true, &vec![]),
    ] {
        let task = Lifecycle::queued(TaskState::Submitted, AgentEntry::New, PATIENCE, start);
        let mut task = task.with_interruption(rule);
        let work = [Signal::Turn].into_iter().chain(begun.then_some(told));
        work.chain([Signal::Shutdown, Signal::Detached(false)]).for_each(|signal| {
            task.step(start, signal);
        });
        let left = task.step(start, Signal::Resumability(hold));
        assert_eq!(left, *effects, "{rule:?} {hold:?} {begun}");
    }

    // Once its children are over, the run starts again by itself.
    let task = Lifecycle::queued(TaskState::Working, AgentEntry::Tend, PATIENCE, start);
    let mut task = task.with_interruption(StartAgain);
    task.step(start, Signal::Turn);
    let shown = shown(&task.step(start, Signal::Tended));
    assert_eq!(shown, "stranded Retire GiveTurnBack again ComeBack");
    assert_eq!(task.step(start, Signal::Turn), [Effect::Record(Record::Working), Effect::Start]);
}

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
                            Record::Working | Record::Interim => Some(TaskState::Working),
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
                    | Effect::Stop | Effect::CleanUp | Effect::AskHold => {}
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
