//! Kills the hub while five agents take part in every kind of flow. Some of them fail, give useless
//! answers, are slow, or are not there for a while. Each flow ends as its rules say for the answers
//! that its agents gave, and does each step once.

use super::flows::run;
use crate::stage::{get, state, tell};
use a2a_hub_authoring::flow_template::ask_all;
use a2a_hub_protocol::id::AgentId;
use a2a_hub_tests::{
    Client, Numbers, TestHub, durable_guest,
    flow_runs::{Child, Definition, FlowRun, children},
    make_repository, message_to,
};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// Number of kills; `A2A_HUB_PATTERN_KILLS` overrides it. `cargo xtask prove patterns` takes ten
/// times as many.
const KILLS: usize = 20;

/// Maximum time until the hub is killed after its start.
const KILLED_WITHIN_MS: u64 = 700;

/// Number of flows that begin before each kill.
const AT_ONCE: usize = 5;

/// Time that the last flows have to end.
const PATIENCE: Duration = Duration::from_secs(90);

const AGENTS: [&str; 5] = ["ash", "elm", "fir", "oak", "yew"];

/// Name of the flow that `a2a-hub send a,b,c` puts into its message.
const BROADCAST: &str = "broadcast";

/// Flows by their names, with their steps. `AGENTS` stands for all agents, and `DIR` for a folder.
const FLOWS: [(&str, &str); 12] = [
    (
        "votes",
        r#"[[step]]
        id = "decide"
        vote = { agents = [AGENTS], choices = ["yes", "no"], rule = { quorum = 2 } }
        timeout = "4s"
        prompt = "slowly\nsleep 30\ndecide""#,
    ),
    (
        "bids",
        r#"[[step]]
        id = "decide"
        auction = { agents = [AGENTS], price = "second", reserve = 80 }
        prompt = "sleep 30\ndecide""#,
    ),
    (
        "proposals",
        r#"[[step]]
        id = "decide"
        contract_net = { agents = [AGENTS], awards = 2, limits = { cost = 50 }, rounds = 2 }
        prompt = "sleep 30\ndecide""#,
    ),
    (
        "estimates",
        r#"[[step]]
        id = "decide"
        delphi = { agents = [AGENTS], rounds = 3, max_changes = 1, least = 1, answer_timeout = "4s" }
        prompt = "slowly\nsleep 30\ndecide""#,
    ),
    (
        "terms",
        r#"[[step]]
        id = "decide"
        negotiation = { agents = [AGENTS], proposals = 4 }
        prompt = "sleep 20\ndecide""#,
    ),
    (
        "board",
        r#"[[step]]
        id = "share"
        prompt = "sleep 20\ndecide"
        [step.blackboard]
        agents = [AGENTS]
        rounds = 4
        lease = 1
        items = [{ id = "a", text = "one" }, { id = "b", text = "two", needs = ["a"] }, { id = "c", text = "three" }]"#,
    ),
    (
        "turns",
        r#"[[step]]
        id = "share"
        blackboard = { agents = ["ash", "elm", "yew"], rounds = 3, control = "turns", items = [{ id = "a", text = "one" }] }
        prompt = "sleep 20\ndecide""#,
    ),
    (
        "leader",
        r#"[[step]]
        id = "lead"
        election = { agents = [AGENTS], terms = 3, answer_timeout = "4s", work_timeout = "4s" }
        prompt = "slowly\nsleep 30\ndecide""#,
    ),
    (
        "steps",
        r#"[[step]]
        id = "write"
        agent = "ash"
        prompt = "sleep 10\ndecide\n{% if previous.check %}{{ previous.check.text | data }}{% endif %}"
        output = { choice = { enum = ["yes", "no"] }, bid = { type = "integer" } }
        retry = { times = 1, backoff = "20ms" }
        fallback = ["elm"]
        [[step]]
        id = "check"
        needs = ["write"]
        agent = "fir"
        prompt = "sleep 10\ndecide\n{{ steps.write.output | data }}"
        output = { choice = { enum = ["yes", "no"] } }
        fallback = ["oak"]
        next = [{ when = "output.choice == 'no'", goto = "write", max = 2, at_max = "continue" }]
        [[step]]
        id = "each"
        needs = ["check"]
        for_each = "[steps.write.output.bid, 2, 3, 4]"
        concurrency = 2
        allow_failures = 3
        agent = "yew"
        prompt = "sleep 10\ndecide\n{{ item }} {{ steps.check.text | data }}"
        retry = { times = 1, backoff = "10ms" }"#,
    ),
    (
        "joins",
        r#"[[step]]
        id = "pause"
        wait = "30ms"
        [[step]]
        id = "approve"
        needs = ["pause"]
        ask = "Shall it go on?"
        choices = ["yes", "no"]
        [[step]]
        id = "fast"
        agent = "ash"
        prompt = "sleep 10\ndecide"
        [[step]]
        id = "slow"
        agent = "elm"
        prompt = "sleep 200\ndecide"
        [[step]]
        id = "first"
        needs = ["fast", "slow"]
        join = "any"
        agent = "fir"
        prompt = "sleep 10\ndecide\n{{ steps.fast.text | data }}{{ steps.slow.text | data }}"
        fallback = ["oak", "yew"]
        [[step]]
        id = "inner"
        flow = "bids"
        [[step]]
        id = "last"
        needs = ["approve", "first", "inner"]
        join = { at_least = 2 }
        agent = "yew"
        prompt = "sleep 10\ndecide\n{{ steps.approve.text | data }}"
        fallback = ["ash"]"#,
    ),
    (
        "undone",
        r#"[input]
        name = { type = "string" }
        [[step]]
        id = "book"
        agent = "ash"
        prompt = "sleep 10\ndecide"
        fallback = ["elm", "fir"]
        compensate = { agent = "oak", prompt = "sleep 10\nsay {{ steps.book.text | data }}" }
        [[step]]
        id = "pay"
        needs = ["book"]
        run = ["sh", "-c", "echo paid >> DIR/$A2A_INPUT_NAME"]
        on_restart = "retry"
        compensate = { run = ["sh", "-c", "echo back >> DIR/$A2A_INPUT_NAME"], on_restart = "retry" }
        [[step]]
        id = "ship"
        needs = ["pay"]
        agent = "fir"
        prompt = "sleep 10\ndecide"
        output = { choice = { enum = ["yes", "no"] } }
        next = [{ when = "output.choice == 'no'", end = "failed" }]"#,
    ),
    (
        "tries",
        r#"[[step]]
        id = "try"
        agents = ["ash", "elm", "fir"]
        worktree = "new"
        allow_failures = 2
        prompt = "step write if [ $(($$ % 3)) = 0 ]; then echo bad; else seq $(($$ % 5)); fi > made\ndecide"
        [[step]]
        id = "judge"
        needs = ["try"]
        worktree = "try"
        run = ["sh", "-c", "! grep -q bad made"]
        on_restart = "retry"
        on_exit = { nonzero = "continue" }
        [[step]]
        id = "best"
        needs = ["judge"]
        pick = { from = "try", judges = ["judge"] }"#,
    ),
];

/// Configures the agents. A flow calls plug-ins only that were granted something.
fn config() -> String {
    let agent = |id| {
        format!(
            "[agents.{id}]\nmax_running = 100\nmax_queued = 1000\nconfine = false\n[agents.{id}.grant.process.sh]\n"
        )
    };
    let script = "[agents.script]\nconfine = false\nmax_running = 100\nmax_queued = 1000\n";
    format!("[breaker]\nfailures = 1000000\n{script}{}", AGENTS.map(agent).concat())
}

/// A hub with the flows, and what was begun there.
struct Stage {
    hub: TestHub,
    flows: BTreeMap<String, Definition>,
    /// All agents and flows of the hub.
    agents: BTreeSet<String>,
    begun: Vec<(String, String)>,
}

impl Stage {
    async fn new() -> Result<Self> {
        let durable = durable_guest()?;
        let mut builder = TestHub::builder().config(config());
        for agent in AGENTS {
            builder = builder.plugin(agent, &durable);
        }
        let hub = builder.start().await?;
        fs::create_dir(hub.workspace().join("effects"))?;
        make_repository(&hub.workspace().join("repository"))?;
        let mut flows = BTreeMap::new();
        let agents = AGENTS.map(|agent| format!("\"{agent}\"")).join(", ");
        let effects = hub.workspace().join("effects").display().to_string();
        fs::create_dir_all(hub.data_dir().join("flows"))?;
        for (name, steps) in FLOWS {
            let steps = steps.replace("AGENTS", &agents).replace("DIR", &effects);
            let text = format!("description = \"Works\"\n{steps}\n");
            let file = hub.data_dir().join(format!("flows/{name}.flow.toml"));
            fs::write(&file, &text)?;
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
            let definition = Definition::parse(&text);
            let definition = definition.map_err(|why| anyhow::anyhow!("{name}: {why:?}"))?;
            flows.insert(name.to_owned(), definition);
            if text.contains("run = ") {
                let trusted = run(&hub, &["flow", "trust", name, "--yes"]).await?;
                ensure!(trusted.code == Some(0), "{}", trusted.stderr);
            }
            hub.joined(name).await?;
        }
        let broadcast = Definition::parse(&broadcast()?);
        let broadcast = broadcast.map_err(|why| anyhow::anyhow!("{why:?}"))?;
        flows.insert(BROADCAST.to_owned(), broadcast);
        let listed = Client::http(&hub).call("hub/agents/list", json!({})).await?;
        let listed = listed.as_array().into_iter().flatten();
        let agents = listed.filter_map(|it| it["id"].as_str().map(str::to_owned)).collect();
        Ok(Self { hub, flows, agents, begun: Vec::new() })
    }

    /// Begins a flow, and does not wait for its end.
    async fn begin(&mut self, flow: &str) -> Result<()> {
        let text = if flow == "undone" { format!("n{}", self.begun.len()) } else { String::new() };
        let mut message = message_to(if flow == BROADCAST { "flow" } else { flow }, &text);
        if flow == BROADCAST {
            let text = "sleep 10\ndecide";
            let data = json!({ "do": "run", "flow": broadcast()?, "text": text });
            message["message"]["parts"] = json!([{ "kind": "data", "data": data }]);
        }
        if flow == "tries" {
            let repository = self.hub.workspace().join("repository");
            message["message"]["metadata"]["workingDirectory"] = json!(repository);
        }
        message["configuration"] = json!({ "blocking": false });
        let task = Client::http(&self.hub).call("message/send", message).await?;
        let id = task["id"].as_str().context("no id")?.to_owned();
        self.begun.push((flow.to_owned(), id));
        Ok(())
    }

    /// Kills the hub and starts it again. One agent is not there, unless all are.
    async fn restart(&mut self, gone: Option<&str>) -> Result<()> {
        self.hub.kill9().await?;
        let durable = durable_guest()?;
        for agent in AGENTS {
            if gone == Some(agent) {
                self.hub.unplug(agent)?;
            } else if !self.hub.data_dir().join(format!("plugins/{agent}.wasm")).exists() {
                self.hub.plug(agent, &durable)?;
            }
        }
        self.hub.restart().await
    }

    /// Answers the open questions of flows, each with `yes` or `no`.
    async fn answer(&self, numbers: &mut Numbers) -> Result<()> {
        let client = Client::http(&self.hub);
        let asking = json!({ "state": "input-required", "limit": 1000 });
        let asking = client.call("hub/tasks/list", asking).await?;
        let asking = asking.as_array().into_iter().flatten();
        for task in asking.filter(|task| state(task) == "input-required") {
            let mut answer = message_to("joins", numbers.one_of(&["yes", "no"]));
            answer["message"]["taskId"] = task["id"].clone();
            answer["message"]["metadata"] =
                json!({ "question": task["metadata"]["question"]["id"] });
            answer["configuration"] = json!({ "blocking": false });
            let answered = client.call("message/send", answer).await;
            // The flow may have gone on without it meanwhile.
            let refused = answered.as_ref().err().map(ToString::to_string);
            let over = ["it is gone", "takes no message"];
            let is_right = refused.is_none_or(|why| over.iter().any(|it| why.contains(it)));
            ensure!(is_right, "{answered:?}: {task}");
        }
        Ok(())
    }

    /// Waits for the end of a flow.
    async fn ended(&self, id: &str, until: Instant, numbers: &mut Numbers) -> Result<Value> {
        let client = Client::http(&self.hub);
        loop {
            let task = get(&client, id).await?;
            match state(&task) {
                "completed" | "failed" | "canceled" => return Ok(task),
                "input-required" => self.answer(numbers).await?,
                _ => {}
            }
            if Instant::now() > until {
                let below = children(&client, id).await?;
                bail!("it has not ended: {task}: {below:#?}");
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Checks a flow's task and all below it.
    async fn check(&self, flow: &str, task: &Value) -> Result<usize> {
        let client = Client::http(&self.hub);
        let below = children(&client, task["id"].as_str().context("no id")?).await?;
        let ended = |task: &Value| task["status"]["timestamp"].as_str().map(str::to_owned);
        let ids: BTreeMap<_, _> = below.iter().map(|it| (it.task["id"].as_str(), it)).collect();
        for child in &below {
            let over = ["completed", "failed", "canceled", "rejected"];
            ensure!(over.contains(&state(&child.task)), "a child goes on: {child:?}");
            let parent = ids.get(&Some(child.parent.as_str())).map_or(task, |it| &it.task);
            ensure!(parent["id"] == child.parent, "it has no parent: {child:?}");
            ensure!(ended(&child.task) <= ended(parent), "it outlived its parent: {child:?}");
        }
        let nested =
            |it: &&Child| it.task["agentId"].as_str().is_some_and(|it| self.flows.contains_key(it));
        let inner = below.iter().filter(nested);
        let inner = inner.filter_map(|it| Some((it.task["agentId"].as_str()?, &it.task)));
        for (name, task) in std::iter::once((flow, task)).chain(inner) {
            let definition = self.flows.get(name).context("no such flow")?;
            let agent = if name == BROADCAST { "flow" } else { name };
            let callable = self.agents.iter().map(String::as_str);
            let callable = callable.filter(|it| ![agent, "script"].contains(it)).collect();
            // The rules give no end to a cancelled flow.
            if state(task) != "canceled" {
                FlowRun::new(definition, task, callable, &below)?.check()?;
            }
            let own: Vec<_> = below.iter().filter(|it| task["id"] == it.parent).collect();
            self.check_rules(name, task, &own)?;
        }
        Ok(below.len())
    }

    /// Checks what no flow of a kind may do, whatever its agents answer.
    fn check_rules(&self, flow: &str, task: &Value, children: &[&Child]) -> Result<()> {
        let mut output = task["artifacts"].as_array().into_iter().flatten();
        let output = output.find(|it| it["artifactId"] == "output");
        let output = output.map_or(Value::Null, |it| it["parts"][0]["data"].clone());
        let request = |it: &Child| it.task["history"][0]["parts"][0]["text"].to_string();
        let works: Vec<_> =
            children.iter().filter(|it| !request(it).contains("this JSON schema")).collect();
        let agents: BTreeSet<_> = works.iter().map(|it| it.task["agentId"].as_str()).collect();
        let one_after_another = || {
            works.windows(2).all(|two| {
                let ended = two[0].task["status"]["timestamp"].as_str().unwrap_or_default();
                state(&two[0].task) != "completed" && ended <= two[1].created.as_str()
            })
        };
        match flow {
            "bids" => {
                ensure!(agents.len() == works.len(), "an award twice: {works:?}");
                ensure!(one_after_another(), "an award beside another one: {works:?}");
            }
            "proposals" => {
                ensure!(agents.len() == works.len() && works.len() <= 2, "awards: {works:?}");
            }
            "leader" => {
                ensure!(agents.len() == works.len(), "an agent led twice: {works:?}");
                let in_order = works.windows(2).all(|two| {
                    let (first, second) = (two[0], two[1]);
                    let ended = first.task["status"]["timestamp"].as_str().unwrap_or_default();
                    let counts = state(&first.task) == "completed" && !is_late(&first.task);
                    !counts && ended <= second.created.as_str()
                });
                ensure!(in_order, "two leaders at once: {works:?}");
                // A leader that was not there has no task, but its term counts.
                let terms: Vec<_> = works.iter().map(|work| term_of(&request(work))).collect();
                let is_right =
                    terms.iter().all(Option::is_some) && terms.is_sorted_by(|a, b| a < b);
                ensure!(is_right, "terms {terms:?}: {works:?}");
            }
            "board" | "turns" => {
                for item in output["items"].as_array().into_iter().flatten() {
                    one_holder(item).with_context(|| format!("{item:#}"))?;
                }
            }
            "undone" => {
                let name = task["history"][0]["parts"][0]["text"].as_str().context("no name")?;
                let effects = self.hub.workspace().join("effects");
                let completed = state(task) == "completed";
                check_effects(&effects.join(name), children, completed)
                    .with_context(|| format!("{children:#?}"))?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Text of the flow by which a message reaches several agents.
fn broadcast() -> Result<String> {
    let agents: Result<Vec<_>, _> = AGENTS[..3].iter().map(|id| AgentId::parse(*id)).collect();
    Ok(ask_all(&agents?))
}

/// True if a leader ended after `work_timeout` (4 s, less some time of a busy machine). Its work
/// was refused by then: if the hub is killed before it stops the leader, that one still ends its
/// work. The limit counts from the flow's request, by the time in its id: a kill delays the task.
fn is_late(leader: &Value) -> bool {
    const LIMIT_MS: i64 = 3_500;
    let asked = leader["history"][0]["messageId"].as_str().unwrap_or_default();
    let asked = i64::from_str_radix(asked.replace('-', "").get(..12).unwrap_or_default(), 16);
    let ended = leader["status"]["timestamp"].as_str().unwrap_or_default();
    let ended = ended.parse::<jiff::Timestamp>().map(jiff::Timestamp::as_millisecond);
    asked.is_ok_and(|asked| ended.is_ok_and(|ended| ended - asked >= LIMIT_MS))
}

/// Term that the request to a leader names.
fn term_of(request: &str) -> Option<u32> {
    let (_, after) = request.split_once("leader of term ")?;
    after.split_once(':')?.0.parse().ok()
}

/// Checks by the history of a board's item that one agent held it at a time, and finished it once.
fn one_holder(item: &Value) -> Result<()> {
    let history = item["history"].as_array().context("no history")?;
    ensure!(item["version"] == history.len(), "a change is lost");
    let (mut holder, mut is_done) = (None, false);
    for entry in history {
        let agent = entry["agent"].as_str();
        ensure!(!is_done, "changed after its end");
        holder = match entry["change"].as_str() {
            Some("added") => None,
            Some("claimed") => {
                ensure!(holder.is_none() || holder == agent, "{agent:?} took it");
                agent
            }
            Some(change) => {
                ensure!(holder == agent, "{agent:?} does not hold it");
                is_done = change == "done";
                None
            }
            None => bail!("no change"),
        };
    }
    ensure!(is_done == (item["state"] == "done"), "its state does not fit");
    Ok(())
}

/// Checks what the programs of a flow left in a file: each program that completed did its work, and
/// one that a kill cut off did it once at most.
fn check_effects(file: &Path, children: &[&Child], completed: bool) -> Result<()> {
    let effects = fs::read_to_string(file).unwrap_or_default();
    for (word, of) in [("paid", ".work"), ("back", ".undo")] {
        let programs = children.iter().filter(|it| it.task["agentId"] == "script");
        let programs: Vec<_> = programs.filter(|it| it.key.ends_with(of)).collect();
        let done = programs.iter().filter(|it| state(&it.task) == "completed").count();
        let lines = effects.lines().filter(|line| *line == word).count();
        ensure!((done..=programs.len()).contains(&lines), "{lines} times {word}: {effects}");
        ensure!(done <= 1, "{word} was done twice");
        ensure!(word == "paid" || done == 0 || !completed, "undone, and completed");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_hub_does_no_step_twice() -> Result<()> {
    let kills = match env::var_os("A2A_HUB_PATTERN_KILLS") {
        Some(said) => said.to_str().and_then(|said| said.parse().ok()),
        None => Some(KILLS),
    };
    let kills: usize = kills.context("A2A_HUB_PATTERN_KILLS is not a number")?;
    let mut stage = Stage::new().await?;
    let begun = Instant::now();
    let mut numbers = Numbers::new(0x2026_1128);
    let names: Vec<_> = stage.flows.keys().cloned().collect();
    let mut next = names.iter().cycle();
    for kill in 0..kills {
        for name in next.by_ref().take(AT_ONCE) {
            stage.begin(name).await?;
        }
        stage.answer(&mut numbers).await?;
        sleep(Duration::from_millis(numbers.below(KILLED_WITHIN_MS))).await;
        let gone = (kill % 4 == 1).then(|| numbers.one_of(&AGENTS));
        stage.restart(gone).await?;
    }
    stage.restart(None).await?;
    let until = Instant::now() + PATIENCE;
    let mut ends = BTreeMap::<&str, [usize; 2]>::new();
    let mut tasks = 0;
    for (flow, id) in &stage.begun {
        let task = stage.ended(id, until, &mut numbers).await;
        let task = task.with_context(|| flow.clone())?;
        tasks += stage.check(flow, &task).await.with_context(|| flow.clone())?;
        let [completed, failed] = ends.entry(flow).or_default();
        *(if state(&task) == "completed" { completed } else { failed }) += 1;
    }
    let completed: usize = ends.values().map(|[completed, _]| completed).sum();
    let listed: Vec<_> =
        ends.iter().map(|(flow, [done, failed])| format!("{flow} {done}+{failed}")).collect();
    tell(&format!(
        "{kills} kills while agents worked in flows: {completed} of {} flows completed, the others failed by their \
         rules, with {tasks} children, in {:.0?}; {}",
        stage.begun.len(),
        begun.elapsed(),
        listed.join(", ")
    ));
    ensure!(completed > stage.begun.len() / 2, "{completed} flows completed");
    let seen = ends.values().filter(|[completed, _]| *completed > 0).count();
    ensure!(seen == names.len(), "a flow never completed: {ends:?}");
    Ok(())
}
