//! Plan of the program, which each update replaces as a whole.

use serde_json::{Value, json};

use super::{Action, activity, cut};
use crate::foreign;

/// Plan that was reported last.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// Step that the program works on.
    step: String,
    facts: Value,
}

impl Plan {
    /// Status with the plan, if it changed. `entries` is the program's list; `content` names the
    /// member with the text of an entry. The text names a step that is not the previous one.
    pub fn update(&mut self, entries: &Value, content: &str) -> Option<Action> {
        let read = |entry: &Value| {
            let status = match entry["status"].as_str() {
                Some("completed") => "completed",
                Some("in_progress" | "inProgress") => "in_progress",
                _ => "pending",
            };
            Some((foreign::text(&entry[content])?.into_owned(), status))
        };
        let entries: Vec<_> = entries.as_array()?.iter().filter_map(read).collect();
        let facts = activity::plan(entries.iter().map(|(text, status)| (text.as_str(), *status)));
        let new = json!(facts);
        if entries.is_empty() || self.facts == new {
            return None;
        }
        self.facts = new;
        let is = |wanted| entries.iter().find(|(_, status)| *status == wanted);
        let step = is("in_progress").or_else(|| is("pending")).map(|(step, _)| step.clone());
        let step = step.unwrap_or_default();
        let mut text = String::new();
        if !step.is_empty() && self.step != step {
            let done = entries.iter().filter(|(_, status)| *status == "completed").count();
            let number = (done + 1).min(entries.len());
            text = cut(&format!("plan, step {number} of {}: {step}", entries.len()));
        }
        self.step = step;
        Some(Action::Report { text, facts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(steps: &[(&str, &str)]) -> Value {
        let entry =
            |(content, status): &(&str, &str)| json!({ "content": content, "status": status });
        steps.iter().map(entry).collect()
    }

    /// Text of the status about a plan, and the state of its first entry; `None` if nothing is
    /// reported.
    fn told(state: &mut Plan, entries: &Value) -> Option<(String, Value)> {
        let Action::Report { text, facts } = state.update(entries, "content")? else { panic!() };
        Some((text, facts["plan"][0]["status"].clone()))
    }

    #[test]
    fn plan_reports_each_step_once() {
        let mut state = Plan::default();
        let some = |text: &str, status: &str| Some((text.to_owned(), json!(status)));
        let begun = plan(&[("read", "inProgress"), ("write", "new")]);
        assert_eq!(told(&mut state, &begun), some("plan, step 1 of 2: read", "in_progress"));
        assert_eq!(told(&mut state, &begun), None);
        let longer = plan(&[("read", "in_progress"), ("write", "pending"), ("test", "pending")]);
        assert_eq!(told(&mut state, &longer), some("", "in_progress"));
        let goes_on = plan(&[("read", "completed"), ("write", "in_progress")]);
        assert_eq!(told(&mut state, &goes_on), some("plan, step 2 of 2: write", "completed"));
        let done = plan(&[("read", "completed"), ("write", "completed")]);
        assert_eq!(told(&mut state, &done), some("", "completed"));
        for odd in [json!(7), json!([]), json!([7, { "content": [] }])] {
            assert_eq!(told(&mut state, &odd), None, "{odd}");
        }
    }
}
