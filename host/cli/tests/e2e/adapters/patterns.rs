//! Tests of flows whose steps are done by the vendors' own programs: candidates and a judge, a
//! review until approved, a vote, a shared board, and parts of which one fails. One model server
//! acts as all models, and gives each program its own answers.

use super::{
    KEY, OTHERS, ProgramFiles,
    vendors::{CLAUDE, CODEX, GEMINI, VIBE, Vendor},
};
use crate::{
    command_line::{Ran, command, finish_within},
    stage::{eventually_async, get, no_program_left, said, state},
};
use a2a_hub_tests::{
    CannedAnswer, Client, ModelServer, TestHub, commit_all, delegation::tree, git, message_to,
    processes_of_task,
};
use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{collections::BTreeSet, env, fs, path::PathBuf, time::Duration};
use tokio::time::{Instant, sleep};

/// Time in which a flow of these programs ends.
const PATIENCE: Duration = Duration::from_secs(110);

/// A hub with the programs of some vendors, and the server that acts as their models.
struct Team {
    hub: TestHub,
    model: ModelServer,
    _files: Vec<ProgramFiles>,
}

/// Answer of a vendor's model to the prompts that contain a text.
fn answer(vendor: &Vendor, prompt: &str, answer: &str) -> CannedAnswer {
    CannedAnswer { path: vendor.api, prompt: prompt.to_owned(), answer: answer.to_owned() }
}

/// Starts a hub with the programs of these vendors, whose models give these answers.
async fn team(
    vendors: &[&Vendor],
    answers: impl IntoIterator<Item = CannedAnswer>,
) -> Result<Team> {
    team_with("", vendors, answers).await
}

/// The same, with these sections of the configuration.
async fn team_with(
    sections: &str,
    vendors: &[&Vendor],
    answers: impl IntoIterator<Item = CannedAnswer>,
) -> Result<Team> {
    let model = ModelServer::start()?.with_key(KEY).with_answers(answers);
    let mut config = format!("[agents.script]\nconfine = false\n{sections}");
    for other in OTHERS.iter().filter(|id| !vendors.iter().any(|it| it.agent == **id)) {
        config.push_str(&format!("[agents.{other}]\nenabled = false\n"));
    }
    let mut hub = TestHub::builder();
    let (mut files, mut places) = (Vec::new(), Vec::new());
    for vendor in vendors {
        // A process that another task may use again is not that of one task.
        config.push_str(&format!(
            "[agents.{0}]\npermissions = 'edit'\n{1}\n[agents.{0}.limits]\nkept_programs = 0\n",
            vendor.agent, vendor.settings
        ));
        places.extend(env::split_paths(&vendor.path()?).collect::<Vec<_>>());
        let own = ProgramFiles::new()?;
        hub = hub.env(vendor.key, KEY);
        for (name, value) in (vendor.env)(&model, own.path()) {
            hub = hub.env(name, value);
        }
        files.push(own);
    }
    let hub = hub.config(config).env("PATH", env::join_paths(places)?).start().await?;
    for own in &mut files {
        own.belong_to(&hub.data_dir());
    }
    Ok(Team { hub, model, _files: files })
}

impl Team {
    /// Runs `a2a-hub` in the workspace with the data directory of the hub.
    async fn run(&self, args: &[&str]) -> Result<Ran> {
        let data = self.hub.data_dir().display().to_string();
        let args = [&["--data-dir", &data], args].concat();
        let mut command = command(self.hub.socket(), &self.hub.home(), &args)?;
        command.current_dir(self.hub.workspace());
        finish_within(PATIENCE, command).await
    }

    /// Makes a flow from a template, with these vendors in its parts.
    async fn flow_of(&self, template: &str, vendors: &[&Vendor]) -> Result<()> {
        let agents: Vec<_> = vendors.iter().map(|vendor| vendor.agent).collect();
        let agents = agents.join(",");
        let args = ["flow", "new", template, "--from", template, "--agents", &agents];
        let made = self.run(&args).await?;
        ensure!(made.code == Some(0), "{}", made.stderr);
        self.hub.joined(template).await?;
        Ok(())
    }

    /// Returns the prompts to a vendor's model that contain a text, as JSON.
    fn asked(&self, vendor: &Vendor, text: &str) -> Vec<String> {
        let requests = self.model.requests().into_iter();
        let ours = requests.filter(|seen| seen.path.contains(vendor.api));
        ours.map(|seen| seen.body.to_string()).filter(|body| body.contains(text)).collect()
    }

    /// Returns the only task of this agent with its children, oldest first.
    async fn workflow(&self, agent: &str) -> Result<Vec<Value>> {
        let client = Client::unix(&self.hub);
        let tasks = client.call("hub/tasks/list", json!({ "agentId": agent })).await?;
        let root = tasks.as_array().and_then(|all| all.iter().find(|it| it["agentId"] == agent));
        let root = root.with_context(|| format!("{agent} has no task: {tasks}"))?;
        tree(&client, &root["id"]).await
    }

    /// Makes a repository in the workspace from files with their contents.
    fn repository(&self, files: &[(&str, &str)]) -> Result<PathBuf> {
        let path = self.hub.workspace().join("repository");
        fs::create_dir(&path)?;
        for (name, text) in files {
            fs::write(path.join(name), text)?;
        }
        commit_all(&path)?;
        Ok(path)
    }
}

/// Agents of the tasks, oldest first.
fn agents(tasks: &[Value]) -> Vec<&str> {
    tasks.iter().filter_map(|task| task["agentId"].as_str()).collect()
}

/// Claude's change fails the judge, those of Codex and Gemini pass, Vibe changes nothing.
#[tokio::test]
async fn smallest_passing_edit_is_applied() -> Result<()> {
    let task = "Make greet.sh greet the world";
    let team = team(
        &[&CLAUDE, &CODEX, &GEMINI, &VIBE],
        [
            // Claude overwrites only files that it has read.
            answer(
                &CLAUDE,
                task,
                "[[tool:read:greet.sh]][[tool:write:greet.sh:echo hello\necho world\n]] Done.",
            ),
            answer(&CODEX, task, "[[tool:write:greet.sh:echo hello, world\n]] Done."),
            answer(
                &GEMINI,
                task,
                "[[tool:write:greet.sh:# Greets the world.\necho hello, world\n]] Done.",
            ),
            answer(&VIBE, task, "It greets the world already."),
        ],
    )
    .await?;
    let repository =
        team.repository(&[("greet.sh", "echo hello\n"), ("notes.txt", "No change.\n")])?;
    let judge = "test \"$(sh greet.sh)\" = 'hello, world'";
    let cwd = repository.display().to_string();
    let of = "claude-code,codex,gemini,vibe";
    let ran = team.run(&["best", task, "--of", of, "--judge", judge, "--cwd", &cwd]).await?;
    let (shown, noted) = (&ran.stdout, &ran.stderr);
    ensure!(ran.code == Some(0), "{shown} {noted}");
    for line in [
        "Picked: 2 codex (+1 -1)\n",
        "- 1 claude-code (+1 -0, $",
        "): `judge` exited with 1\n",
        "- 3 gemini (+2 -1): passed, larger\n",
        "- 4 vibe: it changed nothing\n",
    ] {
        ensure!(shown.contains(line), "no {line:?}: {shown}");
    }
    ensure!(!noted.contains("allow less than `edit`"), "they may edit: {noted}");
    ensure!(git(&repository, &["status", "--porcelain"])?.is_empty(), "before it is applied");

    let id = noted.rsplit("task apply ").next().unwrap_or_default().trim();
    let applied = team.run(&["task", "apply", id]).await?;
    ensure!(applied.code == Some(0), "{noted} {}", applied.stderr);
    assert_eq!(fs::read_to_string(repository.join("greet.sh"))?, "echo hello, world\n");
    assert_eq!(git(&repository, &["status", "--porcelain"])?, "M greet.sh", "and no other file");
    let workspace: Vec<_> = fs::read_dir(team.hub.workspace())?.collect();
    assert_eq!(workspace.len(), 1, "nothing beside the repository: {workspace:?}");
    Ok(())
}

/// Gemini asks Codex for a change, and approves the next result.
#[tokio::test]
async fn reviewed_result_is_revised_then_approved() -> Result<()> {
    let team = team(
        &[&CODEX, &GEMINI],
        [
            answer(&CODEX, "the unit is missing", "The timeout is 30 seconds."),
            answer(&CODEX, "Document the timeout", "The timeout is 30."),
            answer(
                &GEMINI,
                "The timeout is 30 seconds.",
                "{\"verdict\": \"approve\", \"findings\": []}",
            ),
            answer(
                &GEMINI,
                "Review the result",
                "{\"verdict\": \"revise\", \"findings\": [\"the unit is missing\"]}",
            ),
        ],
    )
    .await?;
    team.flow_of("review", &[&CODEX, &GEMINI]).await?;
    let ran = team.run(&["run", "review", "Document the timeout"]).await?;
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "The timeout is 30 seconds.\n"),
        "{}",
        ran.stderr
    );
    let tasks = team.workflow("review").await?;
    assert_eq!(agents(&tasks), ["review", "codex", "gemini", "codex", "gemini"]);
    ensure!(tasks.iter().all(|task| state(task) == "completed"), "{tasks:#?}");
    // The writer gets its last result with the finding.
    let revised = team.asked(&CODEX, "the unit is missing");
    let revised = revised.first().context("the writer did not get the finding")?;
    ensure!(revised.contains("The timeout is 30."), "{revised}");
    Ok(())
}

/// Claude and Codex approve a change, and Vibe does not.
#[tokio::test]
async fn dissent_of_vote_is_quoted() -> Result<()> {
    let ballot = |vendor, choice: &str, reason: &str| {
        let ballot = json!({ "choice": choice, "confidence": 0.8, "reason": reason });
        answer(vendor, "Shall this change be taken?", &ballot.to_string())
    };
    let team = team(
        &[&CLAUDE, &CODEX, &VIBE],
        [
            ballot(&CLAUDE, "approve", "the loop is simpler"),
            ballot(&CODEX, "approve", "the tests pass"),
            ballot(&VIBE, "revise", "an empty list is never left"),
        ],
    )
    .await?;
    let repository = team.repository(&[("loop.sh", "for it in $@; do echo $it; done\n")])?;
    fs::write(repository.join("loop.sh"), "while :; do echo $1; shift || break; done\n")?;
    let change = git(&repository, &["diff"])?;
    // The flow of docs/how-to/let-agents-work-in-steps.md.
    let page = include_str!("../../../../../docs/how-to/let-agents-work-in-steps.md");
    let flow = page.split("## Let agents vote\n\n```toml\n").nth(1).context("no flow")?;
    let flow = flow.split("```").next().unwrap_or_default().replace("\"gemini\"", "\"vibe\"");
    fs::create_dir_all(team.hub.data_dir().join("flows"))?;
    fs::write(team.hub.data_dir().join("flows/decide.flow.toml"), flow)?;
    team.hub.joined("decide").await?;
    let ran = team.run(&["run", "decide", &change]).await?;
    ensure!(ran.code == Some(0), "{} {}", ran.stdout, ran.stderr);
    // The model repeats what it is to explain.
    for line in
        ["\"choice\": \"approve\"", "\"outcome\": \"decided\"", "an empty list is never left"]
    {
        ensure!(ran.stdout.contains(line), "no {line}: {}", ran.stdout);
    }
    let tasks = team.workflow("decide").await?;
    let voters: BTreeSet<_> = agents(&tasks)[1..4].iter().copied().collect();
    assert_eq!(voters, BTreeSet::from(["claude-code", "codex", "vibe"]));
    assert_eq!(agents(&tasks)[4..], ["claude-code"], "it explains");
    for vendor in [&CLAUDE, &CODEX, &VIBE] {
        ensure!(!team.asked(vendor, "+while :").is_empty(), "{} gets the diff", vendor.agent);
    }
    Ok(())
}

/// Codex objects; Vibe answers in prose first, and is asked again for JSON.
#[tokio::test]
async fn second_opinion_quotes_who_objects() -> Result<()> {
    let opinion = |vendor, prompt: &str, verdict: &str, reason: &str| {
        let opinion = json!({ "verdict": verdict, "reasons": [reason] });
        answer(vendor, prompt, &opinion.to_string())
    };
    // The prompt of the synthesis asks for no JSON, and the model repeats it.
    let asked = "Answer with one JSON value";
    let corrected = "Your last answer could not be used: the answer has no JSON value";
    let team = team(
        &[&CLAUDE, &CODEX, &VIBE],
        [
            opinion(&CLAUDE, asked, "agree", "it is short"),
            opinion(&CODEX, asked, "object", "nobody can restore the table"),
            opinion(&VIBE, corrected, "agree", "it is tested"),
            answer(&VIBE, asked, "I agree with it."),
        ],
    )
    .await?;
    team.flow_of("second-opinion", &[&CLAUDE, &CODEX, &VIBE]).await?;
    let ran = team.run(&["run", "second-opinion", "Drop the table, then copy it."]).await?;
    ensure!(ran.code == Some(0), "{} {}", ran.stdout, ran.stderr);
    for quoted in ["nobody can restore the table", "it is tested"] {
        ensure!(ran.stdout.contains(quoted), "no `{quoted}`: {}", ran.stdout);
    }
    let tasks = team.workflow("second-opinion").await?;
    let of = |vendor: &Vendor| agents(&tasks).iter().filter(|id| **id == vendor.agent).count();
    assert_eq!((of(&CLAUDE), of(&CODEX), of(&VIBE)), (2, 1, 2), "{tasks:#?}");
    Ok(())
}

/// Claude does one item of a board, and Codex the one that needs it, which it wants too early.
#[tokio::test]
async fn shared_board_ends_when_items_are_done() -> Result<()> {
    let round = |vendor, number: u32, contributions: Value| {
        let contributions = json!({ "contributions": contributions }).to_string();
        answer(vendor, &format!("This is round {number} of"), &contributions)
    };
    let claim =
        |id: &str, version: u32| json!({ "do": "claim", "id": id, "version": version, "text": "" });
    let finish = |id: &str, version: u32, text: &str| json!({ "do": "finish", "id": id, "version": version, "text": text });
    let (found, answered) = ("the writer is called by the server", "The server writes the log.");
    let team = team(
        &[&CLAUDE, &CODEX],
        [
            round(&CLAUDE, 1, json!([claim("callers", 1)])),
            round(&CODEX, 1, json!([claim("answer", 1)])),
            round(&CLAUDE, 2, json!([finish("callers", 2, found)])),
            round(&CODEX, 2, json!([])),
            round(&CLAUDE, 3, json!([])),
            round(&CODEX, 3, json!([claim("answer", 1), finish("answer", 1, answered)])),
        ],
    )
    .await?;
    let flow = r#"
        description = "Finds something out together"
        [input]
        question = { type = "string" }
        [[step]]
        id = "explore"
        prompt = "Find this out.\n{{ input.question }}"
        [step.blackboard]
        agents = ["claude-code", "codex"]
        rounds = 8
        items = [
            { id = "callers", text = "Who calls the writer?" },
            { id = "answer", text = "Answer the question", needs = ["callers"] },
        ]
    "#;
    fs::create_dir_all(team.hub.data_dir().join("flows"))?;
    fs::write(team.hub.data_dir().join("flows/explore.flow.toml"), flow)?;
    team.hub.joined("explore").await?;
    let ran = team.run(&["run", "explore", "Who writes the log?"]).await?;
    ensure!(ran.code == Some(0), "{} {}", ran.stdout, ran.stderr);
    let output: Value = serde_json::from_str(&ran.stdout)?;
    assert_eq!((&output["outcome"], &output["rounds"]), (&json!("goal"), &json!(3)), "{output}");
    for (item, by, result) in [(0, "claude-code", found), (1, "codex", answered)] {
        let item = &output["items"][item];
        assert_eq!((&item["by"], &item["result"]), (&json!(by), &json!(result)), "{item}");
    }
    let tasks = team.workflow("explore").await?;
    ensure!(tasks.iter().all(|task| state(task) == "completed"), "{tasks:#?}");
    let of = |vendor: &Vendor| agents(&tasks).iter().filter(|id| **id == vendor.agent).count();
    assert_eq!((of(&CLAUDE), of(&CODEX)), (3, 3), "once a round: {tasks:#?}");
    // Codex sees what Claude found, and why it has to wait for it.
    for (round, seen) in [(2, "items that it needs are not done"), (3, found)] {
        let asked = team.asked(&CODEX, &format!("This is round {round} of"));
        ensure!(asked.iter().any(|it| it.contains(seen)), "not {seen:?}: {asked:?}");
    }
    Ok(())
}

/// Claude changes the board in its turns, by the tools of the hub's MCP server; Codex sees it.
#[tokio::test]
async fn item_is_done_by_tools_for_boards() -> Result<()> {
    let tool =
        |name: &str, arguments: Value| format!("[[tool:raw:mcp__a2a-hub__{name}:{arguments}]]");
    let round = |vendor, number: u32, tools: &str| {
        let text = format!("{tools}{}", json!({ "contributions": [] }));
        answer(vendor, &format!("This is round {number} of"), &text)
    };
    let claimed = tool("claim_item", json!({ "id": "callers", "version": 1 }));
    let found = "the writer is called by the server";
    let done = tool("finish_item", json!({ "id": "callers", "version": 2, "text": found }));
    let granted = "[agents.claude-code.grant]\nmemory = true\nfiles = true\ndelegate = ['echo']\n\
                   [agents.claude-code.grant.process.claude]\n";
    let team = team_with(
        granted,
        &[&CLAUDE, &CODEX],
        [
            round(&CLAUDE, 1, &claimed),
            round(&CODEX, 1, ""),
            round(&CLAUDE, 2, &done),
            round(&CODEX, 2, ""),
        ],
    )
    .await?;
    let flow = r#"
        description = "Finds something out"
        [[step]]
        id = "explore"
        prompt = "Find this out."
        [step.blackboard]
        agents = ["claude-code", "codex"]
        items = [{ id = "callers", text = "Who calls the writer?" }]
    "#;
    fs::create_dir_all(team.hub.data_dir().join("flows"))?;
    fs::write(team.hub.data_dir().join("flows/explore.flow.toml"), flow)?;
    team.hub.joined("explore").await?;
    let ran = team.run(&["run", "explore"]).await?;
    ensure!(ran.code == Some(0), "{} {}", ran.stdout, ran.stderr);
    let output: Value = serde_json::from_str(&ran.stdout)?;
    let item = &output["items"][0];
    let told = (&output["outcome"], &item["by"], &item["result"]);
    assert_eq!(told, (&json!("goal"), &json!("claude-code"), &json!(found)), "{output}");
    let seen = team.asked(&CODEX, "This is round 2 of");
    ensure!(seen.iter().any(|it| it.contains("claude-code")), "{seen:?}");
    Ok(())
}

/// The programs of one part are killed: Codex and Gemini, which takes over, at both attempts.
#[tokio::test]
async fn killed_researcher_is_named_in_report() -> Result<()> {
    let part = |question: &str| {
        let found = json!({ "answer": format!("{question}: yes"), "sources": ["notes.txt:1"] });
        answer(&CODEX, question, &found.to_string())
    };
    let questions = ["Is it fast", "Is it safe", "Is it small"];
    let [fast, safe, small] = questions;
    let team = team(
        &[&CLAUDE, &CODEX, &GEMINI],
        [
            answer(&CLAUDE, "Divide this question", &json!({ "questions": questions }).to_string()),
            part(fast),
            answer(&CODEX, safe, "[[hang]]"),
            answer(&GEMINI, safe, "[[hang]]"),
            part(small),
        ],
    )
    .await?;
    team.flow_of("research", &[&CLAUDE, &CODEX, &GEMINI]).await?;
    let client = Client::http(&team.hub);
    let mut message = message_to("research", "Is it good?");
    message["configuration"] = json!({ "blocking": false });
    let root: Value = client.call("message/send", message).await?;
    let id = root["id"].as_str().context("no id")?;

    let is_researcher = |task: &&Value| {
        let agent = &task["agentId"];
        agent == CODEX.agent || agent == GEMINI.agent
    };
    let others_are_done = async || {
        let tasks = tree(&client, &root["id"]).await.unwrap_or_default();
        let done = |task: &&Value| is_researcher(task) && state(task) == "completed";
        tasks.iter().filter(done).count() == 2
    };
    eventually_async(PATIENCE, others_are_done).await.context("the other parts do not end")?;
    let ends = Instant::now() + PATIENCE;
    let mut killed = Vec::new();
    while !["completed", "failed"].contains(&state(&get(&client, id).await?)) {
        ensure!(Instant::now() < ends, "it does not end: {:#?}", tree(&client, &root["id"]).await?);
        let asked = team.asked(&CODEX, safe).len() + team.asked(&GEMINI, safe).len();
        let tasks = tree(&client, &root["id"]).await?;
        let works = |task: &&Value| is_researcher(task) && state(task) == "working";
        if let Some(task) = tasks.iter().find(works)
            && asked > killed.len()
        {
            for pid in processes_of_task(task["id"].as_str().unwrap_or_default()) {
                let pid = Pid::from_raw(i32::try_from(pid)?).context("no process")?;
                // A process may already have exited with another one.
                let _ = kill_process(pid, Signal::KILL);
            }
            killed.push(task["agentId"].as_str().unwrap_or_default().to_owned());
        }
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(killed, ["codex", "codex", "gemini", "gemini"]);
    let done = get(&client, id).await?;
    assert_eq!(state(&done), "completed", "{done}");
    let report = said(&done);
    for question in [fast, small] {
        ensure!(report.contains(&format!("{question}: yes")), "{report}");
    }
    ensure!(report.contains("This part failed: nobody answered it."), "{report}");
    let named = report.lines().filter(|line| line.starts_with("Not answered: "));
    assert_eq!(
        named.collect::<Vec<_>>(),
        [format!("Not answered: {safe} (Gemini CLI ended before its answer (signal 9))")]
    );
    no_program_left(&team.hub.data_dir(), Duration::from_secs(10)).await?;
    Ok(())
}

/// Claude's quota is used up; Codex goes on in the same worktree, and its change is applied.
#[tokio::test]
async fn task_over_quota_continues_at_other_vendor() -> Result<()> {
    let task = "Make greet.sh greet the world";
    let edit = "[[tool:write:greet.sh:echo hello, world\n]] Done.";
    let answers =
        [answer(&CLAUDE, task, "[[error:429]]"), answer(&CODEX, "has not finished", edit)];
    let team = team(&[&CLAUDE, &CODEX], answers).await?;
    let repository = team.repository(&[("greet.sh", "echo hello\n")])?;
    let cwd = repository.display().to_string();
    let ran = team.run(&["send", "claude-code", task, "--worktree", "--cwd", &cwd]).await?;
    ensure!(ran.code == Some(1), "{} {}", ran.stdout, ran.stderr);
    let old = team.workflow("claude-code").await?.swap_remove(0);
    assert_eq!(old["metadata"]["reason"], "rate_limited", "{old}");
    let id = old["id"].as_str().context("its id")?;
    let ran = team.run(&["task", "handoff", id, "codex", "--note", "Only this file."]).await?;
    ensure!(ran.code == Some(0) && ran.stdout.contains("Done."), "{} {}", ran.stdout, ran.stderr);
    for told in [task, "What `claude-code` said last", "Only this file."] {
        ensure!(!team.asked(&CODEX, told).is_empty(), "Codex is not told {told:?}");
    }
    let new = team.workflow("codex").await?.swap_remove(0);
    assert_eq!((&new["contextId"], state(&new)), (&old["contextId"], "completed"));
    let id = new["id"].as_str().context("its id")?;
    let applied = team.run(&["task", "apply", id]).await?;
    ensure!(applied.code == Some(0), "{}", applied.stderr);
    assert_eq!(fs::read_to_string(repository.join("greet.sh"))?, "echo hello, world\n");
    Ok(())
}
