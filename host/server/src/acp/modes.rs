//! The modes of a session: what the agent's programs may do without asking. The operator's setting is the most; a client chooses
//! that or less.

use serde_json::{Value, json};

/// Every mode, the least first: its id, which is the hub's own word for it (`permissions`), its name, and what it means.
const ALL: [(&str, &str, &str); 4] = [
    ("read-only", "Read only", "Reads, and is refused the rest without asking"),
    ("ask", "Ask", "Asks before it changes anything"),
    ("edit", "Edit", "Changes files in the working directory; asks for the rest"),
    ("full", "Full", "Does what it wants without asking"),
];

/// The modes that there are for an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Modes(&'static [(&'static str, &'static str, &'static str)]);

impl Modes {
    /// Those of an agent whose operator lets its programs do this without asking; none if nobody knows that word.
    pub(super) fn up_to(permissions: &str) -> Option<Self> {
        let most = ALL.iter().position(|(id, ..)| *id == permissions)?;
        Some(Self(ALL.get(..=most)?))
    }

    /// The mode of that id.
    pub(super) fn named(self, id: &str) -> Option<&'static str> {
        self.0.iter().map(|(id, ..)| *id).find(|known| *known == id)
    }

    /// The mode that a session has which chose this one, if any: one that there is not is the operator's own.
    pub(super) fn current(self, chosen: Option<&str>) -> &'static str {
        let most = self.0.last().map_or("ask", |(id, ..)| *id);
        chosen.and_then(|id| self.named(id)).unwrap_or(most)
    }

    /// As ACP tells them of a session that chose this one.
    pub(super) fn told(self, chosen: Option<&str>) -> Value {
        let available = self
            .0
            .iter()
            .map(|(id, name, what)| json!({ "id": id, "name": name, "description": what }));
        let available: Vec<_> = available.collect();
        json!({ "currentModeId": self.current(chosen), "availableModes": available })
    }

    /// The ids, for whoever named another one.
    pub(super) fn names(self) -> String {
        self.0.iter().map(|(id, ..)| *id).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_may_choose_what_its_operator_allows_or_less() {
        let names = |permissions| Modes::up_to(permissions).map(Modes::names);
        assert_eq!(names("full").as_deref(), Some("read-only, ask, edit, full"));
        assert_eq!(names("ask").as_deref(), Some("read-only, ask"));
        assert_eq!(names("read-only").as_deref(), Some("read-only"));
        assert_eq!(names("yolo"), None);
        let ask = Modes::up_to("ask").unwrap();
        let current = |chosen| ask.current(chosen);
        assert_eq!((current(None), current(Some("read-only"))), ("ask", "read-only"));
        assert_eq!(current(Some("full")), "ask", "the operator took it away");
        let told = ask.told(Some("read-only"));
        assert_eq!(told["currentModeId"], "read-only");
        assert_eq!(told["availableModes"][1]["id"], "ask");
    }
}
