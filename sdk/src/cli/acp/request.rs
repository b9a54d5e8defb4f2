//! Requests of the program that need a decision.

use std::time::Duration;

use serde_json::{Value, json};

use super::ask::AnswerForm;
use super::{Acp, Speaker, refuse, send};
use crate::cli::{Action, Question};

/// Silence after which the program has reported the call of a request, or will not: it writes the
/// report right behind the request.
const REPORT_SILENCE: Duration = Duration::from_millis(50);

/// Longest wait for the report.
const REPORT_LIMIT: Duration = Duration::from_millis(500);

impl<S: Speaker> Acp<S> {
    pub(super) fn asks(&mut self, id: &Value, method: &str, params: &Value) -> Vec<Action> {
        let (form, question) = match method {
            "session/request_permission" => self.permission(params),
            "elicitation/create" if params["mode"] == "form" || params["mode"].is_null() => {
                AnswerForm::form(params)
            }
            _ => {
                return vec![refuse(id, -32601, &format!("{method} is not offered"))];
            }
        };
        if self.is_interrupted {
            return vec![send(&json!({ "id": id, "result": form.cancelled() }))];
        }
        // The wait for silence needs a program that nobody else is asked about.
        let is_alone = self.open_questions.is_empty();
        self.open_questions.insert(id.to_string(), form);
        if is_alone && self.is_early(&question) {
            self.early_request = Some((id.clone(), params.clone()));
            let (silence, limit) = (REPORT_SILENCE, REPORT_LIMIT);
            return vec![Action::AwaitQuiet { silence, limit }];
        }
        vec![Action::Ask(Box::new(Question { id: id.clone(), ..question }))]
    }

    /// Asks for the request that waited for the report of its call.
    pub(super) fn ask_late(&mut self) -> Vec<Action> {
        let Some((id, params)) = self.early_request.take() else { return Vec::new() };
        if !self.open_questions.contains_key(&id.to_string()) {
            return Vec::new();
        }
        let (_, question) = self.permission(&params);
        vec![Action::Ask(Box::new(Question { id, ..question }))]
    }

    /// Question about a tool call, with what the program has reported of the call.
    fn permission(&mut self, params: &Value) -> (AnswerForm, Question) {
        let directories = [&[self.directory.clone()][..], &self.job.additional].concat();
        let tool = self.tool(&params["toolCall"]);
        let reported = tool.known().clone();
        tool.merge(&params["toolCall"]);
        let mut question = tool.question(&directories);
        question.facts = Some(json!({
            "vendor": self.speaker.vendor(),
            "request": params,
            "call": reported,
            "directory": self.directory,
        }));
        let (form, mut question) = AnswerForm::approval(params, question, S::SHOWS_CHOICES);
        // An approval of the driver's own would be for everything of the kind.
        question.for_session &= self.speaker.keeps_approval(question.kind);
        (form, question)
    }

    /// True if the program asks about a command before it has reported it.
    fn is_early(&self, question: &Question) -> bool {
        let facts = question.facts.as_ref();
        let is_reported = facts.is_none_or(|it| it["call"]["rawInput"]["command"].is_string());
        let is_command = facts.is_some_and(|it| it["request"]["toolCall"]["kind"] == "execute");
        self.speaker.asks_before_report() && is_command && !is_reported
    }
}
