//! Five-step protocol in cards: its endpoints and skills. Submissions and errors are in the crate
//! `a2a-hub-server`.

use crate::{
    member,
    model::card::{AgentCard, Skill},
};
use serde_json::{Map, Value, json};

/// Last path segment of the endpoint for submissions.
pub const SUBMIT: &str = "submit_task";

/// Path segment before the task's id in the endpoint for updates.
pub const UPDATES: &str = "task_updates";

/// URI of the protocol as an extension of A2A 1.0, whose cards have no member for endpoints outside
/// of A2A.
pub const EXTENSION: &str = "urn:a2a-hub:five-step:v1";

/// Card member with both endpoints.
pub const ENDPOINTS: &str = "endpoints";

/// Skill id of an agent whose card has no skills.
pub const DEFAULT_SKILL: &str = "default";

impl AgentCard {
    /// True unless the card lists input types without JSON.
    pub fn takes_json(&self) -> bool {
        let modes = self.input_modes();
        modes.is_empty() || self.takes("application/json")
    }

    /// Ids of the card's skills, or the default skill's id if it has none.
    pub fn skill_ids(&self) -> Vec<&str> {
        let named: Vec<_> = self.skills.iter().map(|skill| skill.id.as_str()).collect();
        if named.is_empty() { vec![DEFAULT_SKILL] } else { named }
    }

    /// Skill with this id; `None` for the default skill, which is not in the card.
    pub fn find_skill(&self, id: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.id == id)
    }
}

/// Both endpoints of the hub or an agent; `base` is its URL without a trailing slash.
pub fn endpoints(base: &str) -> Value {
    json!({ SUBMIT: format!("{base}/{SUBMIT}"), UPDATES: format!("{base}/{UPDATES}/{{task_id}}") })
}

/// The protocol as an extension in the capabilities of an A2A 1.0 card, which has no members for
/// the endpoints and the input schemas.
pub fn extension(base: &str, card: &AgentCard) -> Value {
    let mut params = endpoints(base);
    let schemas: Map<_, _> = card
        .skills
        .iter()
        .filter_map(|skill| Some((skill.id.clone(), skill.input_schema()?.clone())))
        .collect();
    if !schemas.is_empty() {
        member::set(&mut params, "inputSchemas", schemas);
    }
    let description = "Tasks may be submitted by the five-step protocol as well";
    json!({ "uri": EXTENSION, "description": description, "params": params })
}
