//! End of a turn: the answer to the prompt, updates that arrive behind it, and the interruption.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Acp, Awaited, Speaker, send};
use crate::cli::{Action, End, FailureReason};

/// Silence after the answer to the prompt until the turn ends. The protocol demands all updates
/// before the answer, but programs that write both from different tasks send the last chunk a few
/// milliseconds later (anomalyco/opencode#17505, #25421).
const LATE_SILENCE: Duration = Duration::from_millis(50);

/// The same for an answer without any text, which is then likely to be late.
const LATE_SILENCE_WITHOUT_TEXT: Duration = Duration::from_millis(500);

/// Longest wait for late updates.
const LATE_LIMIT: Duration = Duration::from_secs(2);

impl<S: Speaker> Acp<S> {
    /// Handles the answer to the prompt. Updates may still be on their way.
    pub(super) fn prompt_answered(&mut self, result: &Value) -> Vec<Action> {
        if self.is_interrupted {
            return self.finish(result);
        }
        self.result = result.clone();
        self.step = Awaited::Late;
        let silence = if self.answer.is_empty() { LATE_SILENCE_WITHOUT_TEXT } else { LATE_SILENCE };
        vec![Action::AwaitQuiet { silence, limit: LATE_LIMIT }]
    }

    /// Ends the turn with the result of the prompt.
    pub(super) fn finish(&mut self, result: &Value) -> Vec<Action> {
        let metadata = self.usage(result);
        let mut actions = Vec::new();
        if self.loads {
            actions.push(Action::Remember(self.session.clone()));
        }
        let (reason, text) = match result["stopReason"].as_str().unwrap_or_default() {
            _ if self.is_interrupted => {
                // The program has ended the calls of the turn, but need not report it.
                self.tools.clear();
                self.is_answered = true;
                (FailureReason::Interrupted, "was interrupted")
            }
            "end_turn" if self.speaker.is_complete(result) => {
                let mut text = self.answer.take();
                text.push_str(self.lines.end_of_message());
                self.is_answered = true;
                actions.extend(self.end(End::Completed { text, metadata }));
                return actions;
            }
            "end_turn" => (FailureReason::BrokenStream, "ended in the middle of its answer"),
            "max_tokens" => (FailureReason::MaxTokens, "stopped at the model's limit of tokens"),
            "max_turn_requests" => (FailureReason::MaxTurns, "stopped at its limit of turns"),
            "refusal" => (FailureReason::Refused, "says that the model refuses to do this"),
            "cancelled" => (FailureReason::Interrupted, "was interrupted"),
            _ => {
                (FailureReason::AgentError, "stopped for a reason that this version does not know")
            }
        };
        let text = format!("{} {text}", self.name());
        actions.extend(self.end(End::Failed { reason, text, metadata }));
        actions
    }

    /// Cancels the prompt and the questions about it. Without an open prompt nothing is sent: some
    /// programs would apply it to the next prompt.
    pub(super) fn cancel_prompt(&mut self) -> Vec<Action> {
        if self.step != Awaited::Prompt {
            return Vec::new();
        }
        self.is_interrupted = true;
        let params = json!({ "sessionId": self.session.id });
        let mut actions = vec![send(&json!({ "method": "session/cancel", "params": params }))];
        for (id, answer_form) in std::mem::take(&mut self.open_questions) {
            let id: Value = serde_json::from_str(&id).unwrap_or_default();
            actions.push(send(&json!({ "id": id, "result": answer_form.cancelled() })));
        }
        actions
    }
}
