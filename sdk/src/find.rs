//! Finding other agents by what they can do.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::host::Host as _;
use crate::{Context, Failure};

/// What an agent must be like to be found; all that is said must hold. A text alone says what it is to do, in any words.
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
    /// Any agent.
    pub fn new() -> Self {
        Self::default()
    }

    /// What it is to do, in any words: who fits them best comes first.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.query = Some(text.into());
        self
    }

    /// Its id, one of its aliases, or its card's name; what nobody is called finds whoever has the nearest name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The id of a skill that it has.
    pub fn skill(mut self, id: impl Into<String>) -> Self {
        self.skill = Some(id.into());
        self
    }

    /// A tag that its skills have; one of several calls each.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// Which versions will do, such as `2`, `>=1.4` or `1.*`. If there are only others, finding is refused and names them.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Takes agents of an older version if there is no other; the answer says so.
    pub fn allow_older(mut self) -> Self {
        self.allow_older = true;
        self
    }

    /// A media type that it takes, such as `image/png`.
    pub fn input(mut self, media_type: impl Into<String>) -> Self {
        self.input_modes.push(media_type.into());
        self
    }

    /// A media type that it answers with.
    pub fn output(mut self, media_type: impl Into<String>) -> Self {
        self.output_modes.push(media_type.into());
        self
    }

    /// How many are told at most; 10 unless said.
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

/// The agents that were found.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FoundAgents {
    /// Those that fit, the best first.
    pub agents: Vec<FoundAgent>,
    /// Whether they are older than what was asked for.
    pub older: bool,
    /// The name that was probably meant, where nobody has the one that was asked for.
    pub did_you_mean: Option<String>,
}

/// An agent that was found.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FoundAgent {
    /// What it is called by.
    pub id: String,
    /// Its card: another's text.
    pub card: Value,
    /// How well it fits; more is better.
    pub score: f64,
    /// Why it was found.
    pub why: Vec<FoundBy>,
}

/// One reason for which an agent was found.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FoundBy {
    /// What was compared: `id`, `alias`, `name`, `nearName`, `skill`, `tag`, `inputMode`, `outputMode`, `version`, `olderVersion`,
    /// `word` or `meaning`.
    pub by: String,
    /// What fitted, as it was asked for.
    pub what: String,
}

impl Context {
    /// Those of the agents that this one may call, and that are not known to be unwell, which fit a question; the best first.
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
    fn a_question_is_told_as_the_hub_reads_it() {
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
