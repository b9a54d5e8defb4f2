//! Tests of every signal in every phase, of the clock, and of the invariants.

mod any_signals;

use super::*;
use std::fmt::Write as _;

const PATIENCE: TaskTimeouts =
    TaskTimeouts { task: Duration::from_secs(60), answer: Duration::from_secs(600) };

const ASKED: Signal =
    Signal::AgentQuestion { state: TaskState::InputRequired, timeout: None, waits: true };

/// Time until a quota resets.
const QUOTA: Duration = Duration::from_secs(1_000);

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
        at("waiting", after(fresh(), &[Signal::Turn, told, Signal::QuotaUsedUp(start + QUOTA)])),
        at(
            "held back",
            after(
                new(TaskState::Submitted, AgentEntry::Queued),
                &[Signal::AccountClosed(start + QUOTA)],
            ),
        ),
        at(
            "continuing",
            after(Lifecycle::waiting(TaskState::Working, PATIENCE, start), &[Signal::QuotaReset]),
        ),
        at("leaving", after(fresh(), &[Signal::Turn, told, Signal::Shutdown])),
        at("over", after(fresh(), &[Signal::Cancel])),
    ]
}

fn signals(start: Instant) -> [(&'static str, Signal); 21] {
    [
        ("used up", Signal::QuotaUsedUp(start + QUOTA)),
        ("closed", Signal::AccountClosed(start + QUOTA)),
        ("reset", Signal::QuotaReset),
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
        for (told, signal) in signals(now) {
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
      closed: GiveTurnBack
      turn: Start
      said: itself Keep Acknowledge
      cancel: canceled .
      exhausted: itself .
      shutdown: .
      time: failed:Queued .
    queued
      closed: GiveTurnBack
      turn: working Start
      said: itself Keep Acknowledge
      cancel: canceled .
      exhausted: itself .
      shutdown: .
      time: failed:Queued .
    answered
      closed: GiveTurnBack
      turn: working Start
      said: itself Keep Acknowledge
      cancel: CleanUp canceled .
      exhausted: CleanUp itself .
      shutdown: .
      time: failed:Queued .
    elsewhere
      closed: GiveTurnBack
      turn: Follow
      said: itself Keep Acknowledge
      cancel: CleanUp canceled .
      exhausted: CleanUp itself .
      shutdown: .
      time: failed:Queued .
    childrens
      closed: GiveTurnBack
      turn: Tend
      said: itself Acknowledge
      cancel: CleanUp canceled .
      exhausted: CleanUp itself .
      shutdown: .
      time: failed:Queued .
    tending
      used up: waits Pause GiveTurnBack
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
      used up: waits Pause GiveTurnBack
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
      used up: waits Pause GiveTurnBack
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
      used up: waits Pause GiveTurnBack
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
      used up: waits Pause GiveTurnBack
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
    waiting
      reset: ComeBack
      said: itself Keep Acknowledge
      cancel: CleanUp canceled .
      exhausted: CleanUp itself .
      shutdown: .
      time: ComeBack
    held back
      reset: ComeBack
      said: itself Keep Acknowledge
      cancel: canceled .
      exhausted: itself .
      shutdown: .
      time: ComeBack
    continuing
      closed: GiveTurnBack
      turn: continues Start
      said: itself Keep Acknowledge
      cancel: CleanUp canceled .
      exhausted: CleanUp itself .
      shutdown: .
      time: failed:Queued .
    leaving
      said: Refuse
      left: Stop AskHold
      hold: interrupted .
    over
      said: Refuse .
    ");
}

/// The wait is no part of the task's time, and the rest of it counts from the reset on.
#[test]
fn quota_wait_is_outside_time_limit() {
    let start = start();
    let mut task = Lifecycle::queued(TaskState::Submitted, AgentEntry::New, PATIENCE, start);
    task.step(start, Signal::Turn);
    let used_up = start + Duration::from_secs(20);
    let until = used_up + QUOTA;
    let effects = task.step(used_up, Signal::QuotaUsedUp(until));
    assert_eq!(shown(&effects), "waits Pause GiveTurnBack");
    assert_eq!((task.wake_at(), task.waits_for_quota()), (Some(until), true));
    assert_eq!(task.step(until - QUIET, Signal::Time), []);
    // Another task of the account has just been refused.
    let later = until + QUOTA;
    assert_eq!(task.step(until, Signal::AccountClosed(later)), []);
    assert_eq!(shown(&task.step(later, Signal::Time)), "ComeBack");
    assert!(task.needs_quota() && task.returns());
    assert_eq!(shown(&task.step(later, Signal::Turn)), "continues Start");
    let left = PATIENCE.task - Duration::from_secs(20);
    assert_eq!(task.wake_at(), Some(later + left), "forty seconds are left");
    assert_eq!(shown(&task.step(later + left, Signal::Time)), "Stop failed:TooLong");
}

/// A message for a waiting task goes to the run after the one that continues.
#[test]
fn message_during_quota_wait_is_kept() {
    let start = start();
    let mut task = Lifecycle::waiting(TaskState::Working, PATIENCE, start + QUOTA);
    assert_eq!(shown(&task.step(start, Signal::ClientMessage)), "itself Keep Acknowledge");
    let continued = [Signal::QuotaReset, Signal::Turn].map(|it| shown(&task.step(start, it)));
    assert_eq!(continued, ["ComeBack", "continues Start"]);
    let again = task.step(start, Signal::Ended(TaskState::Completed));
    assert_eq!(shown(&again), "interim Retire Start");
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
