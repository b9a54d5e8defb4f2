//! Tests of agents whose runs are replayed after a restart of the hub and continue where they were.

use crate::{
    plugin::command::plugin,
    stage::{artifact, eventually_async, get, said, send, state, until_it_is},
};
use a2a_hub_tests::{Client, TestHub, durable_guest, message_to, test_guests};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

/// Configuration in which each agent may call the next, and run commands.
const CONFIG: &str = "
    [agents.top.grant]
    delegate = ['middle', 'bottom', 'echo']
    memory = true
    [agents.top.grant.process.sh]
    [agents.middle.grant]
    delegate = ['bottom']
    [agents.middle.grant.process.sh]
    [agents.bottom.grant.process.sh]
";

const PATIENCE: Duration = Duration::from_secs(60);

async fn start() -> Result<TestHub> {
    let durable = durable_guest()?;
    let builder = TestHub::builder().config(CONFIG).plugin("top", &durable);
    builder.plugin("middle", &durable).plugin("bottom", &durable).start().await
}

/// Sends a message without waiting; returns the task's id.
async fn begin(hub: &TestHub, program: &str) -> Result<String> {
    let mut message = message_to("top", program);
    message["configuration"] = json!({ "blocking": false });
    let task = Client::http(hub).call("message/send", message).await?;
    Ok(task["id"].as_str().context("no id")?.to_owned())
}

async fn answer(hub: &TestHub, task: &str, text: &str) -> Result<Value> {
    let mut answer = message_to("top", text);
    answer["message"]["taskId"] = json!(task);
    answer["message"]["metadata"] = json!({});
    answer["configuration"] = json!({ "blocking": false });
    Ok(Client::http(hub).call("message/send", answer).await?)
}

async fn workflow(hub: &TestHub, root: &str) -> Result<Vec<Value>> {
    let wanted = json!({ "workflow": root, "limit": 100 });
    let listed = Client::http(hub).call("hub/tasks/list", wanted).await?;
    Ok(listed.as_array().cloned().unwrap_or_default())
}

/// Returns the log of side effects: each step writes a letter.
fn effects(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_default().split_whitespace().collect()
}

/// Command that writes a letter and takes a moment.
fn leaves(letter: &str, file: &Path) -> String {
    format!("echo {letter} >> {}; sleep 0.1; echo {letter}", file.display())
}

/// Instructions for three levels, with an approval at the bottom.
fn story(file: &Path) -> String {
    let [a, b, c, z] = ["a", "b", "c", "z"].map(|letter| leaves(letter, file));
    format!(
        "say begun\nstep a {a}\ncall middle step b {b} / call bottom ask may I? // step c {c} / say middle is done\npiece told\nstep z {z}"
    )
}

/// Moment in the story at which the hub is killed.
#[derive(Clone, Copy, Debug)]
enum Point {
    Begun,
    Effect(&'static str),
    Children(usize),
    BottomAsks,
    TopAsks,
    /// Shortly after the answer was sent, before its acceptance is reported.
    Answering,
    Answered,
    /// Shortly after the next hub has started the replay.
    Replaying,
}

impl Point {
    async fn reached(self, hub: &TestHub, task: &str, file: &Path) -> Result<()> {
        let is = async || match self {
            Self::Begun => true,
            Self::Effect(letter) => effects(file).contains(letter),
            Self::Children(tasks) => {
                workflow(hub, task).await.is_ok_and(|tree| tree.len() >= tasks)
            }
            Self::BottomAsks => {
                let asks = |it: &Value| it["agentId"] == "bottom" && state(it) == "input-required";
                workflow(hub, task).await.is_ok_and(|tree| tree.iter().any(asks))
            }
            Self::TopAsks | Self::Answering | Self::Answered | Self::Replaying => {
                get(&Client::http(hub), task)
                    .await
                    .is_ok_and(|task| state(&task) == "input-required")
            }
        };
        eventually_async(PATIENCE, is).await.with_context(|| format!("{self:?} is not reached"))
    }
}

#[tokio::test]
async fn kill_at_any_point_delivers_answer_once() -> Result<()> {
    let mut hub = start().await?;
    let points = [
        Point::Begun,
        Point::Effect("a"),
        Point::Children(2),
        Point::Effect("b"),
        Point::Children(3),
        Point::BottomAsks,
        Point::TopAsks,
        Point::Answering,
        Point::Answered,
        Point::Effect("c"),
        Point::Effect("z"),
        Point::Replaying,
    ];
    for (number, point) in points.into_iter().enumerate() {
        let file = hub.workspace().join(format!("effects-{number}"));
        let task = begin(&hub, &story(&file)).await?;
        let is_after = matches!(point, Point::Effect("c" | "z"));
        if is_after {
            Point::TopAsks.reached(&hub, &task, &file).await?;
            answer(&hub, &task, "yes").await?;
        }
        point.reached(&hub, &task, &file).await?;
        let mut is_answered = is_after;
        match point {
            Point::Answering => {
                let asked = answer(&hub, &task, "yes");
                let _ = tokio::time::timeout(Duration::from_millis(3), asked).await;
            }
            Point::Answered => {
                answer(&hub, &task, "yes").await?;
                is_answered = true;
            }
            Point::Replaying => {
                hub.kill9().await?;
                hub.restart().await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Point::Begun
            | Point::Effect(_)
            | Point::Children(_)
            | Point::BottomAsks
            | Point::TopAsks => {}
        }
        hub.kill9().await?;
        hub.restart().await?;
        if !is_answered {
            // The answer may have been accepted just before the kill.
            let asks_or_goes_on = async || {
                let now = get(&Client::http(&hub), &task).await;
                now.is_ok_and(|now| state(&now) == "input-required" || effects(&file).contains('c'))
            };
            eventually_async(PATIENCE, asks_or_goes_on)
                .await
                .with_context(|| format!("{point:?}"))?;
            if state(&get(&Client::http(&hub), &task).await?) == "input-required" {
                // Otherwise, answers during the replay.
                let asked = answer(&hub, &task, "yes").await;
                asked.with_context(|| format!("{point:?}"))?;
            }
        }
        let done = until_it_is(&hub, &task, "completed", PATIENCE)
            .await
            .with_context(|| format!("{point:?}"))?;
        assert_eq!(said(&done), "a | b | yes | c | z", "{point:?}: {done}");
        assert_eq!(artifact(&done).matches("told").count(), 1, "{point:?}: {done}");
        let tree = workflow(&hub, &task).await?;
        assert_eq!(tree.len(), 3, "{point:?}: no child is begun twice: {tree:?}");
        let bottom = tree.iter().find(|it| it["agentId"] == "bottom").context("no bottom")?;
        let bottom = get(&Client::http(&hub), bottom["id"].as_str().context("no id")?).await?;
        let heard = bottom["history"].as_array().context("no history")?.iter();
        let answers = heard.filter(|it| it["parts"][0]["text"] == "yes").count();
        assert_eq!(answers, 1, "{point:?}: {bottom}");
        for letter in ["a", "b", "c", "z"] {
            let times = effects(&file).matches(letter).count();
            assert!((1..=2).contains(&times), "{point:?}: {letter} was done {times} times");
        }
    }
    Ok(())
}

/// The hub is stopped or killed, and again during the replay.
#[tokio::test]
async fn run_continues_after_repeated_restarts() -> Result<()> {
    let mut hub = start().await?;
    let file = hub.workspace().join("effects");
    let steps = ["a", "b", "c", "d"].map(|it| format!("step {it} {}", leaves(it, &file)));
    let program = format!(
        "random\nsay-last\n{}\nrace echo,bottom ask in? / say end\nrandom",
        steps.join("\n")
    );
    let task = begin(&hub, &program).await?;
    for (letter, in_order) in [("a", false), ("b", true), ("c", false), ("d", true)] {
        Point::Effect(letter).reached(&hub, &task, &file).await?;
        if !in_order {
            hub.kill9().await?;
        }
        hub.restart().await?;
    }
    until_it_is(&hub, &task, "input-required", PATIENCE).await?;
    hub.restart().await?;
    until_it_is(&hub, &task, "input-required", PATIENCE).await?;
    answer(&hub, &task, "yes").await?;
    let done = until_it_is(&hub, &task, "completed", PATIENCE).await?;
    let came: Vec<_> = said(&done).split(" | ").collect();
    assert_eq!(came[1..5], ["a", "b", "c", "d"], "{done}");
    assert!(came[5].contains("echo: ask in?") && came[5].contains("bottom: yes"), "{done}");
    assert_ne!(came[0], came[6], "two random numbers");
    assert_eq!(workflow(&hub, &task).await?.len(), 3);
    Ok(())
}

#[tokio::test]
async fn client_decides_about_interrupted_step() -> Result<()> {
    let mut hub = start().await?;
    for (said_to_it, effects_left, came_to) in [("again", "xx", "x"), ("no", "x", "failed: ")] {
        let file = hub.workspace().join(said_to_it);
        let command = format!("echo x >> {}; sleep 2; echo x", file.display());
        let task = begin(&hub, &format!("careful pay {command}\nask and now?")).await?;
        Point::Effect("x").reached(&hub, &task, &file).await?;
        hub.kill9().await?;
        hub.restart().await?;
        let asks = until_it_is(&hub, &task, "input-required", PATIENCE).await?;
        assert!(said(&asks).contains("did `pay`, and nobody knows how far"), "{asks}");
        answer(&hub, &task, said_to_it).await?;
        let is_next = async || {
            get(&Client::http(&hub), &task).await.is_ok_and(|task| said(&task) == "and now?")
        };
        eventually_async(PATIENCE, is_next).await?;
        assert_eq!(effects(&file), effects_left);
        // The client's decision is not asked for again.
        hub.kill9().await?;
        hub.restart().await?;
        answer(&hub, &task, "done").await?;
        let done = until_it_is(&hub, &task, "completed", PATIENCE).await?;
        assert!(said(&done).starts_with(came_to) && said(&done).ends_with(" | done"), "{done}");
        assert_eq!(effects(&file), effects_left);
    }
    Ok(())
}

/// Independent of the capabilities of the client that answers.
#[tokio::test]
async fn replay_keeps_initial_client_capabilities() -> Result<()> {
    let mut hub = start().await?;
    let mut message = message_to("top", "modes\nsay-last\nask and now?\nmodes");
    message["configuration"] = json!({ "blocking": false, "acceptedOutputModes": ["text/plain"] });
    let task = Client::http(&hub).call("message/send", message).await?;
    let task = task["id"].as_str().context("no id")?.to_owned();
    until_it_is(&hub, &task, "input-required", PATIENCE).await?;
    hub.kill9().await?;
    hub.restart().await?;
    answer(&hub, &task, "go on").await?;
    let done = until_it_is(&hub, &task, "completed", PATIENCE).await?;
    assert!(said(&done).starts_with("text/plain | go on"), "{done}");
    Ok(())
}

#[tokio::test]
async fn diverging_replay_fails_with_position() -> Result<()> {
    let mut hub = start().await?;
    let file = hub.workspace().join("changing");
    fs::write(&file, "one")?;
    let program = format!("again look cat {}\nsay-last\nask and now?", file.display());
    let task = begin(&hub, &program).await?;
    until_it_is(&hub, &task, "input-required", PATIENCE).await?;
    hub.kill9().await?;
    fs::write(&file, "two")?;
    hub.restart().await?;
    answer(&hub, &task, "go on").await?;
    let failed = until_it_is(&hub, &task, "failed", PATIENCE).await?;
    assert_eq!(failed["metadata"]["reason"], "replay_diverged");
    for words in ["two", "one", "stands in a step"] {
        assert!(said(&failed).contains(words), "{failed}");
    }
    Ok(())
}

#[tokio::test]
async fn unrecorded_calls_need_a_step() -> Result<()> {
    let hub = start().await?;
    let client = Client::http(&hub);
    let task = send(&client, "top", "outside\ninside\nsetting permissions\nchildren").await?;
    let came: Vec<_> = said(&task).split(" | ").collect();
    assert!(came[0].starts_with("failed: ") && came[0].contains("`ctx.step(...)`"), "{task}");
    assert!(came[1].contains("ask the client: not in a step"), "{task}");
    assert_eq!(came[2], "ask");
    let task = send(&client, "top", "time\nsleep 300\ntime").await?;
    let times = said(&task).split(" | ").map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    assert!(times[1] - times[0] >= 300, "what it slept has passed: {task}");
    let long = format!("step long head -c {} /dev/zero | tr '\\0' x", (1 << 20) + 1);
    let task = send(&client, "top", &format!("{long}\nchildren\nstep short echo on")).await?;
    assert!(said(&task).contains("1048576 are kept"), "{}", said(&task));
    assert!(said(&task).ends_with(" | on"), "it goes on: {}", said(&task));
    Ok(())
}

/// A hub that is down after another component has replaced that of a waiting run.
struct Updated {
    hub: TestHub,
    task: String,
}

impl Updated {
    /// Starts a run that asks between two steps, replaces its component and grant, and kills the
    /// hub.
    async fn begin() -> Result<Self> {
        let mut hub = start().await?;
        let file = hub.workspace().join("effects");
        let [a, z] = ["a", "z"].map(|letter| leaves(letter, &file));
        let task = begin(&hub, &format!("step a {a}\nask may I?\nstep z {z}")).await?;
        until_it_is(&hub, &task, "input-required", PATIENCE).await?;
        hub.plug("top", &test_guests()?)?;
        let client = Client::http(&hub);
        let is_held_back = async || {
            let listed = client.call("hub/plugins/list", json!({})).await.unwrap_or_default();
            listed.to_string().contains("heldBack")
        };
        eventually_async(PATIENCE, is_held_back).await?;
        let granted = plugin(&hub, &["grant", "top", "--all"]).await?;
        assert_eq!(granted.code, Some(0), "{}", granted.stderr);
        assert_eq!(said(&send(&client, "top", "log-nothing").await?), "said nothing");
        hub.kill9().await?;
        Ok(Self { hub, task })
    }
}

#[tokio::test]
async fn replay_uses_original_component() -> Result<()> {
    let Updated { mut hub, task } = Updated::begin().await?;
    hub.restart().await?;
    answer(&hub, &task, "yes").await?;
    let done = until_it_is(&hub, &task, "completed", PATIENCE).await?;
    assert_eq!(said(&done), "a | yes | z");
    // The copy is no longer needed after this.
    let copies = || fs::read_dir(hub.data_dir().join("replays")).map_or(0, Iterator::count);
    assert_eq!(copies(), 2);
    let echo = send(&Client::http(&hub), "top", "log-nothing").await?;
    assert_eq!(said(&echo), "said nothing");
    hub.restart().await?;
    // The remaining copies are those of the agents `middle` and `bottom`, and of `flow`.
    let left = fs::read_dir(hub.data_dir().join("replays")).map_or(0, Iterator::count);
    assert_eq!(left, 2);
    Ok(())
}

#[tokio::test]
async fn replayed_component_obeys_current_grant() -> Result<()> {
    let Updated { mut hub, task } = Updated::begin().await?;
    hub.restart().await?;
    let revoked = plugin(&hub, &["revoke", "top"]).await?;
    assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
    answer(&hub, &task, "yes").await?;
    let done = until_it_is(&hub, &task, "completed", PATIENCE).await?;
    assert!(said(&done).contains("revoked by the operator"), "{done}");
    Ok(())
}

#[tokio::test]
async fn replay_without_component_fails() -> Result<()> {
    let Updated { mut hub, task } = Updated::begin().await?;
    fs::remove_dir_all(hub.data_dir().join("replays"))?;
    // These agents have the same component, of which the hub would create a copy again.
    hub.unplug("middle")?;
    hub.unplug("bottom")?;
    hub.restart().await?;
    let failed = until_it_is(&hub, &task, "failed", PATIENCE).await?;
    assert_eq!(failed["metadata"]["reason"], "hub_restarted");
    assert!(said(&failed).contains("is not there any more"), "{failed}");
    Ok(())
}

/// A message during the first run starts a separate run, with separate calls and random numbers, in
/// each hub.
#[tokio::test]
async fn runs_of_task_have_separate_journals() -> Result<()> {
    let mut hub = start().await?;
    let id = begin(&hub, "sleep 500\ncall echo one\nrandom").await?;
    answer(&hub, &id, "call echo two\nrandom\nsleep 3000\ncall echo three").await?;
    let heard = async || {
        let children = workflow(&hub, &id).await.unwrap_or_default();
        children.iter().filter(|task| task["agentId"] == "echo").count() == 2
    };
    eventually_async(PATIENCE, heard).await.context("it calls twice")?;
    hub.kill9().await?;
    hub.restart().await?;
    let done = until_it_is(&hub, &id, "completed", PATIENCE).await?;
    let ends = said(&done);
    let [two, second, three] = ends.split(" | ").collect::<Vec<_>>()[..] else {
        anyhow::bail!("{done}")
    };
    assert_eq!((two, three), ("two", "three"), "{done}");
    let story = done["history"].to_string();
    let first = story.split("one | ").nth(1).and_then(|rest| rest.split('"').next());
    assert_ne!(first.context("the first run's end")?, second, "{done}");
    let tree = workflow(&hub, &id).await?;
    for once in ["one", "two", "three"] {
        assert_eq!(tree.iter().filter(|task| said(task) == once).count(), 1, "{tree:?}");
    }
    Ok(())
}

/// Flow of two steps at once, a question and a last step; each step leaves a letter.
fn flow_file(file: &Path) -> String {
    let step = |id: &str, needs: &str| {
        let command = leaves(id, file);
        format!(
            "[[step]]\nid = '{id}'\nneeds = [{needs}]\nagent = 'bottom'\nprompt = 'step {id} {command}'\n"
        )
    };
    let ask = "[[step]]\nid = 'ok'\nneeds = ['a', 'b']\nask = 'may I?'\n";
    let (a, b, z) = (step("a", ""), step("b", ""), step("z", "'ok'"));
    let result = "{{ steps.a.text }} {{ steps.b.text }} {{ steps.ok.text }} {{ steps.z.text }}";
    format!("description = 'Leaves letters'\nresult = '{result}'\n{a}{b}{ask}{z}")
}

#[tokio::test]
async fn killed_flow_repeats_no_finished_step() -> Result<()> {
    let mut hub = start().await?;
    let file = hub.workspace().join("effects-of-flow");
    for (name, is_late) in [("early", false), ("late", true)] {
        fs::write(&file, "")?;
        let flow = hub.data_dir().join(format!("flows/{name}.flow.toml"));
        fs::write(&flow, flow_file(&file))?;
        fs::set_permissions(&flow, fs::Permissions::from_mode(0o600))?;
        hub.joined(name).await?;
        let mut message = message_to(name, "");
        message["message"]["parts"] = json!([{ "kind": "data", "data": {} }]);
        message["configuration"] = json!({ "blocking": false });
        let task = Client::http(&hub).call("message/send", message).await?;
        let task = task["id"].as_str().context("no id")?.to_owned();
        match is_late {
            false => Point::Effect("a").reached(&hub, &task, &file).await?,
            true => Point::TopAsks.reached(&hub, &task, &file).await?,
        }
        hub.kill9().await?;
        // The file changes: the task goes on with the text that it began with.
        fs::write(&flow, flow_file(&file).replace("may I?", "Is this another flow?"))?;
        hub.restart().await?;
        let asked = until_it_is(&hub, &task, "input-required", PATIENCE).await?;
        assert!(said(&asked).contains("may I?"), "{asked}");
        answer(&hub, &task, "yes").await?;
        let done = until_it_is(&hub, &task, "completed", PATIENCE).await?;
        assert_eq!(said(&done), "a b yes z");
        assert_eq!(workflow(&hub, &task).await?.len(), 4, "no child is begun twice");
        for letter in ["a", "b", "z"] {
            let times = effects(&file).matches(letter).count();
            assert!((1..=2).contains(&times), "{letter} was done {times} times");
        }
    }
    Ok(())
}
