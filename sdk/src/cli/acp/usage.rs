//! Usage of a turn: tokens, cost and model, as the program reports them.

use serde_json::{Map, Value};

use super::{Acp, Speaker};
use crate::foreign;

impl<S: Speaker> Acp<S> {
    /// Usage of this run: from the protocol's `usage`, or from the `quota` that gemini reports
    /// instead.
    pub(super) fn usage(&mut self, result: &Value) -> Map<String, Value> {
        let quota = &result["_meta"]["quota"];
        let mut usage = Map::new();
        for (ours, member) in [
            ("input_tokens", &result["usage"]["inputTokens"]),
            ("output_tokens", &result["usage"]["outputTokens"]),
            ("input_tokens", &quota["token_count"]["input_tokens"]),
            ("output_tokens", &quota["token_count"]["output_tokens"]),
        ] {
            if let Some(total) = foreign::number(member) {
                let is_sum = self.speaker.sums_up();
                let used = if is_sum { self.session.grown(ours, total) } else { total };
                #[expect(clippy::cast_possible_truncation, reason = "tokens are counted in whole")]
                usage.insert(ours.into(), (used as i64).into());
            }
        }
        let mut metadata = Map::new();
        metadata.insert("usage".into(), usage.into());
        if let Some(cost) = self.cost {
            metadata.insert("cost_usd".into(), self.session.grown("cost_usd", cost).into());
        }
        if let Some(context) = &self.context {
            metadata.insert("context".into(), context.clone());
        }
        let model = quota["model_usage"][0]["model"].as_str().map(ToOwned::to_owned);
        if let Some(model) = model.or_else(|| self.job.choices.model.clone()) {
            metadata.insert("model".into(), model.into());
        }
        metadata
    }
}
