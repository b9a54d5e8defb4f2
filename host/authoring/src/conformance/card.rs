//! Checks of a component's card and health report.

use super::{
    report::{Check, failed, passed, sanitize},
    stage::ConformanceBench,
};
use a2a_hub_core::text::one_line::OneLine;
use a2a_hub_protocol::card::{AgentCard, OF_THE_HUB};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) async fn checks(stage: &ConformanceBench, card: &AgentCard) -> Vec<Check> {
    vec![a2a(card), stable(stage, card).await, versions(stage, card), health(stage).await]
}

fn a2a(card: &AgentCard) -> Check {
    let id = "card.a2a";
    match lacks(card).first() {
        None => passed(id, format!("{} skills", card.skills.len())),
        Some((found, fix)) => failed(id, sanitize(found), fix),
    }
}

/// Lists what a card lacks that A2A 1.0, section 4.4, requires, and members that only the hub may
/// set.
fn lacks(card: &AgentCard) -> Vec<(String, &'static str)> {
    let mut lacks = Vec::new();
    if card.skills.is_empty() {
        let fix = "name what it can do with `Card::skill`: clients choose an agent by its skills";
        lacks.push(("it names no skill".to_owned(), fix));
    }
    let mut ids = BTreeSet::new();
    for skill in &card.skills {
        if !ids.insert(&skill.id) {
            let found = format!("two of its skills have the id `{}`", skill.id);
            lacks.push((found, "give each skill an id of its own"));
        }
        if skill.tags.is_empty() {
            let found = format!("its skill `{}` has no tag", skill.id);
            lacks.push((found, "give each skill a tag, by which it is found"));
        }
    }
    let modes = ["defaultInputModes", "defaultOutputModes"].into_iter();
    let of_card = modes.filter_map(|name| card.other.get(name));
    let of_skills = card.skills.iter().flat_map(|skill| {
        ["inputModes", "outputModes"].into_iter().filter_map(|name| skill.other.get(name))
    });
    for mode in of_card.chain(of_skills).filter_map(Value::as_array).flatten() {
        let is_type = mode.as_str().is_some_and(is_media_range);
        if !is_type {
            let found = format!("it takes or gives `{mode}`, which is no media type");
            lacks.push((found, "name media types, such as `text/markdown` or `image/*`"));
        }
    }
    if let Some(member) = OF_THE_HUB.iter().find(|member| card.other.contains_key(**member)) {
        let found =
            format!("it says `{member}`, which the hub says and leaves out of what the agent says");
        lacks.push((found, "leave it out: the hub says where the agent is, and who may ask it"));
    }
    lacks
}

/// True for a media type or a media range (RFC 9110, sections 8.3.1 and 12.5.1).
fn is_media_range(text: &str) -> bool {
    let essence = text.split(';').next().unwrap_or_default().trim();
    let is_token = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
    };
    essence.split_once('/').is_some_and(|(kind, of)| is_token(kind) && is_token(of))
}

async fn stable(stage: &ConformanceBench, card: &AgentCard) -> Check {
    let id = "card.stable";
    let fix = "say in `card` only what is known when it is compiled: no time, no chance, nothing of the task";
    for _ in 0..2 {
        match stage.card().await {
            Ok(again) if again == *card => {}
            Ok(_) => return failed(id, "asked again, it says another card", fix),
            Err(why) => return failed(id, sanitize(&format!("asked again: {why}")), fix),
        }
    }
    passed(id, "asked three times")
}

fn versions(stage: &ConformanceBench, card: &AgentCard) -> Check {
    let id = "card.manifest";
    let fix = "have both say one version, such as `env!(\"CARGO_PKG_VERSION\")`: updates are judged by it";
    match stage.ask().version.as_ref().map(OneLine::to_string) {
        None => passed(id, "the manifest names none"),
        Some(version) if version == card.version => passed(id, sanitize(&version)),
        Some(version) => {
            let found = format!("the manifest says {version}, and the card {}", card.version);
            failed(id, sanitize(&found), fix)
        }
    }
}

async fn health(stage: &ConformanceBench) -> Check {
    let id = "health.in-time";
    let fix = "look only at what is there: a tenth of a second on the processor, and no waiting; what is missing is `Health::unhealthy` with a fix";
    match stage.health().await {
        None => failed(id, "it did not say within a second how it is", fix),
        Some(Err(why)) => failed(id, sanitize(&why.to_string()), fix),
        Some(Ok(report)) => {
            let detail = report.detail.map(|detail| format!(": {detail}"));
            let status = json!(report.status);
            let status = status.as_str().unwrap_or_default();
            passed(id, sanitize(&format!("{status}{}", detail.unwrap_or_default())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(change: impl FnOnce(&mut Value)) -> Vec<String> {
        let skill = json!({ "id": "s", "name": "S", "description": "does s", "tags": ["s"] });
        let mut card = json!({ "name": "n", "description": "d", "version": "1",
            "defaultInputModes": ["text/plain", "image/*"], "skills": [skill] });
        change(&mut card);
        let card = AgentCard::parse(&card.to_string()).unwrap();
        lacks(&card).into_iter().map(|(found, _)| found).collect()
    }

    #[test]
    fn incomplete_card_lists_missing_members() {
        assert_eq!(found(|_| {}), [] as [&str; 0]);
        let wrong = [
            found(|card| card["skills"] = json!([])),
            found(|card| card["skills"] = json!([card["skills"][0], card["skills"][0]])),
            found(|card| card["skills"][0]["tags"] = json!([])),
            found(|card| card["skills"][0]["outputModes"] = json!(["text"])),
            found(|card| card["defaultInputModes"] = json!(["*/*", "te xt/plain"])),
            found(|card| card["signatures"] = json!([])),
        ];
        insta::assert_snapshot!(wrong.concat().join("\n"), @r#"
        it names no skill
        two of its skills have the id `s`
        its skill `s` has no tag
        it takes or gives `"text"`, which is no media type
        it takes or gives `"te xt/plain"`, which is no media type
        it says `signatures`, which the hub says and leaves out of what the agent says
        "#);
    }
}
