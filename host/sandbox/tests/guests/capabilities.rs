//! A guest holds the overlap of its requests and its grant, and nothing by default.

use crate::stage::Stage;
use a2a_hub_core::text::redact::Secrets;
use a2a_hub_protocol::message::joined_text;
use a2a_hub_runtime::{
    Ended, Failure, Limits,
    limits::Rates,
    port::{
        context_memory::EphemeralMemory,
        tasks::{Emitted, Need},
    },
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

#[tokio::test]
async fn process_granted() {
    let stage = Stage::granting();
    assert_eq!(stage.said("sleep 0").await, "exit 0");
    let launched = &stage.seen().launched;
    assert_eq!(
        (launched[0].program.as_str(), launched[0].args.as_slice()),
        ("sleep", ["0".to_owned()].as_slice())
    );
}

#[tokio::test]
async fn process_denied() {
    let nothing = Stage::default().said("sleep 0").await;
    assert!(nothing.starts_with("denied: run `sleep`: not granted"), "{nothing}");
    assert!(nothing.contains("[agents.test-guest.grant.process.sleep]"), "{nothing}");

    let stage = Stage::granting();
    let never = stage.said("exec never-granted x").await;
    assert!(never.starts_with("denied: run `never-granted`: not granted"), "{never}");
    let unasked = stage.said("exec rm -rf /").await;
    assert!(unasked.contains("this agent's manifest does not ask for it"), "{unasked}");
    let path = stage.said("exec /bin/sleep 0").await;
    assert!(path.starts_with("denied: run `/bin/sleep`"), "{path}");
    let option = stage.said("exec sleep --help").await;
    assert!(option.contains("none of the allowed forms fits"), "{option}");
    assert!(stage.seen().launched.is_empty());
}

/// A client's answer and a program's end are both received at once.
#[tokio::test]
async fn question_and_program_are_awaited_together() {
    let stage = Stage::granting();
    assert_eq!(stage.said("pose 600 which?").await, "you asked: which?");
    assert_eq!(stage.seen().withdrawn, 0);
    assert_eq!(stage.said("pose 0 never").await, "exit 0", "its end is not lost by waiting for it");
    assert_eq!(stage.seen().withdrawn, 1);

    let mut run = stage.start("pose 600 never");
    while stage.seen().asked.len() < 3 {
        tokio::task::yield_now().await;
    }
    run.cancel();
    assert_eq!(run.ended().await, Ended::Failed(Failure::Cancelled));
}

#[tokio::test]
async fn retired_program_has_limited_grace() {
    let stage = Stage::granting();
    assert_eq!(stage.said("retire 600").await, "it may sleep on");
    assert_eq!(stage.seen().retired, [Duration::from_secs(5)]);
}

#[tokio::test]
async fn parked_program_requires_valid_key() {
    let stage = Stage::granting();
    assert_eq!(stage.said("keep-many 3").await, "3 parked");
    let keys = ["0", "1", "2"].map(str::to_owned);
    assert_eq!(stage.seen().kept, keys.into());
    assert_eq!(stage.said("keep-badly").await, "invalid invalid invalid invalid unavailable");
    assert_eq!(stage.seen().kept.len(), 3, "nothing more");
}

#[tokio::test]
async fn fingerprint_requires_program_grant() {
    let stage = Stage::granting();
    assert_eq!(stage.said("fingerprint sleep").await, "the first sleep");
    let denied = stage.said("fingerprint never-granted").await;
    assert!(denied.starts_with("denied: run `never-granted`: not granted"), "{denied}");
}

#[tokio::test]
async fn memory_granted() {
    let stage = Stage::granting();
    assert_eq!(stage.said("remember colour blue").await, "colour is 4 bytes");
    assert_eq!(stage.said("recall colour").await, "blue");
    assert_eq!(stage.said("recall shape").await, "nothing");
    let key = "k".repeat(257);
    let long = stage.said(&format!("remember {key} x")).await;
    assert!(long.starts_with("invalid: a key is 1 to 256 bytes"), "{long}");
}

#[tokio::test]
async fn memory_denied() {
    let said = Stage::default().said("remember colour blue").await;
    assert!(said.starts_with("denied: remember values: not granted"), "{said}");
}

#[tokio::test]
async fn context_memory_granted() {
    let secret = "sk-1234567890";
    let key = ("AN_API_KEY".to_owned(), secret.to_owned());
    let mind = Arc::new(EphemeralMemory::new(1 << 20));
    let stage = Stage { secrets: Arc::new(Secrets::among([key])), mind, ..Stage::granting() };
    assert_eq!(stage.said(&format!("think of {secret}")).await, "it is in mind");
    let told: Value = serde_json::from_str(&stage.said("mind any details?").await).unwrap();
    assert_eq!(told["working"]["goal"], "of [redacted AN_API_KEY]", "no secret is kept");
    assert_eq!(told["working"]["privateVariables"], json!(["password"]));
    let fact =
        json!({"id": "fact1", "type": "semantic", "data": {"info": "details of the parser"}});
    assert_eq!(told["items"], json!([fact]));
    let odd: Vec<String> = serde_json::from_str(&stage.said("odd-mind").await).unwrap();
    insta::assert_snapshot!(odd.join("\n"), @r#"
    Failure::Invalid("remember: the id of an item is 1 to 256 bytes long and has no control characters")
    Failure::Invalid("remember: the data of an item is nested more than 64 deep")
    Failure::Invalid("remember: the data of an item is 300002 bytes long: it may have 262144; keep what is larger in a file,
    Failure::Invalid("remember an item: it is longer than 516 KiB")
    Failure::Invalid("remember: the key of a decision is 1 to 256 bytes long and has no control characters")
    Failure::Invalid("remember: a goal is 20000 bytes long: it may have 16384; keep what is larger in a file, or in several 
    Failure::Invalid("recall: the text is longer than 64 KiB")
    taken
    "#);
}

#[tokio::test]
async fn context_memory_denied() {
    let said = Stage::default().said("think nothing").await;
    assert!(said.starts_with("denied: use what it has in mind: not granted"), "{said}");
}

#[tokio::test]
async fn settings_are_readable() {
    let settings = [("permissions".to_owned(), "ask".to_owned())].into();
    let stage = Stage { settings, ..Stage::default() };
    assert_eq!(stage.said("setting permissions").await, "ask");
    assert_eq!(stage.said("setting model").await, "not set");
}

#[tokio::test]
async fn secrets_are_redacted_everywhere() {
    let secret = "sk-1234567890";
    let key = ("AN_API_KEY".to_owned(), secret.to_owned());
    let stage = Stage { secrets: Arc::new(Secrets::among([key])), ..Stage::default() };
    let ended = stage.run(&format!("leak {secret}")).await;
    let all = format!("{ended:?} {:?}", stage.seen());
    let bytes = format!("{:?}", secret.as_bytes());
    assert!(!all.contains(secret) && !all.contains(bytes.trim_matches(['[', ']'])), "{all}");
    // Count: a log line and a status; of a message its id, text, extension and reference, and key
    // and value of its data and facts; of an artifact its id, name, description, extension, text
    // and facts, and of its file the name, type and facts; a question; and the last status with its
    // facts. The file's contents are bytes.
    assert_eq!(all.matches("[redacted AN_API_KEY]").count(), 2 + 8 + 7 + 4 + 1 + 3, "{all}");
    let why = stage.failure(&format!("panic {secret}")).await.in_full();
    assert!(why.contains("as told: [redacted AN_API_KEY]"), "{why}");
}

#[tokio::test]
async fn secrets_across_chunks_are_redacted() {
    let key = ("AN_API_KEY".to_owned(), "sk-1234567890".to_owned());
    let stage = Stage { secrets: Arc::new(Secrets::among([key])), ..Stage::default() };
    stage.said("spell it is sk-1234567890, not sk-1234").await;
    let seen = stage.seen();
    let texts = seen.events.iter().map(|event| match event {
        Emitted::Artifact { artifact, .. } => joined_text(&artifact.parts),
        Emitted::Working { .. } => String::new(),
    });
    assert_eq!(texts.collect::<String>(), "it is [redacted AN_API_KEY], not sk-1234");
}

#[tokio::test]
async fn files_granted() {
    let stage = Stage::granting();
    assert_eq!(stage.said("put ../../x hello").await, "/shelf/x");
    assert_eq!(stage.seen().files["x"], b"hello");
    let all = stage.said("put-big 4096").await;
    assert_eq!(all, "/shelf/big", "each task has all its bytes");
    let more = stage.said("put-big 4097").await;
    assert!(more.starts_with("exhausted: write a file of 4097 bytes: 4096 are left"), "{more}");

    let rates = Rates { files: 100_000, ..Rates::default() };
    let stage = Stage { limits: Limits { rates, ..Limits::default() }, ..stage };
    let many = stage.said("put-many 10000").await;
    assert!(many.starts_with("exhausted: write a file: there are 1000"), "{many}");
    assert_eq!(stage.seen().files.len(), 1_002, "the 1,000, `x` and `big`");
}

#[tokio::test]
async fn files_denied() {
    let said = Stage::default().said("put a hello").await;
    assert!(said.starts_with("denied: write files: not granted"), "{said}");
    assert!(said.contains("`files = true` in `[agents.test-guest.grant]`"), "{said}");
}

#[tokio::test]
async fn client_answers_questions() {
    let stage = Stage::default();
    assert_eq!(stage.said("ask").await, "you asked: what do you say?");
    assert_eq!(stage.said("auth").await, "you asked: who are you?");
    let needs: Vec<_> = stage.seen().asked.iter().map(|(need, _)| *need).collect();
    assert_eq!(needs, [Need::Input, Need::Auth]);
}

#[tokio::test]
async fn client_capabilities_are_readable() {
    assert_eq!(Stage::default().said("terms").await, "urn:x; image/*");
}

#[tokio::test]
async fn delegate_granted() {
    assert_eq!(Stage::granting().said("agents").await, "parrot");
    let found =
        Stage::granting().said(r#"find {"query":"say it","tags":["bird"],"version":"1"}"#).await;
    assert_eq!(found, r#"parrot 1.5 Some("say it") ["bird"] Some("1")"#);
    for (wrong, why) in [
        (r#"find {"limit":0}"#, "`limit`: must be 1 to 1000"),
        (&*format!("find {}", "x".repeat(70_000)), "longer than 65536 bytes"),
    ] {
        let said = Stage::granting().said(wrong).await;
        assert!(said.starts_with("invalid") && said.contains(why), "{said}");
    }
    let said = Stage::default().said("find {}").await;
    assert!(said.starts_with("denied: find agents: not granted"), "{said}");
}

#[tokio::test]
async fn delegate_denied() {
    let said = Stage::default().said("agents").await;
    assert!(said.starts_with("denied: ask for other agents: not granted"), "{said}");
    assert!(said.contains("`delegate = [\"*\"]`"), "{said}");
}

#[tokio::test]
async fn granted_agents_are_called() {
    let stage = Stage::granting();
    assert_eq!(stage.said("delegate parrot").await, "hi");
    assert_eq!(stage.said("call parrot well well").await, "parrot said: well well");
    assert_eq!(stage.said("delegate echo").await, "denied: call `echo`: not granted");
    let denied = Stage::default().said("delegate parrot").await;
    assert!(denied.starts_with("denied: call another agent: not granted"), "{denied}");
}

#[tokio::test]
async fn environment_and_files_are_absent() {
    let stage = Stage::granting();
    for name in ["PATH", "HOME"] {
        assert!(stage.said(&format!("env {name}")).await.starts_with("absent"), "{name}");
    }
    for path in ["/etc/passwd", ".", "/proc/self/environ"] {
        assert!(stage.said(&format!("read {path}")).await.starts_with("refused"), "{path}");
    }
}
