//! Ids of tasks and conversations. Ids that the hub generates begin with the time, so ids of one
//! minute begin alike: their end is displayed. A unique beginning or end is accepted for any id.

use super::{failure::CommandError, hub_client::Client};
#[cfg(feature = "hub")]
use a2a_hub_config::environment;
#[cfg(feature = "hub")]
use a2a_hub_process::OWNER_MARKER;
use a2a_hub_terminal::{
    render::{ago, first_words, list, text},
    table::Short,
};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Length of the shortest displayed beginning of an id that a client chose.
const SHORT: usize = "my-workflow-1".len();

/// Length of the shortest displayed end of a UUID: random bits.
const END: usize = "2d72e498".len();

/// Minimum length of a unique end that is highlighted.
const UNIQUE: usize = 4;

/// Number of tasks and conversations whose ends are searched, the newest first.
const SEARCHED: usize = 1_000;

/// Length of a whole UUID.
const UUID_LENGTH: usize = "01a1fc8f-a111-7715-9c95-8a642d72e498".len();

/// Maximum number of candidates in the error about an ambiguous prefix.
const NAMED: usize = 8;

/// Number of conversations that are searched for ids that the hub generated.
const SEARCH_LIMIT: usize = 100;

/// Kind of the resolved object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A task.
    Task,
    /// A conversation.
    Context,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Context => "context",
        }
    }

    fn method(self) -> &'static str {
        match self {
            Self::Task => "hub/tasks/list",
            Self::Context => "hub/contexts/list",
        }
    }
}

/// Returns the displayed part of `id` among `others`: the end of a UUID, or else the beginning.
pub fn short<'i>(id: &'i str, others: &(impl Iterator<Item = &'i str> + Clone)) -> Short<'i> {
    if is_generated(id) {
        let is_shared = |length: usize| {
            others.clone().any(|other| other != id && other.ends_with(&id[id.len() - length..]))
        };
        let unique =
            (UNIQUE..UUID_LENGTH).find(|&length| !is_shared(length)).unwrap_or(UUID_LENGTH);
        return Short { text: &id[id.len() - unique.max(END)..], unique };
    }
    let mut end = id.floor_char_boundary(SHORT);
    while end < id.len() && others.clone().any(|other| other != id && other.starts_with(&id[..end]))
    {
        end = id.ceil_char_boundary(end + 1);
    }
    Short { text: &id[..end], unique: 0 }
}

/// True if `name` can be a part of a UUID.
fn is_of_uuid(name: &str) -> bool {
    name.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

/// Resolves the id of a conversation that a message continues or starts. Only ids that the hub
/// generated can be abbreviated. An id that a client chose is used as typed, because a new one may
/// be a prefix of an existing one.
pub async fn resolve_or_new(client: &mut Client, typed: &str) -> anyhow::Result<String> {
    if !is_of_uuid(typed) || typed.len() >= UUID_LENGTH {
        return Ok(typed.to_owned());
    }
    if typed.is_empty() || is_context(client, typed).await {
        return Ok(typed.to_owned());
    }
    let params = json!({ "idPrefix": typed, "limit": SEARCH_LIMIT });
    let found = match client.call(Kind::Context.method(), params).await {
        // A program that an agent started may not list conversations: it types whole ids.
        Err(why) if CommandError::from_error(&why).is_denied() => return Ok(typed.to_owned()),
        found => found?,
    };
    let mut generated: Vec<_> =
        list(&found).iter().filter(|one| is_generated(text(&one["id"]))).cloned().collect();
    if generated.len() != 1 {
        add_ends(client, Kind::Context, typed, &mut generated).await?;
    }
    Ok(chosen(Kind::Context, typed, &generated, Timestamp::now())?)
}

/// Adds the generated ids that end with `typed`; a single one takes precedence over ids that begin
/// with it.
async fn add_ends(
    client: &mut Client,
    kind: Kind,
    typed: &str,
    found: &mut Vec<Value>,
) -> anyhow::Result<()> {
    if typed.len() < UNIQUE || !is_of_uuid(typed) {
        return Ok(());
    }
    let mut params = json!({ "limit": SEARCHED });
    if kind == Kind::Task {
        params = json!({ "limit": SEARCHED, "historyLength": 1 });
    }
    let is_meant = |one: &&Value| {
        let id = text(&one["id"]);
        is_generated(id) && id.ends_with(typed)
    };
    let all = client.call(kind.method(), params).await?;
    let ends: Vec<_> = list(&all).iter().filter(is_meant).cloned().collect();
    match ends.len() {
        1 => *found = ends,
        _ => found.extend(ends),
    }
    Ok(())
}

/// True if a conversation has exactly this id, or if the caller may not know.
pub async fn is_known_context(client: &mut Client, name: &str) -> bool {
    let itself = json!({ "contextId": name, "historyLength": 0 });
    match client.call("hub/contexts/get", itself).await {
        Ok(_) => true,
        Err(why) => CommandError::from_error(&why).is_denied(),
    }
}

/// True if a conversation has exactly this id.
async fn is_context(client: &mut Client, name: &str) -> bool {
    let itself = json!({ "contextId": name, "historyLength": 0 });
    client.call("hub/contexts/get", itself).await.is_ok()
}

/// True for text that may be a generated id, whole or as lists show its end.
pub fn may_be_id(typed: &str) -> bool {
    typed.len() >= END && is_of_uuid(typed)
}

/// True if `name` has the form of an id that the hub generates.
fn is_generated(name: &str) -> bool {
    name.len() == UUID_LENGTH && is_of_uuid(name)
}

/// Resolves a beginning or an end to an id. Text without a match is returned unchanged, so that the
/// hub reports the error.
pub async fn resolve(client: &mut Client, kind: Kind, typed: &str) -> anyhow::Result<String> {
    if typed.len() >= UUID_LENGTH || typed.is_empty() {
        return Ok(typed.to_owned());
    }
    // One message shows the subject of a task.
    let params = json!({ "idPrefix": typed, "limit": NAMED + 1, "historyLength": 1 });
    let params = match kind {
        Kind::Task => params,
        Kind::Context => json!({ "idPrefix": typed, "limit": NAMED + 1 }),
    };
    let found = match client.call(kind.method(), params).await {
        Err(why) if kind == Kind::Task && CommandError::from_error(&why).is_denied() => {
            find_in_task_tree(client, typed).await.ok_or(why)?
        }
        found => found?,
    };
    // An exact match that a client chose may be older than the listed conversations.
    if list(&found).len() > NAMED && kind == Kind::Context && is_context(client, typed).await {
        return Ok(typed.to_owned());
    }
    let mut found = list(&found).to_vec();
    if found.len() != 1 && !found.iter().any(|one| one["id"] == typed) {
        match add_ends(client, kind, typed, &mut found).await {
            Err(why) if CommandError::from_error(&why).is_denied() => {}
            added => added?,
        }
    }
    Ok(chosen(kind, typed, &found, Timestamp::now())?)
}

/// Returns the tasks that begin or end with `typed` in the tree of the task that this program
/// belongs to; `None` if no agent started it.
#[cfg(feature = "hub")]
async fn find_in_task_tree(client: &mut Client, typed: &str) -> Option<Value> {
    let (_, task_id) = environment(&[OWNER_MARKER.to_owned()].into()).pop()?;
    let tree = client.call("hub/tasks/tree", json!({ "id": task_id })).await.ok()?;
    let is_meant = |task: &&Value| {
        let id = text(&task["id"]);
        id.starts_with(typed) || (typed.len() >= UNIQUE && id.ends_with(typed))
    };
    Some(list(&tree["tasks"]).iter().filter(is_meant).cloned().collect())
}

/// No agent starts a client without a hub.
#[cfg(not(feature = "hub"))]
async fn find_in_task_tree(_: &mut Client, _: &str) -> Option<Value> {
    None
}

/// Picks the match: an exact one first, else the only one; several are an error with candidates.
fn chosen(
    kind: Kind,
    typed: &str,
    found: &[Value],
    now: Timestamp,
) -> Result<String, CommandError> {
    let ids = || found.iter().map(|one| text(&one["id"]));
    if let Some(exact) = ids().find(|id| *id == typed) {
        return Ok(exact.to_owned());
    }
    match found {
        [] => Ok(typed.to_owned()),
        [one] => Ok(text(&one["id"]).to_owned()),
        _ => {
            let word = kind.word();
            let mut why =
                format!("`{typed}` is part of the id of more than one {word}; give a longer part:");
            for one in &found[..found.len().min(NAMED)] {
                why += &format!(
                    "\n  {}  {}",
                    short(text(&one["id"]), &ids()).text,
                    about(kind, one, now)
                );
            }
            if found.len() > NAMED {
                why += "\n  and more";
            }
            Err(CommandError::new("AMBIGUOUS_ID", why))
        }
    }
}

/// Describes a candidate, to tell it from the others.
fn about(kind: Kind, one: &Value, now: Timestamp) -> String {
    match kind {
        Kind::Task => {
            let request =
                list(&one["history"]).first().map(|message| first_words(&message["parts"]));
            let when = ago(&one["status"]["timestamp"], now);
            format!("{}, {when}: {}", text(&one["agentId"]), request.unwrap_or_default())
        }
        Kind::Context => {
            let agents: Vec<_> = list(&one["agents"]).iter().map(text).collect();
            format!("{}, {}", agents.join(", "), ago(&one["updatedAt"], now))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: [&str; 4] = [
        "01a1fc8f-a111-7715-9c95-8a642d72e498",
        "01a1fc8f-a111-7715-9c96-000000000000",
        "01a1fc8f-b222-7715-9c95-8a642d72e498",
        "ctx",
    ];

    #[test]
    fn short_answers_are_no_ids() {
        assert!(may_be_id("2d72e498") && may_be_id("01a1fc8f-a111-7715-9c95-8a642d72e498"));
        assert!(["0", "01a", "yes", "add", "everything"].iter().all(|answer| !may_be_id(answer)));
    }

    #[test]
    fn short_id_is_unique_end_or_beginning() {
        let short = IDS.map(|id| short(id, &IDS.into_iter()));
        let short = short.map(|Short { text, unique }| format!("{text} {unique}"));
        insta::assert_snapshot!(short.join("\n"), @"
        1-7715-9c95-8a642d72e498 24
        00000000 4
        2-7715-9c95-8a642d72e498 24
        ctx 0
        ");
    }

    #[test]
    fn ambiguous_prefix_lists_candidates() {
        let task = |id: &str| {
            json!({ "id": id, "agentId": "echo", "status": { "timestamp": "2026-01-31T11:58:00Z" },
                "history": [{ "parts": [{ "kind": "text", "text": "delete the old\nfixtures" }] }] })
        };
        let now = "2026-01-31T12:00:00Z".parse().unwrap();
        let all: Vec<_> = IDS[..3].iter().map(|id| task(id)).collect();
        let chosen = |typed, found| chosen(Kind::Task, typed, found, now);
        assert_eq!(chosen("01a1fc8f-b", &all[2..]).unwrap(), IDS[2]);
        assert_eq!(chosen("nothing", &[]).unwrap(), "nothing", "the hub says that it knows none");
        let both = [json!({ "id": "ct" }), json!({ "id": "ctx" })];
        assert_eq!(chosen("ct", &both).unwrap(), "ct");
        let many = vec![all[0].clone(); NAMED + 1];
        assert!(chosen("0", &many).unwrap_err().to_string().ends_with("and more"));
        insta::assert_snapshot!(chosen("01a1", &all).unwrap_err(), @"
        `01a1` is part of the id of more than one task; give a longer part:
          1-7715-9c95-8a642d72e498  echo, 2 min ago: delete the old
          00000000  echo, 2 min ago: delete the old
          2-7715-9c95-8a642d72e498  echo, 2 min ago: delete the old
        ");
    }
}
