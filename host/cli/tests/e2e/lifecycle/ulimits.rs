//! A hub under the limits of a shell (`ulimit`): it works with less, or reports the limit that it
//! needs.

use crate::{
    lifecycle::full_disk::run_after,
    stage::{GRANT, home},
};
use a2a_hub_tests::test_guests;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::{fs, io, net::SocketAddr, path::Path, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpStream, UnixStream},
    time::timeout,
};

/// Prepares a home directory whose hub has the test guests.
fn furnish(home: &Path) -> Result<()> {
    let data = home.join(".a2a-hub");
    fs::create_dir_all(data.join("plugins"))?;
    fs::copy(test_guests()?, data.join("plugins/guest.wasm"))?;
    Ok(fs::write(data.join("config.toml"), GRANT)?)
}

#[tokio::test]
async fn too_few_open_files_are_refused_with_the_way_out() -> Result<()> {
    let dir = home()?;
    let few = run_after(dir.path(), "ulimit -n 64; exec", "start --foreground --no-http").await?;
    assert_eq!(few.code, Some(2), "{}", few.stderr);
    assert!(few.stderr.contains("ulimit -n 4096"), "{}", few.stderr);
    Ok(())
}

/// Number of connections that keep a hub busy whose limit on open files is 256.
const IDLE: usize = 400;

/// Opens connections until no more succeed. Those in the listen backlog count as connected.
async fn idle<C>(connect: impl AsyncFn() -> io::Result<C>) -> Vec<C> {
    let mut all = Vec::new();
    while all.len() < IDLE {
        match timeout(Duration::from_secs(5), connect()).await {
            Ok(Ok(one)) => all.push(one),
            // Further connections wait in the listen backlog of the system, if it has capacity.
            Ok(Err(_)) | Err(_) => break,
        }
    }
    all
}

#[tokio::test]
async fn idle_connections_lock_nobody_out() -> Result<()> {
    let dir = home()?;
    furnish(dir.path())?;
    let run = async |first: &str, args: &str| run_after(dir.path(), first, args).await;
    let started = run("ulimit -n 256; exec", "start --http-port 0").await?;
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    let run_file = fs::read(dir.path().join(".a2a-hub/run.json"))?;
    let run_file: Value = serde_json::from_slice(&run_file)?;
    let at = |name: &str| run_file[name].as_str().unwrap_or_default().to_owned();
    let (http, socket) = (at("http"), at("socket"));
    let http: SocketAddr = http.parse().with_context(|| run_file.to_string())?;
    let over_http = idle(async || TcpStream::connect(http).await).await;
    let sent = run("exec", "send echo hello").await?;
    assert_eq!((sent.code, sent.stdout.as_str()), (Some(0), "hello\n"), "{}", sent.stderr);
    let over_unix = idle(async || UnixStream::connect(&socket).await).await;
    let worked = run("exec", "send guest 'sh echo works'").await?;
    assert_eq!(worked.stdout, "works\n", "{}", worked.stderr);
    let health = async {
        let mut client = TcpStream::connect(http).await?;
        let ask = format!("GET /health HTTP/1.1\r\nHost: {http}\r\nConnection: close\r\n\r\n");
        client.write_all(ask.as_bytes()).await?;
        let mut told = String::new();
        client.read_to_string(&mut told).await.map(|_| told)
    };
    let told = timeout(Duration::from_secs(20), health).await??;
    assert!(told.starts_with("HTTP/1.1 200"), "{told}");
    ensure!(
        over_http.len() > 100 && over_unix.len() > 50,
        "{} {}",
        over_http.len(),
        over_unix.len()
    );
    drop((over_http, over_unix));
    assert_eq!(run("exec", "stop").await?.code, Some(0));
    let log = fs::read_to_string(dir.path().join(".a2a-hub/hub.log"))?;
    assert!(log.contains("the limit on open files allows fewer connections"), "{log}");
    Ok(())
}

#[tokio::test]
async fn the_soft_limit_on_open_files_is_raised_for_the_hub_and_not_for_its_programs() -> Result<()>
{
    let dir = home()?;
    furnish(dir.path())?;
    let run = async |first: &str, args: &str| run_after(dir.path(), first, args).await;
    let started = run("ulimit -Sn 1500; exec", "start --no-http").await?;
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    let run_file = fs::read(dir.path().join(".a2a-hub/run.json"))?;
    let pid = &serde_json::from_slice::<Value>(&run_file)?["pid"];
    let limits = fs::read_to_string(format!("/proc/{pid}/limits"))?;
    let own = limits.lines().find(|line| line.starts_with("Max open files")).unwrap_or_default();
    let soft = own.split_whitespace().nth(3).and_then(|soft| soft.parse::<u64>().ok());
    let told = run("exec", "send guest 'sh ulimit -n'").await?;
    assert_eq!(run("exec", "stop").await?.code, Some(0));
    assert!(soft.is_some_and(|soft| soft > 1_500), "{own}");
    assert_eq!(told.stdout.trim(), "1500", "{}", told.stderr);
    Ok(())
}

#[tokio::test]
async fn a_limited_address_space_means_fewer_agents_at_once_and_no_refusal() -> Result<()> {
    let dir = home()?;
    let run = async |first: &str, args: &str| run_after(dir.path(), first, args).await;
    let started = run("ulimit -v 12000000; exec", "start --no-http").await?;
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    let sent = run("exec", "send echo hello").await?;
    assert_eq!(run("exec", "stop").await?.code, Some(0));
    assert_eq!((sent.code, sent.stdout.as_str()), (Some(0), "hello\n"), "{}", sent.stderr);
    let log = fs::read_to_string(dir.path().join(".a2a-hub/hub.log"))?;
    assert!(log.contains("too small for a guest pool"), "{log}");
    Ok(())
}
