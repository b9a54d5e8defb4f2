//! Mode of a session, which keeps the program within the operator's permissions. Programs offer
//! modes as `modes`, or as a configuration option of the category `mode`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::foreign;

/// Modes and models that a program offers for a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Offered {
    /// Ids of the modes, in the program's order.
    pub modes: Vec<String>,
    /// Id of the current mode.
    pub current: Option<String>,
    /// Ids of the models.
    pub models: Vec<String>,
}

impl Offered {
    /// Reads the offer of a new or loaded session.
    pub(super) fn parse(offer: &Value) -> Self {
        let ids = |list: &Value, member: &str| -> Vec<String> {
            let each = list.as_array().into_iter().flatten();
            each.filter_map(|it| it[member].as_str().map(ToOwned::to_owned)).collect()
        };
        let mut modes = ids(&offer["modes"]["availableModes"], "id");
        if offer["modes"].is_null() {
            modes = option(&offer["configOptions"], "mode").map(values).unwrap_or_default();
        }
        let models = option(&offer["configOptions"], "model").map(values);
        let models = models.unwrap_or_else(|| ids(&offer["models"]["availableModels"], "modelId"));
        Self { modes, current: Mode::parse(offer).current, models }
    }

    /// True if the program offers this mode.
    pub(super) fn has(&self, mode: &str) -> bool {
        self.modes.iter().any(|it| it == mode)
    }
}

/// Mode of a session, and the way to change it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Mode {
    /// Id of the current mode, if known.
    current: Option<String>,
    /// Id of the configuration option that holds the mode; `None` if the program offers `modes`.
    option: Option<String>,
}

impl Mode {
    /// Reads the mode that the program reports for a new or loaded session.
    pub(super) fn parse(offer: &Value) -> Self {
        let text = |value: &Value| foreign::text(value).map(Into::into);
        match option(&offer["configOptions"], "mode").filter(|_| offer["modes"].is_null()) {
            Some(option) => {
                Self { current: text(&option["currentValue"]), option: text(&option["id"]) }
            }
            None => Self { current: text(&offer["modes"]["currentModeId"]), option: None },
        }
    }

    /// Offer of a running program, whose modes were stored.
    pub(super) fn offered_with(&self, modes: Vec<String>) -> Offered {
        Offered { modes, current: self.current.clone(), models: Vec::new() }
    }

    /// True if this is the current mode.
    pub(super) fn is(&self, mode: &str) -> bool {
        self.current.as_deref() == Some(mode)
    }

    /// Records that the program changed its mode.
    pub(super) fn changed_to(&mut self, mode: Option<&str>) {
        self.current = mode.map(ToOwned::to_owned);
    }

    /// Request that changes the mode: method and parameters.
    pub(super) fn request(&self, session: &str, mode: &str) -> (&'static str, Value) {
        match &self.option {
            Some(option) => {
                let params = json!({ "sessionId": session, "configId": option, "value": mode });
                ("session/set_config_option", params)
            }
            None => ("session/set_mode", json!({ "sessionId": session, "modeId": mode })),
        }
    }

    /// Reads an update of the session. Returns true if it is about the mode.
    pub(super) fn update(&mut self, update: &Value) -> bool {
        let mode = match update["sessionUpdate"].as_str() {
            Some("current_mode_update") => &update["currentModeId"],
            Some("config_option_update") => match option(&update["configOptions"], "mode") {
                Some(option) => &option["currentValue"],
                None => return false,
            },
            _ => return false,
        };
        self.current = foreign::text(mode).map(Into::into);
        true
    }
}

/// Configuration option of a category.
fn option<'a>(options: &'a Value, category: &str) -> Option<&'a Value> {
    options.as_array().into_iter().flatten().find(|option| option["category"] == category)
}

/// Values of a configuration option, which may be in groups.
fn values(option: &Value) -> Vec<String> {
    let each = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let id = |value: &Value| value["value"].as_str().map(ToOwned::to_owned);
    let mut values = Vec::new();
    for choice in each(&option["options"]) {
        values.extend(id(&choice));
        values.extend(each(&choice["options"]).iter().filter_map(id));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_of_configuration_option_is_set() {
        let offer = json!({ "configOptions": [{ "id": "m", "category": "mode",
            "currentValue": "build", "options": [
                { "value": "build" }, { "group": "g", "options": [{ "value": "plan" }] } ] }] });
        let mut mode = Mode::parse(&offer);
        assert!(mode.is("build") && !mode.is("plan"));
        let offered = ["build", "plan", "yolo"].map(|it| Offered::parse(&offer).has(it));
        assert_eq!(offered, [true, true, false]);
        let params = json!({ "sessionId": "s", "configId": "m", "value": "plan" });
        assert_eq!(mode.request("s", "plan"), ("session/set_config_option", params));
        mode.changed_to(Some("plan"));
        assert!(mode.is("plan"));
    }

    #[test]
    fn reported_change_replaces_mode() {
        let offer = json!({ "modes": { "currentModeId": "ask",
            "availableModes": [{ "id": "ask" }, { "id": "edit" }] } });
        let mut mode = Mode::parse(&offer);
        assert!(mode.is("ask") && Offered::parse(&offer).has("edit"));
        let params = json!({ "sessionId": "s", "modeId": "edit" });
        assert_eq!(mode.request("s", "edit"), ("session/set_mode", params));
        let update =
            json!({ "sessionUpdate": "current_mode_update", "currentModeId": "auto-approve" });
        assert!(mode.update(&update) && !mode.is("ask"));
        let options = json!([{ "category": "mode", "currentValue": "ask" }]);
        let update = json!({ "sessionUpdate": "config_option_update", "configOptions": options });
        assert!(mode.update(&update) && mode.is("ask"));
        assert!(!mode.update(&json!({ "sessionUpdate": "agent_message_chunk" })));
        let odd = json!({ "sessionUpdate": "current_mode_update", "currentModeId": 7 });
        assert!(mode.update(&odd) && !mode.is("ask"), "an unknown mode is set anew");
    }
}
