//! Removal of capabilities from a grant, by their names in a manifest: `process.git`,
//! `http.api.example.com`, `memory`.

use crate::grant::{
    Grant, byte_limit::Allowance, delegate::Callee, host_pattern::HostPattern, http::HttpGrant,
};
use std::collections::BTreeMap;

/// Error for a capability that cannot be removed; the grant is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WithdrawError {
    /// The capability is not granted.
    #[error("deny `{capability}`: it is not granted; what is granted is {granted}")]
    NotGranted {
        /// Named capability.
        capability: String,
        /// Granted capabilities, as a list for people.
        granted: String,
    },
    /// A wider capability is granted as well, and would still allow it.
    #[error(
        "deny `{capability}`: `{wider}` is granted as well, and holds it: deny that too, and grant one by one what is to stay"
    )]
    StillGranted {
        /// Named capability.
        capability: String,
        /// Wider capability.
        wider: String,
    },
}

/// Removes capabilities from a grant: all of them, or none if one is not granted or is still
/// covered by a wider one.
pub fn withdraw(grant: &mut Grant, capabilities: &[String]) -> Result<(), WithdrawError> {
    let mut remaining = grant.clone();
    without_all(&mut remaining, capabilities)?;
    *grant = remaining;
    Ok(())
}

fn without_all(grant: &mut Grant, capabilities: &[String]) -> Result<(), WithdrawError> {
    for capability in capabilities {
        without(grant, capability)?;
    }
    let still = capabilities.iter().find_map(|it| Some((it, still_granted(grant, it)?)));
    still.map_or(Ok(()), |(capability, wider)| {
        Err(WithdrawError::StillGranted { capability: capability.clone(), wider })
    })
}

/// Removes one capability from a grant.
fn without(grant: &mut Grant, capability: &str) -> Result<(), WithdrawError> {
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
            // A subset of a valid grant is valid.
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
    let mut granted: Vec<_> =
        grant.process.keys().map(|name| format!("`process.{name}`")).collect();
    granted.extend(grant.tools.keys().map(|server| format!("`tools.{server}`")));
    granted.extend(grant.delegate.granted().map(|agent| format!("`delegate.{agent}`")));
    let hosts: BTreeMap<HostPattern, HttpGrant> = grant.http.clone().into();
    granted.extend(hosts.into_keys().map(|host| format!("`http.{}`", String::from(host))));
    granted.extend(grant.workspace.map(|_| "`workspace`".to_owned()));
    let bytes = [("`memory`", grant.memory), ("`files`", grant.files)];
    granted
        .extend(bytes.iter().filter(|(_, it)| !it.is_none()).map(|(word, _)| (*word).to_owned()));
    let granted = if granted.is_empty() { "nothing".to_owned() } else { granted.join(", ") };
    Err(WithdrawError::NotGranted { capability: capability.to_owned(), granted })
}

/// Granted capability that still covers the removed one.
fn still_granted(grant: &Grant, capability: &str) -> Option<String> {
    match capability.split_once('.')? {
        ("delegate", name) => {
            let callee = Callee::parse(name).ok()?;
            grant.delegate.terms(&callee)?;
            let agent = callee.agent.as_str();
            let covers_agent =
                callee.skill.is_some() && grant.delegate.granted().any(|it| it == agent);
            Some(format!("delegate.{}", if covers_agent { agent } else { "*" }))
        }
        ("http", host) => {
            // Represents all hosts below the domain by one of them.
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
    fn capability_is_withdrawn_by_its_name() {
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
