//! Tests of topics: a hub that is killed, a full disk, and the commands `publish` and `topic`.

use crate::{
    command_line::{command, finish, run},
    stage::{eventually_async, get},
};
use a2a_hub_tests::{Client, TestHub};
use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use std::{io::Write as _, process::Stdio, time::Duration};
use tokio::{io::AsyncBufReadExt as _, time::sleep};

fn publication(text: &str) -> Value {
    json!({ "topic": "a/b", "text": text })
}

async fn stored(client: &Client) -> Result<Vec<Value>> {
    let (mut all, mut after) = (Vec::new(), json!(0));
    loop {
        let asked = json!({ "pattern": "a/#", "after": after, "limit": 1_000 });
        let page = client.call("hub/topics/read", asked).await?;
        ensure!(page["gaps"].is_null(), "{page}");
        let messages = page["messages"].as_array().context("no messages")?;
        if messages.is_empty() {
            return Ok(all);
        }
        all.extend(messages.iter().cloned());
        after = page["next"].clone();
    }
}

#[tokio::test]
async fn killed_hub_keeps_acknowledged_messages() -> Result<()> {
    let mut hub = TestHub::start().await?;
    let mut acknowledged = Vec::new();
    for (round, pause) in [0, 20, 50, 100, 200].into_iter().enumerate() {
        let client = Client::unix(&hub);
        let publishes = async {
            let mut texts = Vec::new();
            for n in 0.. {
                let text = format!("{round}-{n}");
                if client.call("hub/topics/publish", publication(&text)).await.is_err() {
                    break;
                }
                texts.push(text);
            }
            texts
        };
        let kills = async {
            sleep(Duration::from_millis(pause)).await;
            hub.kill9().await
        };
        let (texts, killed) = tokio::join!(publishes, kills);
        killed?;
        acknowledged.extend(texts);
        hub.restart().await?;
    }
    let found = stored(&Client::http(&hub)).await?;
    let numbers: Vec<_> = found.iter().filter_map(|it| it["sequence"].as_u64()).collect();
    ensure!(numbers.iter().copied().eq(1..=found.len() as u64), "{numbers:?}");
    let texts: Vec<_> = found.iter().filter_map(|it| it["text"].as_str()).collect();
    let mut at = texts.iter();
    for text in &acknowledged {
        ensure!(at.any(|it| it == text), "`{text}` is lost, or in another order: {texts:?}");
    }
    // At most the message that each kill cut off was stored without an answer.
    ensure!(texts.len() <= acknowledged.len() + 5, "{texts:?}");
    Ok(())
}

/// A trigger that sends each message of `a/#` to an agent.
const TRIGGER: &str = "
    [trigger.told]
    on = 'topic'
    topic = 'a/#'
    agent = 'echo'
    message = 'told'
    permissions = 'read-only'
    budget = { tasks = 0 }
    debounce = '0s'
    limit = 1000
";

/// Numbers of the messages that the runs of the trigger got.
async fn told(client: &Client) -> Result<Vec<u64>> {
    let tasks = client.call("hub/tasks/list", json!({ "limit": 100 })).await?;
    let mut numbers = Vec::new();
    for task in tasks.as_array().context("no list")? {
        let task = get(client, task["id"].as_str().context("no id")?).await?;
        let told = &task["history"][0]["parts"][2]["data"]["trigger"];
        let events = told["events"].as_array().with_context(|| format!("{task}"))?;
        numbers.extend(events.iter().filter_map(|event| event["sequence"].as_u64()));
    }
    Ok(numbers)
}

#[tokio::test]
async fn killed_hub_triggers_once_a_message() -> Result<()> {
    let mut hub = TestHub::builder().config(TRIGGER).start().await?;
    // The pauses let kills fall before, into and after the beginning of a run.
    let pauses = [0, 200, 1_000, 1_500, 2_000, 2_500];
    for (round, pause) in pauses.into_iter().enumerate() {
        let client = Client::http(&hub);
        client.call("hub/topics/publish", publication(&round.to_string())).await?;
        sleep(Duration::from_millis(pause)).await;
        hub.kill9().await?;
        hub.restart().await?;
    }
    let client = Client::http(&hub);
    let all: Vec<_> = (1..=pauses.len() as u64).collect();
    let are_told = async || told(&client).await.is_ok_and(|numbers| numbers.len() >= all.len());
    let waited = eventually_async(Duration::from_secs(60), are_told).await;
    // A run more would begin at the hub's next look.
    sleep(Duration::from_secs(4)).await;
    let mut numbers = told(&client).await?;
    numbers.sort_unstable();
    assert_eq!(numbers, all, "{waited:?}");
    Ok(())
}

#[tokio::test]
async fn full_disk_refuses_messages_then_recovers() -> Result<()> {
    let hub = TestHub::start().await?;
    let client = Client::http(&hub);
    client.call("hub/topics/publish", publication("before")).await?;
    let pid = Pid::from_raw(i32::try_from(hub.pid())?);
    prlimit(pid, Resource::Fsize, Rlimit { current: Some(0), maximum: None })?;
    let refused = client.call("hub/topics/publish", publication("lost")).await;
    let why = refused.err().context("it cannot be stored")?.to_string();
    ensure!(why.contains("cannot use its store"), "{why}");
    let read = stored(&client).await?;
    assert_eq!(read.len(), 1, "what is stored can be read");
    prlimit(pid, Resource::Fsize, Rlimit { current: None, maximum: None })?;
    let mut published = Err(());
    for _ in 0..50 {
        match client.call("hub/topics/publish", publication("after")).await {
            Ok(answer) => {
                published = Ok(answer);
                break;
            }
            Err(_) => sleep(Duration::from_millis(200)).await,
        }
    }
    let published = published.ok().context("it works again")?;
    assert_eq!(published["sequence"], 2, "nothing was reported that is not stored");
    Ok(())
}

#[tokio::test]
async fn tail_follows_and_remembers_cursor() -> Result<()> {
    let hub = TestHub::start().await?;
    let piped = async |text: &[u8], args: &[&str]| -> Result<_> {
        let mut file = tempfile::tempfile()?;
        file.write_all(text)?;
        std::io::Seek::rewind(&mut file)?;
        let mut command = command(hub.socket(), &hub.home(), args)?;
        command.stdin(Stdio::from(file));
        finish(command).await
    };
    let published = piped(b"one\ntwo\n", &["publish", "builds/main"]).await?;
    assert_eq!(
        (published.code, published.stdout.as_str()),
        (Some(0), "published builds/main #1\n")
    );
    let mut tail =
        command(hub.socket(), &hub.home(), &["topic", "tail", "#", "--from-start", "--as", "bot"])?;
    let mut tail = tail.spawn()?;
    let out = tail.stdout.take().context("no output")?;
    let mut lines = tokio::io::BufReader::new(out).lines();
    let mut next = async || -> Result<String> {
        let line = tokio::time::timeout(Duration::from_secs(30), lines.next_line());
        line.await.context("no line comes")??.context("it ended")
    };
    let head = next().await?;
    ensure!(head.starts_with("builds/main #1") && head.ends_with("operator"), "{head}");
    assert_eq!((next().await?, next().await?), ("    one".to_owned(), "    two".to_owned()));
    let data = run(&hub, &["publish", "--data", "builds/other", r#"{"failed": 3}"#]).await?;
    assert_eq!(data.code, Some(0), "{}", data.stderr);
    ensure!(next().await?.starts_with("builds/other #1"));
    assert_eq!(next().await?, r#"    {"failed":3}"#);
    // Its next request, which it makes at once, confirms them.
    let asks = async || {
        let list = Client::http(&hub).call("hub/topics/list", json!({})).await.unwrap_or_default();
        list["cursors"][0]["position"] == 2
    };
    eventually_async(Duration::from_secs(30), asks).await?;
    tail.kill().await?;

    run(&hub, &["publish", "builds/main", "three"]).await?;
    run(&hub, &["publish", "builds/main", "four"]).await?;
    let by_cursor = ["--format", "json", "topic", "tail", "#", "--as", "bot", "--count", "1"];
    for (text, number) in [("three", 2), ("four", 3)] {
        let ran = run(&hub, &by_cursor).await?;
        let line: Value = serde_json::from_str(&ran.stdout).context(ran.stdout.clone())?;
        assert_eq!((&line["text"], &line["sequence"]), (&json!(text), &json!(number)));
    }
    let list = run(&hub, &["topic", "list"]).await?.stdout;
    ensure!(list.contains("builds/main") && list.contains("bot"), "{list}");

    let large = piped(&vec![b'x'; 100 << 20], &["publish", "a"]).await?;
    assert_eq!(large.code, Some(2), "{}", large.stderr);
    ensure!(large.stderr.contains("more than 262144 bytes"), "{}", large.stderr);
    let named = run(&hub, &["publish", "a/\u{1b}[2J", "x"]).await?;
    ensure!(named.code != Some(0) && !named.stderr.contains('\u{1b}'), "{}", named.stderr);
    let pattern = run(&hub, &["topic", "tail", "builds/*", "--no-wait"]).await?;
    ensure!(pattern.stderr.contains("`+` stands for one level"), "{}", pattern.stderr);
    let deleted = run(&hub, &["topic", "delete", "builds/main"]).await?;
    assert_eq!((deleted.code, deleted.stdout.as_str()), (Some(0), "deleted `builds/main`\n"));
    let gone = run(&hub, &["topic", "delete", "builds/main"]).await?;
    ensure!(gone.stderr.contains("no topic is called `builds/main`"), "{}", gone.stderr);
    Ok(())
}
