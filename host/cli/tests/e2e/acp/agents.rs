//! Tests of the commands that add and remove programs of the Agent Client Protocol.

use crate::command_line::{command, finish, run};
use crate::stage::{home, send, write_program};
use a2a_hub_tests::{Client, TestHub};
use anyhow::Result;
use serde_json::Value;
use std::fs;

/// Smallest program that answers.
const ECHO: &str = r#"#!/usr/bin/env python3
import json, sys
def say(**members): print(json.dumps({"jsonrpc": "2.0", **members}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    match asked.get("method"):
        case "initialize": say(id=asked["id"], result={"protocolVersion": 1})
        case "session/new": say(id=asked["id"], result={"sessionId": "s1"})
        case "session/prompt":
            text = "you said: " + asked["params"]["prompt"][0]["text"]
            chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
            say(method="session/update", params={"sessionId": "s1", "update": chunk})
            say(id=asked["id"], result={"stopReason": "end_turn"})
"#;

#[tokio::test]
async fn added_program_answers_until_removed() -> Result<()> {
    let hub = TestHub::builder().config("# mine\n").start().await?;
    let program = hub.home().join("mini-agent");
    write_program(&program, ECHO)?;
    let program = program.display().to_string();
    let config = || fs::read_to_string(hub.path("config.toml")).unwrap_or_default();

    let (data, file) =
        (hub.data_dir().display().to_string(), hub.path("config.toml").display().to_string());
    let typed = async |args: &[&str]| {
        run(&hub, &[&["--data-dir", &data, "--config", &file], args].concat()).await
    };
    let other = hub.home().join("other.toml").display().to_string();
    let elsewhere =
        ["--data-dir", &data, "--config", &other, "agent", "add", "mini", "--acp", "--", &program];
    fs::write(&other, "")?;
    let ran = run(&hub, &elsewhere).await?;
    assert!(
        ran.code != Some(0) && ran.stdout.contains("does not read this file"),
        "{}",
        ran.stdout
    );

    let ran = typed(&["agent", "add", "mini", "--acp", "--", &program]).await?;
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("agent mini was added to"), "{}", ran.stdout);
    assert_eq!(config(), format!("# mine\n\n[agents.mini]\nacp = [\"{program}\"]\n"));
    let ran = run(&hub, &["send", "mini", "hello"]).await?;
    assert_eq!(ran.stdout, "you said: hello\n", "{}", ran.stderr);
    let ran = typed(&["agent", "add", "mini", "--acp", "--", &program]).await?;
    assert!(ran.code != Some(0) && ran.stderr.contains("agent remove mini"), "{}", ran.stderr);

    let ran = typed(&["agent", "remove", "mini"]).await?;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(config(), "# mine\n\n");
    let ran = run(&hub, &["send", "mini", "hello"]).await?;
    assert!(ran.code != Some(0), "{}", ran.stdout);
    Ok(())
}

#[tokio::test]
async fn catalogue_names_install_commands_only() -> Result<()> {
    let (home, bin) = (home()?, tempfile::tempdir()?);
    let typed = async |args: &[&str]| {
        let mut command = command(&home.path().join("hub.sock"), home.path(), args)?;
        command.env("PATH", bin.path());
        finish(command).await
    };
    let ran = typed(&["--format", "json", "agent", "available"]).await?;
    let known: Value = serde_json::from_str(&ran.stdout)?;
    let opencode = known.as_array().and_then(|all| all.iter().find(|it| it["id"] == "opencode"));
    assert_eq!(opencode.map(|it| &it["state"]), Some(&Value::from("not installed")), "{known}");
    let ran = typed(&["agent", "add", "opencode"]).await?;
    assert!(
        ran.code != Some(0) && ran.stderr.contains("npm install -g opencode-ai"),
        "{}",
        ran.stderr
    );
    assert!(!home.path().join(".a2a-hub/config.toml").exists());
    let ran = typed(&["agent", "add", "nobody"]).await?;
    assert!(ran.stderr.contains("--acp -- PROGRAM"), "{}", ran.stderr);

    let fake = bin.path().join("opencode");
    write_program(&fake, "#!/bin/sh\n")?;
    let told = typed(&["doctor"]).await?.stdout;
    assert!(told.contains("`a2a-hub agent add opencode` makes it an agent"), "{told}");
    let ran = typed(&["agent", "add", "opencode"]).await?;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let config = fs::read_to_string(home.path().join(".a2a-hub/config.toml"))?;
    assert_eq!(config, "[agents.opencode]\nacp = [\"opencode\", \"acp\"]\n");
    let told = typed(&["doctor"]).await?.stdout;
    assert!(!told.contains("agent add opencode"), "{told}");
    Ok(())
}

/// Program that writes a file in its directory and one at the path of its first argument, and
/// answers with what it could write.
const WRITER: &str = r#"#!/bin/sh
while read -r line; do
    case "$line" in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}' ;;
    *'"session/new"'*) echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}' ;;
    *'"session/prompt"'*)
        wrote=""
        (echo new > inside.txt) 2>/dev/null && wrote="$wrote inside"
        (echo new > "$1") 2>/dev/null && wrote="$wrote outside"
        said='{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"wrote:'$wrote'"}}'
        diff='[{"type":"diff","path":"'$PWD'/inside.txt","oldText":null,"newText":"new\\n"}]'
        edit='{"sessionUpdate":"tool_call","toolCallId":"1","title":"write","kind":"edit","status":"completed","content":'$diff'}'
        for update in "$edit" "$said"; do
            echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":'$update'}}'
        done
        echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}' ;;
    esac
done
"#;

/// A confined program edits files in its directory, whose diff is an artifact, and none outside.
#[tokio::test]
async fn confined_program_writes_its_directory_only() -> Result<()> {
    let programs = tempfile::tempdir()?;
    let (program, outside) = (programs.path().join("writer"), home()?);
    write_program(&program, WRITER)?;
    let outside = outside.path().join("outside.txt");
    for (confine, wrote) in [(true, "wrote: inside"), (false, "wrote: inside outside")] {
        let config = format!(
            "[agents.writer]\nacp = ['{}', '{}']\nconfine = {confine}\npermissions = 'full'\nconfined.network = false\n",
            program.display(),
            outside.display()
        );
        let hub = TestHub::builder().config(config).start().await?;
        let task = send(&Client::http(&hub), "writer", "go").await?;
        let made = task["artifacts"].to_string();
        assert!(made.contains(&format!("\"{wrote}\"")), "{confine}: {task}");
        let inside = hub.workspace().join("inside.txt");
        assert_eq!(fs::read_to_string(&inside)?, "new\n", "{task}");
        assert!(made.contains(&format!("change:{}", inside.display())), "{task}");
        assert!(made.contains("+new"), "{task}");
        assert_eq!(outside.exists(), !confine, "{task}");
    }
    Ok(())
}
