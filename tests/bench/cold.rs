//! Time from the start of a server to its first response, and its memory at that time.

use crate::{
    LOAD, SERVERS,
    bare::{Bare, Kind},
    load::{self, Connection, middle},
    pin,
};
use a2a_hub_tests::{hub_binary, resident_bytes, stage::echo};
use anyhow::{Context as _, Result, ensure};
use std::{
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt as _,
    path::Path,
    process::Stdio,
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
    process::{Child, Command},
    time::{Instant, sleep, timeout},
};

/// Number of measured starts, whose median counts.
const STARTS: usize = 11;

/// Timeout for a start: the first one compiles the agents.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Polling interval for the listening socket, and so the precision of the measurement.
const POLL: Duration = Duration::from_micros(200);

/// Prints the time to the first response, and the memory then, of the hub and of the baseline
/// server.
pub(crate) async fn measure() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (first, _) = hub(dir.path()).await?;
    let (mut hubs, mut bares) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        hubs.push(hub(dir.path()).await?);
        bares.push(bare().await?);
    }
    println!("\nfrom the start to the first answer, medians of {STARTS}");
    println!("                   ms     ratio    RSS MB");
    let ms = |took: Duration| took.as_secs_f64() * 1e3;
    let [hub, bare] = [hubs, bares].map(|starts| {
        let took = middle(starts.iter().map(|(took, _)| *took), Duration::cmp);
        (ms(took), middle(starts.iter().map(|(_, bytes)| *bytes), u64::cmp))
    });
    for (name, (took, bytes)) in [("hub", hub), ("bare + disk", bare)] {
        println!("{name:<12}{took:>9.1}{:>10.2}{:>10}", took / bare.0, bytes >> 20);
    }
    println!("the hub's very first start, which compiles its agents: {:.0} ms", ms(first));
    Ok(())
}

/// Median time from the start to the first response of a hub with that many plug-ins, which an
/// earlier start has compiled.
pub(crate) async fn with_plugins(count: u8) -> Result<Duration> {
    let dir = tempfile::tempdir()?;
    let plugins = dir.path().join("data/plugins");
    DirBuilder::new().recursive(true).mode(0o700).create(&plugins)?;
    let component = fs::read(echo()?)?;
    for number in 0..count {
        // A custom section with a name and one byte makes each a different component.
        let other = [&component[..], b"\0\x06\x04note", &[number]].concat();
        fs::write(plugins.join(format!("plugin-{number}.wasm")), other)?;
    }
    hub(dir.path()).await?;
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        starts.push(hub(dir.path()).await?.0);
    }
    Ok(middle(starts.into_iter(), Duration::cmp))
}

/// Starts a hub. After the first start in `dir`, no agent needs to be compiled.
#[expect(clippy::disallowed_methods, reason = "the start of a process is what is measured")]
async fn hub(dir: &Path) -> Result<(Duration, u64)> {
    let socket = dir.join("hub.sock");
    let mut command = Command::new(hub_binary()?);
    command.arg("--socket").arg(&socket).args(["start", "--foreground", "--http-port", "0"]);
    command.arg("--data-dir").arg(dir.join("data")).env_clear().env("HOME", dir);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    pin(SERVERS)?;
    let start = Instant::now();
    let mut child = command.spawn().context("failed to start the hub")?;
    pin(LOAD)?;
    let answer = timeout(READY_WITHIN, async {
        let mut connection = loop {
            match UnixStream::connect(&socket).await {
                Ok(connection) => break connection,
                Err(_) => sleep(POLL).await,
            }
        };
        connection.write_all(format!("{}\n", load::send()).as_bytes()).await?;
        BufReader::new(connection).lines().next_line().await
    });
    let answer = answer.await.context("the hub did not answer")??.unwrap_or_default();
    let took = start.elapsed();
    ensure!(answer.contains("\"result\""), "the hub answered {answer}");
    let bytes = size_of(&child)?;
    end(&mut child).await?;
    Ok((took, bytes))
}

async fn bare() -> Result<(Duration, u64)> {
    pin(SERVERS)?;
    let start = Instant::now();
    let mut server = Bare::start(Kind { durable: true, ..Kind::default() }).await?;
    pin(LOAD)?;
    Connection::open(server.address()).await?.post("/", &load::send()).await?;
    let took = start.elapsed();
    let bytes = size_of(&server.child)?;
    end(&mut server.child).await?;
    Ok((took, bytes))
}

fn size_of(child: &Child) -> Result<u64> {
    child.id().and_then(resident_bytes).context("the server is gone")
}

async fn end(child: &mut Child) -> Result<()> {
    child.kill().await.context("failed to end the server")
}
