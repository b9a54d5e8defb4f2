//! Tests of replayed guests, as tables and as a property.

use super::*;
use proptest::prelude::*;
use std::fmt::Write as _;

fn asked(about: &str) -> CallIdentity {
    CallIdentity::new("ask", about)
}

fn answer(about: &str, answer: u32, at_ms: u64) -> Recorded<u32> {
    Recorded { at_ms, entry: Entry::Answer(asked(about), answer) }
}

fn begun(step: &str) -> Recorded<u32> {
    Recorded { at_ms: 0, entry: Entry::Begun(step.to_owned()) }
}

fn cut_off(step: &str, told: usize) -> Recorded<u32> {
    Recorded { at_ms: 0, entry: Entry::CutOff(step.to_owned(), told) }
}

fn ended(step: &str, kept: &str, told: usize) -> Recorded<u32> {
    let (step, kept) = (step.to_owned(), kept.to_owned());
    Recorded { at_ms: 0, entry: Entry::Ended { step, kept, told } }
}

#[test]
fn guest_is_answered_from_journal_then_live() {
    let journal = vec![answer("a", 1, 20), answer("b", 2, 30)];
    let mut replay = Replay::<_, ()>::new(10, journal, Vec::new());
    assert_eq!((replay.now_ms(), replay.is_live()), (10, false));
    assert_eq!((replay.recall(&asked("a")), replay.now_ms()), (Ok(Some(1)), 20));
    assert_eq!((replay.recall(&asked("b")), replay.now_ms()), (Ok(Some(2)), 30));
    assert!(replay.is_live());
    assert_eq!(replay.recall(&asked("c")), Ok(None));
    let recorded = replay.record_answer(asked("c"), 3, 25);
    assert_eq!((recorded.at_ms, replay.now_ms()), (30, 30), "a clock that was set back");
}

#[test]
fn divergence_names_entry_and_call() {
    let mut table = String::new();
    let journals = [vec![answer("a", 1, 0)], vec![begun("s")], vec![begun("s"), answer("a", 1, 0)]];
    for journal in journals {
        let new = || Replay::<u32, ()>::new(0, journal.clone(), Vec::new());
        let told = [
            new().recall(&asked("b")).map(drop),
            new().recall(&CallIdentity::new("sleep", "")).map(drop),
            new().begin("t", StepMode::Recorded, 0).map(drop),
            new().begin("s", StepMode::Recorded, 0).map(drop),
        ];
        let told = told.map(|told| match told {
            Ok(()) => "goes on".to_owned(),
            Err(Diverged { number, recorded, call: asked }) => {
                format!("{number}: {recorded} is not {asked}")
            }
        });
        writeln!(table, "{}", told.join("; ")).unwrap();
    }
    insta::assert_snapshot!(table, @"
    1: `ask` of “a” is not `ask` of “b”; 1: `ask` of “a” is not `sleep`; 1: `ask` of “a” is not the step `t`; 1: `ask` of “a” is not the step `s`
    1: the step `s` is not `ask` of “b”; 1: the step `s` is not `sleep`; 1: the step `s` is not the step `t`; goes on
    1: the step `s` is not `ask` of “b”; 1: the step `s` is not `sleep`; 1: the step `s` is not the step `t`; 2: `ask` of “a” is not the step `s`
    ");
}

#[test]
fn step_table() {
    let mut table = String::new();
    let journals = [
        ("new", vec![]),
        ("cut off", vec![begun("s")]),
        ("done", vec![begun("s"), ended("s", "kept", 1)]),
        ("client asked", vec![begun("s"), cut_off("s", 1), answer("?", 1, 0)]),
    ];
    for (name, journal) in journals {
        for mode in [StepMode::Recorded, StepMode::Again, StepMode::Ask] {
            let mut replay = Replay::new(0, journal.clone(), vec!["in the step", "later"]);
            let begun = match replay.begin("s", mode, 7) {
                Ok(StepStart::Done(kept)) => format!("has {kept}"),
                Ok(StepStart::Work(record)) => {
                    format!("works{}", if record.is_some() { ", recorded" } else { "" })
                }
                Ok(StepStart::CutOff(record)) => {
                    format!("asks the client{}", if record.is_some() { ", recorded" } else { "" })
                }
                Err(_) => "diverged".to_owned(),
            };
            let end = if replay.step().is_some() {
                let end = replay.end("x".to_owned(), 8);
                if end.is_some() { ", its end recorded" } else { ", its end not recorded" }
            } else {
                ""
            };
            let told = replay.replay_event().unwrap_or("what the log has not");
            writeln!(table, "{name}, {mode:?}: {begun}{end}; then tells {told}").unwrap();
        }
    }
    insta::assert_snapshot!(table, @"
    new, Recorded: works, recorded, its end recorded; then tells in the step
    new, Again: works, its end not recorded; then tells in the step
    new, Ask: works, recorded, its end recorded; then tells in the step
    cut off, Recorded: works, its end recorded; then tells what the log has not
    cut off, Again: works, its end not recorded; then tells in the step
    cut off, Ask: asks the client, recorded; then tells what the log has not
    done, Recorded: has kept; then tells later
    done, Again: works, its end not recorded; then tells in the step
    done, Ask: has kept; then tells later
    client asked, Recorded: asks the client; then tells later
    client asked, Again: works, its end not recorded; then tells in the step
    client asked, Ask: asks the client; then tells later
    ");
}

#[test]
fn interrupted_step_repeats_after_client_consent() {
    let journal = vec![
        begun("s"),
        cut_off("s", 2),
        answer("again?", 1, 0),
        begun("s"),
        ended("s", "done", 0),
    ];
    let mut replay = Replay::new(0, journal, vec![1, 2]);
    assert_eq!(replay.begin("s", StepMode::Ask, 0), Ok(StepStart::CutOff(None)));
    assert_eq!(replay.recall(&asked("again?")), Ok(Some(1)));
    assert_eq!(replay.begin("s", StepMode::Ask, 0), Ok(StepStart::Done("done".to_owned())));
    assert!(replay.is_live());
    assert_eq!(
        replay.replay_event(),
        None,
        "what it had told before it was cut off is no more than that"
    );
}

/// Action of a guest.
#[derive(Clone, Debug)]
enum Act {
    /// Calls a function whose answer is different each time.
    Ask(u8),
    /// Sends an event with the last answer and this number.
    Tell(u8),
    /// Has a side effect, in a step that sends this number of events.
    Step(StepMode, u8),
}

/// Data that survives the end of a process.
#[derive(Clone, Debug, Default)]
struct Kept {
    journal: Vec<Recorded<u32>>,
    log: Vec<String>,
    /// Number of times that each step ended, and began.
    done: [u32; 8],
    begun: [u32; 8],
}

/// World in which the power fails after this number of writes.
struct World {
    kept: Kept,
    writes_left: usize,
    answers: u32,
}

/// Error for a power failure.
struct Killed;

impl World {
    fn write(&mut self, what: impl FnOnce(&mut Kept)) -> Result<(), Killed> {
        if self.writes_left == 0 {
            return Err(Killed);
        }
        self.writes_left -= 1;
        what(&mut self.kept);
        Ok(())
    }

    /// Returns a different answer each time.
    fn answer(&mut self) -> u32 {
        self.answers += 1;
        self.answers
    }

    fn ask(
        &mut self,
        replay: &mut Replay<u32, String>,
        asked: CallIdentity,
    ) -> Result<u32, Killed> {
        match replay.recall(&asked).unwrap() {
            Some(answer) => Ok(answer),
            None => {
                let answer = self.answer();
                let recorded = replay.record_answer(asked, answer, 0);
                self.write(|kept| kept.journal.push(recorded))?;
                Ok(answer)
            }
        }
    }

    fn tell(&mut self, replay: &mut Replay<u32, String>, told: String) -> Result<(), Killed> {
        match replay.replay_event() {
            Some(known) => assert_eq!(known, told, "it tells the same again"),
            None => self.write(|kept| kept.log.push(told))?,
        }
        Ok(())
    }

    /// Runs the guest to its end, or until the power fails; returns the guest's results.
    fn run(&mut self, guest: &[Act]) -> Result<Vec<String>, Killed> {
        let Kept { journal, log, .. } = self.kept.clone();
        let mut replay = Replay::new(0, journal, log);
        let (mut last, mut heard) = (0, Vec::new());
        for (number, act) in guest.iter().enumerate() {
            match act {
                Act::Ask(about) => {
                    last = self.ask(&mut replay, CallIdentity::new("ask", &about.to_string()))?;
                    heard.push(format!("heard {last}"));
                }
                Act::Tell(what) => {
                    let told = format!("{number}: {what} after {last}");
                    self.tell(&mut replay, told)?;
                }
                Act::Step(mode, tells) => {
                    let kept = self.step(&mut replay, number, *mode, *tells)?;
                    heard.push(format!("step {number} came to {kept}"));
                }
            }
        }
        assert!(replay.is_live(), "all of its journal was heard");
        Ok(heard)
    }

    fn step(
        &mut self,
        replay: &mut Replay<u32, String>,
        number: usize,
        mode: StepMode,
        tells: u8,
    ) -> Result<String, Killed> {
        let key = format!("step {number}");
        loop {
            match replay.begin(&key, mode, 0).unwrap() {
                StepStart::Done(kept) => return Ok(kept),
                StepStart::CutOff(record) => {
                    if let Some(record) = record {
                        self.write(|kept| kept.journal.push(record))?;
                    }
                    // The client wants a repetition, or not.
                    if self.ask(replay, CallIdentity::new("step.again", &key))?.is_multiple_of(2) {
                        return Ok("nothing".to_owned());
                    }
                    continue;
                }
                StepStart::Work(Some(record)) => self.write(|kept| kept.journal.push(record))?,
                StepStart::Work(None) => {}
            }
            // A read-only step has the same result each time.
            let came_to = if mode == StepMode::Again { 0 } else { self.answer() };
            self.write(|kept| kept.begun[number] += 1)?;
            for told in 0..tells {
                self.tell(replay, format!("{number}: {told} of {came_to}"))?;
            }
            self.kept.done[number] += 1;
            if let Some(record) = replay.end(came_to.to_string(), 0) {
                self.write(|kept| kept.journal.push(record))?;
            }
            return Ok(came_to.to_string());
        }
    }
}

fn act() -> impl Strategy<Value = Act> {
    let mode = prop_oneof![Just(StepMode::Recorded), Just(StepMode::Again), Just(StepMode::Ask)];
    prop_oneof![
        (0..4_u8).prop_map(Act::Ask),
        (0..4_u8).prop_map(Act::Tell),
        (mode, 0..3_u8).prop_map(|(mode, tells)| Act::Step(mode, tells)),
    ]
}

proptest! {
    /// For any number of power failures at any point, the guest reaches its end, and its last run
    /// receives the same answers as before.
    #[test]
    fn replaying_any_log_prefix_reaches_same_state(
        guest in prop::collection::vec(act(), 0..8),
        kills in prop::collection::vec(0..6_usize, 0..12),
    ) {
        let mut world = World { kept: Kept::default(), writes_left: 0, answers: 0 };
        for writes in kills {
            world.writes_left = writes;
            let before = world.kept.journal.clone();
            let ended = world.run(&guest).is_ok();
            prop_assert!(world.kept.journal.starts_with(&before), "what is recorded stays");
            prop_assert!(!ended || world.writes_left < usize::MAX);
        }
        world.writes_left = usize::MAX;
        let Ok(heard) = world.run(&guest) else { unreachable!("the power is there") };
        // Another run after the end changes nothing, and has the same results.
        let kept = world.kept.clone();
        let Ok(again) = world.run(&guest) else { unreachable!("the power is there") };
        prop_assert_eq!(&heard, &again);
        prop_assert_eq!((&kept.journal, &kept.log), (&world.kept.journal, &world.kept.log));
        for (number, act) in guest.iter().enumerate() {
            let of = |told: &&String| told.starts_with(&format!("{number}:"));
            let told = world.kept.log.iter().filter(of).count();
            match act {
                Act::Tell(_) => prop_assert_eq!(told, 1, "told once"),
                Act::Step(mode, tells) => {
                    // A step that ended and was recorded is not repeated.
                    let ends = world.kept.journal.iter().filter(|it| {
                        matches!(&it.entry, Entry::Ended { step, .. } if *step == format!("step {number}"))
                    });
                    match (mode, ends.count()) {
                        (StepMode::Recorded, 1) | (StepMode::Again, 0) | (StepMode::Ask, 1) => {
                            prop_assert!(told >= usize::from(*tells));
                        }
                        (StepMode::Ask, 0) => {}
                        (mode, ends) => prop_assert!(false, "{mode:?} ended {ends} times"),
                    }
                }
                Act::Ask(_) => {}
            }
        }
    }
}
