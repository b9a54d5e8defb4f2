//! Example of Localized A2A as a program. It registers an agent, subscribes to a task before the
//! task exists, discovers the agent and calls it directly, without opening a socket.

#![expect(clippy::print_stdout, reason = "this is what it is for")]

use a2a_hub::{
    Ended, Hub, Stage, completed,
    local::{Agent, card},
    protocol::card::AgentCard,
};
use anyhow::{Context as _, Result};
use serde_json::json;

/// Simple agent that processes data.
struct DataProcessor;

impl Agent for DataProcessor {
    fn card(&self) -> AgentCard {
        card("Data processor", "Processes data", &["process_data"])
    }

    async fn run(&self, stage: Stage) -> Ended {
        // ... processing logic, while the hub says that it runs ...
        match stage.data(json!({ "data": "processed data" })).await {
            Ok(()) => completed("Task completed"),
            Err(why) => Ended::Failed(why),
        }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    // Register agents on startup
    let hub = Hub::in_memory().register("data_processor", DataProcessor)?.start().await?;

    // --- Caller Agent Logic ---
    let callee_id = "data_processor";
    let task_id = "task_123";

    // Subscribe to updates for our task
    hub.local().subscribe(task_id, |event| println!("Received update: {event}"))?;

    // Discover and call the agent
    let callee = hub.local().agent(callee_id).context("no such agent")?;

    // Create a JSON-RPC-like request
    let request = json!({
        "jsonrpc": "2.0",
        "method": "tasks/send",
        "params": {
            "task_id": task_id,
            "message": "Please process this data.",
        },
        "id": 1,
    });

    // Make the local "A2A" call
    let response = callee.call(request).await;
    println!("Final response: {response}");
    hub.shutdown().await;
    Ok(())
}
