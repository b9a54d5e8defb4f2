//! Reports of blackboards in the metadata of a flow's task, and what of them is shown to a model.

use serde_json::{Map, Value, json};

/// Beginning of the metadata members with blackboards; the id of a step follows.
const MEMBER: &str = "blackboard.";

/// Most changes of an item that are shown.
const MAX_HISTORY: usize = 5;

/// Most bytes of the boards of one answer; of larger boards, the histories and the ends of texts
/// are left out.
const MAX_BYTES: usize = 60_000;

/// Characters of a text or result of a large board.
const MAX_TEXT: usize = 200;

/// Members of an item that are shown.
const ITEM: [&str; 10] =
    ["id", "kind", "author", "version", "state", "by", "until", "needs", "text", "result"];

/// Most items and boards that are shown. A flow's board has at most 100 items.
const MAX_ITEMS: usize = 100;
const MAX_BOARDS: usize = 20;

/// Boards of a task by the ids of their steps.
fn boards(metadata: Option<&Map<String, Value>>) -> impl Iterator<Item = (&str, &Value)> {
    metadata.into_iter().flatten().filter_map(|(name, board)| {
        board["items"].is_array().then_some((name.strip_prefix(MEMBER)?, board))
    })
}

/// True if the task with these metadata has, or had, a blackboard.
pub fn has_boards(metadata: Option<&Map<String, Value>>) -> bool {
    boards(metadata).next().is_some()
}

/// True if a blackboard of the task is not over.
pub fn has_open_board(metadata: Option<&Map<String, Value>>) -> bool {
    boards(metadata).any(|(_, board)| board["outcome"].is_null())
}

/// Report of a task's blackboards for a model, of one `step` or of all.
///
/// # Errors
///
/// If the task has none: a text for the model.
pub fn board_report(
    task: &str,
    state: &str,
    metadata: Option<&Map<String, Value>>,
    step: Option<&str>,
) -> Result<Value, String> {
    let found = boards(metadata).filter(|(name, _)| step.is_none_or(|step| step == *name));
    let found: Vec<_> = found.take(MAX_BOARDS).collect();
    if found.is_empty() {
        let steps: Vec<_> = boards(metadata).map(|(name, _)| format!("`{name}`")).collect();
        return Err(match (step, steps.as_slice()) {
            (Some(step), [_, ..]) => {
                let step: String = step.chars().filter(|it| !it.is_control()).take(80).collect();
                format!(
                    "task `{task}` has no blackboard of a step `{step}`; it has: {}",
                    steps.join(", ")
                )
            }
            (_, _) => format!(
                "task `{task}` has no blackboard: a flow's task has one once a step `blackboard` began"
            ),
        });
    }
    let max_bytes = MAX_BYTES / found.len();
    let shown: Vec<_> =
        found.iter().map(|(step, board)| render_board(step, board, max_bytes)).collect();
    Ok(json!({ "taskId": task, "state": state, "boards": shown }))
}

/// Board with as much of its items as the bytes allow.
fn render_board(step: &str, board: &Value, max_bytes: usize) -> Value {
    let with = |history: usize, text: usize| {
        let all = board["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let items: Vec<_> = all.iter().take(MAX_ITEMS).map(|it| item(it, history, text)).collect();
        json!({
            "step": step, "round": board["round"].as_u64(), "rounds": board["rounds"].as_u64(),
            "outcome": board["outcome"].as_str(), "items": items,
        })
    };
    let forms = [(MAX_HISTORY, usize::MAX), (0, usize::MAX), (0, MAX_TEXT), (0, 0)];
    let mut shown = forms.iter().map(|&(history, text)| with(history, text));
    let fits = |shown: &Value| shown.to_string().len() <= max_bytes;
    shown.find(fits).unwrap_or_else(
        || json!({ "step": step, "items": [], "leftOut": "the board is too large" }),
    )
}

fn item(item: &Value, history: usize, text: usize) -> Value {
    let mut shown = Map::new();
    for name in ITEM {
        let long = item[name].as_str().filter(|_| matches!(name, "text" | "result"));
        let value = long.map_or_else(|| item[name].clone(), |long| cut(long, text).into());
        shown.insert(name.to_owned(), value);
    }
    if history > 0 {
        let all = item["history"].as_array().map(Vec::as_slice).unwrap_or_default();
        let latest = all.iter().skip(all.len().saturating_sub(history)).cloned();
        shown.insert("history".to_owned(), latest.collect());
    }
    Value::Object(shown)
}

/// First characters of a text, with a mark if more follow.
fn cut(text: &str, max_chars: usize) -> String {
    let cut: String = text.chars().take(max_chars).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { cut }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(items: usize, text: usize, outcome: Option<&str>) -> Value {
        let item = |n: usize| {
            let entry = json!({ "round": 1, "agent": "a", "change": "claimed" });
            json!({
                "id": format!("i{n}"), "kind": "task", "author": "flow", "version": 2, "state": "claimed", "by": "a",
                "until": 3, "needs": [], "text": "ä".repeat(text), "result": null, "history": vec![entry; 20],
                "secret": "not shown",
            })
        };
        json!({ "round": 1, "rounds": 9, "outcome": outcome, "items": (0..items).map(item).collect::<Vec<_>>() })
    }

    fn report(metadata: &Value, step: Option<&str>) -> Result<Value, String> {
        board_report("t", "working", metadata.as_object(), step)
    }

    #[test]
    fn report_shows_items_with_latest_changes() {
        let metadata = json!({ "blackboard.work": board(1, 3, None), "blackboard.old": board(1, 3, Some("goal")), "x": 1 });
        let all = report(&metadata, None).unwrap();
        assert_eq!((&all["taskId"], &all["state"]), (&json!("t"), &json!("working")));
        assert_eq!(all["boards"].as_array().map(Vec::len), Some(2));
        let one = report(&metadata, Some("work")).unwrap();
        let item = &one["boards"][0]["items"][0];
        assert_eq!(
            (&item["by"], &item["until"], &item["text"]),
            (&json!("a"), &json!(3), &json!("äää"))
        );
        assert_eq!(item["history"].as_array().map(Vec::len), Some(5));
        assert_eq!(item["secret"], Value::Null);
        assert!(has_open_board(metadata.as_object()));
        let ended = json!({ "blackboard.old": board(1, 3, Some("goal")) });
        assert!(has_boards(ended.as_object()) && !has_open_board(ended.as_object()));
    }

    #[test]
    fn task_without_board_is_named() {
        let metadata = json!({ "blackboard.work": board(0, 0, None) });
        let why = report(&metadata, Some("w\u{1b}x")).unwrap_err();
        assert_eq!(why, "task `t` has no blackboard of a step `wx`; it has: `work`");
        for none in
            [json!({}), json!({ "blackboard.x": 1 }), json!({ "blackboard": board(1, 1, None) })]
        {
            let why = report(&none, None).unwrap_err();
            assert!(why.starts_with("task `t` has no blackboard: a flow's task has one"), "{why}");
            assert!(!has_boards(none.as_object()));
        }
        assert!(!has_boards(None) && !has_open_board(None));
    }

    #[test]
    fn large_boards_are_shortened() {
        let short = |metadata: Value| {
            let shown = report(&metadata, None).unwrap();
            assert!(shown.to_string().len() <= MAX_BYTES + 200, "{}", shown.to_string().len());
            shown["boards"][0].clone()
        };
        let many = short(json!({ "blackboard.a": board(100, 130, None) }));
        assert_eq!(
            (many["items"].as_array().unwrap().len(), &many["items"][0]["history"]),
            (100, &Value::Null)
        );
        let long = short(json!({ "blackboard.a": board(80, 2_000, None) }));
        assert_eq!(long["items"][0]["text"].as_str().unwrap().chars().count(), MAX_TEXT + 1);
        let hostile =
            json!({ "items": [{ "id": "x".repeat(100_000) }], "round": "y".repeat(100_000) });
        assert_eq!(short(json!({ "blackboard.a": hostile }))["leftOut"], "the board is too large");
        let all: Map<_, _> =
            (0..90).map(|n| (format!("blackboard.{n}"), board(9, 900, None))).collect();
        assert!(!short(all.into()).is_null());
    }
}
