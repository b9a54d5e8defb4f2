//! Tests of the commands that programs list: each task reports them, and none is executed.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use a2a_hub_sdk::testing::{Program, ScriptedHost};
use a2a_hub_sdk::{Event, TaskStatus};
use acp::AnyAcp;
use serde_json::{Value, json};

fn hub() -> ScriptedHost {
    let host = ScriptedHost::new();
    host.setting("workspace", "/w");
    host.setting("acp", &json!({ "name": "Mine", "program": "mine" }).to_string());
    host
}

fn answer(id: u64, result: &Value) -> String {
    format!("< {}\n", json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

fn ended(id: u64) -> String {
    answer(id, &json!({ "stopReason": "end_turn" }))
}

/// Update with commands of these names.
fn lists(names: &[&str]) -> String {
    let command = |name: &&str| json!({ "name": name, "description": "d" });
    let commands: Vec<_> = names.iter().map(command).collect();
    let update =
        json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands });
    let params = json!({ "sessionId": "s1", "update": update });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }).to_string()
}

/// Program that begins a session, with these lines behind each step.
fn mine(host: &ScriptedHost, opened: &str, prompted: &str) -> Program {
    let modes = json!({ "currentModeId": "ask", "availableModes": [{ "id": "ask" }] });
    let hello = answer(1, &json!({ "protocolVersion": 1 }));
    let session = answer(2, &json!({ "sessionId": "s1", "modes": modes }));
    let prompt = "> session/prompt\n";
    let says = [
        "> initialize\n",
        &hello,
        "> session/new\n",
        &session,
        opened,
        prompt,
        prompted,
        &ended(3),
    ];
    host.program("mine").plays(&says.concat())
}

/// Lines of a next turn of the same program.
fn next_turn() -> String {
    ["> session/set_mode\n", &answer(4, &json!({})), "> session/prompt\n", &ended(5)].concat()
}

/// Names of the commands in each status that lists any.
fn listed(host: &ScriptedHost) -> Vec<String> {
    let mut listed = Vec::new();
    for event in host.events() {
        let Event::Status(TaskStatus { metadata: Some(metadata), .. }) = event else { continue };
        let facts: Value = serde_json::from_str(&metadata).unwrap();
        let Some(commands) = facts["commands"].as_array() else { continue };
        assert!(commands.iter().all(|command| command["callable"] == false), "{facts}");
        let names: Vec<_> = commands.iter().filter_map(|it| it["name"].as_str()).collect();
        listed.push(names.join(" "));
    }
    listed
}

#[test]
fn commands_before_prompt_are_reported() {
    for (opened, prompted, wanted) in [
        (lists(&["compact", "init"]), String::new(), vec!["compact init"]),
        (String::new(), lists(&["compact"]), vec!["compact"]),
        (lists(&["init"]), lists(&["init"]), vec!["init"]),
        (lists(&["init"]), lists(&[]), vec!["init", ""]),
        (String::new(), String::new(), vec![]),
    ] {
        let host = hub();
        let line = |line: String| if line.is_empty() { line } else { format!("< {line}\n") };
        mine(&host, &line(opened), &line(prompted));
        host.run::<AnyAcp>("go").unwrap();
        assert_eq!(listed(&host), wanted);
        assert_eq!(host.said(), Vec::<String>::new(), "the list is for programs");
    }
}

/// A program lists its commands once a session, and each task of the session has them.
#[test]
fn reused_program_keeps_its_commands() {
    let host = hub();
    let first = format!("< {}\n", lists(&["init"]));
    mine(&host, &first, "").plays(&next_turn());
    for turn in 1..=2 {
        host.run::<AnyAcp>("go").unwrap();
        assert_eq!(listed(&host), vec!["init"; turn]);
    }
    assert_eq!(host.spawned().len(), 1);

    let host = hub();
    let idle = format!("{}\n", lists(&["init", "new"]));
    mine(&host, &first, "").pauses().stdout(idle).plays(&next_turn());
    host.run::<AnyAcp>("go").unwrap();
    host.run::<AnyAcp>("go").unwrap();
    assert_eq!(listed(&host), ["init", "init new"], "a list that changed meanwhile counts");
    assert_eq!(host.spawned().len(), 1);
}

/// The list is no effect of the program on the task, so another program may take over.
#[test]
fn dead_program_is_replaced_despite_its_list() {
    let host = hub();
    let first = format!("< {}\n", lists(&["init"]));
    mine(&host, &first, "").plays("> session/set_mode\n").exit(1);
    host.run::<AnyAcp>("go").unwrap();
    mine(&host, &first, "");
    let outcome = host.run::<AnyAcp>("go").unwrap();
    assert_eq!(outcome.state(), Some(a2a_hub_sdk::TaskState::Completed), "{}", outcome.text());
    assert_eq!(host.spawned().len(), 2);
    assert_eq!(listed(&host).last().map(String::as_str), Some("init"));
}

/// Programs execute their commands without asking for permission.
#[test]
fn listed_command_is_sent_as_text() {
    for prompt in ["/init", "/extensions install https://x.test/e.git", "\n /init"] {
        let host = hub();
        let program = mine(&host, &format!("< {}\n", lists(&["init", "extensions"])), "");
        host.run::<AnyAcp>(prompt).unwrap();
        let sent = program.told().pop().unwrap()["params"]["prompt"][0]["text"].take();
        assert_eq!(sent, format!("\u{2060}{prompt}"), "no program reads this as a command");
    }
}
