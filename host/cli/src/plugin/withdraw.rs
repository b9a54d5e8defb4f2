//! `plugin deny`, `revoke` and `remove`: what was granted is taken back, also from tasks at work.

use super::{
    component::{self, NO_PLUGIN, file_of},
    standing,
};
use crate::{Exit, Global, failure::CommandError};
use a2a_hub_agents::beside;
use a2a_hub_config::{GrantsFile, own_file};
use a2a_hub_core::{
    allowance::Allowance, grant::Grant, http_grant::HttpGrant, http_host::HostPattern,
};
use a2a_hub_protocol::id::AgentId;
use anyhow::Context as _;
use serde_json::json;
use std::{collections::BTreeMap, fs};

pub(super) fn deny(global: &Global, id: &str, capabilities: &[String]) -> anyhow::Result<Exit> {
    let id = component::name(id)?;
    let file = GrantsFile::of(&global.data_dir()?);
    let denied = file.change(|all| {
        let record = all.plugins.get_mut(&id).ok_or_else(|| nothing(&id))?;
        let mut grant = record.grant.clone();
        without_all(&mut grant, capabilities)?;
        record.grant = grant;
        // From now on what is granted by command counts, and not what the configuration says.
        record.configured = None;
        Ok::<_, CommandError>(())
    })?;
    denied?;
    told(global, &id, &format!("may not {} any more", capabilities.join(", ")))
}

pub(super) fn revoke(global: &Global, id: &str) -> anyhow::Result<Exit> {
    let id = component::name(id)?;
    let file = GrantsFile::of(&global.data_dir()?);
    if !file.change(|all| all.revoke(&id))? {
        return Err(nothing(&id).into());
    }
    told(global, &id, "holds nothing any more")
}

pub(super) fn remove(global: &Global, id: &str) -> anyhow::Result<Exit> {
    let id = component::name(id)?;
    let (component, chance) =
        (file_of(global, &id)?, getrandom::u32().context("end the installation")?);
    let removed = [component.clone(), beside(&component)].map(fs::remove_file);
    let was_there = removed[0].is_ok();
    for removed in removed {
        let gone = own_file::gone(removed);
        gone.with_context(|| format!("remove {}", component.display()))?;
    }
    let had_record =
        GrantsFile::of(&global.data_dir()?).change(|all| all.remove(&id, chance))?.is_some();
    if !was_there && !had_record {
        return Err(nothing(&id).into());
    }
    let standing = standing::follow(global, &id)?;
    let now = match standing {
        Some(_) => "it is gone, and so is all that it kept",
        None => "its file and its grant are gone; what it kept goes when the hub starts next",
    };
    global.show(&json!({ "agentId": id, "plugin": standing }), || {
        Ok(format!("{id}: {now}\n").into())
    })?;
    Ok(Exit::Done)
}

fn told(global: &Global, id: &AgentId, what: &str) -> anyhow::Result<Exit> {
    let standing = standing::follow(global, id)?;
    let line = format!("{id} {what}: {}\n", standing::line(standing.as_ref()));
    global.show(&json!({ "agentId": id, "plugin": standing }), || Ok(line.into()))?;
    Ok(Exit::Done)
}

fn nothing(id: &AgentId) -> CommandError {
    let why = format!("nothing is granted to `{id}`; `a2a-hub plugin list` tells what is");
    CommandError::new(NO_PLUGIN, why).mended_by("a2a-hub plugin list")
}

/// Takes capabilities out of a grant, of which nothing else that is granted may hold one still.
fn without_all(grant: &mut Grant, capabilities: &[String]) -> Result<(), CommandError> {
    for capability in capabilities {
        without(grant, capability)?;
    }
    let still = capabilities.iter().find_map(|it| Some((it, still_held(grant, it)?)));
    still.map_or(Ok(()), |(capability, wider)| {
        Err(CommandError::usage(format!(
            "deny `{capability}`: `{wider}` is granted as well, and holds it: deny that too, and grant one by one what is to stay"
        )))
    })
}

/// Takes one capability out of a grant.
fn without(grant: &mut Grant, capability: &str) -> Result<(), CommandError> {
    let was = match capability.split_once('.') {
        None if capability == "memory" => !std::mem::take(&mut grant.memory).is_none(),
        None if capability == "files" => {
            !std::mem::replace(&mut grant.files, Allowance::None).is_none()
        }
        None if capability == "delegate" => !std::mem::take(&mut grant.delegate).is_empty(),
        None if capability == "workspace" => grant.workspace.take().is_some(),
        None if capability == "http" => !std::mem::take(&mut grant.http).is_empty(),
        Some(("http", host)) => {
            let mut hosts: BTreeMap<HostPattern, HttpGrant> =
                std::mem::take(&mut grant.http).into();
            let was = HostPattern::try_from(host.to_owned())
                .is_ok_and(|host| hosts.remove(&host).is_some());
            // Fewer hosts are no less a grant.
            grant.http = hosts.try_into().unwrap_or_default();
            was
        }
        None if capability == "process" => !std::mem::take(&mut grant.process).is_empty(),
        Some(("process", name)) => grant.process.remove(name).is_some(),
        Some(("delegate", agent)) => grant.delegate.withdraw(agent),
        None if capability == "tools" => !std::mem::take(&mut grant.tools).is_empty(),
        Some(("tools", server)) => grant.tools.remove(server).is_some(),
        None | Some(_) => false,
    };
    if was {
        return Ok(());
    }
    let mut held: Vec<_> = grant.process.keys().map(|name| format!("`process.{name}`")).collect();
    held.extend(grant.tools.keys().map(|server| format!("`tools.{server}`")));
    held.extend(grant.delegate.granted().map(|agent| format!("`delegate.{agent}`")));
    let hosts: BTreeMap<HostPattern, HttpGrant> = grant.http.clone().into();
    held.extend(hosts.into_keys().map(|host| format!("`http.{}`", String::from(host))));
    held.extend(grant.workspace.map(|_| "`workspace`".to_owned()));
    let bytes = [("`memory`", grant.memory), ("`files`", grant.files)];
    held.extend(bytes.iter().filter(|(_, it)| !it.is_none()).map(|(word, _)| (*word).to_owned()));
    let held = if held.is_empty() { "nothing".to_owned() } else { held.join(", ") };
    Err(CommandError::usage(format!(
        "deny `{capability}`: it is not granted; what is granted is {held}"
    )))
}

/// What is granted still and stands for more than one, and among them for what was just taken out.
fn still_held(grant: &Grant, capability: &str) -> Option<String> {
    match capability.split_once('.')? {
        ("delegate", agent) => grant.delegate.terms(agent).map(|_| "delegate.*".to_owned()),
        ("http", host) => {
            // Some host below the domain stands for all of them.
            let host =
                host.strip_prefix("*.").map_or(host.to_owned(), |domain| format!("x.{domain}"));
            let is_wider = |pattern: &HostPattern| {
                !matches!(pattern, HostPattern::Exact(_)) && pattern.matches(&host)
            };
            let wider = grant.http.iter().find(|(pattern, _)| is_wider(pattern));
            wider.map(|(pattern, _)| format!("http.{}", String::from(pattern.clone())))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_is_taken_out_by_its_name() {
        let whole = || Grant {
            memory: Allowance::Bytes(1),
            files: Allowance::AsAsked,
            delegate: ["codex".to_owned(), "*".to_owned()].into_iter().collect(),
            process: [
                ("git".to_owned(), Default::default()),
                ("sh".to_owned(), Default::default()),
            ]
            .into(),
            ..Grant::default()
        };
        for (capability, left) in [
            (
                "memory",
                "files = true\ndelegate = [\"*\", \"codex\"]\n\n[process.git]\n\n[process.sh]\n",
            ),
            (
                "files",
                "memory = 1\ndelegate = [\"*\", \"codex\"]\n\n[process.git]\n\n[process.sh]\n",
            ),
            (
                "process.sh",
                "memory = 1\nfiles = true\ndelegate = [\"*\", \"codex\"]\n\n[process.git]\n",
            ),
            ("process", "memory = 1\nfiles = true\ndelegate = [\"*\", \"codex\"]\n"),
            (
                "delegate.codex",
                "memory = 1\nfiles = true\ndelegate = [\"*\"]\n\n[process.git]\n\n[process.sh]\n",
            ),
        ] {
            let mut grant = whole();
            without(&mut grant, capability).unwrap();
            assert_eq!(toml::to_string(&grant).unwrap(), left, "{capability}");
        }
        let mut hosts = Grant::default();
        let both = "[http.'a.example.com']\n[http.'b.example.com']";
        hosts.http = toml::from_str::<Grant>(both).unwrap().http;
        without(&mut hosts, "http.a.example.com").unwrap();
        assert!(without(&mut hosts, "http.a.example.com").is_err(), "once is all there is");
        without(&mut hosts, "http").unwrap();
        assert_eq!(hosts, Grant::default());
        let all = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        without_all(&mut whole(), &all(&["delegate.codex", "delegate.*"])).unwrap();
        let refused = without_all(&mut whole(), &all(&["delegate.codex"])).unwrap_err().to_string();
        insta::assert_snapshot!(refused, @"deny `delegate.codex`: `delegate.*` is granted as well, and holds it: deny that too, and grant one by one what is to stay");
        for (granted, denied, is_held) in [
            ("*", "a.example.com", true),
            ("*", "*.example.com", true),
            ("*.example.com", "a.example.com", true),
            ("*.example.com", "*.a.example.com", true),
            ("*.example.com", "example.com", false),
            ("example.com", "*.example.com", false),
            ("a.example.com", "*.example.com", false),
            ("a.example.com", "*", false),
        ] {
            let mut both = Grant::default();
            let hosts = format!("[http.'{granted}']\n[http.'{denied}']");
            both.http = toml::from_str::<Grant>(&hosts).unwrap().http;
            let done = without_all(&mut both, &[format!("http.{denied}")]);
            assert_eq!(done.is_err(), is_held, "{granted}, without {denied}");
        }
        let refused = without(&mut whole(), "process.rm").unwrap_err().to_string();
        insta::assert_snapshot!(refused, @"deny `process.rm`: it is not granted; what is granted is `process.git`, `process.sh`, `delegate.*`, `delegate.codex`, `memory`, `files`");
        let refused = without(&mut Grant::default(), "memory").unwrap_err().to_string();
        insta::assert_snapshot!(refused, @"deny `memory`: it is not granted; what is granted is nothing");
    }
}
