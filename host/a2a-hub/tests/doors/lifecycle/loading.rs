//! Tests of components that are too expensive to compile, and of replaced compiled code.

use crate::{
    hub::InProcessHub,
    stage::{said, send},
};
use a2a_hub_sandbox::digest_of;
use a2a_hub_tests::{
    Client, Endpoints, Site,
    grants::{by_command, digest, grant, is_held_back, plugin_when, revoke},
    message_to,
    questions::refused,
    test_guests,
};
use anyhow::{Context as _, Result};
use minisign::KeyPair;
use serde_json::{Value, json};
use std::{
    fs,
    io::Cursor,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::sleep;

/// Builds a valid component of a few hundred kilobytes whose compilation takes most of a minute or
/// longer: a function of `blocks` nested blocks.
fn compile_bomb(blocks: usize) -> Vec<u8> {
    let mut body = vec![0];
    body.extend([0x02, 0x40].repeat(blocks));
    body.extend(vec![0x0b; blocks + 1]);
    let code = [leb128(1), leb128(body.len()), body].concat();
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    for (id, section) in [(1, vec![1, 0x60, 0, 0]), (3, vec![1, 0]), (10, code)] {
        module.extend([vec![id], leb128(section.len()), section].concat());
    }
    [b"\0asm\x0d\0\x01\0\x01".to_vec(), leb128(module.len()), module].concat()
}

/// Encodes a number as LEB128: seven bits per byte, the lowest first.
fn leb128(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = number.to_le_bytes()[0] & 0x7f;
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// Waits for the reason why a file is rejected.
async fn rejected(client: &Client, file: &str) -> Result<String> {
    for _ in 0..600 {
        let status = client.call("hub/status", json!({})).await?;
        let all = status["rejectedPlugins"].as_array().cloned().unwrap_or_default();
        if let Some(one) = all.iter().find(|one| one["file"] == file) {
            return Ok(one["error"].as_str().unwrap_or_default().to_owned());
        }
        sleep(Duration::from_millis(50)).await;
    }
    anyhow::bail!("nothing is told of {file}")
}

fn refusals(hub: &InProcessHub) -> Result<Vec<PathBuf>> {
    let all = fs::read_dir(hub.data_dir().join("cache"))?;
    let paths = all.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    Ok(paths
        .into_iter()
        .filter(|path| path.extension().is_some_and(|it| it == "refused"))
        .collect())
}

/// Endless compilation is ended, reported with a fix, and remembered; other components do not wait
/// for it.
#[tokio::test]
async fn compile_bomb_is_ended_and_remembered() -> Result<()> {
    // Caches the built-in agents, which could not be compiled within the short limit below.
    drop(InProcessHub::start().await?);
    let bombs = tempfile::tempdir()?;
    let mut builder = InProcessHub::builder().config("plugins.compile_cpu_ms = 1000");
    for bomb in ["a-bomb", "b-bomb"] {
        let file = bombs.path().join(bomb);
        fs::write(&file, compile_bomb(1_000_000 + bomb.len() + usize::from(bomb.as_bytes()[0])))?;
        builder = builder.plugin(bomb, file);
    }
    let echo = test_guests()?.with_file_name("echo.wasm");
    let mut hub = builder.plugin("z-parrot", echo).start().await?;
    let client = Client::unix(&hub);
    assert_eq!(said(&send(&client, "echo", "hello").await?), "hello");
    assert_eq!(said(&send(&client, "z-parrot", "me too").await?), "me too", "it came after them");
    for bomb in ["a-bomb.wasm", "b-bomb.wasm"] {
        let why = rejected(&client, bomb).await?;
        assert!(
            why.starts_with("compile it: it took more than 1 s of time on the processor"),
            "{why}"
        );
        assert!(why.contains("raise `plugins.compile_cpu_ms`"), "{why}");
    }
    let stamps = |hub: &InProcessHub| -> Result<Vec<_>> {
        let inode = |path: PathBuf| Ok((fs::metadata(&path)?.ino(), path));
        refusals(hub)?.into_iter().map(inode).collect()
    };
    let remembered = stamps(&hub)?;
    assert_eq!(remembered.len(), 2);

    hub.restart().await?;
    let client = Client::unix(&hub);
    rejected(&client, "a-bomb.wasm").await?;
    rejected(&client, "b-bomb.wasm").await?;
    assert_eq!(stamps(&hub)?, remembered, "nobody tried again");

    hub.unplug("b-bomb")?;
    hub.configure("plugins.compile_cpu_ms = 2000")?;
    hub.restart().await?;
    let why = rejected(&Client::unix(&hub), "a-bomb.wasm").await?;
    assert!(why.contains("more than 2 s"), "more is allowed, so it was tried again: {why}");
    Ok(())
}

/// A changed grant applies at the end of a compilation under way, which is not begun again. Until
/// then the granted component before it serves, and messages to a new plug-in are told to wait.
#[tokio::test]
async fn changed_grant_keeps_compilation_under_way() -> Result<()> {
    let hub = InProcessHub::builder().plugin("guest", test_guests()?).start().await?;
    let client = Client::unix(&hub);
    grant(&hub, by_command(digest(&test_guests()?)?))?;
    plugin_when(&client, |now| now["installation"].is_object() && now["joined"] == true).await?;

    let bombs = tempfile::tempdir()?;
    let bomb = bombs.path().join("bomb");
    fs::write(&bomb, compile_bomb(1_000_000))?;
    hub.plug("guest", &bomb)?;
    plugin_when(&client, is_held_back).await?;
    grant(&hub, by_command(digest(&bomb)?))?;
    let compiling = plugin_when(&client, |now| now["compiling"].is_object()).await?;
    assert_eq!(compiling["joined"], true, "the one before it serves: {compiling}");
    assert!(!is_held_back(&compiling) && compiling["error"].is_null(), "{compiling}");

    revoke(&hub)?;
    let is_revoked = |now: &Value| now["installation"]["grant"] == json!({});
    let later = plugin_when(&client, is_revoked).await?;
    assert_eq!(later["compiling"], compiling["compiling"], "it was begun again");

    fs::write(&bomb, compile_bomb(1_000_001))?;
    hub.plug("fresh", &bomb)?;
    for _ in 0..600 {
        let (_, why, data) = refused(&client, message_to("fresh", "hi")).await?;
        if why.contains("is being compiled, since") {
            assert_eq!((&data["reason"], &data["agentId"]), (&json!("compiling"), &json!("fresh")));
            return Ok(());
        }
        sleep(Duration::from_millis(50)).await;
    }
    anyhow::bail!("it is not told that it is being compiled")
}

/// A hub whose start takes long differs from one that hangs: it answers its status, and keeps every
/// other request until it serves.
#[tokio::test]
async fn starting_hub_answers_status_and_queues_rest() -> Result<()> {
    let mut hub = InProcessHub::start().await?;
    hub.stop().await?;
    let bombs = tempfile::tempdir()?;
    let bomb = bombs.path().join("bomb");
    fs::write(&bomb, compile_bomb(2_000_000))?;
    hub.plug("bomb", &bomb)?;
    let (socket, site) = (hub.socket().to_owned(), Site::clone(&hub));
    let client = Client::unix(&Endpoints::new(String::new(), socket, site));
    let asking = async {
        let start = loop {
            let status = client.call("hub/status", json!({})).await.unwrap_or_default();
            let start = status["starting"].clone();
            if start["compiling"] == json!(["bomb"]) {
                break start;
            }
            sleep(Duration::from_millis(20)).await;
        };
        let agents = client.call("hub/agents/list", json!({})).await?;
        anyhow::Ok((start, agents))
    };
    let (restarted, asked) = tokio::join!(hub.restart(), asking);
    restarted?;
    let (start, agents) = asked?;
    let (all, ready) = (start["agents"].as_u64(), start["ready"].as_u64());
    assert_eq!(all.zip(ready).map(|(all, ready)| all - ready), Some(1), "{start}");
    assert!(agents.to_string().contains("\"echo\""), "{agents}");
    let status = client.call("hub/status", json!({})).await?;
    assert!(status["starting"].is_null(), "it has started: {status}");
    Ok(())
}

/// Returns the cached code of the echo agent, for all engines, and that of another component.
fn of_echo_and_another(cache: &Path) -> Result<(Vec<PathBuf>, PathBuf)> {
    let echo = digest_of(&fs::read(test_guests()?.with_file_name("echo.wasm"))?);
    let mut all: Vec<_> = fs::read_dir(cache)?.filter_map(|it| Some(it.ok()?.path())).collect();
    all.retain(|path| path.extension().is_some_and(|it| it == "cwasm"));
    let is_echos = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&echo))
    };
    let (echos, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_echos);
    let other = others.into_iter().next().filter(|_| !echos.is_empty());
    Ok((echos, other.context("they were not compiled")?))
}

/// Compiled code is executed without verification by the compiler, so another component's code in
/// place of a trusted one's must not run.
#[tokio::test]
async fn swapped_compiled_code_is_recompiled() -> Result<()> {
    let mut hub = InProcessHub::start().await?;
    hub.stop().await?;
    let (echos, other) = of_echo_and_another(&hub.data_dir().join("cache"))?;
    let theirs = fs::read(other)?;
    // New files, because tests share the cache by links.
    for echo in &echos {
        fs::remove_file(echo)?;
        fs::write(echo, &theirs)?;
    }
    hub.restart().await?;
    let client = Client::unix(&hub);
    assert_eq!(said(&send(&client, "echo", "it is me").await?), "it is me");
    assert!(hub.log().contains("cached component is not authentic"), "{}", hub.log());
    let is_anew = |echo: &PathBuf| fs::read(echo).is_ok_and(|code| code != theirs);
    assert!(echos.iter().any(is_anew), "it was compiled anew");
    let all = client.call("hub/agents/list", json!({})).await?;
    let count = all.as_array().or_else(|| all["agents"].as_array()).map(Vec::len);
    assert_eq!(count, Some(7), "{all}");
    Ok(())
}

/// Returns an agent in the hub's list, by id.
async fn agent(client: &Client, id: &str) -> Result<Value> {
    let all = client.call("hub/agents/list", json!({})).await?;
    let all = all.as_array().or_else(|| all["agents"].as_array()).context("no list")?;
    Ok(all.iter().find(|agent| agent["id"] == id).cloned().unwrap_or_default())
}

/// Only components signed with a configured key join, once the signature exists; an unsigned one
/// replaces nothing.
#[tokio::test]
async fn component_requires_known_signature() -> Result<()> {
    let (key, stranger) =
        (KeyPair::generate_unencrypted_keypair()?, KeyPair::generate_unencrypted_keypair()?);
    let config =
        format!("plugins.policy = 'require'\nplugins.keys.acme = '{}'", key.pk.to_base64());
    let echo = test_guests()?.with_file_name("echo.wasm");
    let hub = InProcessHub::builder().config(config).plugin("parrot", &echo).start().await?;
    let client = Client::unix(&hub);
    let why = rejected(&client, "parrot.wasm").await?;
    assert!(why.starts_with("nobody signed it, and `plugins.policy` is `require`"), "{why}");

    let signature = hub.data_dir().join("plugins/parrot.wasm.minisig");
    let sign = |key: &KeyPair| -> Result<()> {
        let component = Cursor::new(fs::read(&echo)?);
        let made = minisign::sign(Some(&key.pk), &key.sk, component, None, None)?;
        Ok(fs::write(&signature, made.to_string())?)
    };
    let told = async |part: &str| -> Result<()> {
        for _ in 0..600 {
            if rejected(&client, "parrot.wasm").await?.contains(part) {
                return Ok(());
            }
            sleep(Duration::from_millis(50)).await;
        }
        anyhow::bail!("it is not told: {part}")
    };
    sign(&stranger)?;
    told("signed with a key that `plugins.keys` does not name").await?;
    sign(&key)?;
    for _ in 0..600 {
        if agent(&client, "parrot").await? != Value::Null {
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(agent(&client, "parrot").await?["signedBy"], "acme");

    // Another component with this one's signature is rejected, and the present one stays in use.
    hub.plug("parrot", &test_guests()?)?;
    told("its signature is of another file: since the key `acme` signed").await?;
    assert_eq!(said(&send(&client, "parrot", "still me").await?), "still me");

    // A signature file that others may write is not used.
    fs::set_permissions(&signature, fs::Permissions::from_mode(0o666))?;
    hub.plug("parrot", &echo)?;
    told("its signature (the `.minisig` beside it) cannot be used: others may write to it").await?;
    Ok(())
}

/// A hub refuses a data directory that another user may change.
#[tokio::test]
async fn insecure_data_directory_is_refused() -> Result<()> {
    let mut hub = InProcessHub::start().await?;
    hub.stop().await?;
    let (plugins, elsewhere) = (hub.data_dir().join("plugins"), hub.home().join("plugins"));
    fs::rename(&plugins, &elsewhere)?;
    symlink(&elsewhere, &plugins)?;
    let refused = hub.restart().await.unwrap_err().to_string();
    assert!(refused.contains("it is a link") && refused.contains("rm "), "{refused}");
    fs::remove_file(&plugins)?;
    hub.restart().await?;
    Ok(())
}
