//! Numbers of waiting tasks, expiring questions and unread notices, for `status`.

use crate::{Global, client::hub_client::ask, ui::render::counted};
use serde_json::{Value, json};

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

/// Number of notices that nobody has read. The status is shown also if the hub does not report it,
/// such as an older one.
pub(crate) fn unread_notices(global: &Global, status: &Value) -> u64 {
    if status["starting"].is_object() {
        return 0;
    }
    let listed = ask(global, "hub/notices/list", json!({ "limit": 1 }));
    listed.ok().and_then(|listed| listed["unread"].as_u64()).unwrap_or_default()
}

/// Line about the unread notices, by the member `unreadNotices`; none if all are read.
pub(crate) fn unread_text(status: &Value) -> Option<String> {
    let unread = status["unreadNotices"].as_u64().and_then(|it| usize::try_from(it).ok());
    let unread = unread.filter(|unread| *unread > 0)?;
    Some(format!("{}: `a2a-hub inbox`", counted(unread, "notice")))
}

#[cfg(test)]
mod tests {
    use super::*;

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
