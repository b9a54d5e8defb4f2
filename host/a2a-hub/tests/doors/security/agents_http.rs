//! Tests of HTTP requests by agents: allowed by their operator, with secrets that the agents never
//! see.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, artifact, eventually, get, said, send, state, stream, until},
};
use a2a_hub_tests::{Client, WebServer, grants::revoke, message_to, resident_bytes, test_guests};
use anyhow::{Context as _, Result};
use serde_json::json;
use std::{
    fs::{self, DirBuilder, Permissions},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink},
    path::Path,
    time::Duration,
};
use tokio::time::{Instant, timeout};

const SECRET: &str = "sk-test-1234567890";

/// Starts a hub whose agent `guest` may request paths below `/v1` of the server, with a key.
async fn hub_for(server: &WebServer) -> Result<InProcessHub> {
    let grant = format!(
        "{GRANT}
        http_bytes = 6000000
        [agents.guest.grant.http.\"127.0.0.1\"]
        scheme = 'http'
        private = true
        ports = [{}]
        methods = ['GET', 'POST']
        paths = ['/v1']
        headers = {{ Authorization = 'Bearer secret:TEST_KEY' }}
        [agents.guest.grant.http.\"localhost\"]
        scheme = 'http'
        ports = [{}]
        ",
        server.port(),
        server.port()
    );
    let hub = InProcessHub::builder().config(grant).plugin("guest", test_guests()?).start().await?;
    let secrets = hub.data_dir().join("secrets");
    DirBuilder::new().mode(0o700).create(&secrets)?;
    fs::write(secrets.join("TEST_KEY"), SECRET)?;
    fs::set_permissions(secrets.join("TEST_KEY"), Permissions::from_mode(0o600))?;
    Ok(hub)
}

#[tokio::test]
async fn secret_header_is_added_and_redacted() -> Result<()> {
    let server = WebServer::start().await?;
    let hub = hub_for(&server).await?;
    let client = Client::http(&hub);
    let request =
        format!("request POST {} X-Own=1 Authorization=mine -- hello", server.url("/v1/echo?q=1"));
    let task = send(&client, "guest", &request).await?;
    let asked = &server.asked()[0];
    assert_eq!(asked.headers["authorization"], format!("Bearer {SECRET}").as_str());
    assert_eq!((asked.path.as_str(), &asked.headers["x-own"]), ("/v1/echo?q=1", &"1".parse()?));
    assert_eq!(&asked.body[..], b"hello");
    assert!(said(&task).contains("x-authorization: Bearer [redacted TEST_KEY]"), "{}", said(&task));
    assert!(said(&task).starts_with("200\n") && said(&task).ends_with("hello"), "{}", said(&task));

    for behaviour in ["fetch", "pieces", "wasi-fetch GET"] {
        let task =
            send(&client, "guest", &format!("{behaviour} {}", server.url("/v1/split"))).await?;
        assert!(task.to_string().contains("Bearer [redacted TEST_KEY]"), "{task}");
        assert!(!task.to_string().contains("1234567890"), "{task}");
    }
    assert!(!hub.log().contains(SECRET));

    fs::remove_file(hub.data_dir().join("secrets/TEST_KEY"))?;
    let task = send(&client, "guest", &request).await?;
    assert!(
        said(&task).contains("put it into") && said(&task).contains("TEST_KEY"),
        "{}",
        said(&task)
    );
    Ok(())
}

#[tokio::test]
async fn requests_outside_grant_are_denied() -> Result<()> {
    let server = WebServer::start().await?;
    let hub = hub_for(&server).await?;
    let client = Client::http(&hub);
    let port = server.port();
    for (request, word) in [
        (format!("request DELETE {}", server.url("/v1/echo")), "only the methods"),
        (format!("fetch {}", server.url("/v2")), "paths that begin with /v1"),
        (format!("fetch {}", server.url("/v1/../v2")), "paths that begin with /v1"),
        (format!("fetch {}", server.url("/v1/%2e%2e/v2")), "paths that begin with /v1"),
        (format!("fetch {}", server.url("/v1/..%2fv2")), "paths that begin with /v1"),
        (format!("fetch http://{}/v1", hub.http()), "only the ports"),
        (format!("fetch https://127.0.0.1:{port}/v1"), "only `http:`"),
        (format!("fetch http://me@127.0.0.1:{port}/v1"), "a name before the host"),
        (format!("fetch http://[::1]:{port}/v1"), "not granted"),
        (format!("fetch http://[::ffff:127.0.0.1]:{port}/v1"), "not granted"),
        (format!("fetch http://127.0.0.2:{port}/v1"), "not granted"),
        (format!("fetch http://localhost.:{port}/v1"), "final dot"),
        // The grant excludes private addresses, and all addresses of this host are loopback.
        (format!("fetch http://localhost:{port}/v1"), "a private address"),
        ("fetch http://169.254.169.254/latest".to_owned(), "not granted"),
        ("fetch file:///etc/passwd".to_owned(), "none of HTTP"),
        (format!("smuggle {}", server.url("/v1/echo")), "0 of 14 were sent"),
        ("connect".to_owned(), "access-denied"),
    ] {
        let task = send(&client, "guest", &request).await?;
        assert!(said(&task).contains(word), "{request}: {}", said(&task));
    }
    assert!(server.asked().is_empty());
    let task =
        send(&client, "guest", &format!("request GET {}", server.url("/v1/redirect"))).await?;
    assert!(said(&task).starts_with("302\n"), "{}", said(&task));
    assert_eq!(server.asked().len(), 1, "nobody follows it");
    Ok(())
}

#[tokio::test]
async fn oversized_or_endless_response_is_ended() -> Result<()> {
    let server = WebServer::start().await?;
    let hub = hub_for(&server).await?;
    let client = Client::http(&hub);
    let before = resident_bytes(hub.pid()).context("gone")?;
    for (request, word) in [
        ("fetch /v1/big", "longer than 4 MiB"),
        ("fetch /v1/endless", "longer than 4 MiB"),
        ("pieces /v1/endless", "`http_bytes`"),
        ("pieces /v1/big", "`http_bytes`"),
    ] {
        let (behaviour, path) = request.split_once(' ').unwrap_or_default();
        let task = send(&client, "guest", &format!("{behaviour} {}", server.url(path))).await?;
        assert!(said(&task).contains(word), "{request}: {}", said(&task));
    }
    let grown = resident_bytes(hub.pid()).context("gone")?.saturating_sub(before);
    assert!(grown < 120 << 20, "{} MiB", grown >> 20);

    let (id, mut updates) =
        stream(&client, "guest", &format!("pieces {}", server.url("/v1/slow"))).await?;
    until(&mut updates, |event| event["kind"] == "artifact-update").await?;
    let begun = Instant::now();
    client.call("tasks/cancel", json!({ "id": id })).await?;
    let last = until(&mut updates, |event| event["final"] == true).await?;
    assert_eq!(state(&last), "canceled");
    assert!(begun.elapsed() < Duration::from_secs(2));
    Ok(())
}

#[tokio::test]
async fn http_response_is_streamed() -> Result<()> {
    let server = WebServer::start().await?;
    let hub = hub_for(&server).await?;
    let client = Client::http(&hub);
    let begun = Instant::now();
    let (_, mut updates) =
        stream(&client, "guest", &format!("events {}", server.url("/v1/events"))).await?;
    timeout(
        Duration::from_secs(20),
        until(&mut updates, |event| event["kind"] == "artifact-update"),
    )
    .await??;
    let first = begun.elapsed();
    until(&mut updates, |event| event["final"] == true).await?;
    assert!(begun.elapsed() > first + Duration::from_millis(500), "all came at once");
    let task = send(&client, "guest", &format!("events {}", server.url("/v1/events"))).await?;
    assert_eq!(
        (artifact(&task).as_str(), said(&task)),
        ("word1 word2 word3 word4 word5 ", "5 events")
    );
    eventually(Duration::from_secs(5), || server.asked().len() == 2).await
}

#[tokio::test]
async fn revocation_ends_open_http_response() -> Result<()> {
    let server = WebServer::start().await?;
    let hub = hub_for(&server).await?;
    let client = Client::http(&hub);
    let request = format!("pieces {}", server.url("/v1/slow"));
    let (id, mut updates) = stream(&client, "guest", &request).await?;
    until(&mut updates, |event| event["kind"] == "artifact-update").await?;
    let begun = Instant::now();
    revoke(&hub)?;
    timeout(Duration::from_secs(5), until(&mut updates, |event| event["final"] == true)).await??;
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    let task = get(&client, &id).await?;
    assert!(
        said(&task).starts_with("denied: send a request: the grant was revoked"),
        "{}",
        said(&task)
    );
    Ok(())
}

/// Uses any language's file functions in the directory that the client names.
#[tokio::test]
async fn agent_files_are_limited_to_workdir() -> Result<()> {
    let config = GRANT.replace("files = true", "files = true\n workspace = 'read-write'");
    let hub =
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let client = Client::http(&hub);
    let (inside, outside) = (hub.workspace().join("project"), tempfile::tempdir()?);
    fs::create_dir(&inside)?;
    fs::write(outside.path().join("key"), "secret")?;
    symlink(outside.path(), inside.join("out"))?;
    let ask = async |text: &str, place: &Path| {
        let mut message = message_to("guest", text);
        message["message"]["metadata"]["workingDirectory"] = json!(place);
        client.call("message/send", message).await
    };
    for (text, expected) in [
        ("write /workspace/note.txt hello", "5 bytes"),
        ("show /workspace/note.txt", "hello"),
        ("list /workspace", "note.txt out"),
    ] {
        assert_eq!(said(&ask(text, &inside).await?), expected, "{text}");
    }
    assert_eq!(fs::read_to_string(inside.join("note.txt"))?, "hello");
    for text in ["show /workspace/out/key", "show /workspace/../key", "show /etc/passwd"] {
        let task = ask(text, &inside).await?;
        assert!(said(&task).starts_with("refused: "), "{text}: {}", said(&task));
    }
    let refused = ask("list /workspace", outside.path()).await?;
    assert_eq!(state(&refused), "failed");
    assert!(said(&refused).contains("outside the granted workspaces"), "{}", said(&refused));
    Ok(())
}
