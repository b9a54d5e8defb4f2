//! Model and reasoning effort of a session, which programs offer as configuration options.

use serde_json::{Value, json};

use super::{Acp, Awaited, Speaker};
use crate::cli::{Action, End, FailureReason};

/// Categories of the option for the reasoning effort: the protocol's word, and Vibe's.
const EFFORT: [&str; 2] = ["thought_level", "thinking"];

impl<S: Speaker> Acp<S> {
    /// Sets the model of the run, if one is chosen, and then the effort.
    pub(super) fn choose_model(&mut self) -> Vec<Action> {
        let Some(model) = self.job.choices.model.clone() else { return self.choose_effort() };
        if S::MODEL_VARIABLE.is_some() {
            return self.started_with(&model);
        }
        if let Some(params) = self.option(&["model"], &model) {
            return self.request(Awaited::Model, "session/set_config_option", &params);
        }
        let params = json!({ "sessionId": self.session.id, "modelId": model });
        self.request(Awaited::Model, "session/set_model", &params)
    }

    /// Continues if the program was started with that model. A program that does not know the model
    /// takes another without an error.
    fn started_with(&mut self, model: &str) -> Vec<Action> {
        let mut options = self.offer["configOptions"].as_array().into_iter().flatten();
        let Some(option) = options.find(|option| option["category"] == "model") else {
            return self.choose_effort();
        };
        if option["currentValue"] == model {
            return self.choose_effort();
        }
        let known = option["options"].as_array().into_iter().flatten();
        let known: Vec<_> = known.filter_map(|option| option["value"].as_str()).collect();
        let text = format!("{} has no model `{model}`; it has {}", self.name(), known.join(", "));
        self.end(End::failed(FailureReason::ApiError, text))
    }

    /// Sets the reasoning effort, if the program has an option for it.
    pub(super) fn choose_effort(&mut self) -> Vec<Action> {
        let Some(effort) = &self.job.choices.effort else { return self.first_prompt() };
        if let Some(params) = self.option(&EFFORT, effort) {
            return self.request(Awaited::Effort, "session/set_config_option", &params);
        }
        let text = format!("{} lets nobody choose an effort: `{effort}` is left out", self.name());
        let mut actions = vec![Action::Say(text)];
        actions.extend(self.first_prompt());
        actions
    }

    /// Parameters that set the option of one of these categories, if the program has it.
    fn option(&self, categories: &[&str], value: &str) -> Option<Value> {
        let mut options = self.offer["configOptions"].as_array().into_iter().flatten();
        let is_meant =
            |category: &Value| category.as_str().is_some_and(|it| categories.contains(&it));
        let option = options.find(|option| is_meant(&option["category"]))?;
        Some(json!({ "sessionId": self.session.id, "configId": option["id"], "value": value }))
    }
}
