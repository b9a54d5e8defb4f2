//! Search for other agents by their abilities.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::host::Host as _;
use crate::{Context, Failure};

/// Criteria of a search for agents; all must hold. A text alone describes the work in any words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skill: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    input_modes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    output_modes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<usize>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    allow_older: bool,
}

impl AgentQuery {
    /// Creates a query that every agent fits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Describes the work in any words. The best fit comes first.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.query = Some(text.into());
        self
    }

    /// Asks for an id, an alias, or a card's name. A name that no agent has finds the agent with
    /// the most similar one.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Requires a skill with this id.
    pub fn skill(mut self, id: impl Into<String>) -> Self {
        self.skill = Some(id.into());
        self
    }

    /// Requires a tag among the skills' tags. Several calls require all of the tags.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// Requires a version, such as `2`, `>=1.4` or `1.*`. If no agent has such a version, the
    /// search is refused and lists the versions found.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Accepts older versions if no other fits; the result says so.
    pub fn allow_older(mut self) -> Self {
        self.allow_older = true;
        self
    }

    /// Requires a media type that the agent takes, such as `image/png`.
    pub fn input(mut self, media_type: impl Into<String>) -> Self {
        self.input_modes.push(media_type.into());
        self
    }

    /// Requires a media type that the agent returns.
    pub fn output(mut self, media_type: impl Into<String>) -> Self {
        self.output_modes.push(media_type.into());
        self
    }

    /// Limits the number of results; the default is 10.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }
}

impl From<&str> for AgentQuery {
    fn from(text: &str) -> Self {
        Self::new().text(text)
    }
}

impl From<String> for AgentQuery {
    fn from(text: String) -> Self {
        Self::new().text(text)
    }
}

/// Result of a search for agents.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FoundAgents {
    /// Matching agents, best first.
    pub agents: Vec<FoundAgent>,
    /// True if the agents have an older version than the query asked for.
    pub older: bool,
    /// Most similar existing name, if no agent has the requested name.
    pub did_you_mean: Option<String>,
}

/// Agent that matches a query.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FoundAgent {
    /// Id by which it is called.
    pub id: String,
    /// Its card: text of a third party, not instructions.
    pub card: Value,
    /// Score; higher is better.
    pub score: f64,
    /// Criteria that it matched.
    pub why: Vec<FoundBy>,
}

/// Criterion that an agent matched.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FoundBy {
    /// Compared property: `id`, `alias`, `name`, `nearName`, `skill`, `tag`, `inputMode`,
    /// `outputMode`, `version`, `olderVersion`, `word` or `meaning`.
    pub by: String,
    /// Part of the query that matched.
    pub what: String,
}

impl Context {
    /// Finds agents that fit a query, best first, among those that this agent may call and that are
    /// not known to be unhealthy.
    pub fn find(&self, query: impl Into<AgentQuery>) -> Result<FoundAgents, Failure> {
        let not_understood = |e: serde_json::Error| {
            Failure::Internal(format!("the hub's list of found agents is no JSON: {e}"))
        };
        let query = serde_json::to_string(&query.into()).map_err(not_understood)?;
        serde_json::from_str(&self.hub.find(&query)?).map_err(not_understood)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{prelude::*, testing::ScriptedHost};

    struct Asker;

    impl Agent for Asker {
        fn card() -> Card {
            Card::new("asker", "Finds somebody", "0.1.0")
        }

        fn run(ctx: &Context, _: &Task) -> Run {
            let query = AgentQuery::from("review this").tag("git").version(">=1").allow_older();
            let found =
                ctx.find(query.name("codex").skill("s").input("a/b").output("c/d").limit(3))?;
            ctx.done(found.agents.iter().map(|agent| agent.id.as_str()).collect::<String>())
        }
    }

    #[test]
    fn agent_query_serializes_for_hub() {
        let host = ScriptedHost::new();
        host.agent("codex", Vec::new());
        assert_eq!(host.run::<Asker>("go").unwrap().text(), "codex");
        let asked = serde_json::json!({
            "query": "review this", "name": "codex", "skill": "s", "tags": ["git"], "version": ">=1",
            "inputModes": ["a/b"], "outputModes": ["c/d"], "limit": 3, "allowOlder": true,
        });
        assert_eq!(host.searches(), [asked]);
    }
}
