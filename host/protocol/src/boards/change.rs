//! Changes of a blackboard. The hub writes each into the log of the task that makes it, where the
//! flow reads it, and the flow answers in its metadata.

use serde_json::{Map, Value, json};

/// Metadata member of a task with its latest change of a blackboard: `{"id": …, "number": …,
/// "contribution": …}`. Only the hub writes it, so that no agent changes a board as another one.
pub const BLACKBOARD_CHANGE: &str = "blackboardChange";

/// Metadata member of a flow's task with its latest answers to changes.
const ANSWERS: &str = "blackboardAnswers";

/// Most changes of one task, with those that are refused: each is an event in its log. The flow has
/// lower limits, and says so in its answers.
pub const MAX_TASK_CHANGES: u64 = 200;

/// Contribution to a blackboard, as in the answer of a turn: `do`, `id`, `version`, `kind`, `text`
/// and `needs`. Its size is bounded.
#[derive(Clone, Debug, PartialEq)]
pub struct BoardContribution(pub(crate) Value);

/// Refusal of a change: the task has made too many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooManyChanges;

impl std::fmt::Display for TooManyChanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "a task makes at most {MAX_TASK_CHANGES} changes of a blackboard; give further ones in your answer"
        )
    }
}

/// Member [`BLACKBOARD_CHANGE`] of the next change of a task with this metadata.
///
/// # Errors
///
/// If the task has made too many.
pub fn next_change(
    metadata: Option<&Map<String, Value>>,
    id: &str,
    BoardContribution(contribution): BoardContribution,
) -> Result<Value, TooManyChanges> {
    let latest = metadata.and_then(|facts| facts.get(BLACKBOARD_CHANGE)?.get("number")?.as_u64());
    let number = latest.unwrap_or_default().saturating_add(1);
    if number > MAX_TASK_CHANGES {
        return Err(TooManyChanges);
    }
    Ok(json!({ "id": id, "number": number, "contribution": contribution }))
}

/// Answer to the change with this id, if these metadata of a flow's status have it.
pub fn answer_to(metadata: Option<&Map<String, Value>>, id: &str) -> Option<Value> {
    let answers = metadata?.get(ANSWERS)?.as_array()?;
    let answer = answers.iter().find(|answer| answer["id"] == id)?;
    let mut shown = json!({ "applied": answer["refused"].is_null() });
    if let (Value::Object(shown), Some(answer)) = (&mut shown, answer.as_object()) {
        let known = ["step", "agent", "do", "item", "refused"];
        let members = known.iter().filter_map(|name| Some((*name, answer.get(*name)?)));
        let members = members.filter(|(_, value)| !value.is_null());
        shown.extend(members.map(|(name, value)| (name.to_owned(), value.clone())));
    }
    Some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(value: &Value) -> Option<&Map<String, Value>> {
        value.as_object()
    }

    #[test]
    fn changes_of_task_are_counted_and_bounded() {
        let claim = || BoardContribution(json!({ "do": "claim" }));
        let mut metadata = json!({});
        for number in 1..=MAX_TASK_CHANGES {
            let change = next_change(facts(&metadata), "c", claim()).unwrap();
            assert_eq!((&change["number"], &change["id"]), (&json!(number), &json!("c")));
            metadata = json!({ BLACKBOARD_CHANGE: change });
        }
        assert_eq!(next_change(facts(&metadata), "c", claim()), Err(TooManyChanges));
    }

    #[test]
    fn answer_is_found_by_id() {
        let metadata = json!({ ANSWERS: [
            { "id": "1", "step": "s", "agent": "a", "do": "claim", "refused": "b claimed it" },
            { "id": "2", "step": "s", "agent": "a", "do": "add", "item": { "id": "x" } },
        ] });
        let refused = json!({ "applied": false, "step": "s", "agent": "a", "do": "claim", "refused": "b claimed it" });
        assert_eq!(answer_to(facts(&metadata), "1"), Some(refused));
        let added = json!({ "applied": true, "step": "s", "agent": "a", "do": "add", "item": { "id": "x" } });
        assert_eq!(answer_to(facts(&metadata), "2"), Some(added));
        assert_eq!(answer_to(facts(&metadata), "3"), None);
        for odd in [json!({ ANSWERS: 1 }), json!({ ANSWERS: [1, null, {}] }), json!({})] {
            assert_eq!(answer_to(facts(&odd), "1"), None);
        }
        assert_eq!(answer_to(None, "1"), None);
    }
}
