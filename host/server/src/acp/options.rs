//! Options of a session that a client may set: the agent, its mode, its model and its effort.

use super::{modes::Modes, wire::Refusal};
use a2a_hub_protocol::{
    card::AgentCard,
    id::AgentId,
    operation::{AgentChoice, AgentInfo},
};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Value of an option that leaves the decision to the agent's program.
const DEFAULT: &str = "default";

/// Maximum number of agents that a client may choose from.
const MAX_AGENTS: usize = 200;

/// Options that the client set; `None` is the default of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) agent: Option<AgentId>,
    pub(super) mode: Option<&'static str>,
    pub(super) model: Option<String>,
    pub(super) effort: Option<String>,
}

/// Options that exist for a session at present.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionOptions {
    /// Agent of the session's next prompt; `None` if the hub has no default agent.
    pub(super) agent: Option<AgentId>,
    /// Ids and names of all agents.
    pub(super) agents: Vec<(AgentId, String)>,
    /// Modes of the agent; `None` if it runs no programs.
    pub(super) modes: Option<Modes>,
    pub(super) models: Option<AgentChoice>,
    pub(super) efforts: Option<AgentChoice>,
    /// Card of the agent; `None` if it cannot be read.
    pub(super) card: Option<AgentCard>,
}

/// A select option: id, category, name, description, current value and values with their names and
/// descriptions.
struct Select<'a> {
    id: &'static str,
    category: &'static str,
    name: &'static str,
    description: &'static str,
    current: &'a str,
    values: Vec<(&'a str, &'a str, Option<&'a str>)>,
}

impl SessionOptions {
    /// Options of a session with `agent`, out of these agents.
    pub(super) fn new(agent: Option<AgentId>, all: Vec<AgentInfo>) -> Self {
        let mut offer = Self { agent, ..Self::default() };
        for info in all {
            if offer.agent.as_ref() == Some(&info.id) {
                offer.modes = info.permissions.as_deref().and_then(Modes::up_to);
                (offer.models, offer.efforts) = (info.models, info.efforts);
                offer.card = serde_json::from_value(info.card).ok();
            }
            if !info.unlisted || offer.agent.as_ref() == Some(&info.id) {
                offer.agents.push((info.id, info.name));
            }
        }
        offer.agents.truncate(MAX_AGENTS);
        tell_apart(&mut offer.agents);
        offer
    }

    /// Part of the client's choices that is still available.
    pub(super) fn limited(&self, chosen: &Chosen) -> Chosen {
        let listed = |choice: &Option<AgentChoice>, value: &Option<String>| {
            let values = choice.as_ref().map(|choice| &choice.values);
            value.clone().filter(|value| values.is_some_and(|values| values.contains(value)))
        };
        Chosen {
            agent: chosen.agent.clone(),
            mode: chosen.mode.and_then(|mode| Some(self.modes?.current(Some(mode)))),
            model: listed(&self.models, &chosen.model),
            effort: listed(&self.efforts, &chosen.effort),
        }
    }

    /// Sets an option other than the agent.
    pub(super) fn set(&self, chosen: &mut Chosen, id: &str, value: &str) -> Result<(), Refusal> {
        match id {
            "mode" => chosen.mode = Some(self.mode(value)?),
            "model" => chosen.model = named(id, self.models.as_ref(), value)?,
            "effort" => chosen.effort = named(id, self.efforts.as_ref(), value)?,
            _ => return Err(self.unknown(id)),
        }
        Ok(())
    }

    /// The mode with this id.
    pub(super) fn mode(&self, id: &str) -> Result<&'static str, Refusal> {
        let Some(modes) = self.modes else {
            return Err(Refusal::params("this agent has no modes"));
        };
        modes.named(id).ok_or_else(|| {
            let why = format!(
                "no mode is called `{id}`; there are {}, for the operator's `permissions` of this agent are the most",
                modes.names()
            );
            Refusal::params(why)
        })
    }

    /// The agent with this id.
    pub(super) fn agent(&self, id: &str) -> Result<AgentId, Refusal> {
        let known = self.agents.iter().map(|(known, _)| known).find(|known| known.as_str() == id);
        known.cloned().ok_or_else(|| {
            let names: Vec<_> = self.agents.iter().map(|(known, _)| known.as_str()).collect();
            Refusal::params(format!("no agent is called `{id}`; there are {}", names.join(", ")))
        })
    }

    fn unknown(&self, id: &str) -> Refusal {
        let names: Vec<_> = self.selects(&Chosen::default()).iter().map(|it| it.id).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        Refusal::params(format!("no option of this session is called `{id}`; there are: {names}"))
    }

    /// ACP's description of the options, for a session with these choices.
    pub(super) fn described(&self, chosen: &Chosen) -> Value {
        let option = |select: Select<'_>| {
            let value = |(value, name, description): (&str, &str, Option<&str>)| {
                let mut value = json!({ "value": value, "name": name });
                if let (Some(description), Some(value)) = (description, value.as_object_mut()) {
                    value.insert("description".to_owned(), description.into());
                }
                value
            };
            json!({
                "type": "select",
                "id": select.id,
                "category": select.category,
                "name": select.name,
                "description": select.description,
                "currentValue": select.current,
                "options": select.values.into_iter().map(value).collect::<Vec<_>>(),
            })
        };
        self.selects(chosen).into_iter().map(option).collect()
    }

    fn selects<'a>(&'a self, chosen: &'a Chosen) -> Vec<Select<'a>> {
        let agent = self.agent.as_ref().map(|current| {
            let current = current.as_str();
            let named = self.agents.iter().map(|(id, name)| (id.as_str(), name.as_str(), None));
            let mut values: Vec<_> = named.collect();
            // The list may be cut.
            if values.iter().all(|(id, ..)| *id != current) {
                values.insert(0, (current, current, None));
            }
            let description = "Agent of the hub that gets the next prompt";
            Select { id: "agent", category: "_agent", name: "Agent", description, current, values }
        });
        let mode = self.modes.map(|modes| Select {
            id: "mode",
            category: "mode",
            name: "Mode",
            description: "What the agent's programs may do without asking",
            current: modes.current(chosen.mode),
            values: modes
                .all()
                .iter()
                .map(|(id, name, description)| (*id, *name, Some(*description)))
                .collect(),
        });
        let model = self.models.as_ref().map(|choice| Select {
            id: "model",
            category: "model",
            name: "Model",
            description: "Model, out of the operator's list for this agent",
            current: current(choice, chosen.model.as_deref()),
            values: values(choice),
        });
        let effort = self.efforts.as_ref().map(|choice| Select {
            id: "effort",
            category: "thought_level",
            name: "Effort",
            description: "How hard the model is to think, out of the operator's list for this agent",
            current: current(choice, chosen.effort.as_deref()),
            values: values(choice),
        });
        [agent, mode, model, effort].into_iter().flatten().collect()
    }
}

/// Adds the ids to the names that several agents have, as editors show the names alone. Upper and
/// lower case count as the same.
fn tell_apart(agents: &mut [(AgentId, String)]) {
    let mut count = HashMap::<_, usize>::new();
    let same = |name: &str| name.trim().to_lowercase();
    for (_, name) in agents.iter() {
        *count.entry(same(name)).or_default() += 1;
    }
    for (id, name) in agents {
        if name.trim().is_empty() {
            id.as_str().clone_into(name);
        } else if count.get(&same(name)).is_some_and(|count| *count > 1) {
            *name = format!("{} ({id})", name.trim());
        }
    }
}

/// Value of an option without a choice of the client.
fn default(choice: &AgentChoice) -> &str {
    choice.default.as_deref().unwrap_or(DEFAULT)
}

fn current<'a>(choice: &'a AgentChoice, chosen: Option<&'a str>) -> &'a str {
    chosen.unwrap_or_else(|| default(choice))
}

/// Values of an option, with its default first if the list lacks it.
fn values(choice: &AgentChoice) -> Vec<(&str, &str, Option<&str>)> {
    let listed = choice.values.iter().map(String::as_str);
    let default = Some(default(choice)).filter(|it| choice.values.iter().all(|value| value != it));
    default.into_iter().chain(listed).map(|value| (value, value, None)).collect()
}

/// Choice of this value; `None` for the default, which the client does not name.
fn named(id: &str, choice: Option<&AgentChoice>, value: &str) -> Result<Option<String>, Refusal> {
    let Some(choice) = choice else {
        let why = format!(
            "the operator lists no values of `{id}` for this agent; `agents.<id>.settings.{id}s` lists them"
        );
        return Err(Refusal::params(why));
    };
    if value == default(choice) {
        return Ok(None);
    }
    if choice.values.iter().any(|known| known == value) {
        return Ok(Some(value.to_owned()));
    }
    let known: Vec<_> = values(choice).into_iter().map(|(value, ..)| value).collect();
    Err(Refusal::params(format!("`{id}` takes no `{value}`; there are {}", known.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer() -> SessionOptions {
        let id = |id: &str| AgentId::parse(id).unwrap();
        SessionOptions {
            agent: Some(id("codex")),
            agents: ["codex", "echo"].map(|name| (id(name), name.to_owned())).to_vec(),
            modes: Modes::up_to("edit"),
            models: AgentChoice::from_settings(Some("large"), Some("small, tiny")),
            efforts: AgentChoice::from_settings(None, Some("low,high")),
            card: None,
        }
    }

    fn values(options: &Value, at: usize) -> Vec<&str> {
        let all = options[at]["options"].as_array().unwrap();
        all.iter().filter_map(|it| it["value"].as_str()).collect()
    }

    #[test]
    fn options_show_operators_lists_and_defaults() {
        let mut chosen = Chosen::default();
        let options = offer().described(&chosen);
        let ids: Vec<_> = options.as_array().unwrap().iter().map(|it| &it["id"]).collect();
        assert_eq!(ids, ["agent", "mode", "model", "effort"]);
        assert_eq!(values(&options, 0), ["codex", "echo"]);
        assert_eq!(values(&options, 1), ["read-only", "ask", "edit"]);
        assert_eq!(values(&options, 2), ["large", "small", "tiny"]);
        assert_eq!(values(&options, 3), ["default", "low", "high"]);
        let current: Vec<_> =
            (0..4).map(|at| options[at]["currentValue"].as_str().unwrap()).collect();
        assert_eq!(current, ["codex", "edit", "large", "default"]);

        for (id, value) in [("mode", "ask"), ("model", "tiny"), ("effort", "high")] {
            offer().set(&mut chosen, id, value).unwrap();
        }
        let options = offer().described(&chosen);
        let current: Vec<_> =
            (1..4).map(|at| options[at]["currentValue"].as_str().unwrap()).collect();
        assert_eq!(current, ["ask", "tiny", "high"]);
        offer().set(&mut chosen, "model", "large").unwrap();
        assert_eq!(chosen.model, None, "the default is not named");
        assert_eq!(SessionOptions::default().described(&chosen), json!([]));
    }

    #[test]
    fn agents_of_one_name_are_told_apart() {
        let agents = [("one", "Codex"), ("two", "codex "), ("three", "Claude"), ("four", " ")];
        let mut agents =
            agents.map(|(id, name)| (AgentId::parse(id).unwrap(), name.to_owned())).to_vec();
        tell_apart(&mut agents);
        let names: Vec<_> = agents.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["Codex (one)", "codex (two)", "Claude", "four"]);
    }

    #[test]
    fn unavailable_value_is_refused_with_list() {
        let set =
            |id: &str, value: &str| offer().set(&mut Chosen::default(), id, value).unwrap_err().why;
        assert!(set("mode", "full").contains("read-only, ask, edit"));
        assert!(set("model", "huge").contains("large, small, tiny"));
        assert!(set("colour", "red").contains("agent, mode, model, effort"));
        let why =
            SessionOptions::default().set(&mut Chosen::default(), "model", "x").unwrap_err().why;
        assert!(why.contains("agents.<id>.settings.models"), "{why}");
        assert!(offer().agent("nobody").unwrap_err().why.contains("codex, echo"));
    }

    #[test]
    fn revoked_choices_are_dropped() {
        let mut chosen = Chosen::default();
        for (id, value) in [("mode", "edit"), ("model", "tiny"), ("effort", "high")] {
            offer().set(&mut chosen, id, value).unwrap();
        }
        assert_eq!(offer().limited(&chosen), chosen);
        let less = SessionOptions {
            modes: Modes::up_to("ask"),
            models: AgentChoice::from_settings(None, Some("small")),
            efforts: None,
            ..offer()
        };
        let left = less.limited(&chosen);
        assert_eq!((left.mode, left.model, left.effort), (Some("ask"), None, None));
    }
}
