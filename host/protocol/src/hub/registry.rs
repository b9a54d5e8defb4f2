//! Registry form of the agent search, `GET /agents`: clients search by skill and tags and receive
//! cards.

use crate::{
    hub::answer,
    member,
    model::{
        error::A2aError,
        operation::{AgentQuery, Answer, FoundAgents, MAX_FOUND},
    },
};
use serde_json::{Map, Value, json};

/// Header of a query from another registry. A registry that receives it queries no further ones
/// (one hop).
pub const HOPS: &str = "a2a-hub-hops";

/// Supported query parameters.
const QUERY_PARAMS: [&str; 9] =
    ["skill", "tags", "q", "version", "name", "inputModes", "outputModes", "limit", "allowOlder"];

/// Reads an agent query from a URL's query string, such as
/// `skill=*&tags=git,code&q=review+my+patch&version=>=2`. Lists are comma-separated.
///
/// # Errors
///
/// If a parameter is unknown or has an invalid value.
pub fn read_query(query: Option<&str>) -> Result<AgentQuery, A2aError> {
    let mut params = Map::new();
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        // Any URL may carry the A2A version.
        if value.trim().is_empty() || name.eq_ignore_ascii_case("A2A-Version") {
            continue;
        }
        let value = match &*name {
            "tags" | "inputModes" | "outputModes" => {
                let all = value.split(',').map(str::trim).filter(|one| !one.is_empty());
                let before = params.remove(&*name).and_then(|all| all.as_array().cloned());
                before.unwrap_or_default().into_iter().chain(all.map(|one| json!(one))).collect()
            }
            "limit" => {
                let number: Result<u64, _> = value.trim().parse();
                json!(number.map_err(|_| A2aError::invalid("limit", "must be a number"))?)
            }
            "allowOlder" => json!(match &*value {
                "true" | "1" => true,
                "false" | "0" => false,
                _ => return Err(A2aError::invalid("allowOlder", "must be `true` or `false`")),
            }),
            "skill" | "q" | "version" | "name" => json!(value),
            _ => {
                let why =
                    format!("agents are not found by this, but by {}", QUERY_PARAMS.join(", "));
                return Err(A2aError::invalid(&name, why));
            }
        };
        params.insert(name.into_owned(), value);
    }
    // Registry clients that set no limit expect all agents.
    params.entry("limit").or_insert_with(|| json!(MAX_FOUND));
    super::params::agent_query(Value::Object(params))
}

/// Writes the query string that [`read_query`] reads.
pub fn write_query(query: &AgentQuery) -> String {
    let mut written = form_urlencoded::Serializer::new(String::new());
    let AgentQuery { name, skill, text, version, .. } = query;
    for (member, value) in [("name", name), ("skill", skill), ("q", text), ("version", version)] {
        if let Some(value) = value {
            written.append_pair(member, value);
        }
    }
    let AgentQuery { tags, input_modes, output_modes, .. } = query;
    for (member, all) in
        [("tags", tags), ("inputModes", input_modes), ("outputModes", output_modes)]
    {
        if !all.is_empty() {
            written.append_pair(member, &all.join(","));
        }
    }
    if query.allow_older {
        written.append_pair("allowOlder", "true");
    }
    written.append_pair("limit", &query.limit.to_string());
    written.finish()
}

/// Writes the agents in registry form: `{"agents": [...]}`, where each item is a card with its URL,
/// `score` and `why`.
pub fn write(found: FoundAgents, url: &str) -> Value {
    let mut document = answer::write(Answer::Found(found), url);
    let agents = document.get_mut("agents").and_then(Value::as_array_mut);
    for agent in agents.into_iter().flatten() {
        let mut card = member::take(agent, "card");
        for name in ["score", "why", "aliases"] {
            if let Some(value) = agent.get_mut(name) {
                member::set(&mut card, name, value.take());
            }
        }
        *agent = card;
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        id::AgentId,
        operation::{FoundAgent, Why, WhyBy},
    };

    #[test]
    fn registry_query_string_is_read() {
        let of = |query: &str| read_query(Some(query)).map_err(|why| why.to_string());
        let words = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
        let every = of("skill=*").unwrap();
        assert_eq!((every.skill.as_deref(), every.limit), (Some("*"), MAX_FOUND));
        assert_eq!(of("skill=&tags=&q=").unwrap(), read_query(None).unwrap());
        let asked = of("skill=review&tags=git,%20code&tags=x&q=my+patch&version=%3E%3D2&limit=3&allowOlder=true&A2A-Version=1.0").unwrap();
        assert_eq!(asked.tags, words(&["git", "code", "x"]));
        assert_eq!(
            (asked.text.as_deref(), asked.version.as_deref()),
            (Some("my patch"), Some(">=2"))
        );
        assert_eq!((asked.limit, asked.allow_older), (3, true));
        assert_eq!(of(&write_query(&asked)).unwrap(), asked);
        insta::assert_snapshot!(
            ["skil=x", "limit=many", "limit=0", "allowOlder=yes"].map(|query| of(query).unwrap_err()).join("\n"),
            @r"
        `skil`: agents are not found by this, but by skill, tags, q, version, name, inputModes, outputModes, limit, allowOlder
        `limit`: must be a number
        `limit`: must be 1 to 1000
        `allowOlder`: must be `true` or `false`
        "
        );
    }

    #[test]
    fn registry_result_is_card_with_reasons() {
        let why = Why { by: WhyBy::Skill, what: "review".to_owned(), r#in: Vec::new() };
        let agent = FoundAgent {
            id: AgentId::parse("pr-reviewer").unwrap(),
            aliases: Vec::new(),
            card: json!({ "name": "Reviewer" }),
            score: 1.0,
            why: vec![why],
        };
        let found = FoundAgents { agents: vec![agent], ..FoundAgents::default() };
        insta::assert_snapshot!(write(found, "http://hub/"), @r#"{"agents":[{"name":"Reviewer","score":1.0,"url":"http://hub/agents/pr-reviewer","why":[{"by":"skill","what":"review"}]}]}"#);
    }
}
