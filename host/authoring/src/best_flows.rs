//! Flow files of `a2a-hub best`: their names, and which of them are old. Their number is bounded,
//! because each is an agent of the hub.

use a2a_hub_config::Permissions;
use a2a_hub_protocol::id::{AgentId, InvalidAgentId};
use serde_json::Value;
use std::{
    fs::{self, File},
    io,
    path::Path,
    time::SystemTime,
};

/// Begin of the names.
const PREFIX: &str = "best-of-";

/// End of the names of flow files.
const ENDING: &str = ".flow.toml";

/// Digits of the digest in the flow's name.
const DIGITS: usize = 8;

/// Number of latest flows that stay, beside the one in use: those that somebody may compare.
const RETAINED_FLOWS: usize = 16;

/// Id of the flow with this digest.
///
/// # Errors
/// The digest is no hexadecimal number.
pub fn id_of(digest: &str) -> Result<AgentId, InvalidAgentId> {
    AgentId::parse(format!("{PREFIX}{}", digest.get(..DIGITS).unwrap_or(digest)))
}

/// Marks a flow file as used at this time.
///
/// # Errors
/// Returns the error of the system.
pub fn mark_used(file: &Path, now: SystemTime) -> io::Result<()> {
    File::options().append(true).open(file)?.set_modified(now)
}

/// Flows of `best` in a folder beyond the latest ones, without `current`; none if the folder cannot
/// be read.
pub fn old_flows(folder: &Path, current: &AgentId) -> Vec<AgentId> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let id = name.strip_suffix(ENDING)?;
            let digits = id.strip_prefix(PREFIX)?;
            let is_digest =
                digits.len() == DIGITS && digits.bytes().all(|it| it.is_ascii_hexdigit());
            let id = AgentId::parse(id).ok().filter(|id| is_digest && id != current)?;
            Some((entry.metadata().ok()?.modified().ok()?, id))
        })
        .collect();
    found.sort();
    found.truncate(found.len().saturating_sub(RETAINED_FLOWS));
    found.into_iter().map(|(_, id)| id).collect()
}

/// Reason why a judge cannot stand in a flow file; none if it can.
pub fn unusable(judge: &str) -> Option<&'static str> {
    if judge.trim().is_empty() {
        return Some("it is empty; give a command such as \"cargo test\"");
    }
    if ["{{", "{%", "{#"].iter().any(|mark| judge.contains(mark)) || judge.ends_with("{}") {
        return Some(
            "a command has no `{{`, `{%` or `{#`, and does not end in `{}`; put it into a script, and run that",
        );
    }
    None
}

/// Note about agents that ask nevertheless, since their own setting allows less than `permissions`;
/// none if none does. What a plug-in asks is not known.
pub fn asking(agents: &[Value], wanted: &[AgentId], permissions: &str) -> Option<String> {
    let max = Permissions::named(permissions).filter(|max| *max > Permissions::Ask)?;
    let asks = |agent: &&Value| {
        let set = agent["permissions"].as_str().and_then(Permissions::named);
        ["built-in", "acp"].contains(&text(&agent["source"])) && set.is_some_and(|set| set < max)
    };
    let is_wanted = |agent: &&Value| wanted.iter().any(|id| id.as_str() == text(&agent["id"]));
    let names = agents.iter().filter(is_wanted).filter(asks);
    let names: Vec<_> = names.map(|agent| text(&agent["id"])).collect();
    let first = names.first()?;
    Some(format!(
        "the own `permissions` of {} allow less than `{permissions}`: they ask or only read; \
         `agents.{first}.permissions = \"{permissions}\"` in the configuration allows it",
        names.join(", ")
    ))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    #[test]
    fn only_old_flows_of_best_are_listed() {
        let dir = tempfile::tempdir().unwrap();
        let begun = SystemTime::UNIX_EPOCH + Duration::from_hours(400_000);
        let make = |name: &str, age: u32| {
            let path = dir.path().join(name);
            fs::write(&path, "").unwrap();
            let at = begun - Duration::from_mins(age.into());
            File::options().append(true).open(path).unwrap().set_modified(at).unwrap();
        };
        for age in 0..20 {
            make(&format!("best-of-000000{age:02}.flow.toml"), age);
        }
        for other in ["best-of-mine.flow.toml", "best-of-00000000.toml", "review.flow.toml"] {
            make(other, 999);
        }
        let own = id_of("00000018ff").unwrap();
        assert_eq!(own.as_str(), "best-of-00000018");
        let old =
            || old_flows(dir.path(), &own).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(old(), ["best-of-00000019", "best-of-00000017", "best-of-00000016"]);
        mark_used(&dir.path().join("best-of-00000019.flow.toml"), begun).unwrap();
        assert_eq!(old(), ["best-of-00000017", "best-of-00000016", "best-of-00000015"]);
        assert_eq!(old_flows(Path::new("/nowhere"), &own), Vec::new());
    }

    #[test]
    fn judge_without_marks_is_usable() {
        assert_eq!(unusable("cargo test"), None);
        assert!(unusable(" ").is_some_and(|why| why.contains("it is empty")));
        for judge in ["echo {{ x }}", "find -exec rm {}"] {
            assert!(unusable(judge).is_some_and(|why| why.contains("put it into a script")));
        }
    }

    #[test]
    fn agents_with_less_permission_are_noted() {
        let agent = |id: &str, source: &str, permissions: &str| json!({ "id": id, "source": source, "permissions": permissions });
        let agents = [
            agent("codex", "built-in", "ask"),
            agent("gemini", "built-in", "edit"),
            agent("mine", "acp", "read-only"),
            agent("plugin", "plugin.wasm", "ask"),
            agent("vibe", "built-in", "ask"),
        ];
        let wanted = |names: &[&str]| -> Vec<_> {
            names.iter().map(|name| AgentId::parse(*name).unwrap()).collect()
        };
        let note = |names: &[&str], most: &str| asking(&agents, &wanted(names), most);
        let said = note(&["mine", "codex", "gemini", "plugin"], "edit").unwrap();
        assert!(said.contains(" of codex, mine allow ") && said.contains("agents.codex"), "{said}");
        assert_eq!(note(&["gemini", "plugin"], "edit"), None);
        assert_eq!(note(&["codex", "mine"], "ask"), None, "they are to ask");
        assert!(note(&["gemini"], "full").is_some_and(|said| said.contains(" of gemini allow ")));
    }
}
