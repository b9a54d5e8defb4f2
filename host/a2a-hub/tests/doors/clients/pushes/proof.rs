//! Tests of signatures, by which receivers verify notifications, and of challenges, by which the
//! hub verifies receivers.

use super::hub_with;
use crate::{
    hub::InProcessHub,
    stage::{eventually, hub_with_guest, send},
};
use a2a_hub_tests::{
    Client, Notification, Receiver, Told,
    pushes::{SOON, pushed, set, told},
};
use anyhow::{Context as _, Result, ensure};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use reqwest::Method;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::{Value, json};
use std::{collections::BTreeSet, env, path::Path, process::Stdio, time::Duration};
use tokio::{io::AsyncWriteExt as _, process::Command, time::timeout};

/// Timeout of a check in Python, which starts slowly.
const CHECKED_WITHIN: Duration = Duration::from_secs(30);

/// Fetches the hub's public keys, as any client can.
async fn keys(hub: &InProcessHub) -> Result<Vec<Value>> {
    let url = format!("http://{}/.well-known/jwks.json", hub.http());
    let answer = reqwest::get(url).await?.error_for_status()?;
    assert_eq!(answer.headers()["content-type"], "application/jwk-set+json");
    assert_eq!(answer.headers()["cache-control"], "public, max-age=300");
    let mut set: Value = serde_json::from_str(&answer.text().await?)?;
    Ok(serde_json::from_value(set["keys"].take())?)
}

fn header<'a>(came: &'a Notification, name: &str) -> &'a str {
    came.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// True if one of the signatures is valid for `key` and this body.
fn is_of(key: &Value, came: &Notification, body: &[u8]) -> Result<bool> {
    let key = URL_SAFE_NO_PAD.decode(key["x"].as_str().context("no key")?)?;
    let key = UnparsedPublicKey::new(&ED25519, key);
    let [id, time] = ["webhook-id", "webhook-timestamp"].map(|name| header(came, name));
    let signed = [format!("{id}.{time}.").as_bytes(), body].concat();
    let signatures = header(came, "webhook-signature").split(' ');
    let signatures: Vec<_> = signatures.filter_map(|it| it.strip_prefix("v1a,")).collect();
    ensure!(!signatures.is_empty(), "it is not signed");
    let valid = |it: &&str| STANDARD.decode(it).is_ok_and(|it| key.verify(&signed, &it).is_ok());
    Ok(signatures.iter().any(valid))
}

/// Each retry sends the same event with a new signature, because receivers reject an old signature.
#[tokio::test]
async fn each_delivery_attempt_is_signed_anew() -> Result<()> {
    let (hub, receiver) = (hub_with_guest().await?, Receiver::start()?.answering(&[503, 503]));
    let client = Client::http(&hub);
    client.call("message/send", pushed("flood 1", &receiver.url("/news"))).await?;
    told(&receiver, "completed").await?;
    let keys = keys(&hub).await?;
    let [key] = &keys[..] else { anyhow::bail!("there is more than one key: {keys:?}") };
    let came = receiver.came();
    for one in &came {
        assert_eq!(header(one, "webhook-key-id"), key["kid"]);
        assert!(is_of(key, one, &one.bytes)?);
        assert!(!is_of(key, one, b"{}")?, "another body");
    }
    let of_first = |name| came[..3].iter().map(|one| header(one, name)).collect::<BTreeSet<_>>();
    assert_eq!(of_first("webhook-id").len(), 1);
    // The second pause takes at least one second.
    assert!(of_first("webhook-timestamp").len() > 1, "{:?}", of_first("webhook-timestamp"));
    Ok(())
}

/// An independent implementation of the standards verifies the signature: `tests/sdks/verify.py`,
/// which the book names to receivers.
#[tokio::test]
async fn a_receiver_in_python_verifies_signature() -> Result<()> {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/sdks/py1");
    ensure!(sdk.is_dir(), "there is no Python with `cryptography`; run `cargo xtask sdks`");
    let (hub, receiver) = (hub_with_guest().await?, Receiver::start()?);
    let client = Client::http(&hub);
    client.call("message/send", pushed("flood 1", &receiver.url("/news"))).await?;
    told(&receiver, "completed").await?;
    let came = receiver.came().pop().context("nothing came")?;
    let headers: serde_json::Map<_, _> = came
        .headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), json!(value.to_str().unwrap_or_default())))
        .collect();
    let asked = json!({
        "jwks": { "keys": keys(&hub).await? }, "headers": headers, "body": str::from_utf8(&came.bytes)?,
    });
    let other = |change: fn(&mut Value)| {
        let mut asked = asked.clone();
        change(&mut asked);
        asked
    };
    assert_eq!(verified(&sdk, &asked).await?, "it is the hub's");
    for (wrong, said) in [
        (other(|it| it["body"] = json!("{}")), "no signature is right"),
        (other(|it| it["headers"]["webhook-id"] = json!("another")), "no signature is right"),
        (other(|it| it["headers"]["webhook-timestamp"] = json!("1700000000")), "it is too old"),
        (other(|it| it["headers"]["webhook-key-id"] = json!("another")), "the key is not known"),
    ] {
        assert_eq!(verified(&sdk, &wrong).await?, said);
    }
    Ok(())
}

/// Runs the receiver in Python and returns its output.
#[expect(clippy::disallowed_methods, reason = "somebody else's reading is another program")]
async fn verified(sdk: &Path, asked: &Value) -> Result<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sdks/verify.py");
    let mut python = Command::new(sdk.join("bin/python"));
    python.arg("-B").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut python = python.spawn()?;
    let mut stdin = python.stdin.take().context("no input")?;
    stdin.write_all(asked.to_string().as_bytes()).await?;
    drop(stdin);
    let said = timeout(CHECKED_WITHIN, python.wait_with_output()).await??;
    Ok(String::from_utf8(said.stdout)?.trim().to_owned())
}

#[tokio::test]
async fn key_rotation_keeps_old_signatures() -> Result<()> {
    let (mut hub, receiver) = (hub_with_guest().await?, Receiver::start()?);
    let old = keys(&hub).await?.remove(0);
    hub.stop().await?;
    let file = |name: &str| hub.data_dir().join(name);
    std::fs::rename(file("push-key"), file("push-key.old"))?;
    hub.restart().await?;
    let both = keys(&hub).await?;
    assert_eq!((both.len(), &both[1]), (2, &old));
    let client = Client::http(&hub);
    client.call("message/send", pushed("flood 1", &receiver.url("/news"))).await?;
    told(&receiver, "completed").await?;
    for one in receiver.came() {
        assert_eq!(header(&one, "webhook-key-id"), both[0]["kid"]);
        assert!(is_of(&both[0], &one, &one.bytes)?);
        assert!(is_of(&old, &one, &one.bytes)?, "whoever knows only that one can go on");
    }
    Ok(())
}

/// The hub sends nothing to a receiver that fails a challenge, and the challenge reveals nothing.
#[tokio::test]
async fn receiver_must_pass_challenge() -> Result<()> {
    let (hub, receiver) = (hub_with("challenge", true).await?, Receiver::start()?);
    let client = Client::http(&hub);
    let refused = async |url: String| {
        let refused = client.call("message/send", pushed("flood 1", &url)).await;
        let refused = refused.expect_err("it is refused");
        assert_eq!(refused.code(), Some(-32602));
        Ok::<_, anyhow::Error>(refused.to_string())
    };
    assert!(refused(receiver.url("/news")).await?.contains("its answer was not the token"));
    receiver.tells(Told::NoEnd);
    assert!(refused(receiver.url("/news")).await?.contains("its answer was not the token"));
    receiver.tells(Told::Token);
    receiver.at_path("/moved", 302);
    assert!(refused(receiver.url("/moved")).await?.contains("HTTP status 302"));
    assert!(refused("http://127.0.0.1:1/".to_owned()).await?.contains("push.challenge"));
    let before = receiver.came().len();
    assert!(refused("https://10.0.0.1/".to_owned()).await?.contains("push.trusted_hosts"));
    assert_eq!(receiver.came().len(), before);

    client.call("message/send", pushed("flood 1", &receiver.url("/news?a=b"))).await?;
    told(&receiver, "completed").await?;
    let asked = send(&client, "guest", "ask").await?;
    set(&client, &asked, "later", &receiver.url("/later")).await?;
    let challenges = || receiver.came().into_iter().filter(|it| it.method == Method::GET);
    eventually(SOON, || challenges().any(|it| it.path == "/later")).await?;
    for name in ["authorization", "x-a2a-notification-token", "webhook-signature"] {
        assert!(challenges().all(|it| !it.headers.contains_key(name)), "{name}");
    }
    assert!(receiver.came().iter().all(|it| it.path != "/elsewhere"));
    Ok(())
}
