//! Tests of notifiers with real programs and servers, also over kills of the hub.

use crate::{
    command_line::run,
    stage::{GRANT, eventually, eventually_async, send, state, write_program},
};
use a2a_hub_tests::{Client, Receiver, TestHub, hub_binary, questions::answer, test_guests};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::{fs, path::Path, time::Duration};
use tokio::time::sleep;

/// Timeout of a message, longer than `after` and the pauses between attempts.
const SOON: Duration = Duration::from_secs(30);

/// Program that records its input and variables, and tries to answer for the operator.
const RECORDER: &str = r#"#!/bin/sh
cat >>DIR/got
printf '%s|%s\n' "$NOTIFY_TITLE" "$NOTIFY_TEXT" >>DIR/variables
question=$(sed -n 's/.*"questionId":"\([^"]*\)".*/\1/p' DIR/got | tail -n 1)
timeout 20 BIN --socket SOCKET allow "$question" >DIR/trial 2>&1 </dev/null
mv DIR/trial DIR/answer
"#;

/// Messages that the recorder got.
fn got(dir: &Path) -> Vec<Value> {
    let text = fs::read_to_string(dir.join("got")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[tokio::test]
async fn command_reports_open_question_once() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let program = dir.path().join("record");
    let config = format!(
        "{GRANT}\n[notify.desk]\non = ['permission']\nafter = '3s'\ncommand = ['{}']\n\
         [notify.broken]\non = ['finished']\ncommand = ['sh', '-c', 'echo no display >&2; exit 7']\n",
        program.display()
    );
    let hub = TestHub::builder().config(config).plugin("guest", test_guests()?);
    let mut hub = hub.start().await?;
    let [here, bin, socket] =
        [dir.path(), &hub_binary()?, hub.socket()].map(|path| path.display().to_string());
    let recorder = RECORDER.replace("DIR", &here).replace("BIN", &bin).replace("SOCKET", &socket);
    write_program(&program, &recorder)?;
    let client = Client::http(&hub);
    // The first question is answered in time, and the second one is not.
    let answered = send(&client, "guest", "permit").await?;
    client.call("message/send", answer(&answered, "yes", None)).await.context("answer")?;
    let open = send(&client, "guest", "permit").await?;
    assert_eq!(state(&open), "input-required");
    assert!(eventually(SOON, || dir.path().join("answer").exists()).await.is_ok());
    let messages = got(dir.path());
    let items = messages[0]["items"].as_array().context("no items")?;
    assert_eq!((messages.len(), items.len()), (1, 1), "{messages:?}");
    let (item, question) = (&items[0], &open["metadata"]["question"]);
    assert_eq!((&item["taskId"], &item["questionId"]), (&open["id"], &question["id"]));
    assert_eq!((&item["kind"], &item["title"]), (&json!("permission"), &json!("permit")));
    assert!(item["text"].is_null() && !messages[0].to_string().contains("may I?"));
    let variables = fs::read_to_string(dir.path().join("variables"))?;
    assert_eq!(variables, "guest asks for permission|permit\n");

    let tested = run(&hub, &["notify", "test", "desk"]).await?;
    assert_eq!(tested.code, Some(0), "{} {}", tested.stdout, tested.stderr);
    assert_eq!(got(dir.path())[1]["test"], true);
    let broken = run(&hub, &["notify", "test", "broken"]).await?;
    assert_eq!(broken.code, Some(2), "{}", broken.stdout);
    assert!(broken.stdout.contains("exited with 7: no display"), "{}", broken.stdout);
    let listed = run(&hub, &["notify", "list"]).await?.stdout;
    assert!(listed.contains("desk") && listed.contains("after 3 s"), "{listed}");
    let refused = fs::read_to_string(dir.path().join("answer"))?;
    assert!(!refused.contains("allowed"), "{refused}");
    // The program that the notifier started could not answer.
    let still = crate::stage::get(&client, open["id"].as_str().context("no id")?).await?;
    assert_eq!(
        (state(&still), &still["metadata"]["question"]["id"]),
        ("input-required", &question["id"])
    );

    hub.kill9().await?;
    hub.restart().await?;
    sleep(Duration::from_secs(7)).await;
    assert_eq!(got(dir.path()).len(), 2, "neither is repeated");
    Ok(())
}

#[tokio::test]
async fn webhook_gets_same_message_after_kill() -> Result<()> {
    let receiver = Receiver::start()?;
    receiver.always(Some(500));
    let config = format!(
        "{GRANT}\n[notify.chat]\non = ['failed']\nafter = '0s'\ncontent = true\nwebhook = '{}'\n",
        receiver.url("/secret")
    );
    let hub = TestHub::builder().config(config).plugin("guest", test_guests()?);
    let mut hub = hub.start().await?;
    let failed = send(&Client::http(&hub), "guest", "fail").await?;
    assert_eq!(state(&failed), "failed");
    eventually(SOON, || !receiver.came().is_empty()).await?;
    eventually_async(SOON, async || {
        run(&hub, &["status"]).await.is_ok_and(|status| {
            status.stdout.contains("the notifier `chat` cannot send since")
                && !status.stdout.contains("secret")
        })
    })
    .await
    .context("the failure is not reported")?;
    hub.kill9().await?;
    receiver.always(None);
    hub.restart().await?;
    eventually(SOON, || !receiver.taken().is_empty()).await?;
    let ids: Vec<_> = receiver.came().iter().map(|it| it.headers["webhook-id"].clone()).collect();
    assert!(ids.len() >= 2 && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let body = receiver.taken().remove(0);
    assert_eq!(body["items"][0]["taskId"], failed["id"]);
    assert_eq!(body["items"][0]["text"], "failed, as told");
    eventually_async(SOON, async || {
        run(&hub, &["status"]).await.is_ok_and(|status| !status.stdout.contains("notifier"))
    })
    .await?;
    sleep(Duration::from_secs(3)).await;
    assert_eq!(receiver.taken().len(), 1, "it is confirmed once");
    Ok(())
}
