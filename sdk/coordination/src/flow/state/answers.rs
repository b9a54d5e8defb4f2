//! Answers of people, and timers that have rung.

use super::{
    super::{
        event::{ChildEnd, FlowAction, Id, Role},
        kinds::{Work, pick::Pick},
        row::CallFailure,
        text::cut,
    },
    FLOW_INDEX, FlowState, MAX_REPROMPTS, MAX_TEXT,
};
use serde_json::Value;

impl FlowState {
    pub(super) fn answered(&mut self, id: Id, text: &str, actions: &mut Vec<FlowAction>) {
        if id.role == Role::Restart {
            return self.restart_answered(id, text, actions);
        }
        let step = &self.definition.steps[id.step];
        if let Work::Pick(pick) = &step.work {
            let pick = pick.clone();
            return self.candidate_answered(id, &pick, text, actions);
        }
        let Work::Ask(question) = &step.work else { return };
        let choices = &question.choices;
        let reply = text.trim();
        let chosen = choices.iter().find(|it| it.to_lowercase() == reply.to_lowercase()).cloned();
        if !choices.is_empty() && chosen.is_none() {
            if id.attempt >= MAX_REPROMPTS {
                let text = format!("no answer was one of {}", choices.join(", "));
                let failed = CallFailure { reason: "invalid_answer".to_owned(), text };
                self.item_failed(id, failed, actions);
            } else {
                actions.push(FlowAction::Say(format!("answer {}", choices.join(" or "))));
                self.call(id.step, id.item, actions);
            }
            return;
        }
        let mut text = chosen.unwrap_or_else(|| text.to_owned());
        cut(&mut text, MAX_TEXT);
        let output = Some(Value::from(text.as_str()));
        self.item_done(id, ChildEnd { completed: true, text, ..ChildEnd::default() }, output);
    }

    /// Takes the candidate that the client named, or asks again.
    fn candidate_answered(
        &mut self,
        id: Id,
        pick: &Pick,
        text: &str,
        actions: &mut Vec<FlowAction>,
    ) {
        if self.take_named(id, pick, text.trim()) {
            return;
        }
        if id.attempt < MAX_REPROMPTS {
            actions.push(FlowAction::Say("answer the number of a candidate".to_owned()));
            return self.call(id.step, id.item, actions);
        }
        let text = "no answer was the number of a candidate".to_owned();
        let failed = CallFailure { reason: "invalid_answer".to_owned(), text };
        self.item_failed(id, failed, actions);
    }

    pub(super) fn rang(&mut self, id: Id, actions: &mut Vec<FlowAction>) {
        match id.role {
            Role::Backoff => self.call(id.step, id.item, actions),
            Role::Work => {
                let end = ChildEnd { completed: true, ..ChildEnd::default() };
                self.item_done(id, end, None);
            }
            Role::Timeout if id.step == FLOW_INDEX => {
                self.fail("timeout", "the flow took longer than its `timeout`".to_owned(), actions);
            }
            Role::Timeout => {
                let step = &self.definition.steps[id.step];
                if let Work::Ask(question) = &step.work
                    && let Some(default) = &question.default
                {
                    let (text, output) = (default.clone(), Some(Value::from(default.as_str())));
                    self.close(id.step, actions);
                    let end = ChildEnd { completed: true, text, ..ChildEnd::default() };
                    self.item_done(Id { role: Role::Work, ..id }, end, output);
                    return;
                }
                if matches!(step.work, Work::Vote(_)) {
                    return self.answers_timed_out(id.step, actions);
                }
                let text = format!("{}: took longer than its `timeout`", step.id);
                self.step_failed(id.step, "timeout", text, actions);
            }
            Role::Minutes => self.part_worked(actions),
            Role::Answers => self.answers_timed_out(id.step, actions),
            Role::Piece => self.rows[id.step].is_due = true,
            Role::Compensation | Role::Restart => {}
        }
    }
}
