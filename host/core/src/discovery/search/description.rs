//! Searchable description of an agent.

use a2a_hub_protocol::card::{AgentCard, Skill, is_in_range};
use std::fmt::Write as _;

/// Maximum number of skills that are read from a card; an agent is not found by further ones.
const MAX_SKILLS: usize = 200;

/// Maximum number of tags, and of examples, that are read from a skill.
const MAX_LISTED: usize = 50;

/// Maximum size of the text that is embedded, in bytes: models truncate after a few hundred words.
const MAX_EMBEDDED: usize = 4_000;

/// Searchable description of an agent: its names, and the contents of its card.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    /// Agent id.
    pub id: String,
    /// Aliases of the agent.
    pub aliases: Vec<String>,
    /// Name in its card.
    pub name: String,
    /// Description in its card.
    pub description: String,
    /// Version of the agent, from its card.
    pub version: String,
    /// Skills of the agent.
    pub skills: Vec<DescribedSkill>,
    /// Accepted media types; empty for any.
    pub input_modes: Vec<String>,
    /// Media types of its output; empty for any.
    pub output_modes: Vec<String>,
}

/// Searchable description of a skill.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribedSkill {
    /// Skill id.
    pub id: String,
    /// Name of the skill.
    pub name: String,
    /// Description of the skill.
    pub description: String,
    /// Tags of the skill.
    pub tags: Vec<String>,
    /// Example requests.
    pub examples: Vec<String>,
}

impl Description {
    /// Description of the agent `id` with this card.
    pub fn new(id: &str, aliases: Vec<String>, card: &AgentCard) -> Self {
        let owned =
            |modes: Vec<&str>| modes.into_iter().take(MAX_LISTED).map(str::to_owned).collect();
        Self {
            id: id.to_owned(),
            aliases,
            name: card.name.clone(),
            description: card.description.clone(),
            version: card.version.clone(),
            skills: card.skills.iter().take(MAX_SKILLS).map(DescribedSkill::new).collect(),
            input_modes: owned(card.input_modes()),
            output_modes: owned(card.output_modes()),
        }
    }

    /// All names of the agent.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let primary = [self.id.as_str(), self.name.as_str()];
        primary.into_iter().chain(self.aliases.iter().map(String::as_str))
    }

    /// True if its skill has this `id`; the hub's own card names it `agent/skill`.
    pub(super) fn is_skill(&self, skill: &DescribedSkill, id: &str) -> bool {
        let local_id = id.strip_prefix(self.id.as_str()).and_then(|rest| rest.strip_prefix('/'));
        is_same(&skill.id, local_id.unwrap_or(id))
    }

    /// True if it accepts this media type.
    pub(super) fn takes(&self, mode: &str) -> bool {
        has_mode(&self.input_modes, mode)
    }

    /// True if it outputs this media type.
    pub(super) fn answers(&self, mode: &str) -> bool {
        has_mode(&self.output_modes, mode)
    }

    /// Text for an embedding: the contents of its card in some lines.
    pub fn text(&self) -> String {
        let mut text = format!("{}: {}", self.name, self.description);
        for skill in &self.skills {
            // Writing into a `String` never fails.
            let _ =
                write!(text, "\n{}: {} ({})", skill.name, skill.description, skill.tags.join(", "));
            for example in &skill.examples {
                let _ = write!(text, "\n- {example}");
            }
            if text.len() > MAX_EMBEDDED {
                break;
            }
        }
        text.truncate(text.floor_char_boundary(MAX_EMBEDDED));
        text
    }
}

impl DescribedSkill {
    fn new(skill: &Skill) -> Self {
        let examples = skill.other.get("examples").and_then(|all| all.as_array());
        let examples = examples.into_iter().flatten().filter_map(|one| one.as_str());
        Self {
            id: skill.id.clone(),
            name: skill.name.clone(),
            description: skill.description.clone(),
            tags: skill.tags.iter().take(MAX_LISTED).cloned().collect(),
            examples: examples.take(MAX_LISTED).map(str::to_owned).collect(),
        }
    }
}

/// True if two texts are equal except for case.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other.trim())
        || (!one.is_ascii() && one.to_lowercase() == other.trim().to_lowercase())
}

/// True if the media types of a card include `requested`. An empty list includes all.
fn has_mode(modes: &[String], requested: &str) -> bool {
    let holds = |mode: &String| is_in_range(requested, mode) || is_in_range(mode, requested);
    modes.is_empty() || modes.iter().any(holds)
}
