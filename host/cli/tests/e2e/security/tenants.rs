//! Tests of tenants on the hub's transports: a caller with a tenant's token, or an operator that
//! names a tenant, sees that tenant's data and nothing else.

use crate::{
    command_line::run,
    stage::{GRANT, bearer, state},
};
use a2a_hub_tests::{
    GrpcClient, TestHub,
    tenants::{TENANTS, Web, token},
    test_guests,
};
use anyhow::{Context as _, Result};
use serde_json::json;
use std::{fs, os::unix::fs::PermissionsExt as _};

async fn shared_hub() -> Result<TestHub> {
    let config = format!("{GRANT}{TENANTS}");
    TestHub::builder().config(config).plugin("guest", test_guests()?).start().await
}

#[tokio::test]
async fn tenant_token_is_scoped_on_every_binding() -> Result<()> {
    let mut hub = shared_hub().await?;
    let mode = fs::metadata(hub.data_dir().join("tenants/acme"))?.permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let task = Web::of(&hub, token(&hub, "acme")?).send("ask").await?;
    assert_eq!(state(&task), "input-required", "{task}");
    let id = task["id"].as_str().context("no task")?.to_owned();

    for round in ["by the hub that began it", "by the next one"] {
        let acme = Web::of(&hub, token(&hub, "acme")?);
        let other = Web::of(&hub, token(&hub, "other")?);
        let operator = Web::of(&hub, bearer(&hub)?);
        let own = acme.call("/", "tasks/get", json!({ "id": id })).await?;
        assert_eq!(state(&own["result"]), "input-required", "{round}: {own}");
        assert_eq!(own["result"]["contextId"], "main", "{round}");
        for who in [&other, &operator] {
            for (path, method) in [
                ("/", "tasks/get"),
                ("/a2a", "GetTask"),
                ("/agents/guest", "CancelTask"),
                ("/a2a", "tasks/cancel"),
            ] {
                let told = who.call(path, method, json!({ "id": id })).await?;
                assert_eq!(told["error"]["code"], -32001, "{round} {path} {method}: {told}");
            }
            for path in
                ["/agents/guest/rest/tasks/", "/a2a/rest/tasks/", "/agents/guest/rest/v1/tasks/"]
            {
                let (status, told) = who.get(&format!("{path}{id}")).await?;
                assert_eq!(status, 404, "{round} {path}: {told}");
            }
        }
        let (status, own) = acme.get(&format!("/agents/guest/rest/tasks/{id}")).await?;
        assert_eq!((status, &own["contextId"]), (200, &json!("main")), "{round}: {own}");
        // The operator names the tenant in REST's path, in the parameters, or in gRPC's request.
        let (status, own) = operator.get(&format!("/agents/guest/rest/acme/tasks/{id}")).await?;
        assert_eq!((status, &own["id"]), (200, &json!(id)), "{round}: {own}");
        let own = operator.call("/a2a", "GetTask", json!({ "id": id, "tenant": "acme" })).await?;
        assert_eq!(own["result"]["id"], json!(id), "{round}: {own}");
        for tenant in ["acme", "acme/guest"] {
            let grpc = GrpcClient::v1(&hub)?.with("authorization", &bearer(&hub)?)?;
            let (own, _) = grpc.call("GetTask", json!({ "tenant": tenant, "id": id })).await?;
            assert_eq!(own["id"], json!(id), "{round}: {own}");
            let grpc = GrpcClient::v1(&hub)?.with("authorization", &token(&hub, "other")?)?;
            let refused = grpc.call("GetTask", json!({ "tenant": tenant, "id": id })).await;
            assert!(refused.is_err(), "{round}: {refused:?}");
        }
        let grpc = GrpcClient::v1(&hub)?.with("authorization", &token(&hub, "acme")?)?;
        let (own, _) = grpc.call("GetTask", json!({ "id": id })).await?;
        assert_eq!(own["id"], json!(id), "{round}: {own}");
        hub.kill9().await?;
        hub.restart().await?;
    }
    // A program of the hub's user counts as the operator, but not with an invalid token: it would
    // see more than with a valid one.
    let (status, _) = Web::of(&hub, token(&hub, "acme")?).get("/metrics").await?;
    assert_eq!(status, 403, "that is for the operator alone, and the hub is not down");
    for unknown in ["Bearer 00", "bearer ", "Bearer", "Basic YTpi"] {
        let own = Web::of(&hub, unknown.to_owned());
        let (status, told) = own.get("/agents/guest/rest/tasks").await?;
        assert_eq!(status, 401, "{unknown}: {told}");
    }
    Ok(())
}

/// The command line selects a tenant, and suggests existing ones.
#[tokio::test]
async fn tenant_option_selects_tenant() -> Result<()> {
    let hub = shared_hub().await?;
    let sent = run(&hub, &["--tenant", "acme", "send", "echo", "for acme"]).await?;
    assert_eq!((sent.code, sent.stdout.trim()), (Some(0), "for acme"), "{}", sent.stderr);
    let own = run(&hub, &["tasks", "--tenant", "acme", "--format", "json"]).await?;
    assert_eq!(own.stdout.matches("\"kind\":\"task\"").count(), 1, "{}", own.stdout);
    let default = run(&hub, &["tasks", "--format", "json"]).await?;
    assert_eq!(default.stdout.matches("\"kind\":\"task\"").count(), 0, "{}", default.stdout);
    let slip = run(&hub, &["--tenant", "acmee", "tasks"]).await?;
    assert!(
        slip.code != Some(0) && slip.stderr.contains("did you mean `acme`?"),
        "{}",
        slip.stderr
    );
    let none = run(&hub, &["--tenant", "zebra", "tasks"]).await?;
    assert!(none.stderr.contains("[tenants.zebra]"), "{}", none.stderr);
    Ok(())
}
