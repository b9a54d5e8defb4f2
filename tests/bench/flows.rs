//! Cost of flows and worktrees: a step beside a plain call, a list of a thousand items, several
//! agents, and a worktree beside one of git.

use crate::{
    LOAD, SERVERS, WARM_UP,
    load::{self, Sample, Work},
    pin,
};
use a2a_hub_tests::{Client, TestHub, commit_all, durable_guest, git, message_to, test_guests};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{
    fs,
    net::SocketAddr,
    time::{Duration, Instant},
};
use tokio::time::sleep;

/// Configuration that lets the test guest call the echo agent and run a shell.
const CONFIG: &str = "
    [agents.guest]
    max_running = 64
    [agents.guest.grant]
    delegate = ['echo']
    [agents.guest.grant.process.sh]
    [agents.list.limits.tree]
    tasks = 2000
    [agents.all.limits.tree]
    tasks = 2000
";

/// Steps of the long flow; the short one has one.
const STEPS: u32 = 11;

/// Items of the list.
const ITEMS: u32 = 1_000;

/// Agents that are asked at once.
const AGENTS: usize = 32;

/// Agents that get the same message, and agents that bid for a task.
const HEARERS: usize = 1_000;
const BIDDERS: usize = 100;

/// Files of the repository.
const FILES: usize = 10_000;

/// Repetitions of what takes long.
const TIMES: usize = 5;

/// Time between two looks at a task.
const LOOK: Duration = Duration::from_millis(20);

/// Maximum extra time of a step, compared with a plain call.
const GOAL: Duration = Duration::from_millis(3);

/// Prints the costs.
pub(crate) async fn measure(rounds: u32, duration: Duration) -> Result<()> {
    pin(SERVERS)?;
    let bidders: Vec<_> = (0..BIDDERS).map(|n| format!("bidder-{n}")).collect();
    let granted = bidders.iter().map(|it| format!("[agents.{it}.grant]\nmemory = true\n"));
    let config = format!("{CONFIG}{}", granted.collect::<String>());
    let mut builder = TestHub::builder().config(config).plugin("guest", test_guests()?);
    for bidder in &bidders {
        builder = builder.plugin(bidder, durable_guest()?);
    }
    let hub = builder.start().await?;
    pin(LOAD)?;
    let steps = |count: u32| {
        let step = |n: u32| {
            let needs = if n > 1 { format!("needs = [\"s{}\"]\n", n - 1) } else { String::new() };
            format!("[[step]]\nid = \"s{n}\"\nagent = \"echo\"\nprompt = \"hi\"\n{needs}")
        };
        (1..=count).map(step).collect::<String>()
    };
    let list = format!(
        "[[step]]\nid = \"all\"\nagent = \"echo\"\nprompt = \"hi\"\nfor_each = \"range({ITEMS}) | list\"\nconcurrency = 16\n"
    );
    let told = |count| {
        let named = vec!["\"echo\""; count].join(", ");
        format!("[[step]]\nid = \"all\"\nagents = [{named}]\nprompt = \"hi\"\n")
    };
    let auction =
        format!("[[step]]\nid = \"all\"\nprompt = \"bid\"\n[step.auction]\nagents = {bidders:?}\n");
    let flows = [
        ("one", steps(1)),
        ("long", steps(STEPS)),
        ("list", list),
        ("many", told(AGENTS)),
        ("all", told(HEARERS)),
        ("auction", auction),
    ];
    for (name, steps) in flows {
        let text =
            format!("description = \"Measures\"\n[input]\nx = {{ type = \"string\" }}\n{steps}");
        fs::write(hub.data_dir().join(format!("flows/{name}.flow.toml")), text)?;
        hub.joined(name).await?;
    }
    let at: SocketAddr = hub.http().parse().context("the hub serves HTTP at no address")?;
    let rows: [(&str, &'static str, &str); 5] = [
        ("echo", "echo", "hi"),
        ("guest calls echo", "guest", "call echo hi"),
        ("a flow of 1 step", "one", "hi"),
        ("a flow of 11 steps", "long", "hi"),
        ("32 agents at once", "many", "hi"),
    ];
    let mut samples = [const { Vec::new() }; 5];
    for _ in 0..rounds {
        for ((_, agent, text), samples) in rows.iter().zip(&mut samples) {
            let work = Work::Say(agent, (*text).into());
            load::run(at, &work, 1, WARM_UP).await?;
            samples.push(load::run(at, &work, 1, duration).await?);
        }
    }
    println!("\nflows, one at once\n                      /s    p50 us    p99 us");
    let medians = samples.map(Sample::median);
    for ((name, ..), sample) in rows.iter().zip(medians) {
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        let (rate, p50, p99) = (sample.per_second, us(sample.p50), us(sample.p99));
        println!("{name:<18}{rate:>6.0}{p50:>10.0}{p99:>10.0}");
    }
    let [echo, call, one, long, _] = medians;
    let step = long.p50.saturating_sub(one.p50) / (STEPS - 1);
    let plain = call.p50.saturating_sub(echo.p50);
    let more = step.saturating_sub(plain);
    let word = if more <= GOAL { "within" } else { "above" };
    println!("a step takes {step:.2?}, a plain call {plain:.2?}: {more:.0?} more, {word} {GOAL:?}");

    let client = Client::http(&hub);
    let whole = [
        ("list", format!("a list of {ITEMS} items, 16 at once")),
        ("all", format!("a message to {HEARERS} agents, 64 at once")),
        ("auction", format!("an auction among {BIDDERS} agents, the work included")),
    ];
    for (flow, what) in whole {
        println!("{what}: {:.2?}", until_done(&client, flow).await?);
    }
    worktrees(&hub, &client).await
}

/// Time until a flow is done.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
async fn until_done(client: &Client, flow: &str) -> Result<Duration> {
    let begun = Instant::now();
    let mut message = message_to(flow, "hi");
    message["configuration"] = json!({ "blocking": false });
    let mut task = client.call("message/send", message).await?;
    let ask = json!({ "id": task["id"], "historyLength": 0 });
    // Asked again and again: a client gives up on an answer that takes a minute.
    while ["submitted", "working"].map(Value::from).contains(&task["status"]["state"]) {
        sleep(LOOK).await;
        task = client.call("tasks/get", ask.clone()).await?;
    }
    completed(&task)?;
    Ok(begun.elapsed())
}

/// Compares a task in a new worktree with the same task without one, and with `git worktree add`.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
async fn worktrees(hub: &TestHub, client: &Client) -> Result<()> {
    let repository = hub.workspace().join("repository");
    for n in 0..FILES {
        let folder = repository.join(format!("d{}", n / 100));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(format!("f{n}")), format!("file {n}\n").repeat(20))?;
    }
    commit_all(&repository)?;
    let task = async |worktree: Value| -> Result<Duration> {
        let mut message = message_to("guest", "sh true");
        message["message"]["metadata"]["workingDirectory"] = json!(repository);
        message["message"]["metadata"]["worktree"] = worktree;
        let begun = Instant::now();
        completed(&client.call("message/send", message).await?)?;
        Ok(begun.elapsed())
    };
    let (mut with, mut without, mut of_git) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..TIMES {
        without.push(task(Value::Null).await?);
        with.push(task(json!(true)).await?);
        let place = hub.workspace().join(format!("beside-{n}")).display().to_string();
        let begun = Instant::now();
        git(&repository, &["worktree", "add", "-q", "--detach", &place])?;
        of_git.push(begun.elapsed());
    }
    let [with, without, of_git] =
        [with, without, of_git].map(|times| load::middle(times.into_iter(), Duration::cmp));
    let made = with.saturating_sub(without);
    println!(
        "a worktree of {FILES} files with its report of changes: {made:.2?}, {:.2} times `git worktree add` ({of_git:.2?})",
        made.as_secs_f64() / of_git.as_secs_f64()
    );
    Ok(())
}

fn completed(task: &Value) -> Result<()> {
    ensure!(task["status"]["state"] == "completed", "{task}");
    Ok(())
}
