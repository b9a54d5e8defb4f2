//! Client of the five-step protocol, with plain HTTP and server-sent events: `five-step URL
//! [TOPIC]`.
//!
//! `URL` is an agent's URL, such as `http://127.0.0.1:8080/agents/browse-extract`. Without a topic
//! the program chooses one.

#![expect(clippy::print_stdout, reason = "this is what it is for")]

use anyhow::{Context as _, Result, bail, ensure};
use futures::StreamExt as _;
use reqwest::{Client, Response};
use serde_json::{Value, json};
use std::time::Duration;

/// Skill to use.
const SKILL: &str = "browse_extract";

/// Default topics.
const TOPICS: [&str; 4] = [
    "Why is the sky blue?",
    "How do tides come about?",
    "What does a circuit breaker do?",
    "Who granted what to a component?",
];

/// Number of attempts to resume a stream that broke off.
const TRIES: u32 = 30;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let url = args.next().context("say whom to ask: five-step URL [TOPIC]")?;
    let client = Client::new();

    // Step 1: discover the agent and its skills.
    let card = client.get(format!("{}/.well-known/agent.json", url.trim_end_matches('/')));
    let card = answer(card.send().await?).await?;
    let skills = card["skills"].as_array().context("the card has no skills")?;
    ensure!(skills.iter().any(|skill| skill["id"] == SKILL), "it has no skill `{SKILL}`");
    let submit = card["endpoints"]["submit_task"].as_str().context("it has no `submit_task`")?;
    println!("1. discovered {} with the skill {SKILL}", card["name"]);

    // Step 2: generate the task.
    let topic = match args.next() {
        Some(topic) => topic,
        None => any_topic()?.to_owned(),
    };
    let instruction = format!("Summarize web results for: '{topic}'");
    let input = json!({ "search_topic": topic, "extraction_instruction": instruction });
    println!("2. generated the task: {input}");

    // Step 3: submit the task.
    let task = json!({ "requesting_agent_id": "requesting-agent-01", "skill_id": SKILL, "input_data": input });
    let submitted = answer(client.post(submit).json(&task).send().await?).await?;
    let updates = submitted["updates_url"].as_str().context("there is no `updates_url`")?;
    println!("3. submitted: {}, {}", submitted["status"], submitted["status_message"]);

    // Step 4: read the updates.
    let result = listen(&client, updates).await?;

    // Step 5: read the result.
    ensure!(
        result["status"] == "completed",
        "5. it is {}: {}",
        result["status"],
        result["error_message"]
    );
    println!("5. completed:");
    for artefact in result["artefacts"].as_array().into_iter().flatten() {
        let parts = artefact["parts"].as_array().into_iter().flatten();
        for text in parts.filter_map(|part| part["text"].as_str()) {
            println!("{text}");
        }
    }
    Ok(())
}

/// Random topic.
fn any_topic() -> Result<&'static str> {
    let mut byte = [0];
    getrandom::fill(&mut byte).context("no random number")?;
    Ok(TOPICS[usize::from(byte[0]) % TOPICS.len()])
}

/// JSON of a response, or its error.
async fn answer(response: Response) -> Result<Value> {
    let status = response.status();
    let body: Value = response.json().await?;
    ensure!(status.is_success(), "{status}: {}", body["error"]["message"]);
    Ok(body)
}

/// Prints the updates of a task and returns the last. A broken stream is resumed after the last
/// received event.
async fn listen(client: &Client, url: &str) -> Result<Value> {
    let mut last = None;
    for _ in 0..TRIES {
        let request = client.get(url).header("Accept", "text/event-stream");
        let request = match &last {
            Some(id) => request.header("Last-Event-ID", id),
            None => request,
        };
        if let Ok(response) = request.send().await {
            if !response.status().is_success() {
                answer(response).await?;
            } else if let Some(end) = read_stream(response, &mut last).await {
                return Ok(end);
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    bail!("the updates broke off, and did not go on");
}

/// Reads a stream to its end; returns the last update, or `None` if the stream broke off.
async fn read_stream(response: Response, last: &mut Option<String>) -> Option<Value> {
    let mut bytes = response.bytes_stream();
    let (mut open, mut id) = (Vec::new(), None);
    while let Some(Ok(more)) = bytes.next().await {
        open.extend_from_slice(&more);
        while let Some(end) = open.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = open.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if let Some(number) = line.strip_prefix("id:") {
                id = Some(number.trim().to_owned());
            }
            let Some(data) = line.strip_prefix("data:") else { continue };
            last.clone_from(&id);
            let update: Value = serde_json::from_str(data).ok()?;
            let percent = match update["progress_percent"].as_u64() {
                Some(percent) => format!("{percent:>3} %"),
                None => "    -".to_owned(),
            };
            println!("4. {percent} {}: {}", update["status"], update["status_message"]);
            if ["completed", "failed", "canceled", "rejected"]
                .iter()
                .any(|end| update["status"] == *end)
            {
                return Some(update);
            }
        }
    }
    None
}
