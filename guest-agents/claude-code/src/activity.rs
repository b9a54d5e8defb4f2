//! Tool uses and their results as facts for editors.

use std::collections::BTreeSet;

use a2a_hub_sdk::cli::{Action, Plan, ToolFacts, context, running, tool_ended};
use a2a_hub_sdk::foreign;
use serde_json::Value;

/// Tool uses of a run, and the model's list of things to do.
#[derive(Debug, Default)]
pub(crate) struct ToolUses {
    /// Ids of the tool uses without a result.
    open: BTreeSet<String>,
    plan: Plan,
}

impl ToolUses {
    /// Statuses of a tool use that begins.
    pub(crate) fn begin(&mut self, id: Option<String>, name: &str, input: &Value) -> Vec<Action> {
        let text = running(name, input);
        let Some(id) = id.filter(|id| !id.is_empty()) else { return vec![Action::Say(text)] };
        if name == "TodoWrite" {
            return self.plan.update(&input["todos"], "content").into_iter().collect();
        }
        let title = text.strip_prefix("running ").unwrap_or(&text);
        let (kind, input) = (kind(name), Some(input));
        let call = ToolFacts { id: &id, name, title, kind, input, ..ToolFacts::default() };
        let report = Action::Report { facts: call.begun(), text: text.clone() };
        self.open.insert(id);
        vec![report]
    }

    /// Status of a tool use that ended.
    pub(crate) fn end(&mut self, id: &str, is_failed: bool) -> Option<Action> {
        let facts = || tool_ended(id, is_failed);
        self.open.remove(id).then(|| Action::Report { text: String::new(), facts: facts() })
    }
}

/// Kind of a tool, in the words of the Agent Client Protocol.
fn kind(tool: &str) -> &'static str {
    match tool {
        "Read" | "NotebookRead" => "read",
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => "edit",
        "Bash" => "execute",
        "Glob" | "Grep" | "LS" => "search",
        "WebFetch" | "WebSearch" => "fetch",
        "Task" | "Agent" => "think",
        _ => "other",
    }
}

/// Tokens of the context up to a message, from the message's usage.
pub(crate) fn tokens_of(usage: &Value) -> Option<f64> {
    let counters =
        ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"];
    let counts: Vec<_> =
        counters.iter().filter_map(|name| foreign::number(&usage[*name])).collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

/// Size of the context, from the usage of each model. A turn may use small models beside the main
/// one, which has the largest context.
pub(crate) fn context_of(used: Option<f64>, models: &Value) -> Option<Value> {
    let models = models.as_object().into_iter().flatten();
    let sizes = models.filter_map(|(_, model)| foreign::number(&model["contextWindow"]));
    context(used, sizes.fold(None, |largest, size| Some(size.max(largest.unwrap_or(size)))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tool_use_is_reported_until_result() {
        let mut uses = ToolUses::default();
        let input = json!({ "command": "ls" });
        let begun = uses.begin(Some("t1".into()), "Bash", &input);
        let [Action::Report { text, facts }] = begun.as_slice() else { panic!("{begun:?}") };
        assert_eq!(text, "running Bash: ls");
        let call = json!({ "id": "t1", "name": "Bash", "title": "Bash: ls", "kind": "execute",
            "status": "in_progress", "input": input });
        assert_eq!(facts["tool"], call);
        let Some(Action::Report { text, facts }) = uses.end("t1", true) else { panic!() };
        assert_eq!((text.as_str(), &facts["tool"]["status"]), ("", &json!("failed")));
        assert_eq!(uses.end("t1", true), None, "it has ended");
        assert_eq!(uses.begin(None, "Bash", &input), [Action::Say("running Bash: ls".into())]);
    }

    #[test]
    fn context_is_that_of_largest_model() {
        let used = tokens_of(
            &json!({ "input_tokens": 5, "cache_read_input_tokens": 10, "output_tokens": 2 }),
        );
        let models = json!({ "small": { "contextWindow": 50 }, "large": { "contextWindow": 200 }, "odd": 7 });
        assert_eq!(context_of(used, &models), Some(json!({ "used": 17, "size": 200 })));
        assert_eq!(context_of(tokens_of(&json!(7)), &models), None);
        assert_eq!(context_of(used, &json!([])), None);
    }

    #[test]
    fn todo_list_becomes_plan() {
        let input = json!({ "todos": [{ "content": "test it", "status": "in_progress" }] });
        let told = ToolUses::default().begin(Some("t".into()), "TodoWrite", &input);
        let [Action::Report { text, facts }] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!(text, "plan, step 1 of 1: test it");
        assert_eq!(facts["plan"][0]["status"], "in_progress");
    }
}
