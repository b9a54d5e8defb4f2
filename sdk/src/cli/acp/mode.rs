//! Mode of a session, which keeps the program within the operator's permissions. Programs offer
//! modes as `modes`, or as a configuration option of the category `mode`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::foreign;

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
    pub(super) fn of(offer: &Value) -> Self {
        let text = |value: &Value| foreign::text(value).map(Into::into);
        match option(&offer["configOptions"]).filter(|_| offer["modes"].is_null()) {
            Some(option) => {
                Self { current: text(&option["currentValue"]), option: text(&option["id"]) }
            }
            None => Self { current: text(&offer["modes"]["currentModeId"]), option: None },
        }
    }

    /// True if the program offers this mode.
    pub(super) fn is_offered(offer: &Value, mode: &str) -> bool {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        if !offer["modes"].is_null() {
            return list(&offer["modes"]["availableModes"]).iter().any(|it| it["id"] == mode);
        }
        let options = option(&offer["configOptions"]).map(|option| list(&option["options"]));
        // Options may be in groups.
        options.unwrap_or_default().iter().any(|it| {
            it["value"] == mode || list(&it["options"]).iter().any(|it| it["value"] == mode)
        })
    }

    /// True if this is the current mode.
    pub(super) fn is(&self, mode: &str) -> bool {
        self.current.as_deref() == Some(mode)
    }

    /// Records that the program changed its mode.
    pub(super) fn changed_to(&mut self, mode: &str) {
        self.current = Some(mode.to_owned());
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
            Some("config_option_update") => match option(&update["configOptions"]) {
                Some(option) => &option["currentValue"],
                None => return false,
            },
            _ => return false,
        };
        self.current = foreign::text(mode).map(Into::into);
        true
    }
}

/// Configuration option of the mode.
fn option(options: &Value) -> Option<&Value> {
    options.as_array().into_iter().flatten().find(|option| option["category"] == "mode")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_of_configuration_option_is_set() {
        let offer = json!({ "configOptions": [{ "id": "m", "category": "mode",
            "currentValue": "build", "options": [
                { "value": "build" }, { "group": "g", "options": [{ "value": "plan" }] } ] }] });
        let mut mode = Mode::of(&offer);
        assert!(mode.is("build") && !mode.is("plan"));
        let offered = ["build", "plan", "yolo"].map(|it| Mode::is_offered(&offer, it));
        assert_eq!(offered, [true, true, false]);
        let params = json!({ "sessionId": "s", "configId": "m", "value": "plan" });
        assert_eq!(mode.request("s", "plan"), ("session/set_config_option", params));
        mode.changed_to("plan");
        assert!(mode.is("plan"));
    }

    #[test]
    fn reported_change_replaces_mode() {
        let offer = json!({ "modes": { "currentModeId": "ask",
            "availableModes": [{ "id": "ask" }, { "id": "edit" }] } });
        let mut mode = Mode::of(&offer);
        assert!(mode.is("ask") && Mode::is_offered(&offer, "edit"));
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
