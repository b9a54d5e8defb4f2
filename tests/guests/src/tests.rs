//! Tests of the behaviours that work natively, against a scripted hub.

use crate::{BEHAVIOURS, TestGuest};
use a2a_hub_sdk::{Agent as _, Failure, TaskState, testing::ScriptedHost};
use std::collections::HashSet;

fn says(host: &ScriptedHost, text: &str) -> String {
    host.run::<TestGuest>(text).unwrap().text()
}

#[test]
fn behaviour_names_are_unique_and_listed() {
    let names: HashSet<_> = BEHAVIOURS.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), BEHAVIOURS.len());
    let card = TestGuest::card().to_json();
    assert!(names.iter().all(|name| card.contains(*name)));
}

#[test]
fn unknown_behaviour_is_rejected_with_list() {
    let outcome = ScriptedHost::new().run::<TestGuest>("dance").unwrap();
    assert_eq!(outcome.state(), Some(TaskState::Rejected));
    assert!(outcome.text().contains("`dance`") && outcome.text().contains("flood"));
}

#[test]
fn flood_emits_requested_number_of_chunks() {
    let host = ScriptedHost::new();
    assert_eq!(says(&host, "flood 3"), "3 pieces");
    assert_eq!(host.artifact("flood").unwrap(), "1\n2\n3\n");
}

#[test]
fn tick_emits_requested_number_of_chunks() {
    let host = ScriptedHost::new();
    assert_eq!(says(&host, "tick 3 1"), "ticked 3 times");
    assert_eq!(host.artifact("tick").unwrap(), "1\n2\n3\n");
}

#[test]
fn ask_repeats_the_answer() {
    let host = ScriptedHost::new();
    host.answer("blue");
    assert_eq!(says(&host, "ask"), "blue");
}

#[test]
fn forms_repeat_the_answer() {
    for name in ["test_elicitation who?", "test_elicitation_sep1034_defaults"] {
        let host = ScriptedHost::new();
        host.answer("{}");
        assert_eq!(says(&host, name), "User response: {}");
    }
}

#[test]
fn terms_report_scripted_values() {
    let host = ScriptedHost::new();
    assert_eq!(says(&host, "terms"), "; ");
    host.extension("urn:x");
    host.accepts("image/*");
    assert_eq!(says(&host, "terms"), "urn:x; image/*");
}

#[test]
fn sh_runs_given_script() {
    let host = ScriptedHost::new();
    host.program("sh").args(&["-c", "echo a; exit 3"]).stdout("a\n").stderr("oh").exit(3);
    assert_eq!(says(&host, "sh echo a; exit 3"), "exit 3: oh");
    assert_eq!(host.artifact("output").unwrap(), "a\n");
}

#[test]
fn pose_reports_scripted_first_event() {
    let host = ScriptedHost::new();
    host.program("sleep");
    assert_eq!(says(&host, "pose 1 which?"), "exit 0");
    assert_eq!(host.withdrawn(), 1);
    host.program("sleep");
    host.answer("that one");
    assert_eq!(says(&host, "pose 1 which?"), "that one");
    assert_eq!((host.asked().len(), host.withdrawn()), (2, 1));
    let program = host.program("sleep");
    assert_eq!(says(&host, "retire 1"), "it may sleep on");
    assert!(program.stdin_closed());
    host.program_is("sleep", "2");
    assert_eq!(says(&host, "fingerprint sleep"), "2");
}

#[test]
fn denial_is_reported_but_cancellation_propagates() {
    let host = ScriptedHost::new();
    host.program("rm").refused(Failure::Denied("no grant".into()));
    assert_eq!(says(&host, "exec rm -rf /"), "denied: no grant");
    host.program("sleep").refused(Failure::Cancelled);
    assert!(matches!(host.run::<TestGuest>("sleep 1"), Err(Failure::Cancelled)));
}

#[test]
fn settings_and_files_use_scripted_values() {
    let host = ScriptedHost::new();
    assert_eq!(says(&host, "setting permissions"), "ask");
    assert_eq!(says(&host, "setting model"), "not set");
    host.setting("model", "small");
    assert_eq!(says(&host, "setting model"), "small");
    assert_eq!(says(&host, "put a.txt hi there"), "/files/1/a.txt");
    assert_eq!(host.files(), [("/files/1/a.txt".to_owned(), b"hi there".to_vec())]);
}

#[test]
fn remember_stores_rest_of_line() {
    let host = ScriptedHost::new();
    assert_eq!(says(&host, "remember colour deep blue"), "colour is 9 bytes");
    assert_eq!(says(&host, "recall colour"), "deep blue");
    assert_eq!(says(&host, "recall shape"), "nothing");
}

#[test]
fn parked_program_continues_its_script() {
    let host = ScriptedHost::new();
    let program = host
        .program("sh")
        .stdout("ready\n")
        .reads()
        .stdout("1\n.\n")
        .reads()
        .stdout("2\n.\n")
        .reads();
    assert_eq!(says(&host, "keep k first"), "new 1");
    assert_eq!(host.kept_programs().keys(), ["k"]);
    assert_eq!(says(&host, "keep k second"), "kept 2");
    assert_eq!(program.stdin(), "first\nsecond\n");
    assert_eq!(host.kept_programs().asked().len(), 2);
    host.kept_programs().end("k");
    host.program("sh").stdout("ready\n").reads().stdout("3\n.\n").reads();
    assert_eq!(says(&host, "keep k third"), "new 3");
    host.kept_programs().refuse(Failure::Exhausted("no more".into()));
    let _ = host.run::<TestGuest>("keep k fourth");
    assert!(host.kept_programs().keys().is_empty(), "what was refused is ended");
}
