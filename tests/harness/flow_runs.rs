//! Runs of flows without a hub: the rule books get what the children of a flow's task answered, and
//! say how that task has to end.

use crate::{
    Client,
    stage::{said, state},
};
pub use a2a_hub_coordination::flow::Definition;
use a2a_hub_coordination::flow::{
    ChildChanges, ChildEnd, Finish, FlowAction, FlowEvent, FlowState, Id, Role, first_text_input,
};
use anyhow::{Context as _, Result, anyhow, ensure};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Most events that a search takes.
const MAX_EVENTS: usize = 200_000;

/// Most events of a run that were seen in another order than that of the recorded times.
const MAX_DEVIATIONS: usize = 4;

/// Time in milliseconds that an answer has to reach its flow on a busy machine, at most.
const DELIVERED_WITHIN: i64 = 1_000;

/// Task below a root.
#[derive(Debug)]
pub struct Child {
    /// Task of the agent that gave it.
    pub parent: String,
    /// Name of the call.
    pub key: String,
    /// Time of its creation.
    pub created: String,
    /// The task with its messages and artifacts.
    pub task: Value,
}

/// Run of a flow that ended.
pub struct FlowRun<'r> {
    definition: &'r Definition,
    input: Value,
    task: &'r Value,
    /// All agents that the task's agent may call.
    agents: BTreeSet<&'r str>,
    /// Children by their names.
    children: BTreeMap<&'r str, &'r Child>,
}

/// Something that a run waits for.
#[derive(Clone)]
enum Open<'r> {
    Call(&'r Child),
    /// Call of an agent that was not there.
    Without(String),
    Question(Option<String>),
    /// The earliest time at which it can ring, in milliseconds since 1970.
    Timer(i64),
}

/// A run, up to one of its events.
#[derive(Clone)]
struct Position<'r> {
    state: FlowState,
    /// Actions of the rules that are not carried out yet.
    actions: Vec<FlowAction>,
    open: BTreeMap<Id, Open<'r>>,
    begun: BTreeSet<&'r str>,
    /// Answers to questions that are not asked yet, the last one first.
    answers: Vec<String>,
    /// The earliest time at which the run can have been here, in milliseconds since 1970.
    now: i64,
}

/// Search for an order of events that explains the tasks.
struct Search {
    /// Events that it may still take.
    left: usize,
    /// Most calls of a run that agreed with the tasks up to there, and what did not agree.
    furthest: (usize, anyhow::Error),
}

impl Search {
    /// Keeps the reason of a run that agreed with the tasks for as many calls as any other.
    fn note(&mut self, calls: usize, why: anyhow::Error) {
        if calls >= self.furthest.0 {
            self.furthest = (calls, why);
        }
    }
}

impl Child {
    /// The child in one line.
    fn drawn(&self) -> String {
        let (task, created, key) = (&self.task, &self.created, &self.key);
        let (agent, ended) = (&task["agentId"], ended(task));
        format!("\n{key} {agent} {created} {ended} {} {:?}", state(task), said(task))
    }
}

/// Tasks below a root, oldest first.
pub async fn children(client: &Client, root: &str) -> Result<Vec<Child>> {
    let wanted = json!({ "workflow": root, "limit": 1000, "includeArtifacts": true });
    let listed = client.call("hub/tasks/list", wanted).await?;
    let mut tasks = BTreeMap::new();
    for task in listed.as_array().cloned().unwrap_or_default() {
        tasks.insert(task["id"].as_str().unwrap_or_default().to_owned(), task);
    }
    let tree = client.call("hub/tasks/tree", json!({ "id": root })).await?;
    ensure!(tree["cut"] == false, "the tree of {root} is cut");
    let mut all = Vec::new();
    let text = |of: &Value, name: &str| of[name].as_str().unwrap_or_default().to_owned();
    for one in tree["tasks"].as_array().into_iter().flatten().filter(|one| one["id"] != root) {
        let task = tasks.remove(&text(one, "id"));
        let task = task.with_context(|| format!("{one} is in the tree of {root} only"))?;
        let (parent, key) = (text(one, "parentId"), text(one, "key"));
        all.push(Child { parent, key, created: text(one, "createdAt"), task });
    }
    tasks.remove(root).with_context(|| format!("{root} is not in its workflow"))?;
    ensure!(tasks.is_empty(), "these tasks have no place in the tree of {root}: {tasks:?}");
    all.sort_by(|one, other| one.created.cmp(&other.created));
    Ok(all)
}

/// Parts of a message.
fn parts(message: &Value) -> impl Iterator<Item = &Value> {
    message["parts"].as_array().into_iter().flatten()
}

/// Messages of the client of a task.
fn asked(task: &Value) -> Vec<&Value> {
    let history = task["history"].as_array().into_iter().flatten();
    history.filter(|message| message["role"] == "user").collect()
}

fn text_of(message: &Value) -> String {
    parts(message).filter_map(|part| part["text"].as_str()).collect()
}

/// Text of a part that holds a file.
fn file_text(part: &Value) -> Option<String> {
    let bytes = BASE64_STANDARD.decode(part["file"]["bytes"].as_str()?).ok()?;
    String::from_utf8(bytes).ok()
}

fn data_of(message: &Value) -> Option<&Value> {
    parts(message).find_map(|part| part.get("data"))
}

/// Failure reason of a task.
fn reason(task: &Value) -> Option<&str> {
    let reason = task["status"]["message"]["metadata"]["reason"].as_str();
    reason.or_else(|| task["metadata"]["reason"].as_str())
}

/// Time at which a task ended.
fn ended(task: &Value) -> &str {
    task["status"]["timestamp"].as_str().unwrap_or_default()
}

/// End of a child as the flow's agent sees it.
fn end(task: &Value) -> ChildEnd {
    let completed = state(task) == "completed";
    let (mut artifacts, mut worktree) = (Map::new(), None);
    for artifact in task["artifacts"].as_array().into_iter().flatten() {
        if artifact["artifactId"] == "patch" {
            let count = |name: &str| artifact["metadata"][name].as_u64().unwrap_or_default();
            worktree = Some(ChildChanges {
                files: count("files"),
                insertions: count("insertions"),
                deletions: count("deletions"),
                diff: parts(artifact).filter_map(file_text).collect(),
            });
            continue;
        }
        let id = artifact["artifactId"].as_str().unwrap_or_default();
        artifacts.insert(id.to_owned(), text_of(artifact).into());
    }
    let mut text = said(task).to_owned();
    if text.is_empty() && completed {
        text = artifacts.values().filter_map(Value::as_str).collect::<Vec<_>>().join("\n");
    }
    let reason = match state(task) {
        "failed" => reason(task).unwrap_or("step_failed"),
        "rejected" => "rejected",
        "canceled" => "canceled",
        _ => "",
    };
    let data = data_of(&task["status"]["message"]).cloned();
    let cost_usd = task["metadata"]["cost_usd"].as_f64();
    ChildEnd { completed, text, data, artifacts, reason: reason.to_owned(), worktree, cost_usd }
}

impl<'r> FlowRun<'r> {
    /// Takes a flow's task that has ended, with its children, in whatever order.
    pub fn new(
        definition: &'r Definition,
        task: &'r Value,
        agents: BTreeSet<&'r str>,
        children: impl IntoIterator<Item = &'r Child>,
    ) -> Result<Self> {
        let id = task["id"].as_str().context("no id")?;
        let mut own = BTreeMap::new();
        for child in children.into_iter().filter(|child| child.parent == id) {
            let twice = own.insert(child.key.as_str(), child);
            ensure!(twice.is_none(), "`{}` was done twice: {twice:?} {child:?}", child.key);
        }
        let first = asked(task).first().copied().context("it was asked nothing")?;
        let of_text = |text: String| match first_text_input(&definition.input) {
            Some(name) if !text.is_empty() => json!({ name: text }),
            Some(_) | None => json!({}),
        };
        let input = match data_of(first) {
            Some(data) if data["do"] == "run" => {
                of_text(data["text"].as_str().unwrap_or_default().to_owned())
            }
            Some(data) => data.clone(),
            None => of_text(text_of(first)),
        };
        let input = definition.with_defaults(input).map_err(anyhow::Error::msg)?;
        Ok(Self { definition, input, task, agents, children: own })
    }

    /// Checks that the task ended as its rules say, with exactly the children that they ask for,
    /// each with the message that they give it. A flow may see the ends of children in another
    /// order than that of their times, above all after a restart; an order is searched for that
    /// explains what it did.
    pub fn check(&self) -> Result<()> {
        let id = self.task["id"].as_str().unwrap_or_default();
        let answers = asked(self.task).into_iter().skip(1).map(text_of);
        let mut state = FlowState::new(self.definition.clone(), self.input.clone(), id);
        let begin = Position {
            actions: state.step(FlowEvent::Begun),
            state,
            open: BTreeMap::new(),
            begun: BTreeSet::new(),
            answers: answers.rev().collect(),
            now: 0,
        };
        let mut search = Search { left: MAX_EVENTS, furthest: (0, anyhow!("it has no events")) };
        for deviations in 0..=MAX_DEVIATIONS {
            if self.explains(begin.clone(), deviations, &mut search)? {
                return Ok(());
            }
        }
        let drawn: String = self.children.values().map(|child| child.drawn()).collect();
        Err(search.furthest.1.context(drawn))
    }

    /// Searches on from a position, with at most that many events in another order.
    fn explains(
        &self,
        mut at: Position<'r>,
        deviations: usize,
        search: &mut Search,
    ) -> Result<bool> {
        match self.act(&mut at) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(why) => {
                search.note(at.begun.len(), why);
                return Ok(false);
            }
        }
        let events = possible(&at.open);
        let Some((first, others)) = events.split_first() else {
            let why = anyhow!("it waits for nothing that came: {}", self.task);
            search.note(at.begun.len(), why);
            return Ok(false);
        };
        let others = if deviations == 0 { &[] } else { others };
        let orders = std::iter::once((first, deviations));
        for (id, deviations) in orders.chain(others.iter().map(|id| (id, deviations - 1))) {
            let left = search.left.checked_sub(1);
            search.left = left.context("no order of events explains it, of all that were tried")?;
            let mut next = at.clone();
            self.take(&mut next, *id);
            if self.explains(next, deviations, search)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Does what the rules ask for; true if that ended the run.
    fn act(&self, at: &mut Position<'r>) -> Result<bool> {
        for action in std::mem::take(&mut at.actions) {
            match action {
                FlowAction::Call { id, agent, text, data, .. } => {
                    let child = self.children.get(id.to_string().as_str()).copied();
                    let Some(child) = child else {
                        at.open.insert(id, Open::Without(agent));
                        continue;
                    };
                    require_call(child, &agent, &text, data.as_ref())?;
                    at.begun.insert(child.key.as_str());
                    at.now = at.now.max(milliseconds(&child.created));
                    at.open.insert(id, Open::Call(child));
                }
                FlowAction::Ask { id, .. } => {
                    at.open.insert(id, Open::Question(at.answers.pop()));
                }
                FlowAction::Wait { id, ms } => {
                    let due = at.now.saturating_add_unsigned(ms);
                    at.open.insert(id, Open::Timer(due));
                }
                FlowAction::Cancel(id) => drop(at.open.remove(&id)),
                FlowAction::Say(_) | FlowAction::Send { .. } => {}
                FlowAction::Finish(finish) => {
                    let all = self.children.keys().copied();
                    let unknown: Vec<_> = all.filter(|key| !at.begun.contains(key)).collect();
                    ensure!(unknown.is_empty(), "its rules do not ask for {unknown:?}");
                    self.compare(&finish)?;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Lets something happen.
    fn take(&self, at: &mut Position<'r>, id: Id) {
        let event = match at.open.remove(&id) {
            Some(Open::Call(child)) => {
                at.now = at.now.max(milliseconds(ended(&child.task)));
                FlowEvent::Ended(id, end(&child.task))
            }
            Some(Open::Without(agent)) => FlowEvent::Ended(id, self.without(&agent)),
            Some(Open::Question(answer)) => FlowEvent::Answered(id, answer.unwrap_or_default()),
            Some(Open::Timer(due)) => {
                at.now = at.now.max(due);
                FlowEvent::Rang(id)
            }
            None => FlowEvent::Rang(id),
        };
        at.actions = at.state.step(event);
    }

    /// End of a call of the only agent that was not there at that moment.
    fn without(&self, agent: &str) -> ChildEnd {
        let others = self.agents.iter().copied().filter(|it| *it != agent);
        let others = others.collect::<Vec<_>>().join(", ");
        let text = format!("call `{agent}`: no agent is called so; this one may call: {others}");
        ChildEnd { reason: "invalid_request".to_owned(), text, ..ChildEnd::default() }
    }

    /// Compares the end of the rules with that of the task.
    fn compare(&self, finish: &Finish) -> Result<()> {
        let task = self.task;
        let mut artifacts = task["artifacts"].as_array().into_iter().flatten();
        let output = artifacts.find(|it| it["artifactId"] == "output").and_then(data_of);
        let expected = if finish.completed { "completed" } else { "failed" };
        let is_right = state(task) == expected
            && said(task) == finish.text
            && (finish.completed || reason(task) == Some(&finish.reason))
            && (!finish.completed || output.map(sorted) == finish.output.as_ref().map(sorted));
        ensure!(is_right, "its rules say {finish:?}, and it ended as {task:#}");
        Ok(())
    }
}

/// Events that can come now, the likeliest first: pauses end and calls that could not start fail,
/// children end in the order of their times, the user answers, and time limits come last. A limit
/// comes before no answer that was in long before it.
fn possible(open: &BTreeMap<Id, Open<'_>>) -> Vec<Id> {
    let is_limit = |id: &Id| !matches!(id.role, Role::Work | Role::Backoff);
    let of_children = open.values().filter_map(|it| match it {
        Open::Call(child) if state(&child.task) != "canceled" => Some(ended(&child.task)),
        Open::Call(_) | Open::Without(_) | Open::Question(_) | Open::Timer(_) => None,
    });
    let first_end = of_children.map(milliseconds).min().unwrap_or(i64::MAX);
    let mut events: Vec<_> = open
        .iter()
        .filter_map(|(id, it)| {
            let rank = match it {
                Open::Without(_) => (0, ""),
                // It was cancelled because the flow did not see its end.
                Open::Call(child) if state(&child.task) == "canceled" => return None,
                Open::Call(child) => (1, ended(&child.task)),
                Open::Question(Some(_)) => (2, ""),
                Open::Question(None) => return None,
                Open::Timer(_) if !is_limit(id) => (0, ""),
                Open::Timer(due) if first_end.saturating_add(DELIVERED_WITHIN) < *due => {
                    return None;
                }
                Open::Timer(_) if id.role == Role::Answers => (3, ""),
                Open::Timer(_) => (4, ""),
            };
            Some((rank, *id))
        })
        .collect();
    events.sort_unstable();
    events.into_iter().map(|(_, id)| id).collect()
}

/// Time in milliseconds since 1970.
fn milliseconds(time: &str) -> i64 {
    time.parse::<Timestamp>().map_or(0, Timestamp::as_millisecond)
}

/// A value without the order of its lists: answers are listed as they came.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<_> = items.iter().map(sorted).collect();
            items.sort_by_cached_key(Value::to_string);
            Value::Array(items)
        }
        Value::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), sorted(member))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Checks that a child was asked what the rules say.
fn require_call(child: &Child, agent: &str, text: &str, data: Option<&Value>) -> Result<()> {
    let asked = asked(&child.task);
    let asked = asked.first().with_context(|| format!("`{}` was asked nothing", child.key))?;
    let is_right = child.task["agentId"] == agent
        && data_of(asked) == data
        && (data.is_some() || text_of(asked) == text);
    let key = &child.key;
    ensure!(is_right, "the rules have {agent} do {text:?} {data:?} as `{key}`, and it was {asked}");
    Ok(())
}
