//! A greedy, broken or stubborn guest harms its own task only.

use crate::stage::{DEADLINE, Stage};
use a2a_hub_protocol::task::TaskState;
use a2a_hub_runtime::{Crash, Ended, Failure, Limits, limits::Rates};
use a2a_hub_sandbox::{Engine, EngineSettings};
use std::time::Duration;
use tokio::time::timeout;

#[tokio::test]
async fn panic_text_is_hidden_from_clients() {
    let failure = Stage::default().failure("panic").await;
    let told = failure.to_string();
    assert_eq!(told, "the agent's code crashed: it panicked; the hub's log has the panic's text");
    let Failure::Trapped(Crash { panic: Some(text), .. }) = &failure else { panic!("{failure:?}") };
    assert!(text.starts_with("panicked at") && text.contains("as told"), "{text}");
    assert_eq!(failure.in_full(), format!("the agent's code crashed: {text}"));
}

#[tokio::test]
async fn trap_names_its_cause() {
    let Failure::Trapped(why) = Stage::default().failure("trap").await else { panic!() };
    assert!(why.what.contains("unreachable") && why.panic.is_none(), "{why:?}");
}

#[tokio::test]
async fn endless_recursion_traps() {
    let Failure::Trapped(why) = Stage::default().failure("recurse").await else { panic!() };
    // The compiler decides which of the two stacks overflows first.
    let why = why.what;
    assert!(why.contains("call stack exhausted") || why.contains("out of bounds memory"), "{why}");
}

/// Two spinning guests of one agent, and a third guest that finishes between them.
#[tokio::test]
async fn spinning_guest_exhausts_own_cpu_only() {
    let stage = Stage::limited(Limits { cpu: Duration::from_millis(800), ..Limits::default() });
    let (mut one, mut two) = (stage.start("spin"), stage.start("spin"));
    tokio::task::yield_now().await;
    assert!(matches!(stage.run("flood 10").await, Ended::Status { .. }));
    for spinner in [&mut one, &mut two] {
        assert!(timeout(Duration::ZERO, spinner.ended()).await.is_err(), "it spins still");
    }
    for spinner in [&mut one, &mut two] {
        let ended = timeout(DEADLINE, spinner.ended()).await.expect("a spinner is ended");
        let Ended::Failed(Failure::Exhausted(why)) = ended else { panic!("{ended:?}") };
        assert!(why.contains("800 ms of CPU time") && why.contains("cpu_ms"), "{why}");
    }
}

/// The guest itself hardly works: the hub parses its JSON, compares its arguments, makes random
/// bytes, and polls its sources.
#[tokio::test]
async fn host_work_is_charged_to_guest() {
    let rates = Rates { events: u64::MAX, output_bytes: u64::MAX, ..Rates::default() };
    let limits = Limits {
        cpu: Duration::from_millis(100),
        output_bytes: u64::MAX,
        rates,
        ..Limits::default()
    };
    for text in ["flood-data 100000", "flood-arguments", "flood-random", "flood-glances"] {
        let failure = Stage { limits, ..Stage::granting() }.failure(text).await;
        let Failure::Exhausted(why) = failure else { panic!("{text}: {failure}") };
        assert!(why.contains("100 ms of CPU time"), "{text}: {why}");
    }
}

#[tokio::test]
async fn memory_beyond_limit_is_refused() {
    let stage = Stage::limited(Limits { memory_bytes: 24 << 20, ..Limits::default() });
    let said = stage.said("bomb").await;
    let mib: usize = said["refused after ".len()..].trim_end_matches(" MiB").parse().unwrap();
    assert!((8..24).contains(&mib), "{said}");
}

#[tokio::test]
async fn event_flood_hits_output_limit() {
    let stage = Stage::limited(Limits { events: 500, ..Limits::default() });
    let Failure::Exhausted(why) = stage.failure("flood-forever").await else { panic!() };
    assert!(why.contains("output limit") && why.contains("`events`"), "{why}");
    assert_eq!(stage.seen().events.len(), 500);

    let stage = Stage::limited(Limits { events: 500, ..Limits::default() });
    assert!(matches!(stage.failure("flood-forever question").await, Failure::Exhausted(_)));
    assert_eq!(stage.seen().asked.len(), 250, "the task waits, and goes on");
}

#[tokio::test]
async fn output_limit_covers_every_member() {
    for place in [
        "text",
        "artifact",
        "name",
        "description",
        "extension",
        "filename",
        "media-type",
        "message",
        "reference",
        "question",
    ] {
        let stage = Stage::limited(Limits { output_bytes: 100_000, ..Limits::default() });
        let failure = stage.failure(&format!("flood-forever {place}")).await;
        assert!(matches!(failure, Failure::Exhausted(_)), "{place}: {failure}");
        let seen = stage.seen();
        let told = seen.events.len() + seen.asked.len();
        assert!((50..100).contains(&told), "{place}: {told} of a kilobyte each");
    }
}

/// A small status with which the hub repeats a large question.
#[tokio::test]
async fn repeated_question_counts_as_output() {
    for (place, told) in [("message", 5..12), ("artifact", 50..100)] {
        let stage = Stage::limited(Limits { output_bytes: 100_000, ..Limits::default() });
        stage.seen().beside = 9_000;
        let failure = stage.failure(&format!("flood-forever {place}")).await;
        assert!(matches!(failure, Failure::Exhausted(_)), "{place}: {failure}");
        let seen = stage.seen().events.len();
        assert!(told.contains(&seen), "{place}: {seen}");
    }
}

#[tokio::test]
async fn huge_event_is_refused() {
    assert_eq!(Stage::default().said("big 1000000").await, "1000000 bytes");
    let stage = Stage::default();
    assert!(matches!(stage.run("big 20000000").await, Ended::Failed(Failure::Trapped(_))));
    assert!(stage.seen().events.is_empty());
}

#[tokio::test]
async fn log_is_cut_at_limit() {
    for (text, said) in [("log-flood 10000", "10000 lines"), ("log-nothing", "said nothing")] {
        let stage = Stage::limited(Limits { log_bytes: 1_024, ..Limits::default() });
        assert_eq!(stage.said(text).await, said);
        let seen = stage.seen();
        assert!(seen.logged.len() <= 1 + 1_024 / 128, "an empty line is one as well");
        assert!(seen.logged.last().unwrap().starts_with("log limit reached"), "{text}");
    }
}

#[tokio::test]
async fn cancel_ends_wait_at_once() {
    let stage = Stage::granting();
    let mut guest = stage.start("sleep 600");
    while stage.seen().launched.is_empty() {
        tokio::task::yield_now().await;
    }
    guest.cancel();
    let ended = timeout(Duration::from_secs(1), guest.ended()).await.expect("it heeds cancel");
    assert_eq!(ended, Ended::Failed(Failure::Cancelled));
}

#[tokio::test]
async fn guest_ignoring_cancel_is_ended() {
    let stage =
        Stage { limits: Limits { cpu: DEADLINE, ..Limits::default() }, ..Stage::granting() };
    for stubborn in ["ignore-cancel", "spin"] {
        let mut guest = stage.start(stubborn);
        // `ignore-cancel` emits an event once it runs; `spin` emits nothing and receives nothing.
        while stubborn == "ignore-cancel" && stage.seen().events.is_empty() {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        guest.cancel();
        let heeded = timeout(Duration::from_millis(200), guest.ended()).await;
        assert!(heeded.is_err(), "{stubborn} heeded cancel");
        timeout(Duration::from_secs(1), guest.end()).await.expect("it can be ended anyway");
    }
}

#[tokio::test]
async fn too_many_open_questions_are_refused() {
    let stage = Stage::default();
    let refused =
        "exhausted: ask: too many questions are open; wait for the answer to one, or drop one";
    assert_eq!(stage.said("flood-questions 33").await, refused);
    assert_eq!(stage.said("flood-questions 32").await, "32 questions");
    assert_eq!(
        stage.said("drop-questions 100").await,
        "100 questions",
        "only those that are open count"
    );
}

#[tokio::test]
async fn handles_beyond_limit_are_refused() {
    let ended = Stage::default().start("hoard-naps 1100").ended().await;
    let told = format!("{ended:?}");
    assert!(told.contains("no free keys"), "{told}");
}

#[tokio::test]
async fn refused_commands_are_rate_limited() {
    let rates = Rates { programs: 1, ..Rates::default() };
    let stage = Stage { limits: Limits { rates, ..Limits::default() }, ..Stage::granting() };
    let mut guest = stage.start("flood-arguments");
    let begun = tokio::time::Instant::now();
    while stage.seen().refused.len() < 2 {
        assert!(begun.elapsed() < Duration::from_secs(20), "two may be tried at once");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (refused, passed) = (stage.seen().refused.len() as u64, begun.elapsed().as_secs());
    guest.cancel();
    let ended = timeout(Duration::from_secs(1), guest.ended()).await.expect("it heeds cancel");
    assert_eq!(ended, Ended::Failed(Failure::Cancelled));
    assert!(refused <= 2 + passed, "{refused} in {passed} s");
}

#[tokio::test]
async fn rate_limit_wait_is_cancellable() {
    let rates = Rates { events: 1, log_lines: 1, memory_calls: 1, ..Rates::default() };
    let stage = Stage { limits: Limits { rates, ..Limits::default() }, ..Stage::granting() };
    for text in ["flood-forever", "flood-memory", "log-flood 100"] {
        let mut guest = stage.start(text);
        tokio::time::sleep(Duration::from_millis(50)).await;
        guest.cancel();
        let ended = timeout(Duration::from_secs(1), guest.ended()).await.expect("it heeds cancel");
        let told_all = matches!(ended, Ended::Status { .. }) && text.starts_with("log");
        assert!(told_all || ended == Ended::Failed(Failure::Cancelled), "{text}: {ended:?}");
    }
    let seen = stage.seen();
    assert_eq!((seen.events.len(), seen.logged.len()), (2, 100), "nothing is lost");
}

#[tokio::test]
async fn full_pool_refuses_then_recovers() {
    let engine = Engine::new(&EngineSettings { max_instances: 2, ..Default::default() }).unwrap();
    let stage = Stage { engine: Some(engine), ..Stage::granting() };
    let mut held = [stage.start("sleep 600"), stage.start("sleep 600")];
    while stage.seen().launched.len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(stage.failure("reply x").await, Failure::HubFull);
    held[0].end().await;
    assert!(matches!(stage.run("reply x").await, Ended::Reply(_)));
}

#[tokio::test]
async fn reserved_status_is_refused() {
    let said = Stage::default().said("final-by-emit").await;
    assert!(said.starts_with("invalid: emit a status that is completed"), "{said}");
    let Failure::Invalid(why) = Stage::default().failure("open-outcome").await else { panic!() };
    assert!(why.contains("the agent returned while working"), "{why}");
    let said = Stage::default().said("bad-json").await;
    assert!(said.starts_with("invalid: metadata is not JSON"), "{said}");
}

#[tokio::test]
async fn every_outcome_is_reported() {
    let stage = Stage::default();
    let state = async |text: &str| match stage.run(text).await {
        Ended::Status { state, .. } => state,
        other => panic!("{other:?}"),
    };
    assert_eq!(state("reject").await, TaskState::Rejected);
    assert_eq!(state("fail").await, TaskState::Failed);
    assert_eq!(state("no-outcome-message").await, TaskState::Completed);
    let Ended::Reply(message) = stage.run("reply hi").await else { panic!() };
    assert_eq!(message.joined_text(), "hi");
}
