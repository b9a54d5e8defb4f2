//! Agent search: the query, the matches, and the reasons for each match.

use crate::model::id::AgentId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Search criteria for agents, all of which must match. An empty query matches every agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentQuery {
    /// Id, alias or card name of the agent. An unknown name matches the agent with the most similar
    /// name.
    pub name: Option<String>,
    /// Id of a skill; `*` matches any.
    pub skill: Option<String>,
    /// Tags that the agent's skills must have, all of them.
    pub tags: Vec<String>,
    /// Description of the work in free text; the best matches come first.
    pub text: Option<String>,
    /// Version requirement in Cargo's syntax: `2`, `>=1.4`, `^2.1`, `1.*`.
    pub version: Option<String>,
    /// Media types that the agent must accept.
    pub input_modes: Vec<String>,
    /// Media types that the agent must produce.
    pub output_modes: Vec<String>,
    /// Maximum number of results.
    pub limit: usize,
    /// True to accept older versions if no agent matches the requirement.
    pub allow_older: bool,
    /// True to leave out the registries that the operator configured.
    pub local_only: bool,
}

impl Default for AgentQuery {
    fn default() -> Self {
        let (name, skill, text, version) = Default::default();
        let (tags, input_modes, output_modes) = Default::default();
        let (limit, allow_older, local_only) = (DEFAULT_FOUND, false, false);
        Self {
            name,
            skill,
            tags,
            text,
            version,
            input_modes,
            output_modes,
            limit,
            allow_older,
            local_only,
        }
    }
}

/// Default number of results.
pub const DEFAULT_FOUND: usize = 10;

/// Maximum number of results.
pub const MAX_FOUND: usize = 1_000;

/// The agents that were found: the answer to `hub/agents/find`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundAgents {
    /// Those that fit, the best first; of those that fit as well as one another, by id.
    pub agents: Vec<FoundAgent>,
    /// Whether they are of an older version than was asked for, which `allowOlder` allows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub older: bool,
    /// The name that was probably meant, where nobody has the one that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub did_you_mean: Option<String>,
    /// Agents that registries elsewhere list and that fit, the best first. They are not this hub's: one can be called here once the
    /// operator names it in `[remote.<id>]`, and trusts its card.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<FoundElsewhere>,
    /// Registries that told of nobody, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unasked: Vec<UnaskedRegistry>,
    /// What kept the hub from comparing by meaning, as its operator set: words were compared instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// An agent that was found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundAgent {
    /// The agent's id on this hub.
    pub id: AgentId,
    /// What it is called besides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// The agent's card, with the URL of the agent's own endpoint.
    pub card: Value,
    /// How well it fits: more is better, and numbers of one answer alone can be compared.
    pub score: f64,
    /// Why it was found.
    pub why: Vec<Why>,
}

/// An agent that a registry elsewhere lists.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundElsewhere {
    /// The registry that lists it, as the operator calls that.
    pub registry: AgentId,
    /// The URL of the agent's endpoint, by the word of that registry.
    pub url: String,
    /// The id under which the operator has it on this hub, if it is there: by that it can be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// What its card says in plain lines: name, description, version and skills.
    pub card: Value,
    /// How well it fits, among those that registries list.
    pub score: f64,
    /// Why it was found.
    pub why: Vec<Why>,
}

/// A registry that told of nobody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnaskedRegistry {
    /// The registry, as the operator calls it.
    pub registry: AgentId,
    /// Why, for people.
    pub why: String,
}

/// One reason for which an agent was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Why {
    /// What was compared.
    pub by: WhyBy,
    /// What fitted: the alias, the tag, the word, as it was asked for.
    pub what: String,
    /// The parts of the card that it was found in, for words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub r#in: Vec<CardPart>,
}

/// What an agent was found by.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum WhyBy {
    /// Its id is the name that was asked for.
    Id,
    /// One of its aliases is.
    Alias,
    /// Its card's name is.
    Name,
    /// Its name is the nearest one to what was asked for, which nobody is called.
    NearName,
    /// It has the skill.
    Skill,
    /// It has the tag.
    Tag,
    /// It takes the media type.
    InputMode,
    /// It answers with the media type.
    OutputMode,
    /// Its version will do.
    Version,
    /// Its version is older than what was asked for.
    OlderVersion,
    /// Its card has the word.
    Word,
    /// Its card means something similar, by an embedding.
    Meaning,
}

/// A part of a card that is searched for words.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum CardPart {
    /// Its id, its aliases and its card's name.
    Name,
    /// The ids and names of its skills.
    Skills,
    /// The tags of its skills.
    Tags,
    /// What it, or one of its skills, is described as.
    Description,
    /// What its skills name as examples.
    Examples,
}

impl CardPart {
    /// All parts.
    pub const ALL: [Self; 5] =
        [Self::Name, Self::Skills, Self::Tags, Self::Description, Self::Examples];

    /// Name of the part, for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Skills => "skills",
            Self::Tags => "tags",
            Self::Description => "description",
            Self::Examples => "examples",
        }
    }
}
