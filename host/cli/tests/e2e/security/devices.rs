//! Tests of paired browsers: what their keys and access tokens give, and that nobody else gets it.

use crate::{command_line::run, commands::terminals::typed, stage::sh};
use a2a_hub_tests::{BrowserKey, Client, TestHub, knock::unconfined, test_guests};
use anyhow::{Context as _, Result, ensure};
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use std::{process::Stdio, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::ChildStdout,
    time::timeout,
};

/// Browser that opens the page of a hub.
struct Browser {
    http: reqwest::Client,
    base: String,
    key: BrowserKey,
    access_token: String,
}

impl Browser {
    fn new(hub: &TestHub) -> Result<Self> {
        let base = format!("http://{}", hub.http());
        let (http, key) = (reqwest::Client::new(), BrowserKey::generate()?);
        Ok(Self { http, base, key, access_token: String::new() })
    }

    /// Request of the page to a path of the hub, without a credential.
    fn request(&self, path: &str, body: &Value) -> RequestBuilder {
        let request = self.http.post(format!("{}{path}", self.base)).json(body);
        request.header("Origin", &self.base).header("Sec-Fetch-Site", "same-origin")
    }

    async fn present(&self, token: &str) -> Result<(StatusCode, Value)> {
        let proof = self.key.proof(&format!("{}/ui/pair", self.base), None)?;
        let body = json!({ "token": token, "name": "Chromium" });
        let answer = self.request("/ui/pair", &body).header("DPoP", proof).send().await?;
        Ok((answer.status(), answer.json().await?))
    }

    /// Pairs this browser, as `a2a-hub web` and its user do.
    async fn pair(&mut self, operator: &Client) -> Result<()> {
        let offered = operator.call("hub/devices/pair", json!({})).await?;
        let token = offered["token"].as_str().context("no token")?;
        let (status, pending) = self.present(token).await?;
        ensure!(status == StatusCode::ACCEPTED, "{pending}");
        let seen = operator.call("hub/devices/pairing", json!({ "token": token })).await?;
        ensure!(seen["code"] == pending["code"] && seen["state"] == "presented", "{seen}");
        let yes = json!({ "token": token, "code": seen["code"], "accept": true });
        operator.call("hub/devices/confirm", yes).await?;
        let (status, paired) = self.present(token).await?;
        ensure!(status == StatusCode::OK, "{paired}");
        self.access_token = paired["accessToken"].as_str().context("no access token")?.to_owned();
        Ok(())
    }

    /// Sends a method to a path with a proof for `url`.
    async fn send(&self, path: &str, method: &str, params: &Value, url: &str) -> Result<Response> {
        let proof = self.key.proof(url, Some(&self.access_token))?;
        let authorization = format!("DPoP {}", self.access_token);
        let request = self.request(path, &rpc(method, params)).header("DPoP", proof);
        Ok(request.header("Authorization", authorization).send().await?)
    }

    async fn call(&self, method: &str, params: &Value) -> Result<(u16, Value)> {
        let answer = self.send("/", method, params, &format!("{}/", self.base)).await?;
        Ok((answer.status().as_u16(), answer.json().await?))
    }
}

fn rpc(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

async fn hub() -> Result<TestHub> {
    TestHub::builder().config(unconfined()).plugin("guest", test_guests()?).start().await
}

#[tokio::test]
async fn browser_gets_what_its_key_proves_and_nothing_else() -> Result<()> {
    let mut hub = hub().await?;
    let operator = Client::unix(&hub);
    let mut browser = Browser::new(&hub)?;
    browser.pair(&operator).await?;
    // A device survives a restart, and its proofs count at the new hub.
    hub.kill9().await?;
    hub.restart().await?;
    let base = format!("http://{}", hub.http());
    browser.base.clone_from(&base);
    let (status, pong) = browser.call("hub/status", &json!({})).await?;
    assert!(status == 200 && pong["result"]["version"].is_string(), "{pong}");

    // It does the daily work, and neither adds agents nor pairs further browsers.
    for (method, params) in [
        ("hub/tasks/list", json!({})),
        ("hub/questions/list", json!({})),
        ("hub/notices/list", json!({})),
        ("hub/notices/read", json!({ "all": true })),
        ("hub/devices/list", json!({})),
        ("hub/permissions/list", json!({})),
    ] {
        let (_, told) = browser.call(method, &params).await?;
        assert!(told["result"].is_object() || told["result"].is_array(), "{method}: {told}");
    }
    for (method, params) in [
        ("hub/agents/register", json!({ "agentId": "x", "path": "/x.wasm" })),
        ("hub/agents/deregister", json!({ "agentId": "guest" })),
        ("hub/agents/reload", json!({ "agentId": "guest" })),
        ("hub/plugins/refresh", json!({})),
        ("hub/grants/revoke", json!({ "agentId": "guest" })),
        ("hub/backup", json!({ "file": "/tmp/copy.db" })),
        ("hub/tasks/apply", json!({ "taskId": "t" })),
        ("hub/devices/pair", json!({})),
        ("hub/devices/confirm", json!({ "token": "t", "code": "c", "accept": true })),
    ] {
        let (_, told) = browser.call(method, &params).await?;
        assert_eq!(told["error"]["code"], -32006, "{method}: {told}");
    }

    // What does not prove the key gives nothing.
    let ping = rpc("hub/ping", &json!({}));
    let root = format!("{base}/");
    let proof = |url: &str, token: Option<&str>| browser.key.proof(url, token);
    let token = browser.access_token.clone();
    let dpop = format!("DPoP {token}");
    let thief = BrowserKey::generate()?;
    let used = proof(&root, Some(&token))?;
    let first = browser.request("/", &ping).header("DPoP", &used).header("Authorization", &dpop);
    assert_eq!(first.send().await?.status(), 200);
    let good = proof(&root, Some(&token))?;
    let cut = &good[..good.len() - 2];
    for (name, authorization, proof) in [
        ("no credential", "", String::new()),
        ("copied token as bearer", &*format!("Bearer {token}"), good.clone()),
        ("token without a proof", &*dpop, String::new()),
        ("another key", &*dpop, thief.proof(&root, Some(&token))?),
        ("proof that was used", &*dpop, used),
        ("proof for another path", &*dpop, proof(&format!("{base}/stream"), Some(&token))?),
        ("another loopback port", &*dpop, proof("http://127.0.0.1:1/", Some(&token))?),
        (
            "a name that others may serve",
            &*dpop,
            proof(&root.replace("127.0.0.1", "localhost"), Some(&token))?,
        ),
        ("another scheme", &*dpop, proof(&root.replace("http:", "https:"), Some(&token))?),
        ("proof for no token", &*dpop, proof(&root, None)?),
        ("proof for another token", &*dpop, proof(&root, Some("other"))?),
        ("cut signature", &*dpop, cut.to_owned()),
        ("another token", "DPoP 00", proof(&root, Some("00"))?),
        ("no token", "DPoP", proof(&root, Some(""))?),
    ] {
        let mut request = browser.request("/", &ping);
        if !authorization.is_empty() {
            request = request.header("Authorization", authorization);
        }
        if !proof.is_empty() {
            request = request.header("DPoP", proof);
        }
        let answer = request.send().await?;
        assert_eq!(answer.status(), 401, "{name}");
        let challenge = answer.headers().contains_key("www-authenticate");
        assert!(challenge, "{name}");
    }
    let twice = browser.request("/", &ping).header("Authorization", &dpop);
    let twice = twice.header("DPoP", &good).header("DPoP", &good).send().await?;
    assert_eq!(twice.status(), 401, "two proofs");

    // A program of an agent stays that agent, also with a captured request, and is never paired.
    let curl = |path: &str, headers: &[String], body: &Value| {
        let headers: String = headers.iter().map(|header| format!(" -H '{header}'")).collect();
        format!(
            "curl -sS 2>&1 -H 'Content-Type: application/json'{headers} -d '{body}' {base}{path}"
        )
    };
    let captured = [format!("Authorization: {dpop}"), format!("DPoP: {good}")];
    let told = sh(&hub, &curl("/", &captured, &rpc("hub/status", &json!({})))).await?;
    assert!(told.contains("-32006") && told.contains("guest"), "{told}");
    let offered = operator.call("hub/devices/pair", json!({})).await?;
    let body = json!({ "token": offered["token"], "name": "agent" });
    let own_proof = [format!("DPoP: {}", thief.proof(&format!("{base}/ui/pair"), None)?)];
    let told = sh(&hub, &curl("/ui/pair", &own_proof, &body)).await?;
    assert!(told.contains("403") && told.contains("an agent started"), "{told}");
    let told = sh(&hub, &curl("/", &[], &rpc("hub/devices/pair", &json!({})))).await?;
    assert!(told.contains("-32006"), "{told}");
    Ok(())
}

#[tokio::test]
async fn page_is_open_and_pairing_is_the_operators() -> Result<()> {
    let hub = hub().await?;
    let operator = Client::unix(&hub);
    let mut browser = Browser::new(&hub)?;
    let get = |path: &str| browser.http.get(format!("{}{path}", browser.base));
    // A browser that asks for the address gets the page, by a link of another site as well.
    let page = get("/").header("Accept", "text/html").send().await?;
    assert_eq!((page.status().as_u16(), page.url().path()), (200, "/ui/"));
    let policy = page.headers()["content-security-policy"].to_str()?.to_owned();
    assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
    let linked = |dest: &str| {
        get("/ui/tasks")
            .header("Sec-Fetch-Site", "cross-site")
            .header("Sec-Fetch-Mode", "navigate")
            .header("Sec-Fetch-Dest", dest.to_owned())
    };
    assert_eq!(linked("document").send().await?.status(), 200);
    assert_eq!(linked("iframe").send().await?.status(), 403);
    let rebound = get("/ui/").header("Host", "evil.example").send().await?;
    assert_eq!(rebound.status(), 403);

    // Who presents what.
    let pair_url = format!("{}/ui/pair", browser.base);
    let body = |token: &Value| json!({ "token": token, "name": "Chromium" });
    let proof = || browser.key.proof(&pair_url, None);
    let status = async |request: RequestBuilder| {
        Ok::<_, reqwest::Error>(request.send().await?.status().as_u16())
    };
    let offered = operator.call("hub/devices/pair", json!({})).await?;
    let token = &offered["token"];
    assert_eq!(status(browser.request("/ui/pair", &body(token))).await?, 401, "no proof");
    let foreign = browser.http.post(&pair_url).json(&body(token)).header("DPoP", proof()?);
    let foreign = foreign.header("Origin", "http://evil.example");
    assert_eq!(status(foreign).await?, 403, "another site");
    let form = browser.http.post(&pair_url).header("Content-Type", "text/plain");
    assert_eq!(status(form.body(body(token).to_string())).await?, 415, "a form of another site");
    let unknown = browser.request("/ui/pair", &body(&json!("00"))).header("DPoP", proof()?);
    assert_eq!(status(unknown).await?, 410, "an unknown token");
    for wrong in [json!(null), json!([]), json!({ "token": 1 }), json!({ "token": "" })] {
        let request = browser.request("/ui/pair", &wrong).header("DPoP", proof()?);
        assert_eq!(status(request).await?, 400, "{wrong}");
    }
    // Two browsers with one address: neither is paired.
    let token = token.as_str().context("no token")?;
    let (_, pending) = browser.present(token).await?;
    assert_eq!(Browser::new(&hub)?.present(token).await?.0, 403);
    let yes = json!({ "token": token, "code": pending["code"], "accept": true });
    let refused = operator.call("hub/devices/confirm", yes).await.unwrap_err().to_string();
    assert!(refused.contains("two browsers"), "{refused}");

    // A removed browser is out at once, with its streams.
    browser.pair(&operator).await?;
    let url = format!("{}/stream", browser.base);
    let mut events = browser.send("/stream", "hub/events", &json!({}), &url).await?;
    let mut heard = String::new();
    while !heard.contains("subscribed") {
        heard += &String::from_utf8_lossy(&events.chunk().await?.context("no event")?);
    }
    let devices = operator.call("hub/devices/list", json!({})).await?;
    let id = devices["devices"][0]["id"].clone();
    operator.call("hub/devices/remove", json!({ "id": id })).await?;
    let ended =
        timeout(Duration::from_secs(2), async { while let Ok(Some(_)) = events.chunk().await {} });
    ended.await.context("the stream goes on")?;
    let url = format!("{}/", browser.base);
    let out = browser.send("/", "hub/ping", &json!({}), &url).await?;
    let challenge = out.headers()["www-authenticate"].to_str()?.to_owned();
    assert!(out.status() == 401 && challenge.contains("invalid_token"), "{challenge}");
    Ok(())
}

/// Reads what a terminal shows until it contains a text.
async fn shown_until(screen: &mut ChildStdout, shown: &mut String, text: &str) -> Result<()> {
    let mut bytes = [0; 4096];
    while !shown.contains(text) {
        let read = timeout(Duration::from_secs(30), screen.read(&mut bytes)).await??;
        ensure!(read > 0, "it ended without {text:?}: {shown}");
        shown.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    Ok(())
}

#[tokio::test]
async fn terminal_pairs_browser_by_its_code() -> Result<()> {
    let hub = hub().await?;
    let refused = run(&hub, &["web"]).await?;
    assert!(refused.code != Some(0) && refused.stderr.contains("terminal"), "{}", refused.stderr);
    for (key, told, status) in [("n\n", "was not paired", 403), ("y\n", "paired: Chromium", 200)] {
        let browser = Browser::new(&hub)?;
        let mut child = typed(&hub, &["web", "--no-open"])?.stdin(Stdio::piped()).spawn()?;
        let mut keys = child.stdin.take().context("no stdin")?;
        let mut screen = child.stdout.take().context("no stdout")?;
        let mut shown = String::new();
        shown_until(&mut screen, &mut shown, "/ui/pair#").await?;
        shown_until(&mut screen, &mut shown, "\n").await?;
        let token: String = shown.split("/ui/pair#").nth(1).context("no token")?.trim().to_owned();
        assert_eq!(token.len(), 32, "it can be copied: {shown}");
        let (_, pending) = browser.present(&token).await?;
        shown_until(&mut screen, &mut shown, "> ").await?;
        let code = pending["code"].as_str().with_context(|| pending.to_string())?;
        assert!(shown.contains(code) && shown.contains("Chromium"), "{shown}");
        keys.write_all(key.as_bytes()).await?;
        shown_until(&mut screen, &mut shown, told).await?;
        assert_eq!(browser.present(&token).await?.0.as_u16(), status, "{shown}");
    }
    let list = run(&hub, &["web", "list"]).await?.stdout;
    let id = list.split_whitespace().next().context("nothing is listed")?;
    let removed = run(&hub, &["web", "remove", id]).await?;
    assert!(removed.stdout.contains("removed"), "{}", removed.stderr);
    let unknown = run(&hub, &["web", "remove", id]).await?;
    assert!(unknown.code != Some(0) && unknown.stderr.contains("web list"), "{}", unknown.stderr);
    Ok(())
}
