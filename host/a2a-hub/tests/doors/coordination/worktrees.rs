//! Worktrees: a task works in a working copy, and the operator takes its changes over.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, artifact, hub_with_guest, listen, said, send, state},
};
use a2a_hub_tests::{
    Client, RpcError, git, make_repository, message_to,
    tenants::{TENANTS, Web},
    test_guests,
};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Makes a repository with the file `a` in the hub's workspace.
pub(super) fn repository(hub: &InProcessHub) -> Result<PathBuf> {
    let repository = hub.workspace().join("repository");
    make_repository(&repository)?;
    Ok(repository)
}

/// Message for the guest, which runs a script in a directory.
pub(super) fn script(directory: &Path, worktree: &Value, script: &str) -> Value {
    let mut message = message_to("guest", &format!("sh {script}"));
    message["message"]["metadata"]["workingDirectory"] = json!(directory);
    if !worktree.is_null() {
        message["message"]["metadata"]["worktree"] = worktree.clone();
    }
    message
}

pub(super) fn path_of(task: &Value) -> Result<PathBuf> {
    let path = task["metadata"]["worktree"]["path"].as_str();
    Ok(path.with_context(|| format!("it has no worktree: {task}"))?.into())
}

#[tokio::test]
async fn task_in_worktree_is_applied_by_operator() -> Result<()> {
    let hub = hub_with_guest().await?;
    let (client, operator) = (Client::http(&hub), Client::unix(&hub));
    let repository = repository(&hub)?;
    let work = "pwd; echo made > made; git log --format=%s; echo changed > a";
    let task = client.call("message/send", script(&repository, &json!(true), work)).await?;
    assert_eq!((state(&task), said(&task)), ("completed", "exit 0"), "{task}");
    let tree = path_of(&task)?;
    let output = artifact(&task);
    ensure!(output.starts_with(&format!("{}\n", tree.display())), "{output}");
    ensure!(output.contains("start"), "its own git works in the worktree: {output}");
    assert_eq!(git(&repository, &["status", "--porcelain"])?, "");

    let patch = task["artifacts"].as_array().context("artifacts")?;
    let patch = patch.iter().find(|it| it["artifactId"] == "patch").context("the patch")?;
    assert_eq!(
        (&patch["metadata"]["files"], &patch["metadata"]["dirty"]),
        (&json!(2), &json!(true))
    );
    assert_eq!(patch["parts"][0]["file"]["name"], "changes.patch", "{patch}");

    let id = json!({ "taskId": task["id"] });
    let diff = client.call("hub/tasks/diff", id.clone()).await?;
    ensure!(diff["text"].as_str().is_some_and(|text| text.contains("+changed")), "{diff}");
    let applied = operator.call("hub/tasks/apply", id.clone()).await?;
    assert_eq!(applied["files"], json!(["a", "made"]));
    assert_eq!(fs::read_to_string(repository.join("made"))?, "made\n");

    let listed = client.call("hub/worktrees/list", json!({})).await?;
    assert_eq!((&listed[0]["taskId"], &listed[0]["state"]), (&task["id"], &json!("completed")));
    operator.call("hub/tasks/discard", id.clone()).await?;
    ensure!(!tree.exists());
    let why = client.call("hub/tasks/diff", id).await.unwrap_err();
    ensure!(why.to_string().contains("has no worktree"), "{why}");
    Ok(())
}

/// A person applies changes by a key that names the scope: of own tasks, to the checkout that the
/// task came from, and without files that programs obey.
#[tokio::test]
async fn person_with_apply_takes_over_own_changes() -> Result<()> {
    let hub = hub_with_guest().await?;
    let operator = Client::unix(&hub);
    let repository = repository(&hub)?;
    let mut keys = Vec::new();
    for (name, scopes) in [
        ("ada", vec![]),
        ("ada", vec!["send", "read", "apply:own"]),
        ("ada", vec!["send", "read", "apply:echo"]),
        ("bob", vec!["read", "apply"]),
    ] {
        let person = json!({ "name": name, "role": "member" });
        // The second key is of the same person.
        let _ = operator.call("hub/people/add", person).await;
        let terms = json!({ "person": name, "scopes": scopes, "forMs": 0 });
        let made = operator.call("hub/keys/new", terms).await?;
        let secret = made["secret"].as_str().context("no secret")?;
        keys.push(Web::of(&hub, format!("Bearer {secret}")));
    }
    let [plain, ada, narrow, bob] = &keys[..] else { bail!("four keys") };
    let sent = script(&repository, &json!(true), "echo made > made");
    let task = ada.call("/", "message/send", sent).await?["result"].take();
    assert_eq!(state(&task), "completed", "{task}");
    let apply = json!({ "taskId": task["id"] });
    for (who, refused) in [(plain, "`apply`"), (narrow, "only for `echo`"), (bob, "bob began")] {
        let told = who.call("/", "hub/tasks/apply", apply.clone()).await?;
        assert_eq!(told["error"]["code"], -32006, "{told}");
        ensure!(told["error"]["message"].to_string().contains(refused), "{refused}: {told}");
    }
    for more in [json!({ "acceptsAll": true }), json!({ "checkout": hub.workspace() })] {
        let mut params = apply.clone();
        params.as_object_mut().context("no object")?.extend(more.as_object().cloned().unwrap());
        let told = ada.call("/", "hub/tasks/apply", params).await?;
        ensure!(told["error"]["message"].to_string().contains("for the operator"), "{told}");
    }
    assert_eq!(git(&repository, &["status", "--porcelain"])?, "", "nothing was changed");
    let applied = ada.call("/", "hub/tasks/apply", apply).await?;
    assert_eq!(applied["result"]["files"], json!(["made"]), "{applied}");
    assert_eq!(fs::read_to_string(repository.join("made"))?, "made\n");
    // A hook is the operator's, also for a key that may apply.
    let sent = script(&repository, &json!(true), "mkdir -p .husky; echo x > .husky/pre-commit");
    let task = ada.call("/", "message/send", sent).await?["result"].take();
    let told = ada.call("/", "hub/tasks/apply", json!({ "taskId": task["id"] })).await?;
    ensure!(told["error"].is_object(), "{told}");
    ensure!(!repository.join(".husky").exists());
    Ok(())
}

/// To others, the task is unknown. The worktree of a deleted task is the default tenant's.
#[tokio::test]
async fn worktree_belongs_to_tenant_of_task() -> Result<()> {
    let config = format!("{GRANT}{TENANTS}");
    let hub =
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let operator = Client::unix(&hub);
    let repository = repository(&hub)?;
    let in_acme = |mut params: Value| {
        params["tenant"] = json!("acme");
        params
    };
    let sent = script(&repository, &json!(true), "echo 1 > a");
    let task = operator.call("message/send", in_acme(sent.clone())).await?;
    assert_eq!(state(&task), "completed", "{task}");
    let id = json!({ "taskId": task["id"] });
    for method in ["hub/tasks/diff", "hub/tasks/apply", "hub/tasks/discard"] {
        let why = operator.call(method, id.clone()).await.unwrap_err();
        ensure!(why.to_string().contains("has no worktree"), "{method}: {why}");
    }
    ensure!(path_of(&task)?.exists());
    assert_eq!(operator.call("hub/worktrees/list", json!({})).await?, json!([]));
    let listed = operator.call("hub/worktrees/list", in_acme(json!({}))).await?;
    assert_eq!(listed[0]["taskId"], task["id"]);
    operator.call("hub/tasks/apply", in_acme(id)).await?;
    assert_eq!(fs::read_to_string(repository.join("a"))?, "1\n");

    let gone = operator.call("message/send", sent).await?;
    let context = json!({ "contextId": gone["contextId"] });
    operator.call("hub/contexts/delete", context).await?;
    let listed = operator.call("hub/worktrees/list", json!({})).await?;
    assert_eq!((&listed[0]["taskId"], &listed[0]["state"]), (&gone["id"], &Value::Null));
    let id = json!({ "taskId": gone["id"], "force": true });
    operator.call("hub/tasks/discard", id).await?;
    ensure!(!path_of(&gone)?.exists());
    Ok(())
}

#[tokio::test]
async fn worktree_belongs_to_its_conversation() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let repository = repository(&hub)?;
    let none = Value::Null;
    let first = client
        .call("message/send", script(&repository, &json!({ "base": "main" }), "echo 1 > one"))
        .await?;
    let tree = path_of(&first)?;

    // The same conversation goes on there.
    let mut next = script(&tree, &none, "cat one; echo 2 > two");
    next["message"]["contextId"] = first["contextId"].clone();
    let next = client.call("message/send", next).await?;
    ensure!(artifact(&next).starts_with("1\n"), "{next}");
    let diff = client.call("hub/tasks/diff", json!({ "taskId": first["id"] })).await?;
    assert_eq!(diff["files"], 2, "{diff}");

    // Another one does not, whatever it asks for.
    let refused = |sent: Result<Value, RpcError>, says: &str| {
        let why = sent.map_err(|why| why.to_string()).err().unwrap_or_default();
        ensure!(why.contains(says), "{says}: {why}");
        Ok(())
    };
    refused(
        client.call("message/send", script(&tree, &none, "true")).await,
        "of this conversation",
    )?;
    let asks = script(&tree, &json!(true), "true");
    refused(client.call("message/send", asks).await, "of this conversation")?;
    let outside = tempfile::tempdir()?;
    git(outside.path(), &["init", "-q"])?;
    let asks = script(outside.path(), &json!(true), "true");
    refused(client.call("message/send", asks).await, "outside the granted workspaces")?;
    let asks = script(&hub.workspace(), &json!(true), "true");
    refused(client.call("message/send", asks).await, "git init")?;
    let asks = script(&repository, &json!({ "base": "nothing" }), "true");
    refused(client.call("message/send", asks).await, "no commit `nothing`")?;
    for wrong in [json!(1), json!("main"), json!({ "branch": "main" })] {
        let asks = script(&repository, &wrong, "true");
        refused(client.call("message/send", asks).await, "`base`")?;
    }
    let task = send(&client, "guest", "echo").await?;
    let why = client.call("hub/tasks/diff", json!({ "taskId": task["id"] })).await;
    refused(why, "has no worktree")?;
    let listed = client.call("hub/worktrees/list", json!({})).await?;
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "nothing refused leaves one: {listed}");
    Ok(())
}

#[tokio::test]
async fn agent_cannot_write_patch_of_its_worktree() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let repository = repository(&hub)?;
    let mut message = message_to("guest", "leak patch");
    message["message"]["metadata"]["workingDirectory"] = json!(repository);
    message["configuration"] = json!({ "blocking": true });
    let mut inside = message.clone();
    inside["message"]["metadata"]["worktree"] = json!(true);
    let task = client.call("message/send", inside).await?;
    assert_eq!(state(&task), "failed", "{task}");
    ensure!(said(&task).contains("in a worktree it holds the changes"), "{task}");
    ensure!(task["artifacts"].as_array().is_none_or(Vec::is_empty), "{task}");
    // Without a worktree, it is an id like any other.
    let task = client.call("message/send", message).await?;
    assert_eq!(task["artifacts"][0]["artifactId"], "patch", "{task}");

    // Only flows name the task in whose worktree a child works.
    let mut asks = script(&repository, &Value::Null, "true");
    asks["message"]["metadata"]["worktree"] = json!({ "task": task["id"] });
    let why = client.call("message/send", asks).await.unwrap_err();
    ensure!(why.to_string().contains("only a flow names a task here"), "{why}");
    Ok(())
}

#[tokio::test]
async fn program_in_worktree_cannot_change_repository() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let repository = repository(&hub)?;
    let before = git(&repository, &["for-each-ref"])?;
    let tries = format!(
        "echo y > y; cd {0} 2>&1; echo x > {0}/x; echo x > {0}/.git/hooks/pre-commit; rm -f .git/objects/info/alternates; \
         echo {0}/.git/objects > .git/objects/info/alternates; git hash-object -w a; ls {0}/.git/config; true",
        repository.display()
    );
    let task = client.call("message/send", script(&repository, &json!(true), &tries)).await?;
    assert_eq!(state(&task), "completed", "{task}");
    ensure!(!repository.join("x").exists());
    ensure!(!repository.join(".git/hooks/pre-commit").exists());
    let base = git(&repository, &["for-each-ref", "refs/a2a-hub"])?;
    ensure!(base.lines().count() == 1, "{base}");
    let rest = git(&repository, &["for-each-ref", "refs/heads"])?;
    ensure!(before == rest, "{before} {rest}");

    // Old worktrees of finished tasks go, and their changes stay.
    let pruned = client.call("hub/worktrees/prune", json!({ "olderThanMs": 0 })).await?;
    assert_eq!(pruned[0]["taskId"], task["id"], "{pruned}");
    ensure!(pruned[0]["trouble"].is_null(), "{pruned}");
    Ok(())
}

#[tokio::test]
async fn conflict_is_reported_at_end_of_run() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let repository = repository(&hub)?;
    let mut events = listen(&client).await?;
    let patch = |task: &Value| -> Result<Value> {
        let all = task["artifacts"].as_array().context("artifacts")?;
        Ok(all.iter().find(|it| it["artifactId"] == "patch").context("the patch")?.clone())
    };
    let make = |work: &str| script(&repository, &json!(true), work);
    let one = client.call("message/send", make("echo one > a")).await?;
    let other = client.call("message/send", make("echo other > b")).await?;
    for task in [&one, &other] {
        ensure!(patch(task)?["metadata"]["conflicts"].is_null(), "{task}");
    }
    let two = client.call("message/send", make("echo two > a")).await?;
    assert_eq!((state(&two), said(&two)), ("completed", "exit 0"), "{two}");
    let with = |task: &Value| json!({ "taskId": task["id"], "paths": ["a"], "more": 0 });
    assert_eq!(patch(&two)?["metadata"]["conflicts"], json!([with(&one)]));
    let event = loop {
        let event = events.next().await.context("it ended early")??;
        if event["type"] == "worktree-conflict" {
            break event;
        }
    };
    assert_eq!((&event["taskId"], &event["with"]), (&two["id"], &with(&one)), "{event}");
    let listed = client.call("hub/worktrees/list", json!({})).await?;
    let conflicts = [0, 1, 2].map(|at| listed[at]["conflicts"].clone());
    assert_eq!(conflicts, [json!([with(&two)]), Value::Null, json!([with(&one)])]);
    Ok(())
}
