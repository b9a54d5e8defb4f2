//! Tests with the official SDKs: each client on each of its bindings against the real hub, with
//! drivers in `tests/sdks` whose every step must pass; and the hub as a client of agents that the
//! SDKs serve.

use crate::stage::{GRANT, artifact, get, said, send, state, stream};
use a2a_hub_tests::{Client, TestHub, message_to, tenants::new_key, test_guests};
use a2a_hub_tls::testing::{TestCa, TestCertificate};
use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::json;
use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    time::timeout,
};

/// Steps of a client of 0.3.
const STEPS: &[&str] = &[
    "discover",
    "send_task",
    "send_message",
    "non_blocking",
    "stream",
    "parts",
    "get_task",
    "subscribe",
    "push",
    "cancel",
    "input_required",
    "ends",
    "extended_card",
    "error_mapping",
];

/// Additional steps of 1.0.
const STEPS_OF_1: &[&str] = &["signature", "list_tasks"];

/// Timeout of a driver, which takes about ten seconds; each step has a separate timeout.
const WITHIN: Duration = Duration::from_secs(100);

/// Timeout of a server's start: Python takes a while to load it.
const SERVES_WITHIN: Duration = Duration::from_secs(60);

/// Line that a driver prints for a step.
#[derive(Debug, Deserialize)]
struct Step {
    step: String,
    binding: String,
    ok: bool,
    detail: String,
}

/// An SDK, by the folder in which it is installed.
#[derive(Clone, Copy)]
enum Sdk {
    Py1,
    Py0,
    Js1,
    Js0,
}

impl Sdk {
    fn name(self) -> &'static str {
        match self {
            Self::Py1 => "py1",
            Self::Py0 => "py0",
            Self::Js1 => "js1",
            Self::Js0 => "js0",
        }
    }

    fn steps(self) -> Vec<&'static str> {
        let more = match self {
            Self::Py1 | Self::Js1 => STEPS_OF_1,
            Self::Py0 | Self::Js0 => &[],
        };
        STEPS.iter().chain(more).copied().collect()
    }

    /// Path at which the SDK finds the guest. 0.3 lacks tenants, which select the agent in gRPC:
    /// there it asks the hub.
    fn endpoint(self, binding: &str) -> &'static str {
        match (self, binding) {
            (Self::Py0, "GRPC") => "/a2a",
            (Self::Py1 | Self::Py0 | Self::Js1 | Self::Js0, _) => "/agents/guest",
        }
    }

    /// Directory of the SDK. `cargo xtask test` leaves out the tests of missing SDKs.
    fn find(self) -> Result<PathBuf> {
        let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/sdks").join(self.name());
        ensure!(sdk.is_dir(), "{} is not installed; run `cargo xtask sdks`", self.name());
        Ok(sdk)
    }

    /// Command of the SDK's driver, for an agent at `url`.
    fn driver(self, sdk: &Path, url: &str, binding: &str) -> Command {
        let mut driver = self.run(sdk, "client");
        driver.args([url, binding]).arg(sdk);
        driver
    }

    /// Command of one of the SDK's scripts.
    #[expect(clippy::disallowed_methods, reason = "what an SDK does, it does in its own program")]
    fn run(self, sdk: &Path, role: &str) -> Command {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sdks");
        let script = |kind| scripts.join(format!("{role}_{}.{kind}", self.name()));
        let mut command = match self {
            Self::Py1 | Self::Py0 => {
                let mut python = Command::new(sdk.join("bin/python"));
                python.arg("-B").arg(script("py"));
                python
            }
            Self::Js1 | Self::Js0 => {
                let mut node = Command::new("node");
                node.arg(script("mjs"));
                node
            }
        };
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }
}

/// Agent that an SDK serves, until dropped.
struct Reference {
    /// URL of the agent's card.
    url: String,
    /// Further origins of the agent.
    origins: Vec<String>,
    _server: Child,
}

impl Reference {
    /// Starts an agent with these arguments of its script; the first is the only binding.
    async fn start(sdk: Sdk, place: &Path, arguments: &[&str]) -> Result<Self> {
        let mut server = sdk.run(place, "server");
        let mut server = server.args(arguments).stdout(Stdio::piped()).spawn()?;
        let said = server.stdout.take().context("the server has no output")?;
        let first = timeout(SERVES_WITHIN, BufReader::new(said).lines().next_line()).await??;
        let first = first.context("the server ended before it served")?;
        let mut told = first.split(' ').map(str::to_owned);
        let url = told.next().context("it does not say where it is")?;
        Ok(Self { url, origins: told.collect(), _server: server })
    }
}

/// Runs all steps of an SDK's client against an agent, as the hub's own user.
async fn drive(sdk: Sdk, binding: &str) -> Result<()> {
    let place = sdk.find()?;
    let hub = start("").await?;
    let url = format!("http://{}{}", hub.http(), sdk.endpoint(binding));
    finish_driver(&hub, sdk, binding, sdk.driver(&place, &url, binding)).await
}

/// Starts a hub with the test guests and further settings.
async fn start(settings: &str) -> Result<TestHub> {
    let config = format!("default_agent = \"guest\"\n{GRANT}\n{settings}");
    TestHub::builder().config(config).plugin("guest", test_guests()?).start().await
}

/// Runs all steps of an SDK's client, which sends a person's key by the scheme that the card
/// declares.
async fn drive_with_key(sdk: Sdk, binding: &str) -> Result<()> {
    let place = sdk.find()?;
    let hub = start("").await?;
    let url = format!("http://{}{}", hub.http(), sdk.endpoint(binding));
    let mut driver = sdk.driver(&place, &url, binding);
    driver.env("A2A_KEY", new_key(&hub, "ada").await?);
    finish_driver(&hub, sdk, binding, driver).await
}

/// Runs all steps of an SDK's client over TLS: that of Python shows a certificate, and that of
/// JavaScript sends a key.
async fn drive_over_tls(sdk: Sdk, binding: &str) -> Result<()> {
    let place = sdk.find()?;
    let (files, ca) = (tempfile::tempdir()?, TestCa::new());
    let dir = files.path();
    let addresses = &["127.0.0.1".parse()?];
    ca.issue(TestCertificate { addresses, ..TestCertificate::default() }).write(dir, "hub");
    let ada = TestCertificate { dns: &["ada.example"], ..TestCertificate::default() };
    let (cert, cert_key) = ca.issue(ada).write(dir, "ada");
    let ca_file = dir.join("ca.pem");
    fs::write(&ca_file, ca.cert())?;
    let dir = dir.display();
    let tls = format!(
        "[tls]\ncert = '{dir}/hub.pem'\nkey = '{dir}/hub.key'\nclient_ca = '{dir}/ca.pem'\n\
         client_auth = 'optional'\n[[tls.client]]\nsan = 'ada.example'\nperson = 'ada'\n"
    );
    let hub = start(&tls).await?;
    let key = new_key(&hub, "ada").await?;
    let url = format!("https://{}{}", hub.http(), sdk.endpoint(binding));
    let mut driver = sdk.driver(&place, &url, binding);
    match sdk {
        Sdk::Py1 | Sdk::Py0 => {
            driver.env("A2A_CA", ca_file).env("A2A_CERT", cert).env("A2A_CERT_KEY", cert_key)
        }
        Sdk::Js1 | Sdk::Js0 => driver.env("NODE_EXTRA_CA_CERTS", ca_file).env("A2A_KEY", key),
    };
    finish_driver(&hub, sdk, binding, driver).await
}

/// Waits for the driver, which must have taken all steps.
async fn finish_driver(hub: &TestHub, sdk: Sdk, binding: &str, mut driver: Command) -> Result<()> {
    let ran = timeout(WITHIN, driver.output())
        .await
        .with_context(|| format!("the driver is not done after {WITHIN:?}"))??;
    let (told, complaints) =
        (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    let mut steps = BTreeMap::new();
    for line in told.lines() {
        let step: Step = serde_json::from_str(line).with_context(|| line.to_owned())?;
        ensure!(step.binding == binding, "{step:?} is not of {binding}");
        steps.insert(step.step.clone(), step);
    }
    let missed = |name: &&str| match steps.get(*name) {
        Some(step) if step.ok => None,
        Some(step) => Some(format!("{name}: {}", step.detail)),
        None => Some(format!("{name}: not taken")),
    };
    let failed: Vec<_> = sdk.steps().iter().filter_map(missed).collect();
    let whole = failed.is_empty() && ran.status.success();
    ensure!(whole, "{}\n{complaints}\nhub: {}", failed.join("\n"), hub.log());
    Ok(())
}

/// Generates a test for each SDK and binding.
macro_rules! drive {
    ($($name:ident: $sdk:ident on $binding:literal;)*) => {$(
        #[tokio::test]
        async fn $name() -> Result<()> {
            drive(Sdk::$sdk, $binding).await
        }
    )*};
}

drive! {
    python_1_on_jsonrpc: Py1 on "JSONRPC";
    python_1_on_rest: Py1 on "HTTP+JSON";
    python_1_on_grpc: Py1 on "GRPC";
    python_0_3_on_jsonrpc: Py0 on "JSONRPC";
    python_0_3_on_rest: Py0 on "HTTP+JSON";
    python_0_3_on_grpc: Py0 on "GRPC";
    javascript_1_on_jsonrpc: Js1 on "JSONRPC";
    javascript_1_on_rest: Js1 on "HTTP+JSON";
    javascript_0_3_on_jsonrpc: Js0 on "JSONRPC";
    javascript_0_3_on_rest: Js0 on "HTTP+JSON";
}

#[tokio::test]
async fn python_1_with_key_on_grpc() -> Result<()> {
    drive_with_key(Sdk::Py1, "GRPC").await
}

#[tokio::test]
async fn javascript_1_with_key_on_rest() -> Result<()> {
    drive_with_key(Sdk::Js1, "HTTP+JSON").await
}

#[tokio::test]
async fn python_1_with_certificate_on_grpc() -> Result<()> {
    drive_over_tls(Sdk::Py1, "GRPC").await
}

#[tokio::test]
async fn python_1_with_certificate_on_rest() -> Result<()> {
    drive_over_tls(Sdk::Py1, "HTTP+JSON").await
}

#[tokio::test]
async fn javascript_1_over_tls_on_jsonrpc() -> Result<()> {
    drive_over_tls(Sdk::Js1, "JSONRPC").await
}

/// Generates a test for each SDK and binding in which the hub calls the SDK's agent.
macro_rules! call {
    ($($name:ident: $sdk:ident on $($argument:literal)+;)*) => {$(
        #[tokio::test]
        async fn $name() -> Result<()> {
            call(Sdk::$sdk, &[$($argument),+], None).await
        }
    )*};
}

call! {
    hub_calls_python_1_on_jsonrpc: Py1 on "JSONRPC";
    hub_calls_python_1_on_rest: Py1 on "HTTP+JSON";
    hub_calls_python_1_on_grpc: Py1 on "GRPC";
    hub_calls_python_1_without_streaming: Py1 on "HTTP+JSON" "--no-streaming";
    hub_calls_python_0_3_on_jsonrpc: Py0 on "JSONRPC";
    hub_calls_python_0_3_on_rest: Py0 on "HTTP+JSON";
    hub_calls_python_0_3_on_grpc: Py0 on "GRPC";
    hub_calls_python_0_3_without_streaming: Py0 on "JSONRPC" "--no-streaming";
}

/// Runs `examples/client.py` as a reader would.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "what an SDK does, it does in its own program")]
async fn example_python_1_prints_stream() -> Result<()> {
    let hub = TestHub::builder().config(GRANT).plugin("guest", test_guests()?).start().await?;
    let url = format!("http://{}/agents/guest", hub.http());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/client.py");
    let mut python = Command::new(Sdk::Py1.find()?.join("bin/python"));
    python.arg("-B").arg(script).args([&url, "flood", "2"]).kill_on_drop(true);
    let done = timeout(WITHIN, python.output()).await??;
    let told = String::from_utf8_lossy(&done.stdout).into_owned();
    ensure!(done.status.success(), "{told}{}", String::from_utf8_lossy(&done.stderr));
    ensure!(told.ends_with("TASK_STATE_COMPLETED: 2 pieces\n") && told.contains("1\n"), "{told}");
    Ok(())
}

#[tokio::test]
async fn hub_calls_python_1_grpc_over_tls() -> Result<()> {
    let folder = TempDir::new()?;
    let path = folder.path().to_str().context("a folder with a strange name")?;
    call(Sdk::Py1, &["GRPC", "--certificate", path], Some(folder.path())).await
}

/// A card that an SDK signed is trusted by its key, and by no other.
#[tokio::test]
async fn card_signed_by_python_1_is_verified() -> Result<()> {
    let place = Sdk::Py1.find()?;
    let dir = tempfile::tempdir()?;
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (own, other) = (file("own"), file("other"));
    let there = Reference::start(Sdk::Py1, &place, &["JSONRPC", "--key", &own]).await?;
    let _another = Reference::start(Sdk::Py1, &place, &["JSONRPC", "--key", &other]).await?;
    let remote =
        |id: &str, key: &str| format!("[remote.{id}]\nurl = '{}'\nkeys = ['{key}']\n", there.url);
    let config = remote("right", &own) + &remote("wrong", &other);
    let hub = TestHub::builder().config(config).start().await?;
    let client = Client::http(&hub);
    assert_eq!(send(&client, "right", "reply hi").await?["parts"][0]["text"], "hi");
    let status = client.call("hub/status", json!({})).await?;
    assert_eq!(status["rejectedPlugins"][0]["file"], "remote.wrong", "{status}");
    let why = status["rejectedPlugins"][0]["error"].as_str().unwrap_or_default();
    assert!(why.contains("the card is not what was signed"), "{why}");
    Ok(())
}

/// Checks an SDK's agent through the hub, which trusts the certificate in the folder.
async fn call(sdk: Sdk, arguments: &[&str], certificate: Option<&Path>) -> Result<()> {
    let place = sdk.find()?;
    let there = Reference::start(sdk, &place, arguments).await?;
    let (url, origins) = (&there.url, &there.origins);
    let mut hub = TestHub::builder()
        .config(format!("[remote.reference]\nurl = '{url}'\norigins = {origins:?}\n"));
    if let Some(folder) = certificate {
        hub = hub.env("SSL_CERT_FILE", folder.join("certificate.pem"));
    }
    let hub = hub.start().await?;
    let client = Client::http(&hub);

    let (id, updates) = stream(&client, "reference", "tick 3 50").await?;
    let told = updates.rest().await?;
    let pieces = told.iter().filter(|event| event["kind"] == "artifact-update").count();
    assert!(pieces == 3 || arguments.contains(&"--no-streaming"), "{told:?}");
    let done = get(&client, &id).await?;
    assert_eq!((state(&done), artifact(&done).as_str()), ("completed", "1\n2\n3\n"));
    let answer = send(&client, "reference", "reply hi").await?;
    assert_eq!((&answer["kind"], &answer["parts"][0]["text"]), (&json!("message"), &json!("hi")));

    let asked = send(&client, "reference", "ask").await?;
    assert_eq!((state(&asked), said(&asked)), ("input-required", "what do you say?"));
    let mut more = message_to("reference", "blue");
    more["message"]["taskId"] = asked["id"].clone();
    let answered = client.call("message/send", more).await?;
    assert_eq!((state(&answered), said(&answered)), ("completed", "blue"));

    for (text, end) in [("fail", "failed"), ("reject", "rejected")] {
        assert_eq!(state(&send(&client, "reference", text).await?), end);
    }
    let (id, _updates) = stream(&client, "reference", "tick 300 100").await?;
    let canceled = client.call("tasks/cancel", json!({ "id": id })).await?;
    assert_eq!(state(&canceled), "canceled");
    Ok(())
}
