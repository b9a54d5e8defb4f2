//! Hub embedded in another program, with an agent that is a function of the program: `embedded
//! [PORT]`. With a port it also serves A2A there, until its standard input ends.

#![expect(clippy::print_stdout, reason = "this is what it is for")]

use a2a_hub::{
    Hub, Native, Principal, Reply, Stage, completed,
    config::Config,
    minded,
    protocol::{
        card::AgentCard,
        id::AgentId,
        message::{Message, Role},
        operation::{Answer, Operation, SendMessage},
    },
};
use anyhow::{Context as _, Result, bail};
use serde_json::json;
use std::{io, process::ExitCode};

fn main() -> Result<ExitCode> {
    // The hub starts this program a second time as the minder of the programs that agents start.
    if let Some(code) = minded() {
        return Ok(code);
    }
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(embed(std::env::args().nth(1)))?;
    Ok(ExitCode::SUCCESS)
}

async fn embed(port: Option<String>) -> Result<()> {
    let shout = Native::new(|stage: Stage| async move {
        if stage.report_working("taking a deep breath").await.is_err() {
            // The hub ignores this result: the task is over.
            return completed("");
        }
        completed(&stage.text().to_uppercase())
    });
    let card = AgentCard::parse(
        &json!({
            "name": "Shout", "description": "Says it louder", "version": "1.0.0",
            "skills": [{ "id": "shout", "name": "Shout", "description": "Says it louder", "tags": ["test"] }],
        })
        .to_string(),
    )?;
    let mut config = Config::default();
    config.socket.enabled = false;
    config.http.enabled = port.is_some();
    if let Some(port) = port {
        config.http.port = port.parse().context("read the port")?;
    }
    let dir = tempfile::tempdir()?;
    let shout_id = AgentId::parse("shout")?;
    let hub = Hub::builder(dir.path())
        .config(config)
        .agent(shout_id.clone(), card, shout)
        .start()
        .await?;

    let mut send = SendMessage::new(Message::text(Role::User, "hello"), None)?;
    send.agent = Some(shout_id);
    let reply = hub.handle(&Principal::Operator, Operation::SendMessage(send.into())).await?;
    let Reply::One(Answer::Task(task)) = reply else { bail!("no task came of it") };
    let text = task.status.message.as_ref().map(Message::joined_text);
    println!("{}: {}", task.status.state.name(), text.unwrap_or_default());

    if let Some(address) = hub.http_address() {
        println!("http://{address}/agents/shout");
        tokio::task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink())).await??;
    }
    hub.shutdown().await;
    Ok(())
}
