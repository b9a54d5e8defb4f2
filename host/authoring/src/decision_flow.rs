//! Flows of one step in which agents decide together: implements `a2a-hub decide`. The text goes
//! to the hub in a message, and is no file.

use a2a_hub_protocol::id::AgentId;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Most agents that decide together, and of votes and auctions, in which nobody reads the others.
const MAX_AGENTS: usize = 32;
const MAX_INDEPENDENT_AGENTS: usize = 128;

/// Most bytes of a flow file.
const MAX_FLOW_BYTES: usize = 64 << 10;

/// Name of the step.
pub const STEP: &str = "decide";

/// Decision of several agents, in the words of a step of a flow file.
#[derive(Debug)]
pub struct DecisionFlow {
    /// Key of the step, such as `vote` or `contract_net`.
    pub rule: &'static str,
    /// Agents that decide.
    pub agents: Vec<AgentId>,
    /// Further members of that key.
    pub rules: Map<String, Value>,
    /// Time for the answers of one round, in milliseconds.
    pub answer_ms: Option<u64>,
    /// Permissions of those that do the work: `read-only` or `ask`.
    pub permissions: Option<String>,
}

impl DecisionFlow {
    /// Text of a flow file. Its input is the text `message`.
    ///
    /// # Errors
    ///
    /// The agents are too few, too many or listed twice, or the text is too long for a flow file.
    pub fn text(mut self) -> Result<String, String> {
        let min = if self.rule == "negotiation" { 2 } else { 1 };
        let max = if matches!(self.rule, "auction" | "vote") {
            MAX_INDEPENDENT_AGENTS
        } else {
            MAX_AGENTS
        };
        let count = self.agents.len();
        if !(min..=max).contains(&count) {
            return Err(format!("{count} agents; name {min} to {max} with `--of`"));
        }
        let mut listed = BTreeSet::new();
        if let Some(twice) = self.agents.iter().find(|agent| !listed.insert(agent.as_str())) {
            return Err(format!("`{twice}` is listed twice; name each agent once"));
        }
        let mut step = Map::new();
        step.insert("id".to_owned(), STEP.into());
        step.insert("prompt".to_owned(), "{{ input.message }}".into());
        step.extend(self.permissions.map(|word| ("permissions".to_owned(), word.into())));
        if let Some(ms) = self.answer_ms {
            let limit = Value::from(format!("{ms}ms"));
            // A vote has one round, and ends with the ballots that are in.
            match self.rule {
                "vote" => step.insert("timeout".to_owned(), limit),
                _ => self.rules.insert("answer_timeout".to_owned(), limit),
            };
        }
        self.rules.insert("agents".to_owned(), json!(self.agents));
        step.insert(self.rule.to_owned(), self.rules.into());
        let flow = json!({
            "description": "Has several agents decide together",
            "input": { "message": { "type": "string" } },
            "step": [step],
        });
        let text = toml::to_string(&flow).map_err(|why| format!("write the flow: {why}"))?;
        if text.len() > MAX_FLOW_BYTES {
            return Err(format!(
                "the options have {} bytes, and a flow at most {MAX_FLOW_BYTES}; shorten them",
                text.len()
            ));
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(rule: &'static str, names: &[&str], rules: &Value) -> DecisionFlow {
        DecisionFlow {
            rule,
            agents: names.iter().map(|name| AgentId::parse(*name).unwrap()).collect(),
            rules: rules.as_object().cloned().unwrap_or_default(),
            answer_ms: Some(1_500),
            permissions: None,
        }
    }

    #[test]
    fn vote_becomes_one_step() {
        let rules = json!({ "choices": ["yes", "a \"b\"\n[[step]]"], "rule": { "quorum": 2 } });
        let text = flow("vote", &["a", "b"], &rules).text().unwrap();
        let parsed: toml::Table = text.parse().unwrap();
        let steps = parsed["step"].as_array().unwrap();
        assert_eq!(steps.len(), 1, "a choice adds no step: {text}");
        assert_eq!(steps[0]["timeout"].as_str(), Some("1500ms"));
        let vote = serde_json::to_value(&steps[0]["vote"]).unwrap();
        let mut expected = rules;
        expected["agents"] = json!(["a", "b"]);
        assert_eq!(vote, expected);
    }

    #[test]
    fn permissions_and_answer_time_are_set() {
        let mut flow = flow("auction", &["a"], &json!({ "reserve": 5 }));
        flow.permissions = Some("ask".to_owned());
        let parsed: toml::Table = flow.text().unwrap().parse().unwrap();
        let step = &parsed["step"][0];
        assert_eq!(step["permissions"].as_str(), Some("ask"));
        assert_eq!(step["auction"]["answer_timeout"].as_str(), Some("1500ms"));
        assert!(step.get("timeout").is_none(), "it would fail the whole step: {parsed}");
    }

    #[test]
    fn wrong_agents_are_refused() {
        let none = json!({});
        for (flow, why) in [
            (flow("vote", &["a", "a"], &none), "`a` is listed twice"),
            (flow("vote", &[], &none), "0 agents; name 1 to 128"),
            (flow("negotiation", &["a"], &none), "1 agents; name 2 to 32"),
            (flow("vote", &["a"], &json!({ "unit": "x".repeat(MAX_FLOW_BYTES) })), "shorten them"),
        ] {
            assert!(flow.text().unwrap_err().contains(why), "{why}");
        }
    }
}
