//! What is searched of an agent.

use a2a_hub_protocol::card::{AgentCard, Skill, is_in_range};
use std::fmt::Write as _;

/// How many skills of a card are read: an agent that can do more than these is not found by the others.
const MAX_SKILLS: usize = 200;

/// How many tags, and how many examples, of a skill are read.
const MAX_LISTED: usize = 50;

/// How much of a card is embedded, in bytes: models cut off after a few hundred words.
const MAX_EMBEDDED: usize = 4_000;

/// An agent as it is searched: what it is called, and what its card says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    /// Its id.
    pub id: String,
    /// What it is called besides.
    pub aliases: Vec<String>,
    /// Its card's name.
    pub name: String,
    /// What its card says that it is.
    pub description: String,
    /// Its own version, as its card has it.
    pub version: String,
    /// What it can do.
    pub skills: Vec<DescribedSkill>,
    /// The media types that it says it takes; whatever there is, if it names none.
    pub input_modes: Vec<String>,
    /// The media types that it says it answers with; whatever there is, if it names none.
    pub output_modes: Vec<String>,
}

/// A skill as it is searched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribedSkill {
    /// The skill's id.
    pub id: String,
    /// The skill's name.
    pub name: String,
    /// What the skill does.
    pub description: String,
    /// Words to find the skill by.
    pub tags: Vec<String>,
    /// What people may say to the agent that has it.
    pub examples: Vec<String>,
}

impl Description {
    /// The agent called `id` that has this card.
    pub fn of(id: &str, aliases: Vec<String>, card: &AgentCard) -> Self {
        let owned =
            |modes: Vec<&str>| modes.into_iter().take(MAX_LISTED).map(str::to_owned).collect();
        Self {
            id: id.to_owned(),
            aliases,
            name: card.name.clone(),
            description: card.description.clone(),
            version: card.version.clone(),
            skills: card.skills.iter().take(MAX_SKILLS).map(DescribedSkill::of).collect(),
            input_modes: owned(card.input_modes()),
            output_modes: owned(card.output_modes()),
        }
    }

    /// All that it is called.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let own = [self.id.as_str(), self.name.as_str()];
        own.into_iter().chain(self.aliases.iter().map(String::as_str))
    }

    /// Whether a skill of its own is called `id`; the hub's own card names it `agent/skill`.
    pub(super) fn is_skill(&self, skill: &DescribedSkill, id: &str) -> bool {
        let own = id.strip_prefix(self.id.as_str()).and_then(|rest| rest.strip_prefix('/'));
        is_same(&skill.id, own.unwrap_or(id))
    }

    /// Whether it takes this media type.
    pub(super) fn takes(&self, mode: &str) -> bool {
        has_mode(&self.input_modes, mode)
    }

    /// Whether it answers with this media type.
    pub(super) fn answers(&self, mode: &str) -> bool {
        has_mode(&self.output_modes, mode)
    }

    /// What an embedding is made of: what its card says, in some lines.
    pub fn text(&self) -> String {
        let mut text = format!("{}: {}", self.name, self.description);
        for skill in &self.skills {
            // Writing into a text never fails.
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
    fn of(skill: &Skill) -> Self {
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

/// Whether two texts are the same but for upper and lower case.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other.trim())
        || (!one.is_ascii() && one.to_lowercase() == other.trim().to_lowercase())
}

/// Whether one of the media types that a card names holds `asked`. A card that names none takes and answers whatever there is.
fn has_mode(modes: &[String], asked: &str) -> bool {
    let holds = |mode: &String| is_in_range(asked, mode) || is_in_range(mode, asked);
    modes.is_empty() || modes.iter().any(holds)
}
