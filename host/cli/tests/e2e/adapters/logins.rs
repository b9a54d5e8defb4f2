//! Tests of logins: the tasks of two people are billed to their own accounts, and a used-up quota
//! of one does not stop the other.

use super::{Stage, Vendor, confined::walls, vendors::CLAUDE};
use crate::stage::{eventually_async, get, state};
use a2a_hub_tests::{
    Client, ModelServer, message_to,
    tenants::{Web, new_key},
};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt as _,
    path::Path,
    time::Duration,
};
use tokio::try_join;

/// People with a login, and the keys of their accounts.
const PEOPLE: [(&str, &str); 2] = [("ada", "sk-of-ada"), ("bob", "sk-of-bob")];

/// Writes the files of a login, as the vendor's program writes them, with this key.
fn log_in(vendor: &Vendor, model: &ModelServer, home: &Path, key: &str) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(home)?;
    let url = model.url();
    match vendor.agent {
        "claude-code" => {
            let env = json!({ "ANTHROPIC_API_KEY": key, "ANTHROPIC_BASE_URL": url });
            fs::write(home.join("settings.json"), json!({ "env": env }).to_string())?;
        }
        "codex" => {
            let config = format!(
                "model = 'mock-model'\nmodel_provider = 'loopback'\n[model_providers.loopback]\nname = 'loopback'\n\
                 base_url = '{url}/v1'\nexperimental_bearer_token = '{key}'\nwire_api = 'responses'\n"
            );
            fs::write(home.join("config.toml"), config)?;
        }
        "gemini" => {
            let files = home.join(".gemini");
            fs::create_dir_all(&files)?;
            let settings = r#"{ "general": { "maxAttempts": 1 }, "security": { "auth": { "selectedType": "gemini-api-key" } } }"#;
            fs::write(files.join("settings.json"), settings)?;
            // In a directory that it does not trust, the program reads this one only.
            fs::write(home.join(".env"), format!("GEMINI_API_KEY={key}\n"))?;
        }
        "vibe" => fs::write(home.join(".env"), format!("MISTRAL_API_KEY='{key}'\n"))?,
        other => anyhow::bail!("no login is known for {other}"),
    }
    Ok(())
}

impl Vendor {
    /// Starts a hub with a login for each of the people, and returns their clients.
    async fn stage_of_people(&self, settings: &str) -> Result<(Stage, [Web; 2])> {
        let mut settings = format!("{}{settings}", walls(self));
        for (name, _) in PEOPLE {
            settings.push_str(&format!(
                "\n[login.{name}]\nagent = '{}'\nperson = '{name}'\nhome = '{{files}}/of-{name}'\n",
                self.agent
            ));
        }
        let stage = self.stage_of(ModelServer::start()?, self.path()?, None, &settings).await?;
        for (name, key) in PEOPLE {
            log_in(self, &stage.model, &stage.files.path().join(format!("of-{name}")), key)?;
        }
        let mut people = Vec::new();
        for (name, _) in PEOPLE {
            people
                .push(Web::of(&stage.hub, format!("Bearer {}", new_key(&stage.hub, name).await?)));
        }
        let people = people.try_into().ok().context("two people")?;
        Ok((stage, people))
    }
}

async fn send(by: &Web, agent: &str, text: &str) -> Result<Value> {
    let mut answer = by.call("/", "message/send", message_to(agent, text)).await?;
    ensure!(answer["error"].is_null(), "{answer}");
    Ok(answer["result"].take())
}

/// Two people work at the same time and by turns: each request has the key of the person whose
/// prompt it carries.
pub(super) async fn each_person_is_billed(vendor: &Vendor) -> Result<()> {
    let (stage, [ada, bob]) = vendor.stage_of_people("").await?;
    let at_once = try_join!(
        send(&ada, vendor.agent, "plums of ada"),
        send(&bob, vendor.agent, "pears of bob")
    )?;
    let later = [
        send(&bob, vendor.agent, "grapes of bob").await?,
        send(&ada, vendor.agent, "figs of ada").await?,
    ];
    for task in [&at_once.0, &at_once.1].into_iter().chain(&later) {
        assert_eq!(state(task), "completed", "{task}");
        assert!(task["artifacts"].to_string().contains(" of "), "{task}");
    }
    for (name, key) in PEOPLE {
        let billed: Vec<_> = stage.model.requests();
        let of_key = billed.iter().filter(|seen| seen.key.as_deref() == Some(key));
        let bodies: Vec<_> = of_key.map(|seen| seen.body.to_string()).collect();
        let (own, other) = match name {
            "ada" => (["plums of ada", "figs of ada"], "of bob"),
            _ => (["pears of bob", "grapes of bob"], "of ada"),
        };
        for prompt in own {
            assert!(bodies.iter().any(|body| body.contains(prompt)), "{name} paid no {prompt}");
        }
        assert!(!bodies.iter().any(|body| body.contains(other)), "{name} paid for another");
    }
    let strange = stage.model.requests();
    let strange = strange.iter().filter(|seen| seen.body.to_string().contains(" of "));
    let keys = PEOPLE.map(|(_, key)| Some(key));
    for seen in strange {
        assert!(keys.contains(&seen.key.as_deref()), "no account of theirs: {:?}", seen.key);
    }
    Ok(())
}

/// While a task of ada waits for the quota of ada's account, a task of bob runs.
#[tokio::test]
async fn quota_of_one_person_stops_no_other() -> Result<()> {
    let vendor = &CLAUDE;
    let settings = "permissions = 'full'\non_quota = 'wait'\n";
    let (stage, [ada, bob]) = vendor.stage_of_people(settings).await?;
    let mut message = message_to(vendor.agent, "plums of ada [[usedup:600]]");
    message["configuration"] = json!({ "blocking": false });
    let answer = ada.call("/", "message/send", message).await?;
    let id = answer["result"]["id"].as_str().with_context(|| answer.to_string())?.to_owned();
    let operator = Client::unix(&stage.hub);
    let waits = async || {
        let task = get(&operator, &id).await;
        task.is_ok_and(|task| task["metadata"]["waitsUntil"].is_string())
    };
    eventually_async(Duration::from_secs(60), waits).await?;
    let other = send(&bob, vendor.agent, "pears of bob").await?;
    assert_eq!(state(&other), "completed", "{other}");
    // Another task of ada waits with the first one.
    let mut message = message_to(vendor.agent, "figs of ada");
    message["configuration"] = json!({ "blocking": false });
    let second = ada.call("/", "message/send", message).await?;
    let second = second["result"]["id"].as_str().context("no id")?.to_owned();
    let waits = async || {
        let task = get(&operator, &second).await;
        task.is_ok_and(|task| task["metadata"]["waitsUntil"].is_string())
    };
    eventually_async(Duration::from_secs(20), waits).await?;
    let figs = stage.model.requests();
    assert!(!figs.iter().any(|seen| seen.body.to_string().contains("figs of ada")));
    Ok(())
}
