//! `blackboard`: the items of a flow's blackboard, also while its agents work.

use a2a_hub_socket_client::{
    completion, exit::Exit, failure::CommandError, global::Global, hub_client::Client, ids,
    runtime::block_on,
};
use a2a_hub_terminal::{
    render::{list, text},
    table::{Cell, Table},
    text::{Text, style_of},
    width::{cut, fold},
};
use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Map, Value, json};
use std::env;

/// Beginning of the metadata members with blackboards; the id of a step follows.
const MEMBER: &str = "blackboard.";

/// Reason of a refusal: the task has no blackboard.
const NO_BLACKBOARD: &str = "BLACKBOARD_NOT_FOUND";

/// Most tasks of a directory that are searched for a blackboard.
const MAX_SEARCHED: usize = 100;

/// Columns of a result that are shown; the JSON output has all that the task tells.
const MAX_RESULT: usize = 400;

/// Arguments of `blackboard`.
#[derive(Debug, Args)]
pub(crate) struct Blackboard {
    /// Id of a flow's task, or a unique beginning or end of it [default: the latest task in the
    /// current directory that has a blackboard]
    #[arg(value_name = "ID", add = completion::tasks())]
    id: Option<String>,
    /// Step of the flow, if it has several blackboards
    #[arg(long)]
    step: Option<String>,
    /// Print the last changes of each item
    #[arg(long)]
    history: bool,
}

/// Prints the blackboards of a task.
///
/// # Errors
///
/// The hub cannot be reached, or the task is unknown or has no blackboard.
pub(crate) fn blackboard(global: &Global, args: &Blackboard) -> anyhow::Result<Exit> {
    let task = block_on(async {
        let mut client = Client::connect(global).await?;
        let Some(typed) = &args.id else { return latest(&mut client).await };
        let id = ids::resolve(&mut client, ids::Kind::Task, typed).await?;
        client.call("tasks/get", json!({ "id": id, "historyLength": 0 })).await
    })?;
    let id = text(&task["id"]);
    let mut boards = boards_of(&task);
    if let Some(step) = &args.step {
        boards.retain(|name, _| name == step);
    }
    if boards.is_empty() {
        let of = args.step.as_ref().map(|step| format!(" of a step `{step}`"));
        let why = format!(
            "show the blackboard of the task {id}: it has none{}; a flow's task has one once a step `blackboard` began, \
             and `a2a-hub decide blackboard` begins one",
            of.unwrap_or_default()
        );
        bail!(CommandError::new(NO_BLACKBOARD, why));
    }
    let shown = json!({ "taskId": id, "state": task["status"]["state"], "blackboards": boards });
    let columns = global.console().columns();
    global.show(&shown, || Ok(boards_text(&boards, args.history, columns)))?;
    Ok(Exit::Done)
}

/// Latest task in the current directory that has a blackboard. The tasks of its agents, which are
/// later ones, have none.
async fn latest(client: &mut Client) -> anyhow::Result<Value> {
    let here = env::current_dir().context("find the current directory")?;
    let params = json!({ "workingDirectory": here, "limit": MAX_SEARCHED, "historyLength": 0 });
    let tasks = client.call("hub/tasks/list", params).await?;
    let found = list(&tasks).iter().find(|task| !boards_of(task).is_empty());
    found.cloned().ok_or_else(|| {
        let why = format!(
            "show a blackboard: none of the latest {MAX_SEARCHED} tasks in {} has one; name a task, as `a2a-hub tasks` \
             lists them",
            here.display()
        );
        CommandError::new(NO_BLACKBOARD, why).mended_by("a2a-hub tasks").into()
    })
}

/// Blackboards of a task by their steps. After the end, the items of the only one are those of the
/// flow's output, whose texts are whole.
fn boards_of(task: &Value) -> Map<String, Value> {
    let members = task["metadata"].as_object().into_iter().flatten();
    let boards = members.filter_map(|(name, board)| {
        let step = name.strip_prefix(MEMBER)?;
        board["items"].is_array().then(|| (step.to_owned(), board.clone()))
    });
    let mut boards: Map<_, _> = boards.collect();
    let artifact =
        list(&task["artifacts"]).iter().find(|artifact| artifact["artifactId"] == "output");
    let output = artifact.map(|artifact| artifact["parts"][0]["data"].clone()).unwrap_or_default();
    let mut all = boards.values_mut();
    if let (Some(Value::Object(board)), None) = (all.next(), all.next())
        && same_ids(&board["items"], &output["items"])
    {
        board.insert("items".to_owned(), output["items"].clone());
    }
    boards
}

/// True if both are lists of items with the same ids.
fn same_ids(one: &Value, other: &Value) -> bool {
    let ids = |items: &Value| list(items).iter().map(|it| it["id"].clone()).collect::<Vec<_>>();
    other.is_array() && ids(one) == ids(other)
}

/// Renders blackboards as tables. Words of agents are within cells and indented lines.
fn boards_text(boards: &Map<String, Value>, history: bool, columns: Option<usize>) -> Text {
    let mut shown = Text::new();
    for (step, board) in boards {
        if !shown.words().is_empty() {
            shown.append("\n".into());
        }
        shown.append(format!("{}\n", head(step, board)).into());
        let items = list(&board["items"]);
        if items.is_empty() {
            continue;
        }
        let mut table = Table::new(["ITEM", "KIND", "STATE", "BY", "UNTIL", "NEEDS", "TEXT"]);
        for item in items {
            let state = fold(text(&item["state"]));
            let until = item["until"].as_u64().map(|round| format!("round {round}"));
            let needs = list(&item["needs"]).iter().map(|need| fold(text(need)));
            let or_none = |text: String| if text.is_empty() { "-".to_owned() } else { text };
            table.row([
                Cell::from(fold(text(&item["id"]))),
                fold(text(&item["kind"])).into(),
                Cell::styled(style_of(&state), state),
                or_none(fold(text(&item["by"]))).into(),
                until.unwrap_or_else(|| "-".to_owned()).into(),
                or_none(needs.collect::<Vec<_>>().join(", ")).into(),
                fold(text(&item["text"])).into(),
            ]);
            if let Some(result) = item["result"].as_str() {
                table.add_note(format!("result: {}", cut(&fold(result), MAX_RESULT)));
            }
            for entry in list(&item["history"]).iter().filter(|_| history) {
                let (agent, change) = (fold(text(&entry["agent"])), fold(text(&entry["change"])));
                table.add_note(format!("round {}: {change} by {agent}", number(&entry["round"])));
            }
        }
        shown.append(table.text(columns));
    }
    shown
}

/// Line about a blackboard as a whole.
fn head(step: &str, board: &Value) -> String {
    let items = list(&board["items"]);
    let done = items.iter().filter(|item| item["state"] == "done").count();
    let (round, rounds) = (number(&board["round"]), number(&board["rounds"]));
    let (step, all) = (fold(step), items.len());
    let end = board["outcome"].as_str().map(|outcome| format!("; it ended: {}", fold(outcome)));
    let end = end.unwrap_or_default();
    format!("{step}: {done} of {all} items are done, round {round} of at most {rounds}{end}")
}

/// Number of a board, which an agent could have written.
fn number(value: &Value) -> String {
    value.as_u64().map_or_else(|| "?".to_owned(), |number| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: &str, state: &str, text: &str) -> Value {
        let until = (state == "claimed").then_some(4);
        let history = json!([
            { "round": 1, "agent": "flow", "change": "added" },
            { "round": 2, "agent": "ann\nbob", "change": state },
        ]);
        json!({ "id": id, "kind": "task", "author": "flow", "version": 2, "state": state, "by": "ann",
            "until": until, "needs": ["a"], "text": text, "result": null, "history": history })
    }

    #[test]
    fn board_shows_holder_lease_and_history() {
        let board = json!({ "round": 2, "rounds": 10, "outcome": null,
            "items": [item("a", "claimed", "find\nc: 9 of 9 items \u{1b}[2J"), item("b", "done", "it")] });
        let task = json!({ "metadata": { "blackboard.find": board, "other": 1 } });
        let look = a2a_hub_terminal::text::RenderOptions { cleaned: true, coloured: false };
        let shown = boards_text(&boards_of(&task), true, Some(90)).render(look);
        insta::assert_snapshot!(shown);
    }

    #[test]
    fn output_has_whole_texts_after_end() {
        let short = json!({ "round": 1, "rounds": 2, "outcome": "goal", "items": [item("a", "done", "[cut]")] });
        let with = |output: Value| {
            let made =
                json!([{ "artifactId": "output", "parts": [{ "kind": "data", "data": output }] }]);
            let task = json!({ "metadata": { "blackboard.x": short }, "artifacts": made });
            boards_of(&task)["x"]["items"][0]["text"].clone()
        };
        assert_eq!(with(json!({ "items": [item("a", "done", "whole")] })), "whole");
        assert_eq!(with(json!({ "items": [item("z", "done", "of another step")] })), "[cut]");
        assert_eq!(with(json!(["wrong"])), "[cut]");
    }

    #[test]
    fn metadata_of_any_shape_is_shown() {
        for wrong in [json!(1), json!({ "items": 1 }), json!(null), json!([])] {
            assert!(boards_of(&json!({ "metadata": { "blackboard.x": wrong } })).is_empty());
        }
        let odd = json!({ "items": [1, null, { "id": 5, "needs": { "a": 1 }, "history": [1] }], "round": "9" });
        let boards = boards_of(&json!({ "metadata": { "blackboard.": odd }, "artifacts": 3 }));
        let shown = boards_text(&boards, true, None).words();
        assert!(shown.starts_with(": 0 of 3 items are done, round ? of at most ?\n"), "{shown}");
    }
}
