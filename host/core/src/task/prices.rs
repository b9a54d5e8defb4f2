//! Price list of models: turns the tokens that an agent reports into dollars, for agents that
//! report no dollars.

use a2a_hub_protocol::{event::TaskEvent, message::Metadata};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::tree_budget::{COST_USD, USAGE};

/// Metadata member that is true if the hub computed `cost_usd` from its price list.
pub const PRICED: &str = "costFromPrices";

/// Metadata member of a task with a cost budget that counts nothing of the task's agent: the
/// reason, for people.
pub const UNCOUNTED: &str = "costUncounted";

/// Metadata member with the model that an agent used.
pub(crate) const MODEL: &str = "model";

/// Number of tokens that a price is for.
const MILLION: f64 = 1e6;

/// Price of a model, in dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Tokens of the input.
    pub input: f64,
    /// Tokens of the output.
    pub output: f64,
    /// Tokens of the input that the vendor had in its cache; as `input` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
}

impl Price {
    /// Names and values of its numbers.
    pub fn numbers(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let cached = self.cached.map(|cached| ("cached", cached));
        [("input", self.input), ("output", self.output)].into_iter().chain(cached)
    }

    /// Dollars for an agent's `usage`. Cached tokens are a part of the input.
    fn dollars(self, usage: &serde_json::Value) -> Option<f64> {
        let tokens =
            |name| usage.get(name).and_then(serde_json::Value::as_f64).map(|it| it.max(0.0));
        let (input, output) = (tokens("input_tokens"), tokens("output_tokens"));
        if input.is_none() && output.is_none() {
            return None;
        }
        let input = input.unwrap_or(0.0);
        let cached = tokens("cached_input_tokens").unwrap_or(0.0).min(input);
        let dollars = (input - cached) * self.input
            + cached * self.cached.unwrap_or(self.input)
            + output.unwrap_or(0.0) * self.output;
        Some(dollars / MILLION).filter(|dollars| dollars.is_finite())
    }
}

/// Prices by model. A name also covers the models whose names continue it, such as a date: the
/// longest name counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices(pub BTreeMap<String, Price>);

impl Prices {
    fn for_model(&self, model: &str) -> Option<Price> {
        let fits = |name: &&String| {
            let rest = model.strip_prefix(name.as_str());
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
        };
        let name = self.0.keys().filter(fits).max_by_key(|name| name.len())?;
        self.0.get(name).copied()
    }

    /// Adds the dollars to a status that reports tokens and no dollars. `known` is the metadata of
    /// its task; dollars that the agent itself reported there keep their precedence.
    pub fn apply(&self, known: Option<&Metadata>, event: &mut TaskEvent) {
        if self.0.is_empty() {
            return;
        }
        let TaskEvent::Status(update) = event else { return };
        let Some(reported) = &mut update.metadata else { return };
        let has_cost = |facts: &Metadata| facts.contains_key(COST_USD);
        let had_cost = known.is_some_and(|known| has_cost(known) && !known.contains_key(PRICED));
        if has_cost(reported) || had_cost {
            return;
        }
        let model = [Some(&*reported), known]
            .into_iter()
            .flatten()
            .find_map(|facts| facts.get(MODEL)?.as_str());
        let Some(price) = model.and_then(|model| self.for_model(model)) else { return };
        let Some(dollars) = reported.get(USAGE).and_then(|usage| price.dollars(usage)) else {
            return;
        };
        reported.insert(COST_USD.to_owned(), dollars.into());
        reported.insert(PRICED.to_owned(), true.into());
    }
}

/// Text for a task with a cost budget whose agent reports tokens only and has no price.
pub fn uncounted(agent: &str) -> String {
    format!(
        "the budget of this task limits its cost, and {agent} reports tokens but no dollars: \
         nothing of {agent}'s work counts for it. The operator can set prices with \
         `[prices.MODEL]`; a budget of tokens counts in any case"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{metadata, tree_budget::Usage};
    use a2a_hub_protocol::{
        id::{ContextId, TaskId},
        task::{Task, TaskState, TaskStatus},
    };
    use serde_json::{Value, json};

    fn prices() -> Prices {
        let list = json!({
            "gpt-5": { "input": 1.0, "output": 10.0, "cached": 0.1 },
            "gpt-5-mini": { "input": 0.5, "output": 2.0 },
        });
        Prices(serde_json::from_value(list).unwrap())
    }

    fn applied(known: &Value, told: &Value) -> Value {
        let status =
            TaskStatus { state: TaskState::Working, message: None, timestamp: String::new() };
        let known = known.as_object().cloned();
        let (id, context_id) = (TaskId::new("t"), ContextId::new("c"));
        let (artifacts, history) = (Vec::new(), Vec::new());
        let task = Task { id, context_id, status, artifacts, history, metadata: known.clone() };
        let told = told.as_object().cloned();
        let mut event = metadata::status(&task, TaskState::Working, None, told, String::new());
        prices().apply(known.as_ref(), &mut event);
        let TaskEvent::Status(update) = event else { panic!("{event:?}") };
        json!(update.metadata)
    }

    #[test]
    fn tokens_cost_what_the_list_says() {
        let usage = json!({ "input_tokens": 1_000_000, "cached_input_tokens": 400_000, "output_tokens": 100_000 });
        for (model, dollars) in [
            ("gpt-5", Some(0.6 + 0.04 + 1.0)),
            ("gpt-5-2026-01-31", Some(0.6 + 0.04 + 1.0)),
            ("gpt-5-mini", Some(0.5 + 0.2)),
            ("gpt-55", None),
            ("other", None),
        ] {
            let told = applied(&json!({}), &json!({ "model": model, "usage": usage }));
            let cost = told.get("cost_usd").and_then(Value::as_f64);
            let is_near = match (cost, dollars) {
                (Some(cost), Some(dollars)) => (cost - dollars).abs() < 1e-9,
                (cost, dollars) => cost == dollars,
            };
            assert!(is_near, "{model}: {cost:?} and {dollars:?}");
            assert_eq!(told.get(PRICED).is_some(), dollars.is_some(), "{model}");
            let used = Usage::from_metadata(told.as_object()).cost_usd;
            assert_eq!(used > 0.0, dollars.is_some(), "{model}: a budget counts it");
        }
    }

    #[test]
    fn dollars_of_the_agent_take_precedence() {
        let usage = json!({ "usage": { "output_tokens": 100_000 } });
        let own = json!({ "model": "gpt-5", "usage": { "output_tokens": 1 }, "cost_usd": 0.25 });
        assert_eq!(applied(&json!({}), &own), own);
        assert_eq!(applied(&own, &usage), usage, "they were reported before");
        let priced = json!({ "model": "gpt-5", "cost_usd": 0.1, "costFromPrices": true });
        assert_eq!(applied(&priced, &usage)["cost_usd"], json!(1.0), "the list's own are replaced");
        for odd in [json!(1), json!([]), json!({ "input_tokens": "x" }), json!({})] {
            let told = json!({ "model": "gpt-5", "usage": odd });
            assert_eq!(applied(&json!({}), &told), told);
        }
    }
}
