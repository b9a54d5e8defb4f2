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

/// Result of an agent search: the answer to `hub/agents/find`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundAgents {
    /// Matching agents, best first; equal scores are ordered by id.
    pub agents: Vec<FoundAgent>,
    /// True if the agents' versions are older than requested, which `allowOlder` permits.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub older: bool,
    /// Existing name that was probably meant, if no agent has the requested name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub did_you_mean: Option<String>,
    /// Matching agents that registries list, best first. They are not agents of this hub: a client
    /// can call one here after the operator adds it as `[remote.<id>]` and trusts its card.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<FoundElsewhere>,
    /// Registries that gave no answer, with reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unasked: Vec<UnaskedRegistry>,
    /// Reason why the hub compared words only, although its operator configured embeddings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Agent that matches a search.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundAgent {
    /// Id of the agent on this hub.
    pub id: AgentId,
    /// Aliases of the agent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// A2A card of the agent, with the URL of the agent's own endpoint.
    pub card: Value,
    /// Score of the match: higher is better; comparable within one answer only.
    pub score: f64,
    /// Reasons for the match.
    pub why: Vec<Why>,
}

/// Matching agent that a registry lists.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundElsewhere {
    /// Name of the registry in the hub's configuration.
    pub registry: AgentId,
    /// URL of the agent's endpoint, as the registry states it.
    pub url: String,
    /// Id under which clients can call the agent on this hub; absent if this hub does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Name, description, version and skills from the agent's card, as plain lines.
    pub card: Value,
    /// Score of the match: higher is better; comparable among the registries' agents only.
    pub score: f64,
    /// Reasons for the match.
    pub why: Vec<Why>,
}

/// Registry that gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnaskedRegistry {
    /// Name of the registry in the hub's configuration.
    pub registry: AgentId,
    /// Reason, for people.
    pub why: String,
}

/// Reason for which an agent matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Why {
    /// Compared property.
    pub by: WhyBy,
    /// Value that matched, such as an alias, a tag or a word, as the query has it.
    pub what: String,
    /// Parts of the card that contain the word; empty for other properties.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub r#in: Vec<CardPart>,
}

/// Property of an agent that matches a query.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum WhyBy {
    /// The agent's id is the requested name.
    Id,
    /// An alias of the agent is the requested name.
    Alias,
    /// The name on the agent's card is the requested name.
    Name,
    /// The agent's name is the most similar one to a requested name that no agent has.
    NearName,
    /// The agent has the skill.
    Skill,
    /// The agent has the tag.
    Tag,
    /// The agent accepts the media type.
    InputMode,
    /// The agent produces the media type.
    OutputMode,
    /// The agent's version meets the requirement.
    Version,
    /// The agent's version is older than required.
    OlderVersion,
    /// The agent's card contains the word.
    Word,
    /// The agent's card has a similar meaning, by its embedding.
    Meaning,
}

/// Part of a card that is searched for words.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum CardPart {
    /// Id, aliases and card name of the agent.
    Name,
    /// Ids and names of the agent's skills.
    Skills,
    /// Tags of the agent's skills.
    Tags,
    /// Descriptions of the agent and of its skills.
    Description,
    /// Examples of the agent's skills.
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
