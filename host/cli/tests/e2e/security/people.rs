//! Tests of people whom the operator let in: what their keys give on each binding, what their
//! command line does on another machine, and that a removed person has nothing left.

use crate::{
    command_line::{Ran, finish, run},
    stage::{sh, state},
};
use a2a_hub_tests::{
    Client, GrpcClient, TestHub, hub_binary, knock::unconfined, tenants::Web, test_guests,
};
use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use serde_json::{Value, json};
use std::{
    ffi::OsStr, fs, os::unix::fs::PermissionsExt as _, path::Path, process::Stdio, time::Duration,
};
use tokio::{process::Command, time::timeout};

async fn hub() -> Result<TestHub> {
    TestHub::builder().config(unconfined()).plugin("guest", test_guests()?).start().await
}

/// Header with a new key of this person.
async fn key(operator: &Client, person: &str, scopes: &[&str]) -> Result<(String, String)> {
    let terms = json!({ "person": person, "scopes": scopes, "forMs": 0 });
    let made = operator.call("hub/keys/new", terms).await?;
    let secret = made["secret"].as_str().context("no secret")?;
    Ok((format!("Bearer {secret}"), made["key"]["id"].as_str().context("no id")?.to_owned()))
}

async fn add(operator: &Client, name: &str, role: &str) -> Result<()> {
    operator.call("hub/people/add", json!({ "name": name, "role": role })).await?;
    Ok(())
}

/// Runs `a2a-hub` as a user of another machine, who has no hub.
pub(super) async fn elsewhere(home: &Path, args: &[&str]) -> Result<Ran> {
    through(&[], home, args).await
}

/// Runs `a2a-hub` as a user of another machine, started by the words of `program`.
#[expect(clippy::disallowed_methods, reason = "the command is typed as a user would")]
pub(super) async fn through(program: &[&str], home: &Path, args: &[&str]) -> Result<Ran> {
    let hub = hub_binary()?;
    let mut words: Vec<_> = program.iter().map(OsStr::new).collect();
    words.push(hub.as_os_str());
    let mut command = Command::new(words.remove(0));
    command.args(words).args(args).env_clear().env("HOME", home);
    command.env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.current_dir(home).kill_on_drop(true);
    finish(command).await
}

/// A team by the book: two invitations, messages, questions and answers, and the end of one.
#[tokio::test]
async fn invited_people_work_from_elsewhere() -> Result<()> {
    let yearly = "[schedule.yearly]\ncron = '0 3 1 1 *'\nagent = 'echo'\nmessage = 'hello'\n\
                  permissions = 'read-only'\nbudget = { tasks = 0 }\nowner = 'bob'\n";
    let config = format!("{}\n{yearly}", unconfined());
    let hub = TestHub::builder().config(config).plugin("guest", test_guests()?);
    let mut hub = hub.start().await?;
    let operator = Client::unix(&hub);
    let (ada_home, bob_home) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let (ada, bob) = (ada_home.path(), bob_home.path());
    let base = format!("http://{}", hub.http());
    for (name, home) in [("ada", ada), ("bob", bob)] {
        let added = run(&hub, &["person", "add", name]).await?;
        ensure!(added.code == Some(0) && added.stdout.contains("person invite"), "{added:?}");
        let invited = run(&hub, &["person", "invite", name]).await?;
        let command = invited.stdout.lines().find(|line| line.starts_with("a2a-hub join"));
        let address = command.context("no command")?.replace("a2a-hub join ", "");
        let joined = elsewhere(home, &["join", &address, "--name", "team"]).await?;
        ensure!(joined.code == Some(0), "{joined:?}");
        let again = elsewhere(home, &["join", &address, "--name", "twice"]).await?;
        ensure!(again.code != Some(0) && again.stderr.contains("used already"), "{again:?}");
        let taken = elsewhere(home, &["join", &address, "--name", "team"]).await?;
        ensure!(taken.stderr.contains("under the name `team` already"), "{taken:?}");
        let file = home.join(".a2a-hub/hubs.toml");
        assert_eq!(fs::metadata(&file)?.permissions().mode() & 0o777, 0o600);
    }

    let me = elsewhere(ada, &["--hub", "team", "person", "me"]).await?;
    assert!(me.stdout.contains("ada, member"), "{me:?}");
    let sent = elsewhere(ada, &["--hub", "team", "send", "echo", "from ada"]).await?;
    assert_eq!((sent.code, sent.stdout.trim()), (Some(0), "from ada"), "{}", sent.stderr);
    let sent = elsewhere(bob, &["--hub", &base, "send", "guest", "flood 3", "--stream"]).await?;
    assert_eq!((sent.code, &*sent.stdout), (Some(0), "1\n2\n3\n"), "{}", sent.stderr);

    // Both see the tasks of the tenant, and each answers the own ones only.
    let asked = elsewhere(ada, &["--hub", "team", "send", "guest", "permit", "--detach"]).await?;
    ensure!(asked.code == Some(0), "{asked:?}");
    let question = loop {
        let open = operator.call("hub/questions/list", json!({})).await?;
        if let Some(id) = open["questions"][0]["id"].as_str() {
            break id.to_owned();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let inbox = elsewhere(bob, &["--hub", "team", "inbox", "--list"]).await?;
    assert!(inbox.stdout.contains("may I?"), "{inbox:?}");
    let foreign = elsewhere(bob, &["--hub", "team", "allow", &question]).await?;
    let told = format!("{}{}", foreign.stdout, foreign.stderr);
    assert!(told.contains("not one that bob began"), "{told}");
    let own = elsewhere(ada, &["--hub", "team", "allow", &question]).await?;
    assert_eq!(own.code, Some(0), "{own:?}");
    let history = operator.call("hub/questions/history", json!({})).await?;
    let by = history["questions"][0]["answeredBy"].as_str().context("nobody")?;
    assert!(by.starts_with("person:ada/"), "{by}");

    // What is the operator's is refused, also for a local command.
    let apply = elsewhere(ada, &["--hub", "team", "agent", "reload", "guest"]).await?;
    assert!(apply.stderr.contains("ada may not do this"), "{apply:?}");
    let local = elsewhere(ada, &["--hub", "team", "stop"]).await?;
    assert!(local.stderr.contains("`--hub` works with"), "{local:?}");

    let effects = run(&hub, &["person", "remove", "bob", "--dry-run"]).await?;
    assert!(effects.stdout.contains("schedules and triggers stop: yearly"), "{effects:?}");
    let removed = run(&hub, &["person", "remove", "bob", "--to", "ada"]).await?;
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(removed.stderr.contains("one key of bob ends"), "{removed:?}");
    assert!(removed.stderr.contains("wait until ada accepts them: yearly"), "{removed:?}");
    let refused = elsewhere(bob, &["--hub", "team", "tasks"]).await?;
    assert!(refused.stderr.contains("refuses your key"), "{refused:?}");
    let stays = elsewhere(ada, &["--hub", "team", "tasks"]).await?;
    assert_eq!(stays.code, Some(0), "{stays:?}");

    // Also a killed hub knows to whom the schedule passed.
    hub.kill9().await?;
    hub.restart().await?;
    let listed = run(&hub, &["schedule", "list"]).await?;
    assert!(listed.stdout.contains("owner: ada, once accepted"), "{listed:?}");
    let status = run(&hub, &["status"]).await?;
    assert!(status.stdout.contains("a2a-hub schedule accept yearly"), "{status:?}");
    let file = ada.join(".a2a-hub/hubs.toml");
    let moved = fs::read_to_string(&file)?.replace(&base, &format!("http://{}", hub.http()));
    fs::write(&file, moved)?;
    let accepted = elsewhere(ada, &["--hub", "team", "schedule", "accept", "yearly"]).await?;
    assert_eq!(accepted.code, Some(0), "{accepted:?}");
    let run_now = run(&hub, &["schedule", "run", "yearly"]).await?;
    assert_eq!(run_now.code, Some(0), "{run_now:?}");
    Ok(())
}

/// Rows: role or scopes of a key, with the operations that it may perform on each binding.
#[tokio::test]
async fn keys_give_same_rights_on_every_binding() -> Result<()> {
    let mut hub = hub().await?;
    let operator = Client::unix(&hub);
    for (name, role) in [("ada", "member"), ("bob", "member"), ("eve", "viewer"), ("olga", "owner")]
    {
        add(&operator, name, role).await?;
    }
    let (ada, _) = key(&operator, "ada", &[]).await?;
    let task = Web::of(&hub, ada.clone()).send("ask").await?;
    assert_eq!(state(&task), "input-required", "{task}");
    let id = task["id"].as_str().context("no task")?.to_owned();
    let (bob, _) = key(&operator, "bob", &[]).await?;
    let (eve, _) = key(&operator, "eve", &[]).await?;
    let (olga, _) = key(&operator, "olga", &[]).await?;
    let (reading, _) = key(&operator, "ada", &["read"]).await?;
    let (narrow, _) = key(&operator, "ada", &["send:guest", "read"]).await?;
    let (own, _) = key(&operator, "bob", &["read:own", "send", "cancel"]).await?;
    // Keys survive a killed hub.
    hub.kill9().await?;
    hub.restart().await?;

    // Anybody of the tenant reads; only owners and the one who began it may cancel.
    for (who, by) in [("bob", &bob), ("eve", &eve), ("reading", &reading)] {
        let web = Web::of(&hub, by.clone());
        let read = web.call("/", "tasks/get", json!({ "id": id })).await?;
        assert_eq!(read["result"]["id"], json!(id), "{who}: {read}");
        for (path, method) in [("/", "tasks/cancel"), ("/a2a", "CancelTask")] {
            let told = web.call(path, method, json!({ "id": id })).await?;
            assert!(told["error"].is_object(), "{who} {path}: {told}");
        }
        let grpc = GrpcClient::v1(&hub)?.with("authorization", by)?;
        let (read, _) = grpc.call("GetTask", json!({ "id": id })).await?;
        assert_eq!(read["id"], json!(id), "{who}");
        assert!(grpc.call("CancelTask", json!({ "id": id })).await.is_err(), "{who}");
        let (status, read) = web.get(&format!("/agents/guest/rest/tasks/{id}")).await?;
        assert_eq!((status, &read["id"]), (200, &json!(id)), "{who}");
        let (status, _) = web.get("/metrics").await?;
        assert_ne!(status, 200, "{who}");
    }
    // What a key may not read is not found.
    let web = Web::of(&hub, own.clone());
    for (path, method) in [
        ("/", "tasks/get"),
        ("/", "tasks/cancel"),
        ("/", "hub/tasks/tree"),
        ("/a2a", "GetTask"),
        ("/agents/guest", "CancelTask"),
    ] {
        let told = web.call(path, method, json!({ "id": id })).await?;
        assert_eq!(told["error"]["code"], -32001, "{path} {method}: {told}");
    }
    let grpc = GrpcClient::v1(&hub)?.with("authorization", &own)?;
    assert!(grpc.call("GetTask", json!({ "id": id })).await.is_err());
    let (status, _) = web.get(&format!("/agents/guest/rest/tasks/{id}")).await?;
    assert_eq!(status, 404);
    let (_, listed) = web.get("/agents/guest/rest/tasks").await?;
    assert_eq!(listed["tasks"], json!([]), "{listed}");
    let listed = web.call("/", "hub/questions/list", json!({})).await?;
    assert_eq!(listed["result"]["questions"], json!([]), "{listed}");

    let send = |to: &str| a2a_hub_tests::message_to(to, "hi");
    for (who, by, to, may) in [
        ("eve", &eve, "echo", false),
        ("reading", &reading, "echo", false),
        ("narrow", &narrow, "echo", false),
        ("bob", &bob, "echo", true),
    ] {
        let told = Web::of(&hub, by.clone()).call("/", "message/send", send(to)).await?;
        assert_eq!(told["result"].is_object(), may, "{who}: {told}");
    }
    // The agent of the endpoint counts, whichever the message names.
    let mut at_echo = send("guest");
    at_echo["message"]["metadata"] = json!({ "targetAgent": "guest" });
    let web = Web::of(&hub, narrow.clone());
    for (path, may) in [("/agents/echo", false), ("/agents/guest", true)] {
        let told = web.call(path, "message/send", at_echo.clone()).await?;
        assert_eq!(told["result"].is_object(), may, "{path}: {told}");
    }
    let handoff = json!({ "taskId": id, "agentId": "echo" });
    let told = web.call("/", "hub/tasks/handoff", handoff).await?;
    assert!(told["error"]["message"].to_string().contains("`guest` only"), "{told}");
    let publish = json!({ "topic": "a", "text": "b" });
    let told = web.call("/", "hub/topics/publish", publish).await?;
    assert!(told["error"]["message"].to_string().contains("`guest` only"), "{told}");
    for (method, params) in [
        ("hub/status", json!({})),
        ("hub/people/list", json!({})),
        ("hub/people/add", json!({ "name": "mallory", "role": "owner" })),
        ("hub/people/role", json!({ "name": "ada", "role": "owner" })),
        ("hub/keys/new", json!({ "person": "ada" })),
        ("hub/agents/reload", json!({ "agentId": "guest" })),
        ("hub/grants/revoke", json!({ "agentId": "guest" })),
        ("hub/permissions/add", json!({ "effect": "allow", "words": ["rm"] })),
        ("hub/tasks/apply", json!({ "taskId": id })),
        ("hub/devices/list", json!({})),
    ] {
        let told = Web::of(&hub, olga.clone()).call("/", method, params).await?;
        let code = told["error"]["code"].as_i64();
        assert!(code == Some(-32006) || code == Some(-32602), "{method}: {told}");
    }
    let cancelled = Web::of(&hub, olga).call("/", "tasks/cancel", json!({ "id": id })).await?;
    assert_eq!(state(&cancelled["result"]), "canceled", "{cancelled}");
    Ok(())
}

/// An owner with `admin` lets people in from another machine, and gives no more than the key has.
#[tokio::test]
async fn owner_manages_people_from_elsewhere() -> Result<()> {
    let hub = hub().await?;
    let operator = Client::unix(&hub);
    add(&operator, "olga", "owner").await?;
    let home = tempfile::tempdir()?;
    let invite = ["person", "invite", "olga", "--scope", "read,send:guest,admin"];
    let invited = run(&hub, &invite).await?;
    let command = invited.stdout.lines().find(|line| line.starts_with("a2a-hub join"));
    let address = command.context("no command")?.replace("a2a-hub join ", "");
    let joined = elsewhere(home.path(), &["join", &address, "--name", "team"]).await?;
    ensure!(joined.code == Some(0), "{joined:?}");
    let team = async |args: &[&str]| {
        let args = [&["--hub", "team"][..], args].concat();
        elsewhere(home.path(), &args).await
    };
    let added = team(&["person", "add", "bob"]).await?;
    ensure!(added.code == Some(0), "{added:?}");
    for (scopes, may) in [
        ("read,send:guest", true),
        ("read:own", true),
        ("send:echo", false),
        ("apply", false),
        ("admin:grant", false),
        ("read,root", false),
    ] {
        let made = team(&["key", "new", "--for", "bob", "--scope", scopes]).await?;
        assert_eq!(made.code == Some(0), may, "{scopes}: {made:?}");
    }
    let all = team(&["key", "new", "--for", "bob"]).await?;
    assert!(all.stderr.contains("the own key has, and no more"), "{all:?}");
    let raised = team(&["person", "role", "bob", "owner"]).await?;
    assert_eq!(raised.code, Some(0), "{raised:?}");
    let removed = team(&["person", "remove", "bob"]).await?;
    assert_eq!(removed.code, Some(0), "{removed:?}");
    Ok(())
}

/// A person who was removed loses open streams within a second, and no other credential counts.
#[tokio::test]
async fn removed_person_loses_open_streams() -> Result<()> {
    let mut hub = hub().await?;
    let operator = Client::unix(&hub);
    add(&operator, "ada", "member").await?;
    let (ada, id) = key(&operator, "ada", &[]).await?;
    let base = format!("http://{}", hub.http());
    let body = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut streams = Vec::new();
    for (path, method, params) in [
        ("/stream", "hub/events", json!({})),
        ("/stream", "message/stream", a2a_hub_tests::message_to("guest", "hang")),
        ("/agents/guest", "message/stream", a2a_hub_tests::message_to("guest", "hang")),
    ] {
        let request = reqwest::Client::new().post(format!("{base}{path}"));
        let request = request.json(&body(method, params)).header("Authorization", &ada);
        let answer = request.send().await?;
        assert_eq!(answer.status(), 200, "{path}");
        streams.push(answer.bytes_stream());
    }
    operator.call("hub/keys/revoke", json!({ "id": id })).await?;
    for mut stream in streams {
        let ends = async {
            while let Some(piece) = stream.next().await {
                if piece.is_err() {
                    return true;
                }
            }
            false
        };
        let is_broken = timeout(Duration::from_secs(2), ends).await.context("it goes on")?;
        assert!(is_broken, "a stream that was cut off is no complete answer");
    }
    let told = reqwest::Client::new().post(format!("{base}/")).json(&body("hub/ping", json!({})));
    let told = told.header("Authorization", &ada).send().await?;
    assert_eq!(told.status(), 401);

    // A program of an agent stays that agent with a key, and uses no invitation.
    let (bearer, _) = key(&operator, "ada", &[]).await?;
    let request = body("hub/people/me", json!({}));
    let by_key = format!(
        "curl -sS 2>&1 -H 'Content-Type: application/json' -H 'Authorization: {bearer}' -d '{request}' {base}/"
    );
    let told = sh(&hub, &by_key).await?;
    assert!(told.contains("-32006") && told.contains("guest"), "{told}");
    let invitation = operator.call("hub/people/invite", json!({ "name": "ada" })).await?;
    let join = json!({ "invitation": invitation["invitation"] });
    let by_agent =
        format!("curl -sS 2>&1 -H 'Content-Type: application/json' -d '{join}' {base}/join");
    let told = sh(&hub, &by_agent).await?;
    assert!(told.contains("an agent started"), "{told}");
    // Over HTTP, a process of the hub's user is nobody while people have keys.
    let plain = reqwest::Client::new().post(format!("{base}/"));
    let plain = plain.json(&body("hub/status", json!({}))).send().await?;
    assert_eq!(plain.status(), 401);
    operator.call("hub/people/remove", json!({ "name": "ada" })).await?;
    let plain = reqwest::Client::new().post(format!("{base}/"));
    let plain = plain.json(&body("hub/status", json!({}))).send().await?;
    assert_eq!(plain.status(), 401, "the last one who left is no operator without a key");
    hub.kill9().await?;
    hub.restart().await?;
    let plain = reqwest::Client::new().post(format!("http://{}/", hub.http()));
    let plain = plain.json(&body("hub/status", json!({}))).send().await?;
    assert_eq!(plain.status(), 200, "for a single user, nothing has changed");
    Ok(())
}
