//! The end of a run: cancelled children, steps to compensate, and the result. Also the variables of
//! texts, which a run needs to its end.

use minijinja::{Value as Context, value::Serde};
use serde_json::{Map, Value, json};

use super::{
    super::{
        event::{Finish, FlowAction},
        kinds::Work,
        row::{Row, StepPhase},
    },
    FLOW_INDEX, FlowState,
};

impl FlowState {
    /// Cancels all that is open of a step.
    pub(super) fn close(&mut self, step: usize, actions: &mut Vec<FlowAction>) {
        let open: Vec<_> = self.open.keys().filter(|id| id.step == step).copied().collect();
        for id in open {
            self.open.remove(&id);
            actions.push(FlowAction::Cancel(id));
        }
    }

    pub(super) fn close_all(&mut self, actions: &mut Vec<FlowAction>) {
        for (id, ()) in std::mem::take(&mut self.open) {
            actions.push(FlowAction::Cancel(id));
        }
    }

    pub(super) fn fail(&mut self, reason: &str, text: String, actions: &mut Vec<FlowAction>) {
        if self.ending.is_some() || self.is_over {
            return;
        }
        self.close_all(actions);
        let done = |step: &usize| {
            self.definition.steps[*step].compensate.is_some()
                && self.rows[*step].phase == StepPhase::Done
        };
        self.compensating = self.definition.order.iter().copied().filter(done).collect();
        let reason = if reason.is_empty() { "step_failed" } else { reason };
        self.ending =
            Some(Finish { completed: false, text, reason: reason.to_owned(), ..Finish::default() });
    }

    /// Ends the flow as completed: with the text of `result`, or of the steps that no other needs.
    pub(super) fn complete(&mut self, actions: &mut Vec<FlowAction>) {
        if self.ending.is_some() || self.is_over {
            return;
        }
        let last: Vec<_> = (0..self.rows.len())
            .filter(|&step| self.definition.dependents(step).is_empty())
            .filter_map(|step| Some((step, self.rows[step].record.as_ref()?)))
            .collect();
        // Items without structured answers have none together.
        let is_empty = |output: &Value| match output.as_array() {
            Some(all) => all.iter().all(Value::is_null),
            None => output.is_null(),
        };
        // The result of a pick is a worktree, and not its JSON.
        let is_pick = |step: usize| matches!(self.definition.steps[step].work, Work::Pick(_));
        let output = match last.as_slice() {
            [(step, one)] if !is_pick(*step) => {
                Some(one["output"].clone()).filter(|output| !is_empty(output))
            }
            _ => None,
        };
        let last: Vec<_> = last.into_iter().map(|(_, record)| record).collect();
        let text = match &self.definition.result {
            Some(result) => result.render_for_people(&self.context(FLOW_INDEX, None, &[])),
            None => {
                let texts = last.iter().filter_map(|record| record["text"].as_str());
                Ok(texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n"))
            }
        };
        match text {
            Ok(text) => {
                self.close_all(actions);
                self.is_over = true;
                let (reason, worktree) = (String::new(), self.result_worktree());
                let completed = true;
                let finish = Finish { completed, text, output, reason, worktree };
                actions.push(FlowAction::Finish(finish));
            }
            Err(why) => self.fail("template", format!("`result`: {why}"), actions),
        }
    }

    /// Variables of a step's texts.
    pub(super) fn context(
        &self,
        step: usize,
        item: Option<(usize, Value)>,
        extra: &[(&str, Value)],
    ) -> Context {
        let records = |record: fn(&Row) -> &Option<Value>| -> Map<String, Value> {
            let named = self.definition.steps.iter().zip(&self.rows);
            named
                .map(|(step, row)| (step.id.clone(), record(row).clone().unwrap_or_default()))
                .collect()
        };
        let round = self.rows.get(step).map_or(1, |row| row.round);
        let mut all = Map::new();
        all.insert("input".to_owned(), self.input.clone());
        let mut steps = records(|row| &row.record);
        steps.extend(self.written_record(step));
        all.insert("steps".to_owned(), steps.into());
        all.insert("previous".to_owned(), records(|row| &row.previous).into());
        all.insert("flow".to_owned(), json!({ "id": self.flow_id, "round": round }));
        if let Some((index, item)) = item {
            all.insert("item".to_owned(), item);
            all.insert("index".to_owned(), index.into());
        }
        all.extend(extra.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        Context::from(Serde(Value::Object(all)))
    }
}
