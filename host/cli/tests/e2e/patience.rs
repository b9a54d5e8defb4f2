//! A client that floods the hub: what is done about it is in the log.

use crate::stage::eventually;
use a2a_hub_tests::{Client, TestHub};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, timeout},
};

/// How long a test waits for the hub.
const WITHIN: Duration = Duration::from_secs(20);

/// Frames of HTTP/2 that ask for nothing: each costs the hub more than its sender.
#[tokio::test]
async fn a_flood_of_http2_control_frames_is_cut_off() -> Result<()> {
    let hub = TestHub::start().await?;
    let window_update: &[u8] = &[0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let ping: &[u8] = &[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let settings: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    for frame in [window_update, ping, settings] {
        let mut connection = TcpStream::connect(hub.http()).await?;
        connection.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await?;
        connection.write_all(settings).await?;
        let (mut read, mut write) = connection.into_split();
        let flood = async {
            for _ in 0..2_000 {
                // Hung up on: it cannot be sent any more.
                if write.write_all(&frame.repeat(100)).await.is_err() {
                    break;
                }
            }
            let mut said = Vec::new();
            // It ends, or is reset.
            let _ = read.read_to_end(&mut said).await;
        };
        let begun = Instant::now();
        timeout(WITHIN, flood).await.with_context(|| format!("type {} goes on", frame[3]))?;
        ensure!(begun.elapsed() < WITHIN / 2, "it takes {:?}", begun.elapsed());
    }
    // The log is written behind.
    let cut_off = || hub.log().matches("a flood of HTTP/2 control frames").count() == 3;
    eventually(WITHIN, cut_off).await?;
    Client::http(&hub).call("hub/status", json!({})).await?;
    Ok(())
}
