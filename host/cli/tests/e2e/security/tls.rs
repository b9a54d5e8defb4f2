//! Test of a hub that other machines reach by TLS, with certificates of clients.

use super::people::through;
use crate::command_line::{Ran, run};
use a2a_hub_tests::{Client, TestHub};
use a2a_hub_tls::{
    ClientCertificate, read_certificates,
    testing::{TestCa, TestCertificate},
};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

/// Polls a condition for 20 s.
async fn eventually(mut is_so: impl AsyncFnMut() -> Result<bool>, what: &str) -> Result<()> {
    let begun = Instant::now();
    while !is_so().await? {
        ensure!(begun.elapsed() < Duration::from_secs(20), "{what}");
        sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

/// Another machine: a network namespace with one address, which reaches this one by another. Where
/// no namespace can be made, it is this machine by loopback.
struct Machine {
    home: TempDir,
    namespace: Option<String>,
    /// Address of this machine, as the other one sees it.
    address: String,
}

impl Machine {
    fn new() -> Result<Self> {
        let number = std::process::id() % 10_000;
        let (name, net) = (format!("a2ah{number}"), format!("10.231.{}", number % 250));
        let here = format!("{net}.1");
        let steps = [
            format!("netns add {name}"),
            format!("link add {name}a type veth peer name {name}b"),
            format!("link set {name}b netns {name}"),
            format!("addr add {here}/30 dev {name}a"),
            format!("link set {name}a up"),
            format!("-n {name} addr add {net}.2/30 dev {name}b"),
            format!("-n {name} link set {name}b up"),
        ];
        let machine = Self { home: tempfile::tempdir()?, namespace: Some(name), address: here };
        if steps.iter().all(|step| ip(step)) {
            return Ok(machine);
        }
        // Removes what the first steps made.
        drop(machine);
        let address = "127.0.0.1".to_owned();
        Ok(Self { home: tempfile::tempdir()?, namespace: None, address })
    }

    async fn run(&self, args: &[&str]) -> Result<Ran> {
        let program: &[&str] = match &self.namespace {
            Some(name) => &["ip", "netns", "exec", name],
            None => &[],
        };
        through(program, self.home.path(), args).await
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(name) = &self.namespace {
            // The pair of devices ends with the namespace of one of them.
            ip(&format!("netns del {name}"));
        }
    }
}

/// Runs `ip` with these words; true if it succeeds.
#[expect(clippy::disallowed_methods, reason = "it ends at once, and starts nothing")]
fn ip(words: &str) -> bool {
    let done = Command::new("ip").args(words.split(' ')).stderr(Stdio::null()).status();
    done.is_ok_and(|status| status.success())
}

/// A person joins by a CA and a certificate, which is renewed and denied then.
#[tokio::test]
async fn hub_serves_other_machines_by_tls() -> Result<()> {
    let (files, ca) = (tempfile::tempdir()?, TestCa::new());
    let (dir, machine) = (files.path(), Machine::new()?);
    let addresses = [machine.address.parse()?, "127.0.0.1".parse()?];
    let content = TestCertificate { addresses: &addresses, ..TestCertificate::default() };
    ca.issue(content).write(dir, "hub");
    let ada = TestCertificate { uris: &["spiffe://corp/ada"], ..TestCertificate::default() };
    let (ada_cert, ada_key) = ca.issue(ada).write(dir, "ada");
    let (ca_file, dir_text) = (dir.join("ca.pem"), dir.display());
    fs::write(&ca_file, ca.cert())?;
    let config = format!(
        "[http]\nhost = '0.0.0.0'\n[tls]\ncert = '{dir_text}/hub.pem'\nkey = '{dir_text}/hub.key'\n\
         client_ca = '{dir_text}/ca.pem'\n[[tls.client]]\nsan = 'spiffe://corp/ada'\nperson = 'ada'\n"
    );
    let hub = TestHub::builder().config(config.as_str()).start().await?;
    let operator = Client::unix(&hub);
    operator.call("hub/people/add", json!({ "name": "ada", "role": "member" })).await?;
    let invited = run(&hub, &["person", "invite", "ada"]).await?;
    let command = invited.stdout.lines().find(|line| line.starts_with("a2a-hub join"));
    let url = command.context("no command")?.replace("a2a-hub join ", "");
    // The hub names an address of this machine; the other one reaches it by that of their network.
    let (_, rest) =
        url.strip_prefix("https://").and_then(|it| it.split_once(':')).context("no URL")?;
    let url = format!("https://{}:{rest}", machine.address);
    let plain = machine.run(&["join", &url.replace("https", "http")]).await?;
    ensure!(plain.code != Some(0), "{plain:?}");

    let text = |path: &Path| path.display().to_string();
    let (ca_file, cert, key) = (text(&ca_file), text(&ada_cert), text(&ada_key));
    let unknown = machine.run(&["join", &url]).await?;
    ensure!(unknown.code != Some(0) && unknown.stderr.contains("UnknownIssuer"), "{unknown:?}");
    let bare = machine.run(&["join", &url, "--ca", &ca_file]).await?;
    ensure!(bare.code != Some(0), "{bare:?}");
    let with = ["--ca", &ca_file, "--cert", &cert, "--key", &key, "--name", "team"];
    let joined = machine.run(&[&["join", url.as_str()][..], &with].concat()).await?;
    ensure!(joined.code == Some(0), "{joined:?}");
    let me = machine.run(&["--hub", "team", "person", "me"]).await?;
    assert!(me.stdout.contains("ada, member"), "{me:?}");
    assert!(me.stdout.contains("the certificate spiffe://corp/ada"), "{me:?}");
    let sent = machine.run(&["--hub", "team", "send", "echo", "by tls"]).await?;
    assert_eq!((sent.code, sent.stdout.trim()), (Some(0), "by tls"), "{}", sent.stderr);

    // A broken file is reported, and a renewed certificate is taken.
    fs::write(dir.join("hub.pem"), "junk")?;
    let reports = async || {
        let status = operator.call("hub/status", json!({})).await?;
        Ok(status["warnings"].to_string().contains("the old certificate stays"))
    };
    eventually(reports, "a broken file is not reported").await?;
    let ping = machine.run(&["--hub", "team", "tasks"]).await?;
    assert_eq!(ping.code, Some(0), "{ping:?}");
    let renewed = TestCertificate { years: Some((2020, 2999)), ..content };
    ca.issue(renewed).write(dir, "hub");
    let is_renewed = async || {
        let status = operator.call("hub/status", json!({})).await?;
        let is_quiet = !status.to_string().contains("the old certificate stays");
        Ok(status["certificateExpiresAt"] == "2999-01-01T00:00:00Z" && is_quiet)
    };
    eventually(is_renewed, "a renewed certificate is not taken").await?;
    let served = machine.run(&["--hub", "team", "tasks"]).await?;
    assert_eq!(served.code, Some(0), "{served:?}");

    let print = read_certificates(&ada_cert)?;
    let print = print.first().map(ClientCertificate::of_verified);
    let print = print.context("no certificate")?.names.fingerprint;
    let denied = config.replace("[[tls.client]]", &format!("denied = ['{print}']\n[[tls.client]]"));
    fs::write(hub.path("config.toml"), denied)?;
    let reloaded = run(&hub, &["reload"]).await?;
    ensure!(reloaded.code == Some(0), "{reloaded:?}");
    let is_refused = async || {
        let refused = machine.run(&["--hub", "team", "tasks"]).await?;
        Ok(refused.code != Some(0))
    };
    eventually(is_refused, "a denied certificate is served").await
}
