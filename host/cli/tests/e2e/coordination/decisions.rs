//! Tests of `decide` and `blackboard`: agents decide without a flow file. The agents are flows with
//! a fixed answer.

use super::flows::run;
use a2a_hub_tests::TestHub;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::fs;

/// Writes a flow that always gives this answer.
async fn add_agent(hub: &TestHub, name: &str, answer: &Value) -> Result<()> {
    let flow = format!(
        "description = \"Answers\"\nresult = '''{answer}'''\n[input]\ntext = {{ type = \"string\" }}\n[[step]]\nid = \"w\"\nwait = \"1ms\"\n"
    );
    let folder = hub.data_dir().join("flows");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(format!("{name}.flow.toml")), flow)?;
    hub.joined(name).await
}

#[tokio::test]
async fn agents_decide_and_share_a_board() -> Result<()> {
    let hub = TestHub::builder().start().await?;
    let done = json!([
        { "do": "add", "id": "x", "text": "Find x" },
        { "do": "claim", "id": "x", "version": 1 },
        { "do": "finish", "id": "x", "version": 1, "text": "42\u{1b}[2J" },
    ]);
    for (name, choice, contributions) in
        [("ann", "yes", done), ("bob", "yes", json!([])), ("cat", "no", json!([]))]
    {
        let answer = json!({ "choice": choice, "confidence": 1, "reason": format!("{name}\u{1b}[2J says so"),
            "bid": 5, "pass": false, "contributions": contributions });
        add_agent(&hub, name, &answer).await?;
    }
    let ran = run(&hub, &["decide", "vote", "Is it right?", "--of", "ann,bob,cat"]).await?;
    ensure!(ran.code == Some(0) && ran.stdout.starts_with("decided: yes\n"), "{ran:?}");
    ensure!(ran.stdout.contains("cat\tno\t1\n") && !ran.stdout.contains('\u{1b}'), "{ran:?}");
    let tie = ["decide", "vote", "Well?", "--of", "ann,cat", "--format", "json"];
    let tie = run(&hub, &tie).await?;
    let told: Value = serde_json::from_str(&tie.stdout)?;
    let of = [&told["decided"], &told["outcome"], &told["tasks"]];
    assert_eq!((tie.code, of), (Some(1), [&json!(false), &json!("tie"), &json!(2)]), "{told}");

    // Echo gives no bid, and the bids of the others are beyond the reserve.
    let lost =
        run(&hub, &["decide", "auction", "Do it", "--of", "ann,echo", "--reserve", "1"]).await?;
    ensure!(lost.code == Some(1) && lost.stdout.contains("no decision: no_winner"), "{lost:?}");
    for (args, why) in [
        (["vote", "x", "--of", "ann,nobody"], "no agent is called `nobody`"),
        (["negotiation", "x", "--of", "ann"], "name 2 to 32"),
        (["auction", "x", "--of", "ann"].map(|it| if it == "x" { " " } else { it }), "is empty"),
    ] {
        let refused = run(&hub, &[&["decide"], &args[..]].concat()).await?;
        ensure!(refused.code == Some(2) && refused.stderr.contains(why), "{refused:?}");
    }
    let quorum = ["decide", "vote", "x", "--of", "ann,bob", "--quorum", "3"];
    let refused = run(&hub, &quorum).await?;
    ensure!(refused.code == Some(2) && refused.stderr.contains("from 1 to 2"), "{refused:?}");

    let by_record =
        ["decide", "vote", "Well?", "--of", "ann,cat", "--rule", "record", "--format", "json"];
    let tie: Value = serde_json::from_str(&run(&hub, &by_record).await?.stdout)?;
    assert_eq!(tie["outcome"], "tie", "{tie}");
    let task = tie["taskId"].as_str().context("no task")?;
    let confirmed = run(&hub, &["record", "confirm", task, "no"]).await?;
    assert_eq!(confirmed.stdout, "`no` was right. Right: cat. Wrong: ann.\n", "{confirmed:?}");
    let decided: Value = serde_json::from_str(&run(&hub, &by_record).await?.stdout)?;
    assert_eq!(decided["decision"]["choice"], "no", "{decided}");
    let shown = run(&hub, &["record", "show"]).await?;
    assert_eq!(shown.stdout, "ann\t0\t1\t0.67\ncat\t1\t0\t1.33\n");
    let told_task = told["taskId"].as_str().context("no task")?;
    for (args, why) in [
        (vec!["confirm", task, "maybe"], "the choices were yes, no"),
        (vec!["confirm", told_task, "yes"], "no ballots of it are kept"),
        (vec!["show", "echo"], "`echo` is no flow"),
    ] {
        let refused = run(&hub, &[&["record"], &args[..]].concat()).await?;
        ensure!(refused.code == Some(2) && refused.stderr.contains(why), "{refused:?}");
    }

    // A flow file has a record apart from this one.
    let picks = "description = \"Picks\"\n[[step]]\nid = \"pick\"\nprompt = \"Well?\"\n\
                 vote = { agents = [\"ann\", \"cat\"], choices = [\"yes\", \"no\"], rule = \"record\" }\n";
    fs::write(hub.data_dir().join("flows/picks.flow.toml"), picks)?;
    hub.joined("picks").await?;
    let picked = ["run", "picks", "--format", "json"];
    let tie: Value = serde_json::from_str(&run(&hub, &picked).await?.stdout)?;
    ensure!(tie["message"].as_str().is_some_and(|said| said.contains("tie")), "{tie}");
    let confirmed = ["record", "confirm", tie["taskId"].as_str().context("no task")?, "yes"];
    let confirmed = run(&hub, &confirmed).await?;
    assert_eq!(confirmed.stdout, "`yes` was right. Right: ann. Wrong: cat.\n", "{confirmed:?}");
    let shown = run(&hub, &["record", "show", "picks"]).await?;
    ensure!(shown.stdout.contains("ann\t1\t0\t1.33\n"), "{shown:?}");

    let board = ["decide", "blackboard", "Find it", "--of", "ann,bob", "--format", "json"];
    let board: Value = serde_json::from_str(&run(&hub, &board).await?.stdout)?;
    assert_eq!((&board["decided"], &board["outcome"]), (&json!(true), &json!("goal")), "{board}");
    let task = board["taskId"].as_str().context("no task")?;
    let shown = run(&hub, &["blackboard", task, "--history"]).await?;
    let first = "decide: 1 of 1 items are done, round 1 of at most 10; it ended: goal\n";
    ensure!(shown.stdout.starts_with(first), "{shown:?}");
    ensure!(shown.stdout.contains("\tround 1: done by ann\n"), "{shown:?}");
    ensure!(shown.stdout.contains("result: 42\\u{1b}[2J"), "{shown:?}");
    let latest = run(&hub, &["blackboard", "--history"]).await?;
    assert_eq!(latest.stdout, shown.stdout, "{latest:?}");
    let none = run(&hub, &["blackboard", told["taskId"].as_str().context("no task")?]).await?;
    ensure!(none.code == Some(2) && none.stderr.contains("it has none"), "{none:?}");
    Ok(())
}
