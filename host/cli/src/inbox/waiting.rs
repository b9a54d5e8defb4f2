//! Numbers of waiting tasks and of expiring questions, for `status`.

use crate::ui::render::counted;
use serde_json::Value;

/// Line about the tasks that wait for an answer, by the status of the hub; none if no task waits.
pub(crate) fn waiting_text(status: &Value) -> Option<String> {
    let count = |name: &str| status[name].as_u64().unwrap_or_default();
    let waiting = count("waitingTasks");
    let expiring = match usize::try_from(count("expiringQuestions")).unwrap_or(usize::MAX) {
        0 => String::new(),
        expiring => format!(", {} with a deadline soon", counted(expiring, "question")),
    };
    let text = format!("{waiting} of them wait for an answer{expiring}: `a2a-hub inbox`");
    (waiting > 0).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn expiring_questions_are_counted() {
        for (status, text) in [
            (json!({}), None),
            (json!({ "waitingTasks": 0, "expiringQuestions": 0 }), None),
            (json!({ "waitingTasks": 2 }), Some("2 of them wait for an answer: `a2a-hub inbox`")),
            (
                json!({ "waitingTasks": 3, "expiringQuestions": 1 }),
                Some(
                    "3 of them wait for an answer, 1 question with a deadline soon: `a2a-hub inbox`",
                ),
            ),
            (
                json!({ "waitingTasks": 3, "expiringQuestions": 2 }),
                Some(
                    "3 of them wait for an answer, 2 questions with a deadline soon: `a2a-hub inbox`",
                ),
            ),
        ] {
            assert_eq!(waiting_text(&status).as_deref(), text, "{status}");
        }
    }
}
