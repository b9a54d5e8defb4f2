//! Test of a hub that other machines reach by TLS, with certificates of clients.

use super::people::elsewhere;
use crate::command_line::run;
use a2a_hub_tests::{Client, TestHub};
use a2a_hub_tls::{
    ClientCertificate, read_certificates,
    testing::{TestCa, TestCertificate},
};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::{fs, path::Path, time::Duration};
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

/// A person joins by a CA and a certificate, which is renewed and denied then.
#[tokio::test]
async fn hub_serves_other_machines_by_tls() -> Result<()> {
    let (files, home, ca) = (tempfile::tempdir()?, tempfile::tempdir()?, TestCa::new());
    let (dir, home) = (files.path(), home.path());
    let content =
        TestCertificate { addresses: &["127.0.0.1".parse()?], ..TestCertificate::default() };
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
    ensure!(url.starts_with("https://127.0.0.1:"), "{url}");

    let text = |path: &Path| path.display().to_string();
    let (ca_file, cert, key) = (text(&ca_file), text(&ada_cert), text(&ada_key));
    let unknown = elsewhere(home, &["join", &url]).await?;
    ensure!(unknown.code != Some(0) && unknown.stderr.contains("UnknownIssuer"), "{unknown:?}");
    let bare = elsewhere(home, &["join", &url, "--ca", &ca_file]).await?;
    ensure!(bare.code != Some(0), "{bare:?}");
    let with = ["--ca", &ca_file, "--cert", &cert, "--key", &key, "--name", "team"];
    let joined = elsewhere(home, &[&["join", url.as_str()][..], &with].concat()).await?;
    ensure!(joined.code == Some(0), "{joined:?}");
    let me = elsewhere(home, &["--hub", "team", "person", "me"]).await?;
    assert!(me.stdout.contains("ada, member"), "{me:?}");
    assert!(me.stdout.contains("the certificate spiffe://corp/ada"), "{me:?}");
    let sent = elsewhere(home, &["--hub", "team", "send", "echo", "by tls"]).await?;
    assert_eq!((sent.code, sent.stdout.trim()), (Some(0), "by tls"), "{}", sent.stderr);

    // A broken file is reported, and a renewed certificate is taken.
    fs::write(dir.join("hub.pem"), "junk")?;
    let reports = async || {
        let status = operator.call("hub/status", json!({})).await?;
        Ok(status["warnings"].to_string().contains("the old certificate stays"))
    };
    eventually(reports, "a broken file is not reported").await?;
    let ping = elsewhere(home, &["--hub", "team", "tasks"]).await?;
    assert_eq!(ping.code, Some(0), "{ping:?}");
    let renewed = TestCertificate { years: Some((2020, 2999)), ..content };
    ca.issue(renewed).write(dir, "hub");
    let is_renewed = async || {
        let status = operator.call("hub/status", json!({})).await?;
        let is_quiet = !status.to_string().contains("the old certificate stays");
        Ok(status["certificateExpiresAt"] == "2999-01-01T00:00:00Z" && is_quiet)
    };
    eventually(is_renewed, "a renewed certificate is not taken").await?;
    let served = elsewhere(home, &["--hub", "team", "tasks"]).await?;
    assert_eq!(served.code, Some(0), "{served:?}");

    let print = read_certificates(&ada_cert)?;
    let print = print.first().map(ClientCertificate::of_verified);
    let print = print.context("no certificate")?.names.fingerprint;
    let denied = config.replace("[[tls.client]]", &format!("denied = ['{print}']\n[[tls.client]]"));
    fs::write(hub.path("config.toml"), denied)?;
    let reloaded = run(&hub, &["reload"]).await?;
    ensure!(reloaded.code == Some(0), "{reloaded:?}");
    let is_refused = async || {
        let refused = elsewhere(home, &["--hub", "team", "tasks"]).await?;
        Ok(refused.code != Some(0))
    };
    eventually(is_refused, "a denied certificate is served").await
}
