//! Values that the operator lets clients choose from for an agent.

use schemars::JsonSchema;
use serde::Serialize;

/// Values of a message's member, such as `model`, that the operator lists for an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentChoice {
    /// Value if the client names none; absent if the agent's program decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Values that a client may name.
    pub values: Vec<String>,
}

impl AgentChoice {
    /// Reads the operator's two settings: the default, and the list with commas. `None` without a
    /// list, because a client may name any value then.
    pub fn from_settings(default: Option<&str>, list: Option<&str>) -> Option<Self> {
        let values = list?.split(',').map(str::trim).filter(|name| !name.is_empty());
        Some(Self {
            default: default.map(str::to_owned),
            values: values.map(str::to_owned).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choice_needs_operators_list() {
        assert_eq!(AgentChoice::from_settings(Some("opus"), None), None);
        let choice = AgentChoice::from_settings(None, Some("opus, sonnet,, ")).unwrap();
        assert_eq!((choice.default, choice.values.join(" ")), (None, "opus sonnet".to_owned()));
    }
}
