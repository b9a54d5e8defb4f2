//! Session modes: the actions that the agent's programs may take without asking. A client may
//! choose at most the operator's setting.

use serde_json::{Value, json};

/// All modes from least to most: id (the hub's `permissions` value), name and description.
const ALL: [(&str, &str, &str); 4] = [
    ("read-only", "Read only", "Reads, and is refused the rest without asking"),
    ("ask", "Ask", "Asks before it changes anything"),
    ("edit", "Edit", "Changes files in the working directory; asks for the rest"),
    ("full", "Full", "Does what it wants without asking"),
];

/// Modes available for an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Modes(&'static [(&'static str, &'static str, &'static str)]);

impl Modes {
    /// Modes up to the operator's setting; `None` if the setting is unknown.
    pub(super) fn up_to(permissions: &str) -> Option<Self> {
        let max = ALL.iter().position(|(id, ..)| *id == permissions)?;
        Some(Self(ALL.get(..=max)?))
    }

    /// The mode with this id.
    pub(super) fn named(self, id: &str) -> Option<&'static str> {
        self.0.iter().map(|(id, ..)| *id).find(|known| *known == id)
    }

    /// Mode of a session with this choice. An unavailable choice yields the operator's setting.
    pub(super) fn current(self, chosen: Option<&str>) -> &'static str {
        let max = self.0.last().map_or("ask", |(id, ..)| *id);
        chosen.and_then(|id| self.named(id)).unwrap_or(max)
    }

    /// ACP's description of the modes, for a session with this choice.
    pub(super) fn to_json(self, chosen: Option<&str>) -> Value {
        let available = self.0.iter().map(
            |(id, name, description)| json!({ "id": id, "name": name, "description": description }),
        );
        let available: Vec<_> = available.collect();
        json!({ "currentModeId": self.current(chosen), "availableModes": available })
    }

    /// Ids, names and descriptions, from the least to the most.
    pub(super) fn all(self) -> &'static [(&'static str, &'static str, &'static str)] {
        self.0
    }

    /// Comma-separated ids, for errors.
    pub(super) fn names(self) -> String {
        self.0.iter().map(|(id, ..)| *id).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_mode_is_limited_by_operator() {
        let names = |permissions| Modes::up_to(permissions).map(Modes::names);
        assert_eq!(names("full").as_deref(), Some("read-only, ask, edit, full"));
        assert_eq!(names("ask").as_deref(), Some("read-only, ask"));
        assert_eq!(names("read-only").as_deref(), Some("read-only"));
        assert_eq!(names("yolo"), None);
        let ask = Modes::up_to("ask").unwrap();
        let current = |chosen| ask.current(chosen);
        assert_eq!((current(None), current(Some("read-only"))), ("ask", "read-only"));
        assert_eq!(current(Some("full")), "ask", "the operator took it away");
        let told = ask.to_json(Some("read-only"));
        assert_eq!(told["currentModeId"], "read-only");
        assert_eq!(told["availableModes"][1]["id"], "ask");
    }
}
