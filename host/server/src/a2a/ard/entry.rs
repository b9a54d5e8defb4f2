//! Agents as entries of Agentic Resource Discovery (ARD v0.91, section 4), and filters over them.

use a2a_hub_protocol::{id::AgentId, member};
use serde_json::{Value, json};
use std::cmp::Reverse;
use url::Url;

/// Media type of an agent's card.
const CARD: &str = "application/a2a-agent-card+json";

/// Media type of a registry.
const REGISTRY: &str = "application/ai-registry+json";

/// Maximum numbers of tags, of skills and of example queries in an entry. The form wants two to
/// five queries.
const MAX_TAGS: usize = 50;
const MAX_SKILLS: usize = 50;
const MIN_QUERIES: usize = 2;
const MAX_QUERIES: usize = 5;

/// Terms by which `filter` selects entries.
const FILTERS: [&str; 7] =
    ["type", "tags", "capabilities", "version", "displayName", "identifier", "publisher"];

/// Rule for `pageToken`.
pub(super) const WRONG_TOKEN: &str = "`pageToken` must be that of the page before";

/// Addresses and name of the hub as a publisher.
#[derive(Debug)]
pub(super) struct Publisher {
    root: String,
    host: String,
}

impl Publisher {
    /// Creates a publisher for the hub's URL, which has a trailing slash.
    pub(super) fn new(url: &str) -> Self {
        let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
        // An identifier has no room for the brackets of an IPv6 address.
        let is_name = |host: &String| {
            !host.is_empty()
                && host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-".contains(&b))
        };
        let host = host.filter(is_name).unwrap_or_else(|| "localhost".to_owned());
        Self { root: url.trim_end_matches('/').to_owned(), host }
    }

    /// Base URL of the registry's endpoints.
    pub(super) fn registry_url(&self) -> String {
        format!("{}/ard", self.root)
    }

    /// Entry of the registry itself.
    pub(super) fn registry(&self) -> Value {
        json!({
            "identifier": format!("urn:air:{}:registry:a2a-hub", self.host),
            "displayName": "A2A Local Hub",
            "type": REGISTRY,
            "url": self.registry_url(),
            "description": "Search over the agents of this hub",
        })
    }

    /// Entry of an agent with this card, which was registered at this time.
    pub(super) fn agent(&self, id: &AgentId, card: &Value, registered_at: Option<&str>) -> Value {
        let name = card["name"].as_str().filter(|name| !name.is_empty());
        let mut entry = json!({
            "identifier": format!("urn:air:{}:agent:{id}", self.host),
            "displayName": name.unwrap_or_else(|| id.as_str()),
            "type": CARD,
            "url": format!("{}/agents/{id}/.well-known/agent-card.json", self.root),
        });
        for name in ["description", "version"] {
            if let Some(text) = card[name].as_str().filter(|text| !text.is_empty()) {
                member::set(&mut entry, name, text);
            }
        }
        if let Some(time) = registered_at.filter(|time| !time.is_empty()) {
            member::set(&mut entry, "updatedAt", time);
        }
        let skills = || card["skills"].as_array().into_iter().flatten().take(MAX_SKILLS);
        let texts = |name: &'static str| {
            let all = skills().flat_map(move |skill| skill[name].as_array().into_iter().flatten());
            all.filter_map(Value::as_str)
        };
        let mut tags: Vec<_> = texts("tags").collect();
        tags.sort_unstable();
        tags.dedup();
        tags.truncate(MAX_TAGS);
        let capabilities: Vec<_> = skills().filter_map(|skill| skill["id"].as_str()).collect();
        let queries: Vec<_> = texts("examples").take(MAX_QUERIES).collect();
        for (name, all, min) in [
            ("tags", tags, 1),
            ("capabilities", capabilities, 1),
            ("representativeQueries", queries, MIN_QUERIES),
        ] {
            if all.len() >= min {
                member::set(&mut entry, name, json!(all));
            }
        }
        entry
    }
}

/// True if the text has the form of an identifier (ARD v0.91, appendix C).
pub(super) fn is_identifier(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("urn:air:") else { return false };
    let mut parts = rest.split(':');
    let is_part = |part: &str, others: &str| {
        let is_known = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
        !part.is_empty() && part.chars().all(is_known)
    };
    let has_publisher = parts.next().is_some_and(|part| is_part(part, ".-"));
    let names: Vec<_> = parts.collect();
    has_publisher && !names.is_empty() && names.iter().all(|part| is_part(part, "._-"))
}

/// Constraints of a search: all terms must match, each by one of its values.
#[derive(Debug, Default, PartialEq)]
pub(super) struct EntryFilter(Vec<(String, Vec<String>)>);

impl EntryFilter {
    /// Reads the `filter` of a query.
    pub(super) fn read(filter: &Value) -> Result<Self, String> {
        let members = match filter {
            Value::Null => return Ok(Self::default()),
            Value::Object(members) => members,
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err("`filter` must be an object of terms with their values".to_owned());
            }
        };
        let terms = members.iter().map(|(term, values)| {
            let values = match values {
                Value::String(one) => vec![one.clone()],
                Value::Array(all) => {
                    let all = all.iter().map(|one| one.as_str().map(str::to_owned));
                    all.collect::<Option<_>>().ok_or("the values of `filter` must be texts")?
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                    return Err("the values of `filter` must be texts".to_owned());
                }
            };
            if !FILTERS.contains(&term.as_str()) {
                let known = FILTERS.join(", ");
                return Err(format!("this registry does not filter by this term, but by {known}"));
            }
            Ok((term.clone(), values))
        });
        terms.collect::<Result<_, _>>().map(Self)
    }

    /// Reads the `filter` of a list: `term = 'value,other'`, several of them joined by `AND`.
    pub(super) fn read_list(filter: &str) -> Result<Self, String> {
        let mut terms = Vec::new();
        for one in filter.split(" AND ").map(str::trim).filter(|one| !one.is_empty()) {
            let wrong =
                || "`filter` must be like displayName = 'Echo' AND type = 'TYPE'".to_owned();
            let (term, value) = one.split_once('=').ok_or_else(wrong)?;
            let value = value.trim();
            let value = ['\'', '"'].into_iter().find_map(|quote| {
                value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote))
            });
            let values = value.ok_or_else(wrong)?.split(',').map(|one| one.trim().to_owned());
            let term = match term.trim() {
                term @ ("displayName" | "type") => term,
                "publisherId" => "publisher",
                _ => {
                    let why = "this registry lists by displayName, type and publisherId";
                    return Err(why.to_owned());
                }
            };
            terms.push((term.to_owned(), values.collect()));
        }
        Ok(Self(terms))
    }

    /// True if the entry matches.
    pub(super) fn matches(&self, entry: &Value) -> bool {
        self.0.iter().all(|(term, values)| {
            let publisher = || entry["identifier"].as_str().and_then(|id| id.split(':').nth(2));
            let has = |wanted: &String| match term.as_str() {
                "publisher" => publisher() == Some(wanted.as_str()),
                "displayName" => {
                    entry[term].as_str().is_some_and(|name| name.eq_ignore_ascii_case(wanted))
                }
                _ => match entry[term].as_array() {
                    Some(all) => all.iter().any(|one| one == wanted),
                    None => entry[term] == *wanted,
                },
            };
            values.iter().any(has)
        })
    }
}

/// Sorts entries by `orderBy`: a term, and `DESC` for the reverse order.
pub(super) fn sort(entries: &mut [Value], order: &str) -> Result<(), String> {
    let mut words = order.split_whitespace();
    let term = match words.next().unwrap_or("identifier") {
        "name" | "displayName" => "displayName",
        "identifier" => "identifier",
        "updatedAt" => "updatedAt",
        _ => return Err("`orderBy` must be displayName, identifier or updatedAt".to_owned()),
    };
    let key = |entry: &Value| entry[term].as_str().unwrap_or_default().to_owned();
    match (words.next().unwrap_or("ASC"), words.next()) {
        ("ASC", None) => entries.sort_by_cached_key(key),
        ("DESC", None) => entries.sort_by_cached_key(|entry| Reverse(key(entry))),
        _ => return Err("`orderBy` is one term, with ASC or DESC".to_owned()),
    }
    Ok(())
}

/// Score of a match in the form of ARD, 0 to 100, if the best one has the score `best`.
pub(super) fn percent(score: f64, best: f64) -> u8 {
    let share = if best > 0.0 { (score / best * 100.0).round().clamp(0.0, 100.0) } else { 0.0 };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is 0 to 100, and a cast of NaN is 0"
    )]
    let percent = share as u8;
    percent
}

/// A page of the results that begins at this token, and the token of the next page.
pub(super) fn page(
    all: Vec<Value>,
    size: usize,
    token: Option<&str>,
) -> Result<(Vec<Value>, Option<String>), String> {
    let after = match token.filter(|token| !token.is_empty()) {
        None => 0,
        Some(token) => token
            .strip_prefix('n')
            .and_then(|number| number.parse::<usize>().ok())
            .ok_or(WRONG_TOKEN)?,
    };
    let rest = all.len().saturating_sub(after);
    let next = (rest > size).then(|| format!("n{}", after.saturating_add(size)));
    Ok((all.into_iter().skip(after).take(size).collect(), next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> Value {
        let skill = |id: &str, tags: Value| json!({ "id": id, "name": id, "tags": tags, "examples": ["a?", "b?", "c?"] });
        json!({ "name": "Reviewer", "description": "d", "version": "1.2",
            "skills": [skill("review", json!(["git", "code"])), skill("fix", json!(["git"]))] })
    }

    fn entry(url: &str) -> Value {
        let id = AgentId::parse("pr-reviewer").unwrap();
        Publisher::new(url).agent(&id, &card(), Some("2026-01-01T00:00:00.000Z"))
    }

    #[test]
    fn agent_is_entry_of_its_card() {
        insta::assert_snapshot!(entry("https://hub.example.com/x/"), @r#"{"capabilities":["review","fix"],"description":"d","displayName":"Reviewer","identifier":"urn:air:hub.example.com:agent:pr-reviewer","representativeQueries":["a?","b?","c?","a?","b?"],"tags":["code","git"],"type":"application/a2a-agent-card+json","updatedAt":"2026-01-01T00:00:00.000Z","url":"https://hub.example.com/x/agents/pr-reviewer/.well-known/agent-card.json","version":"1.2"}"#);
        for (url, host) in [
            ("http://127.0.0.1:7420/", "127.0.0.1"),
            ("http://[::1]:7420/", "localhost"),
            ("http:///", "localhost"),
            ("nonsense", "localhost"),
        ] {
            let identifier = entry(url)["identifier"].as_str().unwrap().to_owned();
            assert_eq!(identifier, format!("urn:air:{host}:agent:pr-reviewer"));
            assert!(is_identifier(&identifier));
        }
        let odd = json!({ "name": 7, "skills": { "a": 1 }, "description": [], "version": null });
        let odd = Publisher::new("http://h/").agent(&AgentId::parse("a").unwrap(), &odd, None);
        assert_eq!((&odd["displayName"], odd.as_object().unwrap().len()), (&json!("a"), 4));
    }

    #[test]
    fn identifier_form_is_checked() {
        for (text, is_one) in [
            ("urn:air:h:a:b", true),
            ("urn:air:h.example:a", true),
            ("urn:air:h", false),
            ("urn:air:h:", false),
            ("urn:air::a", false),
            ("urn:air:h_x:a", false),
            ("urn:air:h:a/b", false),
            ("urn:air:h:ä", false),
            ("not-a-valid-ard-urn", false),
        ] {
            assert_eq!(is_identifier(text), is_one, "{text}");
        }
    }

    #[test]
    fn filter_is_or_within_and_across_terms() {
        let entry = entry("http://h/");
        for (said, matches) in [
            (Value::Null, true),
            (json!({}), true),
            (json!({ "type": [CARD] }), true),
            (json!({ "type": "application/mcp-server-card+json" }), false),
            (json!({ "tags": ["x", "git"], "version": ["1.2"] }), true),
            (json!({ "tags": ["git"], "version": ["2"] }), false),
            (json!({ "publisher": ["h"], "displayName": ["REVIEWER"] }), true),
            (json!({ "capabilities": [] }), false),
        ] {
            assert_eq!(EntryFilter::read(&said).unwrap().matches(&entry), matches, "{said}");
        }
        for said in [json!([]), json!({ "tags": [7] }), json!({ "tags": {} }), json!({ "x": "y" })]
        {
            assert!(EntryFilter::read(&said).is_err(), "{said}");
        }
        for (said, matches) in [
            ("", true),
            ("displayName = 'reviewer'", true),
            ("type = 'x,application/a2a-agent-card+json' AND publisherId=\"h\"", true),
            ("publisherId = 'other'", false),
        ] {
            assert_eq!(EntryFilter::read_list(said).unwrap().matches(&entry), matches, "{said}");
        }
        for said in ["type", "type = x", "createdAfter = '2026'", "type > 'a'", "= 'x'"] {
            assert!(EntryFilter::read_list(said).is_err(), "{said}");
        }
    }

    #[test]
    fn pages_are_disjoint_and_end() {
        let all: Vec<_> = (0..5).map(|n| json!(n)).collect();
        let (first, next) = page(all.clone(), 3, None).unwrap();
        let (second, end) = page(all.clone(), 3, next.as_deref()).unwrap();
        assert_eq!((first.len(), second.len(), end), (3, 2, None));
        for token in ["n18446744073709551615", "n9"] {
            assert_eq!(page(all.clone(), 3, Some(token)).unwrap(), (Vec::new(), None));
        }
        for token in ["x", "n", "n-1", "n99999999999999999999999"] {
            assert!(page(all.clone(), 3, Some(token)).is_err(), "{token}");
        }
    }

    #[test]
    fn order_and_score_are_bounded() {
        let mut all = vec![json!({ "identifier": "b" }), json!({ "identifier": "a" })];
        sort(&mut all, "").unwrap();
        assert_eq!(all[0]["identifier"], "a");
        sort(&mut all, "identifier DESC").unwrap();
        assert_eq!(all[0]["identifier"], "b");
        for order in ["size", "name UP", "name ASC x"] {
            assert!(sort(&mut all, order).is_err(), "{order}");
        }
        let scores = [(1.0, 1.0), (0.5, 2.0), (3.0, 2.0), (-1.0, 2.0), (0.0, 0.0), (f64::NAN, 1.0)];
        assert_eq!(scores.map(|(score, best)| percent(score, best)), [100, 25, 100, 0, 0, 0]);
    }
}
