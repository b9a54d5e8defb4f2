//! Tests of restarts between a question and its answer: an approval applies only to the question
//! that was asked.

use crate::stage::{
    GRANT, eventually_async, get, hub_with_guest, said, send, state, stream, until, write_program,
};
use a2a_hub_tests::{
    Client, TestHub, message_to,
    questions::{answer, refused},
    test_guests,
};
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::{fs, time::Duration};

async fn shown(client: &Client, task: &Value) -> Result<Value> {
    get(client, task["id"].as_str().context("no id")?).await
}

/// After any kind of end. The agent that receives "yes" learns that nothing was allowed.
#[tokio::test]
async fn permission_is_void_after_restart() -> Result<()> {
    let mut hub = hub_with_guest().await?;
    for graceful in [false, true] {
        let before = send(&Client::http(&hub), "guest", "permit").await?;
        if !graceful {
            hub.kill9().await?;
        }
        hub.restart().await?;
        let client = Client::http(&hub);
        let now = shown(&client, &before).await?;
        let [old, new] = [&before, &now].map(|task| &task["metadata"]["question"]);
        assert_eq!(
            (state(&now), &now["metadata"]["reason"]),
            ("input-required", &json!("recovery"))
        );
        assert_eq!((&new["kind"], &new["replaces"]), (&json!("input"), &json!("permission")));
        let text = said(&now);
        for words in ["asked: “may I?”", "nothing was allowed", "as a new message"] {
            assert!(text.contains(words), "{text}");
        }
        let (code, _, data) = refused(&client, answer(&before, "yes", Some(old))).await?;
        assert_eq!((code, &data["question"], &data["text"]), (-32005, new, &json!(text)));

        hub.kill9().await?;
        hub.restart().await?;
        let client = Client::http(&hub);
        let still = shown(&client, &before).await?;
        assert_eq!((said(&still), &still["metadata"]["question"]), (text, new), "it is told once");
        let which = if graceful { Some(new) } else { None };
        let done = client.call("message/send", answer(&before, "yes", which)).await?;
        let heard = said(&done);
        assert!(heard.starts_with("[Your run was ended"), "{heard}");
        assert!(heard.contains("nothing was allowed") && heard.ends_with("yes"), "{heard}");
        let last = done["history"].as_array().and_then(|history| history.last());
        let last = last.context("no history")?;
        assert_eq!(last["parts"], json!([{ "kind": "text", "text": "yes" }]), "{done}");
    }
    Ok(())
}

/// An accepted answer reaches the agent, if necessary after a restart, with its original meaning.
#[tokio::test]
async fn accepted_answer_survives_kill() -> Result<()> {
    let config = GRANT.replace("max_running = 100", "max_running = 1");
    let hub = TestHub::builder().config(config).plugin("guest", test_guests()?);
    let mut hub = hub.start().await?;
    let client = Client::http(&hub);
    let permission = send(&client, "guest", "permit").await?;
    let input = send(&client, "guest", "ask").await?;
    let (busy, mut ticks) = stream(&client, "guest", "tick 1000 100").await?;
    until(&mut ticks, |event| event["kind"] == "artifact-update").await?;
    // The answered tasks wait for the only run permit.
    let _yes = client.stream("message/stream", answer(&permission, "yes", None)).await?;
    let _more = client.stream("message/stream", answer(&input, "history", None)).await?;
    hub.kill9().await?;
    hub.restart().await?;
    let client = Client::http(&hub);
    for (task, heard) in [(&permission, "[Your run was ended"), (&input, "ask\nwhat do you say?")] {
        eventually_async(Duration::from_secs(20), async || {
            shown(&client, task).await.is_ok_and(|task| state(&task) == "completed")
        })
        .await?;
        let done = shown(&client, task).await?;
        assert!(said(&done).starts_with(heard), "{done}");
    }
    assert_eq!(state(&get(&client, &busy).await?), "failed");
    Ok(())
}

/// Stand-in for `claude` that asks for permission and writes its input to `heard`. In a resumed
/// session it only answers.
const CLAUDE: &str = r#"#!/bin/sh
case "$1" in --version) echo 2.1.332; exit ;; auth) echo '{"loggedIn":true}'; exit ;; esac
read -r prompt; printf '%s\n' "$prompt" >>heard
echo '{"type":"system","subtype":"init","session_id":"s","model":"m"}'
echo '{"type":"stream_event","event":{"type":"message_start"},"parent_tool_use_id":null}'
case " $* " in *" --resume s "*) ;; *)
    echo '{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"rm -r old"}}}'
    read -r answer; printf '%s\n' "$answer" >>heard ;;
esac
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s"}'
"#;

#[tokio::test]
async fn resumed_program_learns_permission_is_void() -> Result<()> {
    let bin = tempfile::tempdir()?;
    let claude = bin.path().join("claude");
    write_program(&claude, CLAUDE)?;
    let config = format!("[agents.claude-code]\nprograms = {{ claude = '{}' }}", claude.display());
    let mut hub = TestHub::builder().config(config).start().await?;
    let mut message = message_to("claude-code", "delete the old fixtures");
    message["message"]["metadata"]["workingDirectory"] = json!(hub.workspace());
    let asked = Client::http(&hub).call("message/send", message).await?;
    assert_eq!(asked["metadata"]["question"]["kind"], "permission", "{asked}");
    hub.kill9().await?;
    hub.restart().await?;
    let client = Client::http(&hub);
    let text = said(&shown(&client, &asked).await?).to_owned();
    assert!(text.contains("Claude Code asked:") && text.contains("rm -r old"), "{text}");
    let done = client.call("message/send", answer(&asked, "yes", None)).await?;
    assert_eq!((state(&done), said(&done)), ("completed", "done"));
    let heard = fs::read_to_string(hub.workspace().join("heard"))?;
    // The program that was killed with its hub may have read the end of its input as an empty line.
    let said: Vec<_> = heard.lines().filter(|line| !line.is_empty()).collect();
    let [_, prompt] = said[..] else { bail!("it heard {heard}") };
    assert!(prompt.contains("nothing was allowed") && prompt.contains("yes"), "{prompt}");
    Ok(())
}
