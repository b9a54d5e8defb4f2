//! Plan of the program, which each update replaces as a whole.

use serde_json::Value;

use crate::cli::{Action, cut};
use crate::foreign;

/// Step of the plan that was reported last.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Plan {
    reported: String,
}

impl Plan {
    /// Status with the step that the program works on, if it is another one than before.
    pub(super) fn update(&mut self, update: &Value) -> Option<Action> {
        let entries: Vec<_> = update["entries"].as_array().into_iter().flatten().collect();
        let is = |entry: &&&Value, status| entry["status"] == status;
        let done = entries.iter().filter(|entry| is(entry, "completed")).count();
        let at_work = entries.iter().find(|entry| is(entry, "in_progress"));
        let step = at_work.or_else(|| entries.iter().find(|entry| is(entry, "pending")))?;
        let step = foreign::text(&step["content"])?;
        if self.reported == *step {
            return None;
        }
        self.reported = step.to_string();
        let number = (done + 1).min(entries.len());
        Some(Action::Say(cut(&format!("plan, step {number} of {}: {step}", entries.len()))))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan(steps: &[(&str, &str)]) -> Value {
        let entry =
            |(content, status): &(&str, &str)| json!({ "content": content, "status": status });
        json!({ "sessionUpdate": "plan", "entries": steps.iter().map(entry).collect::<Vec<_>>() })
    }

    #[test]
    fn plan_reports_each_step_once() {
        let mut state = Plan::default();
        let say = |text: &str| Some(Action::Say(text.into()));
        let begun = plan(&[("read", "in_progress"), ("write", "pending")]);
        assert_eq!(state.update(&begun), say("plan, step 1 of 2: read"));
        assert_eq!(state.update(&begun), None);
        let goes_on = plan(&[("read", "completed"), ("write", "in_progress")]);
        assert_eq!(state.update(&goes_on), say("plan, step 2 of 2: write"));
        assert_eq!(state.update(&plan(&[("read", "completed"), ("write", "completed")])), None);
        assert_eq!(state.update(&json!({ "entries": 7 })), None);
    }
}
