//! Tenants of one hub, and credentials of their clients.

use crate::{Client, Endpoints, message_to};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::fs;

/// Configuration of two tenants.
pub const TENANTS: &str = "
    [tenants.acme]
    [tenants.other]
";

/// Authorization header of a tenant's client.
pub fn token(hub: &Endpoints, tenant: &str) -> Result<String> {
    let token = fs::read_to_string(hub.data_dir().join("tenants").join(tenant))?;
    Ok(format!("Bearer {}", token.trim()))
}

/// Key of a person whom the operator lets in as a member.
pub async fn new_key(hub: &Endpoints, person: &str) -> Result<String> {
    let operator = Client::unix(hub);
    operator.call("hub/people/add", json!({ "name": person, "role": "member" })).await?;
    scoped_key(hub, person, &[]).await
}

/// Another key of a person, with these scopes.
pub async fn scoped_key(hub: &Endpoints, person: &str, scopes: &[&str]) -> Result<String> {
    let terms = json!({ "person": person, "scopes": scopes, "forMs": 0 });
    let made = Client::unix(hub).call("hub/keys/new", terms).await?;
    Ok(made["secret"].as_str().context("no secret")?.to_owned())
}

/// Clients of one tenant over HTTP.
pub struct Web {
    base: String,
    token: String,
}

impl Web {
    /// Creates a client of a hub with this token.
    pub fn of(hub: &Endpoints, token: String) -> Self {
        Self { base: format!("http://{}", hub.http()), token }
    }

    /// Status and response.
    async fn told(&self, asked: reqwest::RequestBuilder) -> Result<(u16, Value)> {
        let answer = asked.header("Authorization", &self.token).send().await?;
        Ok((answer.status().as_u16(), answer.json().await.unwrap_or_default()))
    }

    /// Calls a method at a path; returns the whole response.
    pub async fn call(&self, path: &str, method: &str, params: Value) -> Result<Value> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let asked = reqwest::Client::new().post(format!("{}{path}", self.base)).json(&body);
        Ok(self.told(asked).await?.1)
    }

    /// Sends a GET request to a path; returns the status and the response.
    pub async fn get(&self, path: &str) -> Result<(u16, Value)> {
        self.told(reqwest::Client::new().get(format!("{}{path}", self.base))).await
    }

    /// Sends a text to the guest, in the conversation `main`; returns the result.
    pub async fn send(&self, text: &str) -> Result<Value> {
        let mut params = message_to("guest", text);
        params["message"]["contextId"] = json!("main");
        Ok(self.call("/", "message/send", params).await?["result"].take())
    }
}
