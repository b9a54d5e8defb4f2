//! Parser for the answers of other registries. Their text is untrusted, so only a few plain fields
//! are kept.

use a2a_hub_core::{discovery::search::Description, text::plain_text};
use a2a_hub_protocol::card::{AgentCard, ForeignCard, read_interfaces};
use serde_json::{Value, json};

/// Most agents that are read from one answer.
const MAX_LISTED: usize = 100;

/// Most skills that are kept for one agent.
const MAX_SKILLS: usize = 20;

/// Longest name, version or tag, and longest description, in characters.
const MAX_LINE: usize = 120;
const MAX_TEXT: usize = 500;

/// Longest URL, in bytes.
const MAX_URL: usize = 2_000;

/// An agent listed by another registry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listed {
    /// Searchable description, under the name on the card.
    pub description: Description,
    /// URL of the agent's endpoint, from its card.
    pub url: String,
    /// Sanitised card: name, description, version and skills, in plain lines.
    pub card: Value,
}

/// Parses a registry's answer, `{"agents": [...]}`, with cards of A2A 1.0, 0.3 or earlier. Agents
/// without a name or an HTTP URL are skipped. None if the answer has another form.
pub(crate) fn read(answer: &Value) -> Option<Vec<Listed>> {
    let agents = answer.get("agents")?.as_array()?;
    Some(agents.iter().take(MAX_LISTED).filter_map(listed).collect())
}

fn listed(card: &Value) -> Option<Listed> {
    let line = |of: &Value, name: &str, max_chars: usize| {
        plain_text::line(of.get(name).and_then(Value::as_str).unwrap_or_default(), max_chars)
    };
    let list = |of: &Value, name: &str| {
        of.get(name).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let name = line(card, "name", MAX_LINE);
    let interfaces = read_interfaces(&ForeignCard::read(card).card).ok()?;
    let url = interfaces.into_iter().map(|interface| interface.url).find(|url| is_http(url))?;
    if name.is_empty() {
        return None;
    }
    let lines = |of: &Value, name: &str| -> Vec<String> {
        let all = list(of, name).into_iter().take(MAX_SKILLS);
        all.filter_map(|one| Some(plain_text::line(one.as_str()?, MAX_LINE))).collect()
    };
    let skill = |skill: &Value| {
        json!({
            "id": line(skill, "id", MAX_LINE), "name": line(skill, "name", MAX_LINE),
            "description": line(skill, "description", MAX_TEXT),
            "tags": lines(skill, "tags"), "examples": lines(skill, "examples"),
            "inputModes": lines(skill, "inputModes"), "outputModes": lines(skill, "outputModes"),
        })
    };
    let skills: Vec<_> = list(card, "skills").iter().take(MAX_SKILLS).map(skill).collect();
    let card = json!({
        "name": name, "description": line(card, "description", MAX_TEXT),
        "version": line(card, "version", MAX_LINE), "skills": skills,
        "defaultInputModes": lines(card, "defaultInputModes"),
        "defaultOutputModes": lines(card, "defaultOutputModes"),
    });
    let read: AgentCard = serde_json::from_value(card.clone()).ok()?;
    Some(Listed { description: Description::new(&name, Vec::new(), &read), url, card })
}

/// True if the text is a plain HTTP URL. The URL is displayed only, never called.
fn is_http(url: &str) -> bool {
    let is_http = url.starts_with("http://") || url.starts_with("https://");
    is_http && url.len() <= MAX_URL && plain_text::is_plain_line(url) && !url.contains(' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::reshaped;
    use a2a_hub_core::discovery::search::Index;
    use a2a_hub_protocol::operation::AgentQuery;

    /// Version skew: an agent of 1.x with a card of 0.3, and one of 2.x with a card of 1.0.
    #[test]
    fn cards_of_all_versions_are_searchable() {
        let old = json!({ "protocolVersion": "0.3.0", "name": "Polyglot", "description": "Translates", "version": "1.3.0",
            "url": "http://old/a2a", "skills": [{ "id": "translate", "name": "T", "description": "d", "tags": ["language"] }] });
        let new = json!({ "name": "Polyglot", "description": "Translates", "version": "2.1.0",
            "supportedInterfaces": [{ "url": "http://new/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }],
            "skills": [{ "id": "translate", "name": "T", "description": "d", "tags": ["language"] }] });
        // Without any A2A version, as in the original registry.
        let oldest = json!({ "name": "Poly", "description": "Translates", "version": "0.1.0", "url": "https://oldest/" });
        let all = read(&json!({ "agents": [old, new, oldest] })).unwrap();
        let urls: Vec<_> = all.iter().map(|one| one.url.as_str()).collect();
        assert_eq!(urls, ["http://old/a2a", "http://new/a2a", "https://oldest/"]);
        let index = Index::new(all.iter().map(|one| one.description.clone()).collect());
        let find = |version: &str, allow_older: bool| {
            let version = Some(version.to_owned());
            let (tags, text) = (vec!["language".to_owned()], Some("translate".to_owned()));
            let query = AgentQuery { version, tags, text, allow_older, ..AgentQuery::default() };
            index
                .find(&query, None)
                .map(|found| found.hits.iter().map(|hit| hit.index).collect::<Vec<_>>())
        };
        assert_eq!(find(">=2", false).unwrap(), [1]);
        assert_eq!(find("1", false).unwrap(), [0]);
        assert_eq!(find("3", true).unwrap(), [0, 1]);
        assert!(
            find("3", false).unwrap_err().to_string().contains("Polyglot 1.3.0, Polyglot 2.1.0")
        );
    }

    #[test]
    fn reshaped_registry_answers_do_not_panic() {
        let card = json!({ "name": "n", "description": "d", "version": "1", "url": "http://a/",
            "supportedInterfaces": [{ "url": "http://a/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }],
            "defaultInputModes": ["text/plain"], "skills": [{ "id": "s", "name": "S", "tags": ["t"] }] });
        for other in reshaped(&json!({ "agents": [card] })) {
            let listed = read(&other).unwrap_or_default();
            assert!(listed.len() <= 1, "{other}");
        }
    }

    #[test]
    fn listed_cards_are_sanitised_and_bounded() {
        let odd = json!({ "name": "A\u{1b}[2J\nB\u{202e}", "description": "x".repeat(10_000), "version": 7, "url": "http://a/",
            "skills": [{ "id": ["no"], "tags": ["a", 1, null] }], "secret": "kept by nobody" });
        let all = read(&json!({ "agents": [odd] })).unwrap();
        let told = all[0].card.to_string();
        assert!(
            told.len() < 1_500 && plain_text::is_plain_line(&told) && !told.contains("secret"),
            "{told}"
        );
        assert_eq!(all[0].card["name"], "A[2J B");
        for url in
            ["javascript:alert(1)", "file:///etc/passwd", "http://a\u{202e}/", "http://a b/", ""]
        {
            let none = read(&json!({ "agents": [{ "name": "a", "url": url }] })).unwrap();
            assert!(none.is_empty(), "{url}");
        }
        let many: Vec<_> =
            (0..1_000).map(|n| json!({ "name": format!("a{n}"), "url": "http://a/" })).collect();
        assert_eq!(read(&json!({ "agents": many })).unwrap().len(), MAX_LISTED);
        for no_answer in [json!([]), json!({}), json!({ "agents": "none" }), json!(null)] {
            assert_eq!(read(&no_answer), None, "{no_answer}");
        }
        assert_eq!(
            read(&json!({ "agents": [1, "a", null, {}, { "name": "" }] })),
            Some(Vec::new())
        );
    }
}
