//! Tests of grants: each is bound to one component, only the operator grants, and a grant can be
//! revoked at any time.

use crate::{
    hub::InProcessHub,
    stage::{
        GRANT, another_build, artifact, echo, eventually, get, hub_with_guest, no_program_left,
        said, send, state, stream, until,
    },
};
use a2a_hub_core::{
    grant::byte_limit::Allowance, plugin::installation::NewGrant, text::one_line::OneLine,
};
use a2a_hub_tests::{
    Client,
    grants::{by_command, digest, grant, is_held_back, plugin, plugin_when, revoke},
    test_guests,
};
use anyhow::{Context as _, Result};
use minisign::KeyPair;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::Instant;

/// Time in which a revocation takes effect, with a margin for a machine under load.
const SOON: Duration = Duration::from_secs(3);

/// Removed requests are listed like added ones.
#[tokio::test]
async fn update_lists_changed_requests() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    hub.plug("guest", &echo()?)?;
    let held = plugin_when(&client, is_held_back).await?;
    let changes = held["heldBack"]["changes"].as_array().context("no changes")?;
    for line in ["- run `sh`", "- run `sh` with `-c` `{}`", "- remember up to 4096 bytes"] {
        assert!(changes.contains(&json!(line)), "{line}: {changes:?}");
    }
    Ok(())
}

#[tokio::test]
async fn dev_grant_covers_each_build() -> Result<()> {
    let (hub, dir) = (InProcessHub::start().await?, tempfile::tempdir()?);
    let client = Client::http(&hub);
    grant(&hub, NewGrant { dev: true, ..by_command(digest(&test_guests()?)?) })?;
    hub.plug("guest", &test_guests()?)?;
    plugin_when(&client, |now| now["joined"] == true).await?;
    assert_eq!(said(&send(&client, "guest", "remember colour blue").await?), "colour is 4 bytes");
    let new = another_build(&dir)?;
    hub.plug("guest", &new)?;
    let now = plugin_when(&client, |now| now["sha256"] == json!(digest(&new).unwrap_or_default()))
        .await?;
    assert_eq!(now["installation"]["sha256"], now["sha256"], "the record follows");
    assert_eq!(said(&send(&client, "guest", "recall colour").await?), "blue");
    Ok(())
}

/// The hub's own poll, or another client, may be applying the same change.
#[tokio::test]
async fn refreshed_grant_is_in_force() -> Result<()> {
    let hub = InProcessHub::start().await?;
    let client = Client::http(&hub);
    hub.plug("guest", &test_guests()?)?;
    plugin_when(&client, |now| now["joined"] == true).await?;
    for memory in [4096, 0].repeat(8) {
        let mut new = by_command(digest(&test_guests()?)?);
        new.grant.memory = Allowance::Bytes(memory);
        grant(&hub, new)?;
        let refresh = || client.call("hub/plugins/refresh", json!({}));
        let (first, second) = tokio::join!(refresh(), refresh());
        first.and(second)?;
        let told = said(&send(&client, "guest", "remember colour blue").await?).to_owned();
        assert_eq!(told == "colour is 4 bytes", memory > 0, "{memory} bytes: {told}");
    }
    Ok(())
}

/// Covers a task that runs a program, one that waits for an answer with a program and a file, and a
/// queued one.
#[tokio::test]
async fn revocation_reaches_task_in_each_phase() -> Result<()> {
    let config = GRANT.replace("max_running = 100", "max_running = 3");
    let hub =
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let client = Client::http(&hub);
    let (running, mut heard) = stream(&client, "guest", "sh echo begun; sleep 600").await?;
    until(&mut heard, |event| event["kind"] == "artifact-update").await?;
    let (posing, mut posed) = stream(&client, "guest", "pose 600 which one?").await?;
    until(&mut posed, |event| event["status"]["state"] == "input-required").await?;
    let posed = client.stream("tasks/resubscribe", json!({ "id": posing })).await?;
    let kept = send(&client, "guest", "put-and-ask notes.txt").await?;
    let file = PathBuf::from(said(&kept));
    assert!(file.exists());
    let (talking, mut told) = stream(&client, "guest", "tick 40 100").await?;
    until(&mut told, |event| event["kind"] == "artifact-update").await?;
    let (shell, mut shown) = stream(&client, "guest", "sh echo begun; sleep 600").await?;
    until(&mut shown, |event| event["kind"] == "artifact-update").await?;
    let (queued, waits) = stream(&client, "guest", "sh echo never").await?;

    let begun = Instant::now();
    revoke(&hub)?;
    heard.rest().await?;
    shown.rest().await?;
    waits.rest().await?;
    posed.rest().await?;
    no_program_left(&hub.data_dir(), SOON).await?;
    eventually(SOON, || !file.exists()).await?;
    assert!(begun.elapsed() < SOON, "it took {:?}", begun.elapsed());
    for task in [&running, &shell, &queued] {
        let task = get(&client, task).await?;
        let why = said(&task).to_owned();
        assert!(why.starts_with("denied: run `sh`"), "{why}");
        assert!(why.contains("revoked by the operator"), "{why}");
        assert!(!artifact(&task).contains("never"));
    }
    let asked = get(&client, &posing).await?;
    assert!(
        said(&asked).contains("revoked by the operator"),
        "whom its program helps no more: {asked}"
    );
    told.rest().await?;
    assert_eq!(state(&get(&client, &talking).await?), "completed", "to talk needs no grant");
    let next = said(&send(&client, "guest", "sh echo hi").await?).to_owned();
    assert!(next.starts_with("denied: run `sh`: not granted"), "{next}");
    let next = said(&send(&client, "guest", "recall colour").await?).to_owned();
    assert!(next.starts_with("denied: remember values"), "{next}");

    grant(&hub, by_command(digest(&test_guests()?)?))?;
    client.call("hub/plugins/refresh", json!({})).await?;
    assert_eq!(
        artifact(&send(&client, "guest", "sh echo hi").await?),
        "hi\n",
        "given back at once"
    );
    Ok(())
}

#[tokio::test]
async fn narrowed_grant_ends_only_revoked_programs() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let (shell, mut shown) = stream(&client, "guest", "sh echo begun; sleep 600").await?;
    until(&mut shown, |event| event["kind"] == "artifact-update").await?;
    let (sleeping, mut slept) = stream(&client, "guest", "count 30").await?;
    until(&mut slept, |event| event["kind"] == "artifact-update").await?;
    let mut narrower = by_command(digest(&test_guests()?)?);
    narrower.grant.process.remove("sh");
    grant(&hub, narrower)?;
    shown.rest().await?;
    assert!(said(&get(&client, &shell).await?).contains("revoked by the operator"));
    slept.rest().await?;
    assert_eq!(state(&get(&client, &sleeping).await?), "completed", "`sleep` is still granted");
    Ok(())
}

#[tokio::test]
async fn new_plugin_inherits_nothing_by_name() -> Result<()> {
    let (hub, dir) = (hub_with_guest().await?, tempfile::tempdir()?);
    let client = Client::http(&hub);
    assert_eq!(said(&send(&client, "guest", "remember colour blue").await?), "colour is 4 bytes");
    hub.unplug("guest")?;
    plugin_when(&client, |now| now["joined"] == false).await?;
    let other = another_build(&dir)?;
    hub.plug("guest", &other)?;
    let now = plugin_when(&client, |now| now["joined"] == true).await?;
    assert!(!is_held_back(&now), "it is another plug-in, and no update: {now}");
    let denied = said(&send(&client, "guest", "sh echo hi").await?).to_owned();
    assert!(denied.starts_with("denied: run `sh`: not granted"), "{denied}");

    grant(&hub, by_command(digest(&other)?))?;
    client.call("hub/plugins/refresh", json!({})).await?;
    assert_eq!(artifact(&send(&client, "guest", "sh echo hi").await?), "hi\n");
    assert_eq!(said(&send(&client, "guest", "recall colour").await?), "nothing");
    let id = plugin(&client).await?["installation"]["id"].clone();
    assert_eq!(id, json!("guest@0000beef"));
    Ok(())
}

#[tokio::test]
async fn removed_plugin_leaves_no_data() -> Result<()> {
    let hub = InProcessHub::start().await?;
    let client = Client::http(&hub);
    grant(&hub, by_command(digest(&test_guests()?)?))?;
    hub.plug("guest", &test_guests()?)?;
    plugin_when(&client, |now| now["joined"] == true).await?;
    send(&client, "guest", "remember colour blue").await?;
    assert_eq!(artifact(&send(&client, "guest", "sh touch ~/left; echo $HOME").await?), {
        format!("{}\n", hub.data_dir().canonicalize()?.join("homes/guest@0000beef").display())
    });
    client.call("hub/agents/deregister", json!({ "agentId": "guest" })).await?;
    let all = client.call("hub/plugins/list", json!({})).await?;
    assert_eq!(all, json!([]), "no record is left");
    assert!(!hub.data_dir().join("homes/guest@0000beef").exists());
    let copies = fs::read_dir(hub.data_dir().join("components"))?.count();
    assert_eq!(copies, 0);

    hub.plug("guest", &test_guests()?)?;
    plugin_when(&client, |now| now["joined"] == true).await?;
    let denied = said(&send(&client, "guest", "recall colour").await?).to_owned();
    assert!(denied.starts_with("denied: remember values"), "{denied}");
    Ok(())
}

/// A task that began before an update ends with the original component and its grant.
#[tokio::test]
async fn admitted_update_keeps_running_tasks() -> Result<()> {
    let (hub, dir) = (hub_with_guest().await?, tempfile::tempdir()?);
    let client = Client::http(&hub);
    let (running, mut heard) =
        stream(&client, "guest", "sh echo begun; sleep 2; echo done").await?;
    until(&mut heard, |event| event["kind"] == "artifact-update").await?;
    let new = another_build(&dir)?;
    hub.plug("guest", &new)?;
    plugin_when(&client, is_held_back).await?;
    grant(&hub, by_command(digest(&new)?))?;
    client.call("hub/plugins/refresh", json!({})).await?;
    plugin_when(&client, |now| now["sha256"] == json!(digest(&new).unwrap_or_default())).await?;
    heard.rest().await?;
    let task = get(&client, &running).await?;
    assert_eq!((state(&task), artifact(&task).as_str()), ("completed", "begun\ndone\n"));
    Ok(())
}

#[tokio::test]
async fn unreadable_grants_file_is_reported_and_kept() -> Result<()> {
    let mut hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    send(&client, "guest", "remember colour blue").await?;
    let file = hub.data_dir().join("grants.toml");
    let whole = fs::read(&file)?;
    fs::write(&file, "plugins = 'gone'")?;
    let refreshed = client.call("hub/plugins/refresh", json!({})).await?;
    let why = refreshed["trouble"].as_str().context("no trouble is told")?;
    assert!(why.contains("grants.toml"), "{why}");
    let status = client.call("hub/status", json!({})).await?;
    assert!(status["warnings"].to_string().contains("grants.toml"), "{status}");
    assert_eq!(
        artifact(&send(&client, "guest", "sh echo hi").await?),
        "hi\n",
        "what is in force stays"
    );

    hub.restart().await?;
    let client = Client::http(&hub);
    let status = client.call("hub/status", json!({})).await?;
    assert!(
        status["rejectedPlugins"].to_string().contains("until then no plug-in is loaded"),
        "{status}"
    );
    assert_eq!(fs::read_to_string(&file)?, "plugins = 'gone'", "nobody writes over it");
    fs::write(&file, whole)?;
    client.call("hub/plugins/refresh", json!({})).await?;
    plugin_when(&client, |now| now["joined"] == true).await?;
    assert_eq!(said(&send(&client, "guest", "recall colour").await?), "blue");
    Ok(())
}

/// The dynamic loader could run code that the guest wrote into a file.
#[tokio::test]
async fn replaceable_program_is_not_started() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let shared = dir.path().join("shared");
    fs::create_dir(&shared)?;
    fs::copy("/bin/sh", shared.join("sh"))?;
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777))?;
    let path = shared.join("sh").display().to_string();
    let config = format!("agents.guest.grant.process.sh.path = '{path}'");
    let hub =
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let client = Client::http(&hub);
    let denied = said(&send(&client, "guest", "sh echo hi").await?).to_owned();
    assert!(denied.contains("others may write to") && denied.contains("chmod go-w"), "{denied}");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o755))?;
    assert_eq!(artifact(&send(&client, "guest", "sh echo hi").await?), "hi\n", "mended");
    Ok(())
}

/// Only updates signed with the recorded key are admitted.
#[tokio::test]
async fn signed_update_keeps_grant() -> Result<()> {
    let (hub, dir) = (InProcessHub::start().await?, tempfile::tempdir()?);
    let client = Client::http(&hub);
    let (maker, other) =
        (KeyPair::generate_unencrypted_keypair()?, KeyPair::generate_unencrypted_keypair()?);
    let key = Some(maker.pk.to_base64());
    grant(&hub, NewGrant { key, ..by_command(digest(&test_guests()?)?) })?;
    hub.plug("guest", &test_guests()?)?;
    plugin_when(&client, |now| now["joined"] == true).await?;
    send(&client, "guest", "remember colour blue").await?;
    let (update, signature) =
        (another_build(&dir)?, hub.data_dir().join("plugins/guest.wasm.minisig"));
    let signed_by = |key: &KeyPair| -> Result<()> {
        let component = fs::read(&update)?;
        let made = minisign::sign(Some(&key.pk), &key.sk, &component[..], None, None)?;
        Ok(fs::write(&signature, made.to_string())?)
    };
    signed_by(&other)?;
    hub.plug("guest", &update)?;
    let held = plugin_when(&client, is_held_back).await?;
    assert_eq!(held["sha256"], json!(digest(&test_guests()?)?));

    signed_by(&maker)?;
    let new = json!(digest(&update)?);
    let now = plugin_when(&client, |now| now["sha256"] == new && !is_held_back(now)).await?;
    assert_eq!(now["installation"]["sha256"], new, "the record follows");
    assert_eq!(said(&send(&client, "guest", "recall colour").await?), "blue");
    assert_eq!(artifact(&send(&client, "guest", "sh echo hi").await?), "hi\n");
    Ok(())
}

/// Creates test guests of this version: the version replaces a comment at the start of the
/// manifest.
fn guests_of_version(dir: &tempfile::TempDir, version: &str) -> Result<PathBuf> {
    let comment = b"# Permissions that the test guests ask for. No test grants `never-granted`.";
    let line = format!("{:<1$}", format!("version = '{version}'"), comment.len());
    let mut bytes = fs::read(test_guests()?)?;
    // The embedded module contains the manifest as well.
    while let Some(at) = bytes.windows(comment.len()).position(|it| it == comment) {
        bytes[at..at + comment.len()].copy_from_slice(line.as_bytes());
    }
    let path = dir.path().join(format!("guest-{version}.wasm"));
    fs::write(&path, bytes)?;
    Ok(path)
}

/// Old versions have valid signatures and may have known vulnerabilities (downgrade attack).
#[tokio::test]
async fn signed_downgrade_waits_for_operator() -> Result<()> {
    let (hub, dir) = (InProcessHub::start().await?, tempfile::tempdir()?);
    let client = Client::http(&hub);
    let maker = KeyPair::generate_unencrypted_keypair()?;
    let signature = hub.data_dir().join("plugins/guest.wasm.minisig");
    let plug = |component: &Path| -> Result<Value> {
        let bytes = fs::read(component)?;
        let made = minisign::sign(Some(&maker.pk), &maker.sk, &bytes[..], None, None)?;
        fs::write(&signature, made.to_string())?;
        hub.plug("guest", component)?;
        Ok(json!(digest(component)?))
    };
    let [older, granted, newer] =
        ["1.1.9", "1.2.0", "1.10.0"].map(|version| guests_of_version(&dir, version));
    let (older, granted, newer) = (older?, granted?, newer?);
    let key = Some(maker.pk.to_base64());
    let version = Some(OneLine::parse("1.2.0")?);
    grant(&hub, NewGrant { key, version, ..by_command(digest(&granted)?) })?;
    plug(&granted)?;
    plugin_when(&client, |now| now["joined"] == true).await?;
    for old in [&older, &test_guests()?] {
        plug(old)?;
        let held = plugin_when(&client, is_held_back).await?;
        assert_eq!(held["sha256"], json!(digest(&granted)?), "the granted one serves on");
        assert!(held["heldBack"].to_string().contains("it is signed, and its version is older"));
        plug(&granted)?;
        plugin_when(&client, |now| !is_held_back(now)).await?;
    }
    let new = plug(&newer)?;
    let now = plugin_when(&client, |now| now["sha256"] == new && !is_held_back(now)).await?;
    assert_eq!((&now["installation"]["sha256"], &now["version"]), (&new, &json!("1.10.0")));
    Ok(())
}
