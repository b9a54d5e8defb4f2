//! Attacks that go beyond the simple ones. Each test names the promise that it attacks;
//! `docs/SECURITY.md` defines the promises.

use crate::{
    hub::InProcessHub,
    stage::{
        another_build, artifact, bearer, eventually_async, get, hub_with_guest, no_program_left,
        said, send, state, stream, until,
    },
};
use a2a_hub_config::GrantsFile;
use a2a_hub_core::plugin::installation::{Installations, NewGrant};
use a2a_hub_protocol::id::AgentId;
use a2a_hub_tests::{
    Client,
    grants::{by_command, digest, grant, plugin_when},
    message_to, test_guests,
};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    time::Duration,
};
use tokio::time::{Instant, sleep};

const SOON: Duration = Duration::from_secs(3);

fn change(hub: &InProcessHub, change: impl FnOnce(&mut Installations)) -> Result<()> {
    Ok(GrantsFile::new(&hub.data_dir()).change(change)?)
}

/// Each resource that an agent hoards has a limit with a clear error, and other agents notice
/// nothing.
#[tokio::test]
async fn hoarding_agent_hits_clear_limits() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    for (text, wanted) in [
        ("hoard-questions 100000", "too many questions are open; wait for the answer to one"),
        ("hoard-naps 100000", "no free keys"),
        ("wait-many 100000", "handle limit exceeded"),
        ("wait-many 100", "100 are ready"),
        ("wait-many 10000000", ""),
        ("deep 20", "20 levels"),
        ("deep 10000", ""),
        ("deep 1000000", ""),
        ("hoard-values 100000", "exhausted"),
        ("remember \u{1b}[31m x", "bytes"),
        ("fingerprint ../../bin/sh", "does not ask for it"),
        ("fingerprint /bin/sh", "does not ask for it"),
        ("exec sh\u{0}x", "does not ask for it"),
        ("exec ./sh", "does not ask for it"),
        ("delegate guest", "denied"),
        ("delegate ../../echo", "denied"),
    ] {
        let begun = Instant::now();
        let mut task = send(&client, "guest", text).await?;
        // A task that asks a question returns when it asks.
        while ["working", "input-required"].contains(&state(&task)) {
            ensure!(begun.elapsed() < Duration::from_secs(20), "{text}: {task:#}");
            sleep(Duration::from_millis(50)).await;
            task = get(&client, task["id"].as_str().unwrap_or_default()).await?;
        }
        let told = format!("{}{}", said(&task), task["metadata"]);
        ensure!(told.contains(wanted), "{text}: {told}");
        ensure!(begun.elapsed() < Duration::from_secs(20), "{text}: {:?}", begun.elapsed());
        ensure!(said(&send(&client, "echo", "still here").await?) == "still here", "{text}");
    }
    // An infinite timeout is a number like any other.
    let (id, mut updates) = stream(&client, "guest", "patient").await?;
    until(&mut updates, |event| event["status"]["state"] == "input-required").await?;
    client.call("tasks/cancel", json!({ "id": id })).await?;
    assert_eq!(state(&get(&client, &id).await?), "canceled");
    Ok(())
}

/// A line that an agent logs stays one line in the operator's log, in each format.
#[tokio::test]
async fn log_lines_cannot_be_forged() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let forged = "2026-01-01T00:00:00Z ERROR forged";
    send(&client, "guest", &format!("log nothing\n{forged}\r{forged}\u{1b}[2K{forged}\u{2028}x"))
        .await?;
    let name = format!("x\n{forged}.wasm");
    fs::write(hub.data_dir().join("plugins").join(name), "x")?;
    let told = || hub.log().contains("nothing") && hub.log().contains("a plugin cannot join");
    crate::stage::eventually(Duration::from_secs(10), told).await?;
    let log = hub.log();
    ensure!(!log.lines().any(|line| line.starts_with(forged)), "{log}");
    ensure!(!log.contains('\u{1b}') && !log.contains('\r'), "{log}");
    Ok(())
}

/// The operator revokes a grant while the hub itself writes the grants file, before it has read the
/// revocation. The revocation still reaches running tasks.
#[tokio::test]
async fn revocation_survives_concurrent_hub_write() -> Result<()> {
    let hub = InProcessHub::start().await?;
    let client = Client::http(&hub);
    let other = AgentId::parse("other")?;
    grant(&hub, by_command(digest(&test_guests()?)?))?;
    change(&hub, |all| {
        all.grant(
            &other,
            by_command(digest(&test_guests().unwrap_or_default()).unwrap_or_default()),
            7,
        );
    })?;
    hub.plug("guest", &test_guests()?)?;
    hub.plug("other", &test_guests()?)?;
    plugin_when(&client, |now| now["joined"] == true).await?;
    for _ in 0..3 {
        let (id, mut updates) = stream(&client, "guest", "sh echo on; sleep 60").await?;
        until(&mut updates, |event| event["artifact"].is_object()).await?;
        // The hub records the removal of the file at the same time.
        hub.unplug("other")?;
        sleep(Duration::from_millis(300)).await;
        a2a_hub_tests::grants::revoke(&hub)?;
        eventually_async(SOON, async || {
            get(&client, &id).await.is_ok_and(|task| state(&task) != "working")
        })
        .await?;
        no_program_left(&hub.data_dir(), SOON).await?;
        hub.plug("other", &test_guests()?)?;
        grant(&hub, by_command(digest(&test_guests()?)?))?;
        client.call("hub/plugins/refresh", json!({})).await?;
    }
    Ok(())
}

/// Running tasks lose directories, paths and pins that the operator revokes.
#[tokio::test]
async fn narrowed_grant_ends_running_programs() -> Result<()> {
    let (hub, place) = (InProcessHub::start().await?, tempfile::tempdir()?);
    let client = Client::http(&hub);
    let place = place.path().canonicalize()?;
    let of = |directory: &str, program: Option<&str>| -> Result<NewGrant> {
        let mut new = by_command(digest(&test_guests()?)?);
        let at = place.join(directory);
        fs::create_dir_all(&at)?;
        new.grant.directories = Some([at.display().to_string()].into());
        if let (Some(path), Some(sh)) = (program, new.grant.process.get_mut("sh")) {
            sh.path = Some(path.to_owned());
        }
        Ok(new)
    };
    grant(&hub, of("one", Some("/bin/sh"))?)?;
    hub.plug("guest", &test_guests()?)?;
    plugin_when(&client, |now| now["joined"] == true).await?;
    for (narrower, still) in [
        (of("one", Some("/bin/sh"))?, true),
        (of("two", Some("/bin/sh"))?, false),
        (of("one", Some("/bin/bash"))?, false),
    ] {
        grant(&hub, of("one", Some("/bin/sh"))?)?;
        client.call("hub/plugins/refresh", json!({})).await?;
        let (id, mut updates) = stream(&client, "guest", "sh pwd; sleep 3; echo end").await?;
        let told = until(&mut updates, |event| event["artifact"].is_object()).await?;
        ensure!(told["artifact"].to_string().contains("one"), "{told}");
        let begun = Instant::now();
        grant(&hub, NewGrant { at: format!("{still}"), ..narrower })?;
        client.call("hub/plugins/refresh", json!({})).await?;
        until(&mut updates, |event| event["final"] == true).await?;
        let task = get(&client, &id).await?;
        ensure!(artifact(&task).contains("end") == still, "{still}: {}", artifact(&task));
        if !still {
            ensure!(said(&task).contains("revoked by the operator"), "{}", said(&task));
            ensure!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        }
    }
    Ok(())
}

/// Invalid files in the plugins folder, of each file type.
#[tokio::test]
async fn invalid_plugin_files_are_rejected() -> Result<()> {
    let (hub, dir) = (hub_with_guest().await?, tempfile::tempdir()?);
    let client = Client::http(&hub);
    let plugins = hub.data_dir().join("plugins");
    let component = fs::read(test_guests()?)?;
    let outside = dir.path().join("outside.wasm");
    fs::write(&outside, &component)?;
    // Each file would join as an agent if the hub took it for one of the operator's components.
    symlink(&outside, plugins.join("by-link.wasm"))?;
    fs::hard_link(&outside, plugins.join("by-hard-link.wasm"))?;
    symlink("/dev/zero", plugins.join("endless.wasm"))?;
    symlink(&plugins, plugins.join("loop.wasm"))?;
    fs::create_dir(plugins.join("folder.wasm"))?;
    rustix::fs::mknodat(
        rustix::fs::CWD,
        plugins.join("pipe.wasm"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )?;
    for name in [
        "a..b.wasm",
        "UPPER.wasm",
        "-x.wasm",
        "..wasm",
        "\u{202e}x.wasm",
        "a b.wasm",
        "echo.wasm",
        "$(id).wasm",
    ] {
        fs::write(plugins.join(name), &component)?;
    }
    fs::write(plugins.join("shared.wasm"), &component)?;
    fs::set_permissions(plugins.join("shared.wasm"), fs::Permissions::from_mode(0o622))?;
    let sparse = fs::File::create(plugins.join("sparse.wasm"))?;
    sparse.set_len(1 << 40)?;
    let all = [
        "by-link",
        "by-hard-link",
        "endless",
        "loop",
        "folder",
        "pipe",
        "a..b",
        "UPPER",
        "-x",
        "\u{202e}x",
        "a b",
        "echo",
        "$(id)",
        "shared",
        "sparse",
    ];
    let rejected = async || -> Result<Vec<String>> {
        let status = client.call("hub/status", json!({})).await?;
        let all = status["rejectedPlugins"].as_array().cloned().unwrap_or_default();
        Ok(all.iter().filter_map(|one| Some(one["file"].as_str()?.to_owned())).collect())
    };
    let wanted: Vec<_> = all.iter().map(|name| format!("{name}.wasm")).collect();
    eventually_async(Duration::from_secs(60), async || {
        rejected().await.is_ok_and(|told| wanted.iter().all(|name| told.contains(name)))
    })
    .await
    .context(format!("{:?}", rejected().await))?;
    let agents = client.call("hub/agents/list", json!({})).await?.to_string();
    for name in ["by-link", "by-hard-link", "shared", "sparse", "folder"] {
        ensure!(!agents.contains(&format!("\"id\":\"{name}\"")), "{name}: {agents}");
    }
    assert_eq!(artifact(&send(&client, "guest", "sh echo hi").await?), "hi\n");

    // A link that is swapped in during the hub's scans never counts.
    let (one, two) = (plugins.join("swap.wasm"), plugins.join("swap.new"));
    let until_then = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until_then {
        symlink(&outside, &two)?;
        fs::rename(&two, &one)?;
        sleep(Duration::from_millis(20)).await;
        fs::write(&two, "no component")?;
        fs::rename(&two, &one)?;
        sleep(Duration::from_millis(20)).await;
    }
    let agents = client.call("hub/agents/list", json!({})).await?.to_string();
    ensure!(!agents.contains("\"id\":\"swap\""), "{agents}");
    Ok(())
}

/// The hub compiles and grants exactly the bytes that it hashed, even if the file changes
/// meanwhile.
#[tokio::test]
async fn replaced_file_never_runs_under_grant() -> Result<()> {
    let (hub, dir) = (InProcessHub::start().await?, tempfile::tempdir()?);
    let client = Client::http(&hub);
    let (granted, other) = (test_guests()?, another_build(&dir)?);
    grant(&hub, by_command(digest(&granted)?))?;
    hub.plug("guest", &granted)?;
    plugin_when(&client, |now| now["joined"] == true).await?;
    for round in 0..30 {
        hub.plug("guest", if round % 2 == 0 { &granted } else { &other })?;
        sleep(Duration::from_millis(37 * (round % 5))).await;
        // Only the granted component runs under the grant.
        let now = a2a_hub_tests::grants::plugin(&client).await?;
        if now["joined"] == true && now["sha256"] != json!(digest(&granted)?) {
            let refused = send(&client, "guest", "sh echo hi").await?;
            ensure!(said(&refused).contains("not granted"), "{now}: {}", said(&refused));
        }
    }
    hub.plug("guest", &other)?;
    let serves = |now: &Value| now["heldBack"].is_object() && now["joined"] == true;
    let held = plugin_when(&client, serves).await?;
    assert_eq!(held["sha256"], json!(digest(&granted)?));

    // The copy in use is swapped while the hub is stopped: its digest has no grant, so nothing runs
    // under the grant.
    let mut hub = hub;
    hub.stop().await?;
    let copies = hub.data_dir().join("components");
    let copy = copies.join(format!("{}.wasm", digest(&granted)?));
    fs::write(&copy, fs::read(&other)?)?;
    hub.restart().await?;
    let client = Client::http(&hub);
    let now = plugin_when(&client, |now| now["error"].is_string()).await?;
    ensure!(now["joined"] == false, "{now}");
    fs::remove_file(&copy)?;
    symlink(&other, &copy)?;
    hub.restart().await?;
    let now = plugin_when(&Client::http(&hub), |now| now["error"].is_string()).await?;
    ensure!(now["joined"] == false, "{now}");
    Ok(())
}

/// Grants files that another user wrote, or that are invalid.
#[tokio::test]
async fn hostile_grants_file_grants_nothing() -> Result<()> {
    let hub = InProcessHub::start().await?;
    let client = Client::http(&hub);
    hub.plug("guest", &test_guests()?)?;
    plugin_when(&client, |now| now["joined"] == true).await?;
    let file = hub.data_dir().join("grants.toml");
    let before = fs::read(&file)?;
    grant(&hub, by_command(digest(&test_guests()?)?))?;
    let whole = fs::read_to_string(&file)?;
    let elsewhere = hub.home().join("elsewhere.toml");
    fs::write(&elsewhere, &whole)?;
    fs::write(&file, &before)?;
    client.call("hub/plugins/refresh", json!({})).await?;
    let nothing = async |what: &str| -> Result<()> {
        let told = client.call("hub/plugins/refresh", json!({})).await?;
        let refused = send(&client, "guest", "sh echo hi").await?;
        ensure!(said(&refused).contains("not granted"), "{what}: {} {told}", said(&refused));
        ensure!(
            told["trouble"].as_str().is_some_and(|why| why.contains("grants.toml")),
            "{what}: {told}"
        );
        Ok(())
    };
    let write = |text: &str, mode: u32| -> Result<()> {
        let _gone = fs::remove_file(&file);
        fs::write(&file, text)?;
        Ok(fs::set_permissions(&file, fs::Permissions::from_mode(mode))?)
    };
    for mode in [0o666, 0o620, 0o602] {
        write(&whole, mode)?;
        nothing(&format!("{mode:o}")).await?;
    }
    for (what, text) in [
        ("half of it", whole[..whole.len() / 2].to_owned()),
        ("two of one name", format!("{whole}{}", &whole[whole.find("[plugins").unwrap_or(0)..])),
        ("a path as an id", whole.replace("\"guest@0000beef\"", "\"../../etc\"")),
        ("another key", format!("{whole}\nroot = true\n")),
        ("deep", format!("x = {}{}", "[".repeat(100_000), "]".repeat(100_000))),
        ("long", format!("{whole}#{}", "x".repeat(5 << 20))),
        ("NUL", format!("{whole}\0")),
    ] {
        write(&text, 0o600)?;
        nothing(what).await?;
    }
    fs::remove_file(&file)?;
    symlink(&elsewhere, &file)?;
    nothing("a link").await?;
    fs::remove_file(&file)?;
    fs::create_dir(&file)?;
    nothing("a folder").await?;
    fs::remove_dir(&file)?;
    let health = async || -> Result<Value> {
        let asked = reqwest::Client::new().get(format!("http://{}/health", hub.http()));
        let asked = asked.header("authorization", bearer(&hub)?).send().await?;
        ensure!(asked.status() == 200, "it lives: {}", asked.status());
        Ok(asked.json().await?)
    };
    write("plugins = 7", 0o600)?;
    nothing("another shape").await?;
    let told = health().await?;
    ensure!(
        told["status"] == "degraded" && told["warnings"][0].to_string().contains("grants.toml"),
        "{told}"
    );
    let status = client.call("hub/status", json!({})).await?;
    ensure!(status["warnings"].to_string().contains("grants.toml"), "{status}");
    write(&whole, 0o600)?;
    client.call("hub/plugins/refresh", json!({})).await?;
    assert_eq!(health().await?["status"], "ok");
    assert_eq!(artifact(&send(&client, "guest", "sh echo hi").await?), "hi\n", "mended");
    Ok(())
}

/// Only the operator grants: neither a transport nor an agent's input can.
#[tokio::test]
async fn transports_and_messages_cannot_grant() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let digest = digest(&test_guests()?)?;
    for method in [
        "hub/plugins/grant",
        "hub/plugins/add",
        "hub/plugins/set",
        "hub/agents/grant",
        "hub/settings/set",
        "plugin/grant",
    ] {
        let told =
            client.call(method, json!({ "agentId": "guest", "sha256": digest, "all": true })).await;
        ensure!(told.is_err(), "{method}: {told:?}");
    }
    let before = fs::read(hub.data_dir().join("grants.toml"))?;
    // A grant in a message or in metadata is only data.
    let mut message = message_to("guest", "exec never-granted x");
    message["message"]["metadata"]["grant"] = json!({ "process": { "never-granted": {} } });
    message["message"]["metadata"]["principal"] = json!("operator");
    message["metadata"]["grant"] = json!({ "process": { "never-granted": {} } });
    let task = client.call("message/send", message).await?;
    ensure!(said(&task).contains("not granted"), "{}", said(&task));
    assert_eq!(fs::read(hub.data_dir().join("grants.toml"))?, before);
    Ok(())
}
