//! Child tasks of a turn as tool calls: the work that the agent gave to other agents, with its
//! state.

use a2a_hub_core::{
    access_control::{self, Principal},
    text::plain_text,
};
use a2a_hub_engine::observability::hub_event_stream::HubEventStream;
use a2a_hub_engine::{Reply, ReplyStream};
use a2a_hub_protocol::{
    hub::event::{HubEventKind, StreamEnd},
    id::TaskId,
    message::joined_text,
    operation::{Answer, EventWatch, Operation, TaskTree, TreeQuery, TreeTask},
    task::{Task, TaskState},
};
use a2a_hub_rpc::dispatcher::Dispatcher;
use futures::FutureExt as _;
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    future::pending,
    time::Duration,
};
use tokio::time::{Instant, sleep_until};

/// Time between the first sign of a change and the reading of the tree, so that many changes cost
/// one reading.
const PAUSE: Duration = Duration::from_millis(100);

/// Limits of the tree that is read.
const MAX_DEPTH: usize = 8;
const MAX_CHILDREN: usize = 256;

/// Maximum number of other clients' tasks that are remembered as such.
const MAX_FOREIGN: usize = 1_000;

/// Maximum length of a title, and of a child's answer, in characters.
const MAX_TITLE: usize = 120;
const MAX_ANSWER: usize = 4_000;

/// Watches the descendants of a turn's task.
pub(super) struct ChildWatch<'a> {
    dispatcher: &'a Dispatcher,
    caller: &'a Principal,
    /// Task of the turn; `None` before it begins.
    root: Option<TaskId>,
    /// Events of the hub; `None` if the caller may not watch the hub.
    events: Option<HubEventStream>,
    /// Time at which the tree is read; `None` if it is not known to have changed.
    due: Option<Instant>,
    calls: ChildCalls,
    foreign: HashSet<TaskId>,
}

impl<'a> ChildWatch<'a> {
    /// Begins before the turn's message is sent, so that no child is missed. The client knows
    /// `calls` from an earlier turn of the task.
    pub(super) async fn begin(
        dispatcher: &'a Dispatcher,
        caller: &'a Principal,
        calls: ChildCalls,
    ) -> Self {
        let events = listen(dispatcher, caller).await;
        let (root, due, foreign) = Default::default();
        Self { dispatcher, caller, root, events, due, calls, foreign }
    }

    /// Children that the client knows.
    pub(super) fn into_calls(self) -> ChildCalls {
        self.calls
    }

    /// Sets the task of the turn.
    pub(super) fn set_root(&mut self, root: &TaskId) {
        self.root = Some(root.clone());
    }

    /// Waits until the tree may have changed; cancel-safe.
    pub(super) async fn due(&mut self) {
        loop {
            let Some(events) = &mut self.events else { return pending().await };
            let event = match self.due {
                Some(due) => tokio::select! {
                    () = sleep_until(due) => return,
                    event = events.next() => event,
                },
                None => events.next().await,
            };
            match event {
                Ok(event) => self.apply(&event.what),
                Err(StreamEnd::HubStopped) => self.events = None,
                Err(StreamEnd::TooSlow) => {
                    self.events = listen(self.dispatcher, self.caller).await;
                    self.note();
                }
            }
        }
    }

    fn apply(&mut self, event: &HubEventKind) {
        let HubEventKind::TaskState { task_id, .. } = event else { return };
        if self.root.as_ref() != Some(task_id) && !self.foreign.contains(task_id) {
            self.foreign.insert(task_id.clone());
            self.note();
        }
    }

    fn note(&mut self) {
        self.due.get_or_insert_with(|| Instant::now() + PAUSE);
    }

    /// Updates at the end of the turn's stream, of changes that were not read yet.
    pub(super) async fn drain(&mut self) -> Vec<Value> {
        while let Some(events) = &mut self.events
            && let Some(Ok(event)) = events.next().now_or_never()
        {
            self.apply(&event.what);
        }
        if self.due.is_some() { self.read().await } else { Vec::new() }
    }

    /// Updates at the end of the turn's task: the final states of the children. One that has none
    /// yet is cancelled with the task, so it counts as failed.
    pub(super) async fn end(&mut self) -> Vec<Value> {
        if !self.calls.has_open() {
            return Vec::new();
        }
        let mut updates = self.read().await;
        updates.extend(self.calls.end());
        updates
    }

    /// Reads the tree, and returns the updates of what changed.
    pub(super) async fn read(&mut self) -> Vec<Value> {
        self.due = None;
        let Some(root) = &self.root else { return Vec::new() };
        let Some(tree) = tree(self.dispatcher, self.caller, root).await else { return Vec::new() };
        // The state of a child changes again, whereas other tasks never become children.
        for task in &tree.tasks {
            self.foreign.remove(&task.id);
        }
        if self.foreign.len() > MAX_FOREIGN {
            self.foreign.clear();
        }
        let mut updates = Vec::new();
        for (task, is_new) in self.calls.changed(&tree) {
            let answer = match task.state.is_final() {
                true => answer(self.dispatcher, self.caller, &task.id).await,
                false => None,
            };
            updates.push(update(task, is_new, answer.as_deref()));
        }
        updates
    }
}

async fn listen(dispatcher: &Dispatcher, caller: &Principal) -> Option<HubEventStream> {
    let watch = Operation::WatchHub(EventWatch::Live);
    // A refusal would be logged for each turn.
    caller.may(access_control::needed(&watch)).ok()?;
    match dispatcher.hub().handle(caller, None, watch).await {
        Ok(Reply::Stream(ReplyStream::Hub(events))) => Some(events),
        Ok(_) | Err(_) => None,
    }
}

/// Tool calls of all descendants of a task, for a conversation that is loaded.
pub(super) async fn loaded(
    dispatcher: &Dispatcher,
    caller: &Principal,
    root: &TaskId,
) -> Vec<Value> {
    let Some(tree) = tree(dispatcher, caller, root).await else { return Vec::new() };
    let descendants = tree.tasks.iter().filter(|task| task.depth > 0);
    descendants.map(|task| update(task, true, None)).collect()
}

async fn tree(dispatcher: &Dispatcher, caller: &Principal, root: &TaskId) -> Option<TaskTree> {
    let query = TreeQuery { id: root.clone(), depth: MAX_DEPTH, limit: MAX_CHILDREN };
    match dispatcher.hub().handle(caller, None, Operation::GetTree(query)).await {
        Ok(Reply::One(Answer::Tree(tree))) => Some(tree),
        Ok(_) | Err(_) => None,
    }
}

/// Answer of a finished child.
async fn answer(dispatcher: &Dispatcher, caller: &Principal, id: &TaskId) -> Option<String> {
    let get = Operation::GetTask { id: id.clone(), history_length: Some(0) };
    match dispatcher.hub().handle(caller, None, get).await {
        Ok(Reply::One(Answer::Task(task))) => Some(text_of(&task)),
        Ok(_) | Err(_) => None,
    }
}

fn text_of(task: &Task) -> String {
    let message_text = task.status.message.as_ref().map(|message| message.joined_text());
    let artifact_text =
        || task.artifacts.iter().map(|artifact| joined_text(&artifact.parts)).collect::<String>();
    let text =
        message_text.filter(|message_text| !message_text.is_empty()).unwrap_or_else(artifact_text);
    text.chars().take(MAX_ANSWER).collect()
}

/// States of the children that the client knows, each with its open question.
#[derive(Debug, Default)]
pub(super) struct ChildCalls(HashMap<TaskId, (TaskState, Option<String>)>);

impl ChildCalls {
    fn has_open(&self) -> bool {
        self.0.values().any(|(state, _)| !state.is_final())
    }

    /// Ends the children without a final state.
    fn end(&mut self) -> Vec<Value> {
        let mut open: Vec<_> =
            self.0.iter_mut().filter(|(_, (state, _))| !state.is_final()).collect();
        open.sort_by(|(one, _), (other, _)| one.as_str().cmp(other.as_str()));
        let end = |(id, (state, question)): (&TaskId, &mut (TaskState, Option<String>))| {
            (*state, *question) = (TaskState::Canceled, None);
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status(*state) })
        };
        open.into_iter().map(end).collect()
    }

    /// Children that are new or changed, each with true if it is new.
    fn changed<'t>(&mut self, tree: &'t TaskTree) -> Vec<(&'t TreeTask, bool)> {
        let mut changed = Vec::new();
        for task in tree.tasks.iter().filter(|task| task.depth > 0) {
            let question = task.question.as_ref().map(|question| question.id.as_str().to_owned());
            let now = (task.state, question);
            let before = self.0.insert(task.id.clone(), now.clone());
            if before.as_ref() != Some(&now) {
                changed.push((task, before.is_none()));
            }
        }
        changed
    }
}

/// Session update of a child: `tool_call` if it is new, `tool_call_update` otherwise.
fn update(task: &TreeTask, is_new: bool, answer: Option<&str>) -> Value {
    let mut update = json!({
        "sessionUpdate": if is_new { "tool_call" } else { "tool_call_update" },
        "toolCallId": task.id,
        "status": status(task.state),
    });
    let Some(members) = update.as_object_mut() else { return update };
    if is_new {
        let title = plain_text::line(&format!("{}: {}", task.agent_id, task.asked), MAX_TITLE);
        members.extend([
            ("title".to_owned(), title.into()),
            ("name".to_owned(), task.agent_id.as_str().into()),
            ("kind".to_owned(), "other".into()),
            ("rawInput".to_owned(), json!({ "message": task.asked })),
            ("_meta".to_owned(), json!({ "a2a-hub/taskId": task.id })),
        ]);
    }
    let question = task.question.as_ref().map(|question| question.text.as_str());
    let text = question.or(answer).or(task.reason.as_deref()).filter(|text| !text.is_empty());
    if let Some(text) = text {
        let block = json!({ "type": "content", "content": { "type": "text", "text": text } });
        members.insert("content".to_owned(), json!([block]));
    }
    update
}

fn status(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted | TaskState::InputRequired | TaskState::AuthRequired => "pending",
        TaskState::Working | TaskState::Unknown => "in_progress",
        TaskState::Completed => "completed",
        TaskState::Failed | TaskState::Canceled | TaskState::Rejected => "failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::{AgentId, ContextId},
        operation::TreeQuestion,
        question::{Question, QuestionKind},
    };

    fn task(id: &str, depth: usize, state: TaskState) -> TreeTask {
        TreeTask {
            id: TaskId::new(id),
            parent_id: None,
            depth,
            agent_id: AgentId::parse("codex").unwrap(),
            context_id: ContextId::new("c"),
            key: None,
            reachable_agents: None,
            state,
            created_at: String::new(),
            updated_at: String::new(),
            tokens: 0,
            cost_usd: 0.0,
            reason: None,
            asked: "review\u{1b} it".to_owned(),
            question: None,
            hidden: 0,
        }
    }

    fn changed(calls: &mut ChildCalls, tasks: Vec<TreeTask>) -> Vec<Value> {
        let tree = TaskTree { tasks, cut: false };
        calls.changed(&tree).into_iter().map(|(task, is_new)| update(task, is_new, None)).collect()
    }

    #[test]
    fn child_becomes_tool_call_once() {
        let mut calls = ChildCalls::default();
        let root = || task("root", 0, TaskState::Working);
        assert!(changed(&mut calls, vec![root()]).is_empty());
        let told = changed(&mut calls, vec![root(), task("a", 1, TaskState::Submitted)]);
        assert_eq!((told.len(), &told[0]["sessionUpdate"]), (1, &json!("tool_call")));
        assert_eq!(
            (&told[0]["title"], &told[0]["status"]),
            (&json!("codex: review it"), &json!("pending"))
        );
        let working = || vec![root(), task("a", 1, TaskState::Working)];
        let told = changed(&mut calls, working());
        let update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "a", "status": "in_progress" });
        assert_eq!(told, [update]);
        assert!(changed(&mut calls, working()).is_empty());
        for state in [TaskState::Failed, TaskState::Canceled, TaskState::Rejected] {
            let told = changed(&mut calls, vec![root(), task("a", 2, state)]);
            assert_eq!(told[0]["status"], "failed");
        }
    }

    #[test]
    fn child_question_is_shown_as_content() {
        let mut asking = task("a", 1, TaskState::InputRequired);
        let id = Question::fresh(QuestionKind::Input).id;
        asking.question =
            Some(TreeQuestion { id, kind: QuestionKind::Input, text: "which?".to_owned() });
        let told = changed(&mut ChildCalls::default(), vec![asking]);
        assert_eq!(told[0]["status"], "pending");
        assert_eq!(told[0]["content"][0]["content"]["text"], "which?");
    }

    #[test]
    fn open_children_end_as_failed() {
        let mut calls = ChildCalls::default();
        let states = [
            ("b", TaskState::Working),
            ("c", TaskState::Completed),
            ("a", TaskState::InputRequired),
        ];
        changed(&mut calls, states.map(|(id, state)| task(id, 1, state)).to_vec());
        let ended = calls.end();
        let ids: Vec<_> = ended.iter().map(|it| (&it["toolCallId"], &it["status"])).collect();
        let failed = json!("failed");
        assert_eq!(ids, [(&json!("a"), &failed), (&json!("b"), &failed)]);
        assert!(!calls.has_open() && calls.end().is_empty());
    }
}
