//! Tests of the five-step protocol: a requesting agent discovers a specialist, submits a task, and
//! receives updates.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, artifact, bearer, eventually, get, hub_with_calling_guest, send, state},
};
use a2a_hub_tests::{
    Client, ModelServer, WebServer, example_agent,
    five_step::{Update, Updates, behave, post, specialist_config, task},
    test_guests,
};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{fs, time::Duration};

/// Timeout of waits.
const WITHIN: Duration = Duration::from_secs(60);

/// Starts a hub with the specialist, a source and a model.
async fn specialist(source: &WebServer, model: Option<&ModelServer>) -> Result<InProcessHub> {
    let (config, agent) = (specialist_config(source, model)?, example_agent("browse-extract")?);
    InProcessHub::builder().config(config).plugin("browse-extract", agent).start().await
}

/// Follows the example of the protocol's description, step by step.
#[tokio::test]
async fn five_step_example_runs_to_result() -> Result<()> {
    let (source, model) = (WebServer::start().await?, ModelServer::start()?);
    let hub = specialist(&source, Some(&model)).await?;
    let base = format!("http://{}/agents/browse-extract", hub.http());
    let card: Value = reqwest::get(format!("{base}/.well-known/agent.json")).await?.json().await?;
    let submit = format!("{base}/submit_task");
    assert_eq!(card["endpoints"]["submit_task"], submit, "{card:#}");
    assert_eq!(card["endpoints"]["task_updates"], format!("{base}/task_updates/{{task_id}}"));
    assert_eq!(card["skills"][0]["id"], "browse_extract");
    let schema = &card["skills"][0]["inputSchema"];
    assert_eq!(schema["required"], json!(["search_topic", "extraction_instruction"]), "{card:#}");

    let topic = "Why is the sky blue?";
    let input = json!({ "search_topic": topic, "extraction_instruction": format!("Summarize web results for: '{topic}'") });
    let sent = task("browse_extract", input);
    let answer = reqwest::Client::new().post(&submit).json(&sent).send().await?;
    assert_eq!(answer.status(), 202);
    let submitted: Value = answer.json().await?;
    let id = submitted["task_id"].as_str().context("no task_id")?;
    let url = format!("{base}/task_updates/{id}");
    assert_eq!(submitted["updates_url"], url);
    assert!(
        ["submitted", "working"].iter().any(|state| submitted["status"] == *state),
        "{submitted}"
    );
    assert!(submitted["status_message"].is_string());

    let updates = Updates::listen(&url, None).await?.rest().await?;
    let last = updates.last().context("no updates")?;
    for update in &updates {
        assert_eq!((update.event.as_str(), &update.data["task_id"]), ("task_update", &json!(id)));
        for member in ["status", "status_message", "progress_percent", "artefacts", "error_message"]
        {
            assert!(update.data.get(member).is_some(), "{member}: {update:?}");
        }
    }
    assert_eq!(
        (last.status(), &last.data["progress_percent"]),
        ("completed", &json!(100)),
        "{last:?}"
    );
    assert_eq!(last.data["error_message"], Value::Null);
    let made = &last.data["artefacts"][0]["parts"];
    assert!(
        made[0]["text"].as_str().is_some_and(|text| text.contains("by the model tiny")),
        "{made:#}"
    );
    let facts = &made[1]["data"];
    assert_eq!((&facts["method"], &facts["search_topic"]), (&json!("model"), &json!(topic)));
    assert_eq!(facts["sources"][0]["title"], "The sky");
    assert_eq!(source.asked()[0].path, "/Why%20is%20the%20sky%20blue%3F/page");
    let heard = model.requests().pop().context("the model was not asked")?.body;
    let asked: Value =
        serde_json::from_str(heard["messages"][1]["content"].as_str().context("no prompt")?)?;
    assert!(asked["passages"][0]["text"].as_str().is_some_and(|text| text.contains("Rayleigh")));

    // In A2A, the requesting agent's id is metadata of the message without further meaning, and
    // progress is metadata of the task.
    let seen = get(&Client::http(&hub), id).await?;
    let facts = &seen["history"][0]["metadata"];
    assert_eq!(facts["requesting_agent_id"], "requesting-agent-01", "{seen:#}");
    assert_eq!(
        (&facts["skill_id"], &facts["targetAgent"]),
        (&json!("browse_extract"), &json!("browse-extract"))
    );
    assert_eq!(seen["metadata"]["progress"]["percent"], 60);
    Ok(())
}

#[tokio::test]
async fn submission_is_routed_by_skill() -> Result<()> {
    let config = "[agents.browse-extract.grant]\nworkspace = 'read'\n";
    let agent = example_agent("browse-extract")?;
    let hub =
        InProcessHub::builder().config(config).plugin("browse-extract", agent).start().await?;
    fs::write(hub.workspace().join("tea.md"), "# Tea\n\nBlack tea is oxidised. Green tea is not.")?;
    let input = json!({ "search_topic": "green tea", "extraction_instruction": "Is it oxidised?" });
    for skill in ["browse_extract", "browse-extract/browse_extract"] {
        let (status, submitted) = post(&hub, "/submit_task", &task(skill, input.clone())).await?;
        assert_eq!(status, 202, "{submitted}");
        let url = submitted["updates_url"].as_str().context("no updates_url")?;
        assert!(url.starts_with(&format!("http://{}/task_updates/", hub.http())), "{url}");
        let updates = Updates::listen(url, None).await?.rest().await?;
        let last = updates.last().context("no updates")?;
        let facts = &last.data["artefacts"][0]["parts"][1]["data"];
        assert_eq!((last.status(), &facts["method"]), ("completed", &json!("ranking")), "{last:?}");
        assert!(
            facts["extraction"]
                .as_str()
                .is_some_and(|text| text.contains("Green tea is not. [tea.md]"))
        );
    }
    // An agent that takes text receives the only text, and its message is the result.
    let (_, submitted) =
        post(&hub, "/submit_task", &task("echo", json!({ "text": "hello" }))).await?;
    let url = submitted["updates_url"].as_str().context("no updates_url")?;
    let last = Updates::listen(url, None).await?.rest().await?.pop().context("no updates")?;
    assert_eq!((last.status(), last.message()), ("completed", "hello"));
    assert_eq!(last.data["artefacts"][0]["parts"], json!([{ "kind": "text", "text": "hello" }]));

    let root = format!("http://{}", hub.http());
    let found = async |path: &str, version: Option<&str>| -> Result<Value> {
        let request = reqwest::Client::new().get(format!("{root}{path}"));
        let request =
            version.into_iter().fold(request, |it, version| it.header("A2A-Version", version));
        Ok(request.send().await?.json().await?)
    };
    for (path, at) in [
        ("/.well-known/agent.json", String::new()),
        ("/.well-known/agent-card.json", String::new()),
        ("/.well-known/agents/echo.json", "/agents/echo".to_owned()),
        ("/agents/echo/.well-known/agent.json", "/agents/echo".to_owned()),
    ] {
        let card = found(path, None).await?;
        assert_eq!(
            card["endpoints"]["submit_task"],
            format!("{root}{at}/submit_task"),
            "{path}: {card:#}"
        );
    }
    let card = found("/agents/browse-extract/.well-known/agent-card.json", Some("1.0")).await?;
    assert_eq!(
        (card.get("endpoints"), card["skills"][0].get("inputSchema")),
        (None, None),
        "{card:#}"
    );
    let extension = &card["capabilities"]["extensions"][0];
    assert_eq!(extension["uri"], "urn:a2a-hub:five-step:v1");
    assert_eq!(
        extension["params"]["submit_task"],
        format!("{root}/agents/browse-extract/submit_task")
    );
    assert!(extension["params"]["inputSchemas"]["browse_extract"]["required"].is_array());
    Ok(())
}

#[tokio::test]
async fn task_updates_support_reconnect_and_sharing() -> Result<()> {
    let hub = InProcessHub::builder().config(GRANT).plugin("guest", test_guests()?).start().await?;
    let url = behave(&hub, "ask").await?;
    let (mut one, mut other) =
        (Updates::listen(&url, None).await?, Updates::listen(&url, None).await?);
    let asked = one.until("input-required").await?;
    assert_eq!(other.until("input-required").await?, asked);
    // A question is answered through A2A, at the URL in the update; the updates continue.
    assert!(
        asked.message().starts_with("what do you say? [To answer, send an A2A message"),
        "{asked:?}"
    );
    let question = &asked.data["question"];
    assert_eq!(
        (&question["kind"], &question["prompt"]),
        (&json!("input"), &json!("what do you say?"))
    );
    let answer = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": { "message": {
        "kind": "message", "messageId": "m-1", "role": "user", "parts": [{ "kind": "text", "text": "more" }],
        "taskId": asked.data["task_id"], "metadata": { "question": question["id"] },
    } } });
    let at = question["answer_url"].as_str().context("no answer_url")?;
    let answered: Value =
        reqwest::Client::new().post(at).json(&answer).send().await?.json().await?;
    assert_eq!(answered["result"]["status"]["state"], "completed", "{answered:#}");
    let (one, other) = (one.rest().await?, other.rest().await?);
    assert_eq!(one, other);
    let last = one.last().context("no updates")?;
    assert_eq!((last.status(), last.message()), ("completed", "more"));

    // A late listener receives the end; a resumed one receives the rest without duplicates.
    let late = Updates::listen(&url, None).await?.rest().await?;
    assert_eq!(late.iter().map(Update::status).collect::<Vec<_>>(), ["completed"]);
    assert_eq!(late[0].data, last.data);
    assert_eq!(Updates::listen(&url, Some(&asked.id)).await?.rest().await?, one);
    assert!(Updates::listen(&url, Some(&last.id)).await?.rest().await?.is_empty());
    let beyond = reqwest::Client::new().get(&url).header("Last-Event-ID", "999").send().await?;
    assert_eq!(beyond.status(), 400);

    // A listener that resumes later still learns the progress.
    let url = behave(&hub, "progress").await?;
    let all = Updates::listen(&url, Some("0")).await?.rest().await?;
    let percent: Vec<_> = all.iter().map(|update| &update.data["progress_percent"]).collect();
    assert_eq!(percent[percent.len() - 3..], [&json!(40), &json!(80), &json!(80)], "{all:?}");
    let last = all.last().context("no updates")?;
    assert_eq!(
        (last.status(), &last.data["error_message"]),
        ("failed", &json!("nobody is logged in"))
    );
    let before = &all[all.len() - 2];
    assert_eq!(Updates::listen(&url, Some(&before.id)).await?.rest().await?, all[all.len() - 1..]);
    Ok(())
}

#[tokio::test]
async fn invalid_submission_lists_member_errors() -> Result<()> {
    let config = "[agents.browse-extract.grant]\nworkspace = 'read'\n";
    let agent = example_agent("browse-extract")?;
    let hub = InProcessHub::builder()
        .config(config)
        .plugin("browse-extract", agent.clone())
        .plugin("other", agent)
        .start()
        .await?;
    let skill = "browse_extract";
    let refused = async |path: &str, task: &Value| -> Result<String> {
        let (status, body) = post(&hub, path, task).await?;
        let fields = body["error"]["fields"].as_array().cloned().unwrap_or_default();
        let fields: Vec<_> = fields
            .iter()
            .map(|field| {
                format!(
                    "\n  {}: {}",
                    field["pointer"].as_str().unwrap_or("?"),
                    field["message"].as_str().unwrap_or("?")
                )
            })
            .collect();
        ensure!(body["error"]["message"].is_string() && body["error"]["code"] == status, "{body}");
        Ok(format!(
            "{status} {}{}",
            body["error"]["reason"].as_str().unwrap_or("?"),
            fields.concat()
        ))
    };
    let own = "/agents/browse-extract/submit_task";
    let right = json!({ "search_topic": "x", "extraction_instruction": "y" });
    let told = [
        refused(own, &json!({})).await?,
        refused(own, &json!({ "requesting_agent_id": 7, "skill_id": [], "input_data": "x" }))
            .await?,
        refused(own, &task(skill, json!({ "search_topic": 1, "other": true }))).await?,
        refused(
            own,
            &task(
                skill,
                json!({ "search_topic": "", "extraction_instruction": "x".repeat(3_000) }),
            ),
        )
        .await?,
        refused(own, &task("echo", right.clone())).await?,
        refused("/submit_task", &task("other/none", right.clone())).await?,
        refused("/agents/nobody/submit_task", &task(skill, right.clone())).await?,
    ];
    let expected = [
        "400 INVALID_PARAMS\n  /requesting_agent_id: is missing\n  /skill_id: is missing\n  /input_data: is missing",
        "400 INVALID_PARAMS\n  /requesting_agent_id: must be a string\n  /skill_id: must be a string\n  /input_data: must be an object",
        "400 INVALID_PARAMS\n  /input_data/extraction_instruction: is missing\n  /input_data/search_topic: is not of type \"string\"\n  /input_data/other: is not known to the skill; leave it out",
        "400 INVALID_PARAMS\n  /input_data/extraction_instruction: is longer than 2000 characters\n  /input_data/search_topic: is shorter than 1 character",
        "400 INVALID_PARAMS\n  /skill_id: agent `browse-extract` has no skill `echo`; it has `browse_extract`",
        "400 INVALID_PARAMS\n  /skill_id: agent `other` has no skill `none`; it has `browse_extract`",
        "404 AGENT_NOT_FOUND",
    ];
    assert_eq!(told.join("\n\n"), expected.join("\n\n"));
    let (_, body) = post(&hub, "/submit_task", &task("none", right.clone())).await?;
    let skills = body["error"]["skills"].as_array().context("the skills are not listed")?;
    assert!(
        skills.contains(&json!("echo/echo")) && skills.contains(&json!("other/browse_extract"))
    );
    let client = Client::http(&hub);
    let all = client.call("hub/tasks/list", json!({})).await?;
    assert_eq!(all, json!([]), "nothing that was refused left a task");

    // Among several agents with the skill, the hub chooses one, but none without a grant.
    let mut workers = Vec::new();
    for _ in 0..2 {
        let (status, submitted) = post(&hub, "/submit_task", &task(skill, right.clone())).await?;
        assert_eq!(status, 202, "{submitted}");
        let routed = client.call("tasks/get", json!({ "id": submitted["task_id"] })).await?;
        let chosen = routed["metadata"]["routing"]["agent"].as_str();
        workers.push(chosen.with_context(|| routed.to_string())?.to_owned());
    }
    assert_eq!(workers, ["browse-extract", "browse-extract"]);

    // An agent's endpoint serves only that agent's tasks.
    let (_, submitted) = post(&hub, own, &task(skill, right)).await?;
    let id = submitted["task_id"].as_str().context("no task_id")?;
    for path in [format!("/agents/other/task_updates/{id}"), "/task_updates/none".to_owned()] {
        let answer = reqwest::get(format!("http://{}{path}", hub.http())).await?;
        assert_eq!(answer.status(), 404, "{path}");
        let body: Value = answer.json().await?;
        assert_eq!(body["error"]["reason"], "TASK_NOT_FOUND", "{path}: {body}");
    }
    let nobody =
        reqwest::get(format!("http://{}/agents/nobody/task_updates/{id}", hub.http())).await?;
    assert_eq!(nobody.status(), 404);
    eventually(WITHIN, || hub.log().is_empty() || !hub.log().contains("panicked")).await
}

#[tokio::test]
async fn five_step_endpoints_reject_web_pages() -> Result<()> {
    let hub = InProcessHub::builder().config("max_streams = 1\n").start().await?;
    let client = reqwest::Client::new();
    let right = task("echo", json!({ "text": "hi" })).to_string();
    for path in ["/submit_task", "/agents/echo/submit_task"] {
        let url = format!("http://{}{path}", hub.http());
        let post = |media: &'static str| {
            client.post(&url).header("Content-Type", media).body(right.clone())
        };
        let foreign =
            post("application/json").header("Origin", "http://evil.example").send().await?;
        assert_eq!(foreign.status(), 403, "{path}");
        assert_eq!(foreign.headers().get("access-control-allow-origin"), None);
        let rebound = post("application/json").header("Host", "evil.example").send().await?;
        assert_eq!(rebound.status(), 403, "{path}");
        let text = post("text/plain").send().await?;
        assert_eq!(text.status(), 415, "{path}");
        let body: Value = text.json().await?;
        assert!(
            body["error"]["message"].as_str().is_some_and(|why| why.contains("application/json")),
            "{body}"
        );
        assert_eq!(client.get(&url).send().await?.status(), 405, "{path}");
        // A separate connection, because the error closes it.
        let large = format!("{{\"x\":\"{}\"}}", "x".repeat(9 << 20));
        let large = reqwest::Client::new()
            .post(&url)
            .header("Content-Type", "application/json")
            .body(large);
        let large = large.send().await.context("the large one")?;
        assert_eq!(large.status(), 413, "{path}");
        assert!(large.json::<Value>().await?["error"]["message"].is_string());
        let garbled =
            client.post(&url).header("Content-Type", "application/json").body("{").send().await?;
        assert_eq!(
            (garbled.status().as_u16(), garbled.json::<Value>().await?["error"]["reason"].clone()),
            (400, json!("PARSE_ERROR"))
        );
        let known = post("application/json").header("Authorization", bearer(&hub)?).send().await?;
        assert_eq!(known.status(), 202, "{path}");
        let location = known.headers()["location"].to_str()?.to_owned();
        let foreign = client.get(&location).header("Origin", "http://evil.example").send().await?;
        assert_eq!(foreign.status(), 403, "{path}");
        assert_eq!(client.post(&location).json(&json!({})).send().await?.status(), 405);
    }
    Ok(())
}

/// A program that claims to be the operator keeps its own identity, even with the operator's token.
#[tokio::test]
async fn agent_program_submits_only_within_grant() -> Result<()> {
    let hub = hub_with_calling_guest().await?;
    let client = Client::http(&hub);
    let other = send(&client, "echo", "not for the guest").await?;
    let root = format!("http://{}", hub.http());
    let ask = |path: &str, more: &str| {
        format!(
            "curl -s -m 20 -o /dev/null -w '%{{http_code}}\\n' -H 'Authorization: {}' {more} {root}{path}",
            bearer(&hub).unwrap_or_default()
        )
    };
    let task = |skill: &str| {
        let task = json!({ "requesting_agent_id": "operator", "skill_id": skill, "input_data": { "text": "hi" } });
        format!("-H 'Content-Type: application/json' -d '{task}'")
    };
    let script = [
        ask("/agents/echo/submit_task", &task("echo")),
        ask("/submit_task", &task("echo")),
        ask("/agents/git-historian/submit_task", &task("changes")),
        ask("/submit_task", &task("changes")),
        ask(&format!("/task_updates/{}", other["id"].as_str().context("no id")?), ""),
    ];
    fs::write(hub.workspace().join("ask.sh"), script.join("\n"))?;
    let done = send(&client, "guest", "sh sh ask.sh").await?;
    let told = artifact(&done);
    let told: Vec<_> = told.split_whitespace().collect();
    assert_eq!(told.len(), 5, "{done:#}");
    assert_eq!(told[..2], ["202", "202"], "{done:#}");
    assert!(
        told[2..].iter().all(|status| ["400", "401", "403", "404"].contains(status)),
        "{told:?}"
    );
    let all = client.call("hub/tasks/list", json!({})).await?;
    let agents: Vec<_> =
        all.as_array().into_iter().flatten().map(|task| &task["agentId"]).collect();
    assert!(!all.to_string().contains("git-historian"), "{agents:?}");
    let below = client.call("hub/tasks/list", json!({ "workflow": done["id"] })).await?;
    assert_eq!(below.as_array().map(Vec::len), Some(3), "two are below the guest's own: {below:#}");
    Ok(())
}

/// An open stream counts towards the limit of streams.
#[tokio::test]
async fn listeners_count_towards_stream_limit() -> Result<()> {
    let config = format!("max_streams = 1\n{GRANT}");
    let hub =
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let url = behave(&hub, "ask").await?;
    let mut first = Updates::listen(&url, None).await?;
    let asked = first.until("input-required").await?;
    let second = reqwest::get(&url).await?;
    assert_eq!((second.status().as_u16(), second.headers()["retry-after"].to_str()?), (503, "1"));
    drop(first);
    let client = Client::http(&hub);
    let id = asked.data["task_id"].as_str().context("no id")?.to_owned();
    let free = async || Updates::listen(&url, None).await.is_ok();
    crate::stage::eventually_async(WITHIN, free).await?;
    let canceled = client.call("tasks/cancel", json!({ "id": id })).await?;
    assert_eq!(state(&canceled), "canceled");
    let listens = async || Updates::listen(&url, None).await.is_ok();
    crate::stage::eventually_async(WITHIN, listens).await
}
