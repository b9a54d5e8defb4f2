//! Client that sends a message to an agent and prints its events as they arrive: `client URL
//! WORDS...`.

#![expect(clippy::print_stdout, reason = "this is what it is for")]

use a2a_hub_client::{A2aClient, Outbound};
use a2a_hub_protocol::{
    event::StreamResponse,
    message::{Message, Role, joined_text},
    operation::SendMessage,
};
use anyhow::{Context as _, Result};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let url = args.next().context("say whom to ask: client URL WORDS...")?;
    let words: Vec<_> = args.collect();

    // The card determines the interface: JSON-RPC, REST or gRPC, of A2A 1.0 or 0.3.
    let agent = A2aClient::find(Outbound::unguarded(), &url, None, &[]).await?;
    let message = Message::text(Role::User, words.join(" "));
    let mut stream = agent.stream(SendMessage::new(message, None)?).await?;
    while let Some(event) = stream.next().await {
        let line = match event? {
            StreamResponse::Task(task) => {
                format!("task {} is {}", task.id, task.status.state.name())
            }
            StreamResponse::Message(answer) => answer.joined_text(),
            StreamResponse::Status { update, .. } => {
                let text = update.status.message.as_ref().map(Message::joined_text);
                format!("{}: {}", update.status.state.name(), text.unwrap_or_default())
            }
            StreamResponse::Artifact { update, .. } => joined_text(&update.artifact.parts),
        };
        println!("{line}");
    }
    Ok(())
}
