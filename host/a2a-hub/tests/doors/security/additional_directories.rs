//! Directories in which an agent works besides its working directory: a confined program writes
//! there and in no other directory, and its children get no more.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, said, state},
};
use a2a_hub_tests::{Client, mcp::speak, message_to, test_guests};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
};

/// A hub with the agents `guest` and `other`, and two workspaces of both: `first`, and `second`
/// with the directories `one` and `two`.
struct Stage {
    hub: InProcessHub,
    root: PathBuf,
    _dir: TempDir,
}

impl Stage {
    async fn new() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let root = dir.path().canonicalize()?;
        for made in ["first", "second/one", "second/two", "outside"] {
            fs::create_dir_all(root.join(made))?;
        }
        symlink(root.join("second/one"), root.join("link"))?;
        symlink(root.join("outside"), root.join("second/out"))?;
        let workspaces = json!([root.join("first"), root.join("second")]);
        let other = format!("[agents.other]\nworkspaces = {workspaces}\ngrant.process.sh = {{}}\n");
        let config = GRANT
            .replace(
                "[agents.guest]\n",
                &format!("[agents.guest]\n    workspaces = {workspaces}\n"),
            )
            .replace("    memory = true", "    memory = true\n    delegate = ['other']");
        let guests = test_guests()?;
        let builder = InProcessHub::builder().config(format!("{config}\n{other}"));
        let hub = builder.plugin("guest", &guests).plugin("other", &guests).start().await?;
        Ok(Self { hub, root, _dir: dir })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn message(&self, text: &str, additional: &Value) -> Value {
        let mut message = message_to("guest", text);
        let facts = &mut message["message"]["metadata"];
        facts["workingDirectory"] = json!(self.path("first"));
        facts["additionalDirectories"] = additional.clone();
        message
    }

    async fn send(&self, text: &str, additional: &Value) -> Result<Value> {
        Ok(Client::http(&self.hub).call("message/send", self.message(text, additional)).await?)
    }

    /// Reason for which a message with these additional directories is refused.
    async fn refusal(&self, additional: &Value) -> String {
        let sent = self.send("sh echo hi", additional).await;
        sent.map_or_else(|why| why.to_string(), |task| format!("not refused: {task}"))
    }
}

/// Script that tries to write a file `made` in each of these directories.
fn writing(directories: &[&Path]) -> String {
    let tries =
        directories.iter().map(|dir| format!("(echo x > {}/made) 2>/dev/null", dir.display()));
    format!("sh {}; true", tries.collect::<Vec<_>>().join("; "))
}

/// Those of the directories in which the file is, seen from outside; removes it.
fn written<'p>(directories: &[&'p Path]) -> Vec<&'p Path> {
    let taken = |dir: &&&Path| fs::remove_file(dir.join("made")).is_ok();
    directories.iter().filter(taken).copied().collect()
}

#[tokio::test]
async fn confined_program_writes_only_named_directories() -> Result<()> {
    let stage = Stage::new().await?;
    let (first, one, two) =
        (stage.path("first"), stage.path("second/one"), stage.path("second/two"));
    let (second, outside) = (stage.path("second"), stage.path("outside"));
    let all = [&*first, &*one, &*two, &*second, &*outside];
    let alone = stage.send(&writing(&all), &json!([])).await?;
    assert_eq!(written(&all), [&*first], "{alone}");
    let both = stage.send(&writing(&all), &json!([one])).await?;
    assert_eq!(written(&all), [&*first, &*one], "{both}");
    let above = stage.send(&writing(&all), &json!([second])).await?;
    assert_eq!(written(&all), [&*first, &*one, &*two, &*second], "{above}");
    Ok(())
}

#[tokio::test]
async fn additional_link_is_resolved_and_checked() -> Result<()> {
    let stage = Stage::new().await?;
    let (link, one) = (stage.path("link"), stage.path("second/one"));
    let task = stage.send(&writing(&[&one]), &json!([link])).await?;
    assert_eq!(written(&[&*one]), [&*one], "{task}");
    let named = &task["history"][0]["metadata"]["additionalDirectories"];
    assert_eq!(*named, json!([one]), "the agent learns the path that it sees");

    for (wrong, why) in [
        (json!([stage.path("second/out")]), "outside the granted workspaces"),
        (json!([stage.path("outside")]), "outside the granted workspaces"),
        (json!([stage.path("second/missing")]), "No such file"),
        (json!(["/"]), "outside the granted workspaces"),
        (json!(["second"]), "absolute paths"),
        (json!(stage.path("second")), "absolute paths"),
        (json!([one.join("../two/../../outside")]), "outside the granted workspaces"),
        (json!([format!("{}\u{0}", one.display())]), "additionalDirectories"),
        (json!(vec![&one; 101]), "at most 100"),
    ] {
        let said = stage.refusal(&wrong).await;
        assert!(said.contains("additionalDirectories`") && said.contains(why), "{wrong}: {said}");
    }
    Ok(())
}

/// A child gets the directories of its parent.
#[tokio::test]
async fn child_inherits_additional_directories() -> Result<()> {
    let stage = Stage::new().await?;
    let (one, two) = (stage.path("second/one"), stage.path("second/two"));
    let script = writing(&[&one, &two]);
    let task = stage.send(&format!("call other {script}"), &json!([one])).await?;
    assert!(said(&task).starts_with("other said: exit 0"), "{task}");
    assert_eq!(written(&[&*one, &*two]), [&*one], "{task}");
    Ok(())
}

#[tokio::test]
async fn handed_over_task_keeps_directories() -> Result<()> {
    let stage = Stage::new().await?;
    let (client, one) = (Client::unix(&stage.hub), stage.path("second/one"));
    let message = stage.message("sh sleep 600", &json!([one]));
    let mut updates = client.stream("message/stream", message).await?;
    let old = updates.next().await.context("the task")??;
    let to = json!({ "taskId": old["id"], "agentId": "other" });
    let new = client.call("hub/tasks/handoff", to).await?;
    let new = client.call("tasks/get", json!({ "id": new["id"] })).await?;
    let facts = &new["history"][0]["metadata"];
    assert_eq!(facts["additionalDirectories"], json!([one]), "{new}");
    assert_eq!(facts["workingDirectory"], json!(stage.path("first")), "{new}");
    Ok(())
}

#[tokio::test]
async fn worktree_excludes_additional_directories() -> Result<()> {
    let stage = Stage::new().await?;
    let mut message = stage.message("sh echo hi", &json!([stage.path("second/one")]));
    message["message"]["metadata"]["worktree"] = json!(true);
    let refused = Client::http(&stage.hub).call("message/send", message).await;
    let why = refused.err().context("it began")?.to_string();
    ensure!(why.contains("a task with a worktree works nowhere else"), "{why}");
    Ok(())
}

/// A connection that speaks ACP with `guest`.
struct Acp {
    lines: Lines<BufReader<OwnedReadHalf>>,
    write: OwnedWriteHalf,
}

impl Acp {
    async fn open(hub: &InProcessHub) -> Result<Self> {
        let (read, write) = UnixStream::connect(hub.socket()).await?.into_split();
        let mut acp = Self { lines: BufReader::new(read).lines(), write };
        acp.call(&speak(&json!({ "protocol": "acp", "agentId": "guest" }))).await?;
        Ok(acp)
    }

    /// Sends a request, and returns the response.
    async fn call(&mut self, request: &Value) -> Result<Value> {
        self.write.write_all(format!("{request}\n").as_bytes()).await?;
        while let Some(line) = self.lines.next_line().await? {
            let told: Value = serde_json::from_str(&line)?;
            if told["id"] == request["id"] && told.get("method").is_none() {
                return Ok(told);
            }
        }
        bail!("the connection ended before the response to {request}")
    }

    async fn ask(&mut self, method: &str, params: Value) -> Result<Value> {
        let request = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        self.call(&request).await
    }
}

#[tokio::test]
async fn acp_session_keeps_and_replaces_directories() -> Result<()> {
    let mut stage = Stage::new().await?;
    let (one, two) = (stage.path("second/one"), stage.path("second/two"));
    let text = json!({ "type": "text", "text": writing(&[&one, &two]) });
    let place = |more: &[&Path]| json!({ "cwd": stage.path("first"), "mcpServers": [], "additionalDirectories": more });
    let (with_one, with_two, none) = (place(&[&one]), place(&[&two]), place(&[]));
    let wrong = place(&[&stage.path("outside")]);
    let mut acp = Acp::open(&stage.hub).await?;
    let can = acp.ask("initialize", json!({ "protocolVersion": 1 })).await?;
    let can = &can["result"]["agentCapabilities"]["sessionCapabilities"];
    assert_eq!(can["additionalDirectories"], json!({}), "{can}");
    let refused = acp.ask("session/new", wrong).await?;
    let why = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(why.starts_with("`additionalDirectories`: work in"), "{refused}");

    let begun = acp.ask("session/new", with_one).await?;
    let session = begun["result"]["sessionId"].clone();
    let prompt = json!({ "sessionId": session, "prompt": [text] });
    let ended = acp.ask("session/prompt", prompt.clone()).await?;
    assert_eq!(ended["result"]["stopReason"], "end_turn", "{ended}");
    assert_eq!(written(&[&*one, &*two]), [&*one]);

    stage.hub.restart().await?;
    let mut acp = Acp::open(&stage.hub).await?;
    let listed = async |acp: &mut Acp| -> Result<Value> {
        let list = acp.ask("session/list", json!({})).await?;
        Ok(list["result"]["sessions"][0]["additionalDirectories"].clone())
    };
    assert_eq!(listed(&mut acp).await?, json!([one]));
    for (mut opened, method, left) in
        [(with_two, "session/load", json!([two])), (none, "session/resume", Value::Null)]
    {
        opened["sessionId"] = session.clone();
        let answer = acp.ask(method, opened).await?;
        assert!(answer["error"].is_null(), "{answer}");
        acp.ask("session/prompt", prompt.clone()).await?;
        assert_eq!(listed(&mut acp).await?, left, "{method}");
        let expected: &[&Path] = if left.is_array() { &[&two] } else { &[] };
        assert_eq!(written(&[&*one, &*two]), expected, "{method}");
    }
    Ok(())
}

/// CLI that records its arguments, and answers "done".
const FAKE: &str = r#"#!/bin/sh
case "$1" in
    --version) echo "2.1.332 (Claude Code)"; exit ;;
    auth) echo '{"loggedIn":true}'; exit ;;
esac
printf '%s\n' "$@" > "$0.args"
read line
echo '{"type":"system","subtype":"init","session_id":"s","model":"m"}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s"}'
cat > /dev/null
"#;

#[tokio::test]
async fn vendor_program_gets_directories_as_arguments() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let root = dir.path().canonicalize()?;
    let (fake, more) = (root.join("claude"), root.join("more and more"));
    fs::create_dir(&more)?;
    fs::write(&fake, FAKE)?;
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755))?;
    let config = format!(
        "[agents.claude-code]\nworkspaces = ['{}']\nprograms.claude = '{}'",
        root.display(),
        fake.display()
    );
    let hub = InProcessHub::builder().config(config).start().await?;
    let mut message = message_to("claude-code", "hi");
    message["message"]["metadata"]["additionalDirectories"] = json!([more]);
    message["message"]["metadata"]["workingDirectory"] = json!(fake.parent());
    let client = Client::http(&hub);
    let within = client.call("message/send", message.clone()).await?;
    assert_eq!(state(&within), "completed", "{within}");
    let args = || fs::read_to_string(root.join("claude.args"));
    ensure!(!args()?.contains("--add-dir"), "the directory is in the working directory");

    message["message"]["metadata"]["workingDirectory"] = json!(more);
    message["message"]["metadata"]["additionalDirectories"] = json!([root]);
    message["message"]["messageId"] = json!("another");
    let beside = client.call("message/send", message).await?;
    assert_eq!(state(&beside), "completed", "{beside}");
    ensure!(args()?.ends_with(&format!("--add-dir\n{}\n", root.display())), "{}", args()?);
    Ok(())
}
