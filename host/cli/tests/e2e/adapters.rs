//! Tests of the adapters to the vendors' programs, in their sandbox, against a model server on
//! loopback: a table of vendors, a function for each requirement, and a test for each pair.

mod claude_quota;
mod confined;
mod conversations;
mod hub_tools;
mod kept;
mod limits;
mod logins;
mod opencode;
mod overhead;
mod page;
mod patterns;
mod program_files;
mod settings;
mod together;
mod vendors;

use crate::command_line::{command, finish_within};
use crate::stage::{
    eventually, eventually_async, get, no_program_left, said, send, state, stream, until,
};
use a2a_hub_tests::{Client, ModelServer, TestHub, message_to, processes_of_task, runs};
use anyhow::{Context as _, Result, bail};
use confined::{confined_program_edits_its_workspace, confined_program_works_without_reading_keys};
use conversations::{
    concurrent_messages_are_answered_in_sequence, external_session_is_resumed,
    image_part_reaches_model,
};
use hub_tools::{board_tools_work_in_read_only_turn, hub_tools_work_without_questions};
use kept::{
    changed_settings_start_another_program, dead_idle_program_is_replaced,
    first_turn_uses_prestarted_program, next_turn_reuses_program,
};
use limits::{oversized_prompt_is_refused_with_limit, turn_limit_fails_with_max_turns};
use logins::each_person_is_billed;
use program_files::ProgramFiles;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use settings::{
    allowed_tool_runs_without_asking, chosen_model_reaches_program, operator_settings_reach_program,
};
use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::{Instant, sleep};
use vendors::{CLAUDE, CODEX, GEMINI, OPENCODE, VIBE, Vendor};

/// Generates a test for each vendor and each function.
macro_rules! conformance {
    ([$($vendor:ident = $which:expr),*] $promises:tt) => {
        $(mod $vendor { conformance! { @ $which, $promises } })*
    };
    (@ $which:expr, { $($promise:ident)* }) => {
        $(
            #[tokio::test]
            async fn $promise() -> anyhow::Result<()> {
                super::$promise(&$which).await
            }
        )*
    };
}

conformance! {
    [claude = crate::adapters::CLAUDE, codex = crate::adapters::CODEX, gemini = crate::adapters::GEMINI, vibe = crate::adapters::VIBE] {
        answer_is_streamed_then_sent_whole
        prompt_is_never_parsed_as_command
        tool_asks_for_permission_first
        operator_permissions_limit_program
        edit_permission_excludes_link_targets_outside
        reading_outside_workspace_asks_first
        chosen_model_reaches_program
        killed_program_withdraws_its_question
        model_error_message_reaches_client
        truncated_answer_is_completed_or_fails
        missing_login_is_auth_required
        health_check_reports_version
        cancel_ends_all_processes
        killed_program_fails_task
        conversation_continues_after_restart
        task_is_recovered_after_hub_kill
        image_part_reaches_model
        concurrent_messages_are_answered_in_sequence
        operator_settings_reach_program
        allowed_tool_runs_without_asking
        external_session_is_resumed
        next_turn_reuses_program
        dead_idle_program_is_replaced
        changed_settings_start_another_program
        first_turn_uses_prestarted_program
        confined_program_works_without_reading_keys
        confined_program_edits_its_workspace
        hub_tools_work_without_questions
        board_tools_work_in_read_only_turn
    }
}

// A program behind the key `acp`: the promises of any such program, on one that is widely used.
conformance! {
    [opencode_promises = crate::adapters::OPENCODE] {
        answer_is_streamed_then_sent_whole
        prompt_is_never_parsed_as_command
        tool_asks_for_permission_first
        chosen_model_reaches_program
        health_check_reports_version
        cancel_ends_all_processes
        killed_program_fails_task
        conversation_continues_after_restart
        image_part_reaches_model
        operator_settings_reach_program
        next_turn_reuses_program
        operator_permissions_limit_program
        reading_outside_workspace_asks_first
        missing_login_is_auth_required
        model_error_message_reaches_client
        killed_program_withdraws_its_question
        dead_idle_program_is_replaced
        concurrent_messages_are_answered_in_sequence
        allowed_tool_runs_without_asking
        changed_settings_start_another_program
        first_turn_uses_prestarted_program
        task_is_recovered_after_hub_kill
        hub_tools_work_without_questions
        board_tools_work_in_read_only_turn
    }
}

conformance! {
    [claude_login = crate::adapters::CLAUDE, codex_login = crate::adapters::CODEX, gemini_login = crate::adapters::GEMINI, vibe_login = crate::adapters::VIBE] {
        each_person_is_billed
    }
}

conformance! {
    [codex_limits = crate::adapters::CODEX] { oversized_prompt_is_refused_with_limit }
}

conformance! {
    [gemini_limits = crate::adapters::GEMINI] { turn_limit_fails_with_max_turns }
}

/// A hub, and a model server for its agent.
struct Stage {
    vendor: &'static str,
    hub: TestHub,
    model: ModelServer,
    /// Files of the program, removed after the hub's programs have exited.
    files: ProgramFiles,
}

/// Ids of the built-in agents that start a program.
const OTHERS: [&str; 5] = ["claude-code", "codex", "gemini", "git-historian", "vibe"];

/// Key that the model server requires.
const KEY: &str = "sk-right";

impl Vendor {
    /// Starts a hub for this vendor.
    async fn stage(&self) -> Result<Stage> {
        self.stage_with(Some(KEY), "").await
    }

    async fn stage_with(&self, key: Option<&str>, settings: &str) -> Result<Stage> {
        self.stage_on(self.path()?, key, settings).await
    }

    /// Starts a hub with the program that this `PATH` contains.
    async fn stage_on(&self, path: OsString, key: Option<&str>, settings: &str) -> Result<Stage> {
        let model = ModelServer::start()?.with_key(KEY);
        self.stage_of(model, path, key, settings).await
    }

    /// Starts a hub for this vendor with this server as its model.
    async fn stage_of(
        &self,
        model: ModelServer,
        path: OsString,
        key: Option<&str>,
        settings: &str,
    ) -> Result<Stage> {
        let mut files = ProgramFiles::new()?;
        let port = model.url().rsplit(':').next().unwrap_or_default();
        let settings = settings.replace("{port}", port);
        let settings = settings.replace("{files}", &files.path().display().to_string());
        let mut config = format!("[agents.{}]\n{}\n{settings}\n", self.agent, self.settings);
        // Health checks of other agents start their programs as well, which would count as those of
        // a task.
        for other in OTHERS.iter().filter(|other| **other != self.agent) {
            config.push_str(&format!("[agents.{other}]\nenabled = false\n"));
        }
        let mut hub = TestHub::builder().config(config).env("PATH", path);
        for (name, value) in (self.env)(&model, files.path()) {
            hub = hub.env(name, value);
        }
        if let Some(key) = key {
            hub = hub.env(self.key, key);
        }
        // Only a program that is passed the variable trusts its directory; the test's settings pass
        // it.
        if let Some(trusts) = self.trusts.1 {
            hub = hub.env(trusts, "true");
        }
        let hub = hub.start().await?;
        files.belong_to(&hub.data_dir());
        let stage = Stage { vendor: self.agent, hub, model, files };
        stage.checked().await?;
        Ok(stage)
    }

    /// Returns a `PATH` with the program. `cargo xtask test` leaves out tests of missing programs.
    fn path(&self) -> Result<OsString> {
        // `cargo xtask clis --newest` names another folder.
        let clis = env::var_os("A2A_HUB_CLIS").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clis"),
            PathBuf::from,
        );
        let path = env::var_os("PATH").unwrap_or_default();
        let mut places = vec![clis.join(self.bin), clis.join("node_modules/.bin")];
        places.extend(env::split_paths(&path));
        if !places.iter().any(|place| place.join(self.program).is_file()) {
            bail!("`{}` is not installed; run `cargo xtask clis`", self.program);
        }
        Ok(env::join_paths(places)?)
    }
}

impl Stage {
    fn client(&self) -> Client {
        Client::http(&self.hub)
    }

    async fn send(&self, text: &str) -> Result<Value> {
        send(&self.client(), self.vendor, text).await
    }

    /// Answers the question of a task.
    async fn answer(&self, task: &Value, text: &str) -> Result<Value> {
        let mut answer = message_to(self.vendor, text);
        answer["message"]["taskId"] = task["id"].clone();
        Ok(self.client().call("message/send", answer).await?)
    }

    /// Waits for the agent's first health check.
    async fn checked(&self) -> Result<Value> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let list = json!({ "includeHealth": true });
            let agents: Value = self.client().call("hub/agents/list", list).await?;
            let all = agents.as_array().context("no agents")?;
            let agent = all.iter().find(|agent| agent["id"] == self.vendor).context("not there")?;
            let health = &agent["health"];
            if health["status"] == "healthy" || health["status"] == "degraded" {
                return Ok(health.clone());
            }
            if Instant::now() > deadline {
                bail!("{health}");
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Returns the text of all requests to the model.
    fn asked_of_the_model(&self) -> String {
        self.asked_since(0)
    }

    /// Returns the text of the requests to the model after the first `before`.
    fn asked_since(&self, before: usize) -> String {
        self.model.requests()[before..].iter().map(|seen| seen.body.to_string()).collect()
    }
}

async fn answer_is_streamed_then_sent_whole(vendor: &Vendor) -> Result<()> {
    let stage = vendor.stage().await?;
    let prompt = "-x --help [[slow:60]] [[words:12]]";
    let (id, updates) = stream(&stage.client(), vendor.agent, prompt).await?;
    let events = updates.rest().await?;
    let chunks: Vec<_> = events.iter().filter(|event| event["kind"] == "artifact-update").collect();
    assert!(chunks.len() > 3, "deltas come as they are made: {chunks:?}");
    let last = chunks.last().context("no chunks")?;
    assert_eq!((&last["append"], &last["lastChunk"]), (&json!(false), &json!(true)));
    let task = get(&stage.client(), &id).await?;
    assert_eq!(state(&task), "completed", "{task}");
    let text = task["artifacts"][0]["parts"][0]["text"].as_str().unwrap_or_default();
    assert_eq!(text, "w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12");
    let used = task["metadata"]["usage"]["output_tokens"].as_u64();
    assert!(used.is_some_and(|used| used > 0), "{}", task["metadata"]);
    assert!(!stage.asked_of_the_model().contains("- echo: "), "nobody granted it other agents");
    Ok(())
}

async fn prompt_is_never_parsed_as_command(vendor: &Vendor) -> Result<()> {
    let stage = vendor.stage().await?;
    let secret = stage.hub.home().join("secret.txt");
    fs::write(&secret, "open sesame")?;
    let prompt = format!("/help --yolo @{}", secret.display());
    let task = stage.send(&prompt).await?;
    assert_eq!(state(&task), "completed", "{task}");
    let told = task["artifacts"].to_string();
    assert!(told.contains("/help --yolo"), "the model sees the prompt: {told}");
    assert!(!stage.asked_of_the_model().contains("open sesame"), "and no file that it names");
    Ok(())
}

async fn tool_asks_for_permission_first(vendor: &Vendor) -> Result<()> {
    let stage = vendor.stage().await?;
    for (decision, done) in [("no", false), ("yes", true)] {
        let file = stage.hub.workspace().join(format!("{decision}.txt"));
        let asked = stage.send(&(vendor.run)(&format!("touch {}", file.display()))).await?;
        assert_eq!(state(&asked), "input-required", "{asked}");
        let data = &asked["status"]["message"]["parts"][1]["data"];
        assert!(data["input"].to_string().contains("touch "), "{asked}");
        assert_eq!(data["directory"], json!(stage.hub.workspace()), "{asked}");
        assert!(!file.exists());
        let task = stage.answer(&asked, decision).await?;
        assert_eq!(state(&task), "completed", "{task}");
        assert_eq!(file.exists(), done, "{decision}");
    }
    Ok(())
}

async fn operator_permissions_limit_program(vendor: &Vendor) -> Result<()> {
    let stage = vendor.stage_with(Some(KEY), "permissions = 'edit'").await?;
    let file = stage.hub.workspace().join("new.txt");
    let task = stage.send(&(vendor.write)(&file.display().to_string())).await?;
    assert_eq!(state(&task), "completed", "{task}");
    assert_eq!(fs::read_to_string(&file)?, "new\n");
    let id = format!("change:{}", file.display());
    let artifacts = task["artifacts"].as_array().context("no artifacts")?;
    let change = artifacts.iter().find(|artifact| artifact["artifactId"] == json!(id));
    let change = change.with_context(|| format!("no artifact {id}: {task}"))?;
    assert!(change.to_string().contains("+new"), "{change}");
    // Permission to edit is limited to the workspace.
    let elsewhere = stage.hub.home().join("new.txt");
    let task = stage.send(&(vendor.write)(&elsewhere.display().to_string())).await?;
    if state(&task) == "input-required" {
        stage.answer(&task, "no").await?;
    }
    assert!(!elsewhere.exists(), "{task}");

    let stage = vendor.stage_with(Some(KEY), "permissions = 'read-only'").await?;
    let file = stage.hub.workspace().join("new.txt");
    let touch = format!("[[tool:shell:touch {}]]", file.display());
    for prompt in [(vendor.write)(&file.display().to_string()), touch] {
        let task = stage.send(&prompt).await?;
        assert_eq!(state(&task), "completed", "the model is told, not the client: {task}");
        assert!(!file.exists());
    }
    Ok(())
}

/// A repository may contain links to directories or files outside: the program asks, or refuses.
async fn edit_permission_excludes_link_targets_outside(vendor: &Vendor) -> Result<()> {
    let stage = vendor.stage_with(Some(KEY), "permissions = 'edit'").await?;
    let (work, outside) = (stage.hub.workspace(), tempfile::tempdir()?);
    let file = outside.path().join("file.txt");
    fs::write(&file, "old\n")?;
    symlink(outside.path(), work.join("directory"))?;
    symlink(&file, work.join("link.txt"))?;
    for path in ["directory/new.txt", "link.txt"] {
        let path = work.join(path);
        let task = stage.send(&(vendor.write)(&path.display().to_string())).await?;
        assert!(["input-required", "completed"].contains(&state(&task)), "{task}");
        assert_eq!(fs::read_to_string(&file)?, "old\n", "{task}");
        assert_eq!(fs::read_dir(outside.path())?.count(), 1, "{task}");
    }
    Ok(())
}

/// A key in the home directory is outside of the workspace.
async fn reading_outside_workspace_asks_first(vendor: &Vendor) -> Result<()> {
    let Some(read) = vendor.read else { return Ok(()) };
    let stage = vendor.stage_with(Some(KEY), "permissions = 'edit'").await?;
    let secret = stage.hub.home().join("id_ed25519");
    fs::write(&secret, "open sesame\n")?;
    let mut task = stage.send(&read(&secret.display().to_string())).await?;
    if state(&task) == "input-required" {
        task = stage.answer(&task, "no").await?;
    }
    assert_eq!(state(&task), "completed", "{task}");
    assert!(!stage.asked_of_the_model().contains("open sesame"), "it was read: {task}");
    let ours = stage.hub.workspace().join("ours.txt");
    fs::write(&ours, "shared words\n")?;
    let task = stage.send(&read(&ours.display().to_string())).await?;
    assert_eq!(state(&task), "completed", "what is in the workspace is read unasked: {task}");
    assert!(stage.asked_of_the_model().contains("shared words"), "{task}");
    Ok(())
}

async fn killed_program_withdraws_its_question(vendor: &Vendor) -> Result<()> {
    let stage = vendor.stage().await?;
    let asked = stage.send(&(vendor.run)("touch never")).await?;
    assert_eq!(state(&asked), "input-required", "{asked}");
    let id = asked["id"].as_str().unwrap_or_default();
    for pid in processes_of_task(id) {
        // A process may already have exited with another one.
        let _ =
            kill_process(Pid::from_raw(i32::try_from(pid)?).context("no process")?, Signal::KILL);
    }
    let client = stage.client();
    let failed = async || get(&client, id).await.is_ok_and(|task| state(&task) == "failed");
    eventually_async(Duration::from_secs(10), failed).await?;
    let task = get(&client, id).await?;
    assert_eq!(task["metadata"]["reason"], "broken_stream", "{task}");
    assert_eq!(task["metadata"]["question"], Value::Null, "nobody is asked any more: {task}");
    Ok(())
}

async fn model_error_message_reaches_client(vendor: &Vendor) -> Result<()> {
    let stage = vendor.stage().await?;
    for (status, reason) in [(400, "api_error"), (429, "rate_limited")] {
        let begun = Instant::now();
        let task = stage.send(&format!("[[error:{status}]]")).await?;
        assert_eq!(state(&task), "failed", "{task}");
        assert_eq!(task["metadata"]["reason"], reason, "{task}");
        let words =
            [&format!("mock error {status}"), "Rate limit exceeded", "429 Too Many Requests"];
        assert!(words.iter().any(|words| said(&task).contains(*words)), "{}", said(&task));
        assert!(begun.elapsed() < Duration::from_secs(60), "no minutes of hidden retries");
    }
    Ok(())
}

async fn truncated_answer_is_completed_or_fails(vendor: &Vendor) -> Result<()> {
    let stage = vendor.stage().await?;
    let task = stage.send("[[drop]] [[words:6]]").await?;
    if state(&task) == "completed" {
        assert_eq!(task["artifacts"][0]["parts"][0]["text"], "w1 w2 w3 w4 w5 w6", "{task}");
    } else {
        assert_eq!(state(&task), "failed", "{task}");
        assert_eq!(task["metadata"]["reason"], "broken_stream", "{task}");
    }
    Ok(())
}

async fn missing_login_is_auth_required(vendor: &Vendor) -> Result<()> {
    for (key, advice) in [(None, vendor.without_key), (Some("sk-wrong"), vendor.login)] {
        let stage = vendor.stage_with(key, "").await?;
        let task = stage.send("hello").await?;
        assert_eq!(state(&task), "auth-required", "{task}");
        assert!(said(&task).contains(&format!("`{advice}`")), "{}", said(&task));
    }
    Ok(())
}

async fn health_check_reports_version(vendor: &Vendor) -> Result<()> {
    let stage = vendor.stage().await?;
    let health = stage.checked().await?;
    assert_eq!(
        (&health["status"], &health["version"]),
        (&json!("healthy"), &json!(vendor.version))
    );
    Ok(())
}

async fn cancel_ends_all_processes(vendor: &Vendor) -> Result<()> {
    let stage = vendor.stage_with(Some(KEY), "permissions = 'full'").await?;
    let client = stage.client();
    let data = stage.hub.data_dir().canonicalize()?;
    for prompt in ["[[slow:200]] [[words:300]]", "[[hang]]", "[[tool:shell:sleep 300]]"] {
        let (id, mut updates) = stream(&client, vendor.agent, prompt).await?;
        if prompt.contains("words") {
            until(&mut updates, |event| event["kind"] == "artifact-update").await?;
        } else {
            let seen = stage.model.requests().len();
            eventually(Duration::from_secs(60), || stage.model.requests().len() > seen).await?;
            sleep(Duration::from_millis(700)).await;
        }
        let begun = Instant::now();
        let task = client.call("tasks/cancel", json!({ "id": id })).await?;
        assert_eq!(state(&task), "canceled");
        assert!(begun.elapsed() < Duration::from_secs(2), "{prompt}: {:?}", begun.elapsed());
        eventually(Duration::from_millis(100), || !runs(&data, "sleep")).await.context(prompt)?;
    }
    Ok(())
}

async fn killed_program_fails_task(vendor: &Vendor) -> Result<()> {
    let stage = vendor.stage().await?;
    let prompt = "[[slow:200]] [[words:300]]";
    let (id, mut updates) = stream(&stage.client(), vendor.agent, prompt).await?;
    until(&mut updates, |event| event["kind"] == "artifact-update").await?;
    for pid in processes_of_task(&id) {
        let pid = i32::try_from(pid)?;
        // A process may already have exited with another one.
        let _ = kill_process(Pid::from_raw(pid).context("no process")?, Signal::KILL);
    }
    let events = updates.rest().await?;
    let last = events.last().context("no end")?;
    assert_eq!(last["status"]["state"], "failed", "{last}");
    assert_eq!(last["metadata"]["reason"], "broken_stream", "{last}");
    let told = last["status"]["message"].to_string();
    assert!(!told.contains("bubblewrap"), "no line of its start is blamed: {told}");
    no_program_left(&stage.hub.data_dir(), Duration::from_secs(1)).await
}

async fn conversation_continues_after_restart(vendor: &Vendor) -> Result<()> {
    let mut stage = vendor.stage().await?;
    let first = stage.send("remember the word plum").await?;
    assert_eq!(state(&first), "completed", "{first}");
    stage.hub.restart().await?;
    let before = stage.model.requests().len();
    let mut second = message_to(vendor.agent, "and the second turn");
    second["message"]["contextId"] = first["contextId"].clone();
    let second: Value = stage.client().call("message/send", second).await?;
    assert_eq!(state(&second), "completed", "{second}");
    assert!(!second.to_string().contains("beginning anew"), "{second}");
    let sent = stage.asked_since(before);
    assert!(sent.contains("plum"), "the model is told what came before: {sent}");
    let used = |task: &Value| task["metadata"]["usage"]["input_tokens"].as_u64();
    let (first, second) = (used(&first).context("no usage")?, used(&second).context("no usage")?);
    assert!(second < first * 3 / 2, "what this run used, not the sum: {first}, {second}");
    Ok(())
}

async fn task_is_recovered_after_hub_kill(vendor: &Vendor) -> Result<()> {
    let mut stage = vendor.stage().await?;
    // Short, because a retold conversation contains the prompt, and the model executes it again.
    let prompt = "[[slow:200]] [[words:60]]";
    let (id, mut updates) = stream(&stage.client(), vendor.agent, prompt).await?;
    until(&mut updates, |event| event["kind"] == "artifact-update").await?;
    stage.hub.kill9().await?;
    no_program_left(&stage.hub.data_dir(), Duration::from_secs(5)).await?;
    stage.hub.restart().await?;
    let task = get(&stage.client(), &id).await?;
    assert_eq!((state(&task), &task["metadata"]["reason"]), ("input-required", &json!("recovery")));
    let task = stage.answer(&task, "go on").await?;
    assert_eq!(state(&task), "completed", "{task}");
    Ok(())
}

/// A thread that may write to a directory from its start would make Codex trust that directory
/// permanently.
#[tokio::test]
async fn codex_ignores_untrusted_directory_config() -> Result<()> {
    for permissions in ["edit", "full"] {
        let settings = format!("permissions = '{permissions}'");
        let stage = CODEX.stage_with(Some(KEY), &settings).await?;
        let (work, ran) = (stage.hub.workspace(), stage.hub.home().join("ran"));
        fs::create_dir(work.join(".codex"))?;
        let server = format!("[mcp_servers.x]\ncommand = 'touch'\nargs = ['{}']\n", ran.display());
        fs::write(work.join(".codex/config.toml"), server)?;
        let file = work.join("new.txt");
        let task = stage.send(&(CODEX.write)(&file.display().to_string())).await?;
        assert_eq!(state(&task), "completed", "{task}");
        assert!(file.exists(), "{task}");
        assert!(!ran.exists(), "the server of an untrusted directory ran");
        let config = fs::read_to_string(stage.files.path().join("config.toml"))?;
        assert!(!config.contains("trust_level"), "{config}");
    }
    Ok(())
}

/// By default, the program retries for minutes and reports that only in its debug log.
#[tokio::test]
async fn gemini_retries_are_reported_and_bounded() -> Result<()> {
    let stage = GEMINI.stage_with(Some(KEY), "settings.retry_timeout = 3").await?;
    // Removes the limit of retries that operators are advised to set.
    fs::write(stage.files.path().join(".gemini/settings.json"), "{}")?;
    let begun = Instant::now();
    let message = message_to("gemini", "[[error:429]] hello");
    let events = stage.client().stream("message/stream", message).await?.rest().await?;
    let told = json!(events).to_string();
    assert!(told.contains("retrying after attempt 1: "), "{told}");
    let last = events.last().context("no end")?;
    assert_eq!(last["status"]["state"], "failed", "{last}");
    assert_eq!(last["metadata"]["reason"], "rate_limited", "{last}");
    assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
    Ok(())
}

#[tokio::test]
async fn each_program_passes_offline_trial() -> Result<()> {
    let home = tempfile::tempdir()?;
    let mut places = Vec::new();
    for vendor in [CLAUDE, CODEX, GEMINI, VIBE] {
        places.extend(env::split_paths(&vendor.path()?).collect::<Vec<_>>());
    }
    let socket = home.path().join("socket");
    let mut trial = command(&socket, home.path(), &["--format", "json", "doctor", "--trial"])?;
    trial.env("PATH", env::join_paths(places)?);
    // Four programs and their components, none of which has run on this machine.
    let said = finish_within(Duration::from_secs(110), trial).await?.stdout;
    let findings: Value = serde_json::from_str(&said).with_context(|| said.clone())?;
    let findings = findings.as_array().context("no findings")?;
    assert_eq!(findings.len(), 4, "{said}");
    assert!(findings.iter().all(|found| found["verdict"] == "ok"), "{said}");
    let left: Vec<_> = fs::read_dir(home.path().join(".a2a-hub"))?.collect();
    assert!(left.is_empty(), "the trial leaves nothing behind: {left:?}");
    Ok(())
}
