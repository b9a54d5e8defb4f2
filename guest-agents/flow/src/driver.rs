//! Carries out the actions of the engine: children, questions and timers.

use std::collections::{BTreeMap, BTreeSet};

use a2a_hub_coordination::flow::{
    BoardChange, ChildChanges, ChildEnd, ChildWorktree, Definition, Finish, FlowAction, FlowEvent,
    FlowState, Id, Inheritance, Role,
};
use a2a_hub_sdk::prelude::*;
use a2a_hub_sdk::serde_json::{Map, Value};

use crate::record;

/// Beginning of the metadata member with a blackboard; the id of its step follows.
const BLACKBOARD: &str = "blackboard.";

/// Metadata member of a message that gives an agent a turn at a blackboard: its program gets the
/// tools for it.
const HAS_TURN: &str = "blackboard";

/// Metadata member with the latest answers to changes of blackboards by agents at work.
const BLACKBOARD_ANSWERS: &str = "blackboardAnswers";

/// Metadata member of a child's status: a change of the blackboard, which the hub adds for the
/// programs of the child's agent. An agent cannot write it.
const BLACKBOARD_CHANGE: &str = "blackboardChange";

/// Most bytes that are kept of one artifact's text while it grows.
const MAX_ARTIFACT: usize = 128 << 10;

/// Most artifacts that are kept of one child.
const MAX_ARTIFACTS: usize = 16;

/// Time that an answer of the user has to arrive when a time limit is over: after a restart it is
/// delivered anew.
const GRACE: Duration = Duration::from_millis(200);

/// Something that the flow waits for.
enum Open {
    Call(Call, ChildOutput),
    Question(OpenQuestion),
    Timer(Timer),
}

/// Metadata member of a message with a part of another step's text.
const STREAM: &str = "stream";

/// Metadata members of a status that says that the child has read a message, at work or as the
/// first one of another run.
const HAS_READ: [&str; 2] = ["received", "unheard"];

/// Results of a child so far.
#[derive(Default)]
struct ChildOutput {
    /// Texts of its artifacts, by id.
    artifacts: Map<String, Value>,
    /// Changes in its worktree.
    worktree: Option<ChildChanges>,
    /// Artifact whose text is handed over while it is written: the first one with a text.
    written: Option<String>,
    /// True once that artifact was replaced: the rest of the text follows at the end.
    is_rewritten: bool,
}

/// Runs a flow to its end.
pub(crate) fn run(ctx: &Context, task: &Task, mut definition: Definition, input: Value) -> Run {
    if definition.uses_record() {
        definition.weigh(&record::read(ctx)?);
    }
    let mut state = FlowState::new(definition, input, &task.id);
    let mut open = BTreeMap::<Id, Open>::new();
    let mut children = Children::new();
    let mut actions = state.step(FlowEvent::Begun);
    loop {
        let mut events = Vec::new();
        report_boards(ctx, &mut state)?;
        for action in actions {
            match action {
                FlowAction::Finish(finish) => {
                    record::store_results(ctx, task, &state.results())?;
                    return end(ctx, finish, &children);
                }
                action @ (FlowAction::Call { .. }
                | FlowAction::Send { .. }
                | FlowAction::Ask { .. }
                | FlowAction::Wait { .. }
                | FlowAction::Cancel(_)
                | FlowAction::Say(_)) => {
                    let shares_board =
                        matches!(action, FlowAction::Call { id, .. } if state.shares_board(id));
                    events.extend(act(ctx, action, shares_board, &mut open, &mut children)?);
                }
            }
        }
        if events.is_empty() {
            events = wait(ctx, &mut open, &children)?;
        }
        actions = Vec::new();
        for event in events {
            // The texts of other children are read at their end.
            if !matches!(&event, FlowEvent::Wrote(id, _) if !state.streams(*id)) {
                actions.extend(state.step(event));
            }
        }
    }
}

/// Reports blackboards, and the answers to changes by agents at work: the latest state of each
/// board and the latest answers are members of the task's metadata.
fn report_boards(ctx: &Context, state: &mut FlowState) -> Result<(), Failure> {
    let (boards, answers) = (state.take_boards(), state.take_board_answers());
    let mut events: Vec<_> = boards.iter().map(|(step, board)| of_board(step, board)).collect();
    if !answers.is_empty() {
        // After the boards: who has the answer sees the change.
        let metadata = json!({ BLACKBOARD_ANSWERS: answers });
        events.push(TaskStatus::bare(TaskState::Working).with_metadata(&metadata));
    }
    if events.is_empty() { Ok(()) } else { ctx.emit(events) }
}

fn of_board(step: &str, board: &Value) -> TaskStatus {
    let items = board["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let done = items.iter().filter(|item| item["state"] == "done").count();
    let (all, round) = (items.len(), &board["round"]);
    let text = format!("{step}: {done} of {all} items are done, round {round}");
    let metadata = json!({ format!("{BLACKBOARD}{step}"): board });
    TaskStatus::new(TaskState::Working, text).with_metadata(&metadata)
}

/// Task ids of the children, by name.
type Children = BTreeMap<Id, String>;

/// Carries out one action. A call that cannot start ends at once. With `shares_board`, the called
/// agent has a turn at a blackboard.
fn act(
    ctx: &Context,
    action: FlowAction,
    shares_board: bool,
    open: &mut BTreeMap<Id, Open>,
    children: &mut Children,
) -> Result<Option<FlowEvent>, Failure> {
    match action {
        FlowAction::Call { id, agent, text, data, permissions, inherit, worktree, stream } => {
            let parts = data.map_or_else(|| Part::text(text), |data| Part::data(&data));
            let mut message = Message::user(vec![parts]);
            let skill = agent.strip_prefix("skill:");
            let mut metadata = Map::new();
            metadata.extend(permissions.map(|word| ("permissions".to_owned(), word.into())));
            metadata.extend(skill.map(|skill| ("targetSkill".to_owned(), skill.into())));
            metadata.extend(stream.map(|facts| (STREAM.to_owned(), facts)));
            metadata.extend(shares_board.then(|| (HAS_TURN.to_owned(), true.into())));
            metadata.extend(inherit.into_iter().flat_map(|it| memory(it, children)));
            let mut options = CallOptions::new().key(id.to_string());
            if let Some(worktree) = worktree {
                let Some(worktree) = worktree_of(worktree, children) else {
                    return Ok(Some(FlowEvent::Ended(id, without_worktree())));
                };
                options = options.worktree(worktree);
            }
            if !metadata.is_empty() {
                message = message.with_metadata(&Value::Object(metadata));
            }
            // A skill is taken by any agent that has it.
            let agent = if skill.is_some() { String::new() } else { agent };
            match ctx.call_with(&agent, message, &options) {
                Ok(call) => {
                    children.insert(id, call.task_id());
                    open.insert(id, Open::Call(call, ChildOutput::default()));
                }
                Err(Failure::Cancelled) => return Err(Failure::Cancelled),
                Err(why) => return Ok(Some(FlowEvent::Ended(id, failed(&why)))),
            }
        }
        FlowAction::Send { id, text, facts } => {
            let Some(Open::Call(call, _)) = open.get(&id) else { return Ok(None) };
            let metadata = Map::from_iter([(STREAM.to_owned(), facts)]);
            let message = Message::user(vec![Part::text(text)]);
            match call.send(message.with_metadata(&Value::Object(metadata))) {
                Ok(()) => {}
                Err(Failure::Cancelled) => return Err(Failure::Cancelled),
                // It asks, or has ended, which its next event says.
                Err(_) => return Ok(Some(FlowEvent::Unsent(id))),
            }
        }
        FlowAction::Ask { id, text } => match ctx.pose(Need::Input, text, None) {
            Ok(question) => drop(open.insert(id, Open::Question(question))),
            Err(Failure::Cancelled) => return Err(Failure::Cancelled),
            Err(why) => return Ok(Some(FlowEvent::Ended(id, failed(&why)))),
        },
        FlowAction::Wait { id, ms } => {
            drop(open.insert(id, Open::Timer(Timer::after(Duration::from_millis(ms)))));
        }
        // Dropping a call cancels the child, dropping a question withdraws it.
        FlowAction::Cancel(id) => drop(open.remove(&id)),
        FlowAction::Say(text) => ctx.say(text)?,
        FlowAction::Finish(_) => {}
    }
    Ok(None)
}

/// Waits until something that is open is ready, and takes one event of each. Time limits come last:
/// after a restart, or on a busy hub, answers that were in before the limit still count.
fn wait(
    ctx: &Context,
    open: &mut BTreeMap<Id, Open>,
    children: &Children,
) -> Result<Vec<FlowEvent>, Failure> {
    let all: Vec<_> = open.keys().copied().collect();
    let (due, others): (Vec<_>, Vec<_>) =
        ready(ctx, open, &all, None)?.into_iter().partition(|id| is_timer(open, *id));
    let mut events = next_events(open, others)?;
    let is_limit = |id: &Id| matches!(id.role, Role::Answers | Role::Timeout);
    if due.iter().any(is_limit) {
        events.extend(take_answers(ctx, open)?);
        events.extend(take_ends(ctx, open, children)?);
    }
    events.extend(next_events(open, due)?);
    Ok(events)
}

/// Takes the answers of the user that are in.
fn take_answers(ctx: &Context, open: &mut BTreeMap<Id, Open>) -> Result<Vec<FlowEvent>, Failure> {
    let questions = open.iter().filter(|(_, it)| matches!(it, Open::Question(_)));
    let questions: Vec<_> = questions.map(|(id, _)| *id).collect();
    if questions.is_empty() {
        return Ok(Vec::new());
    }
    let answered = ready(ctx, open, &questions, Some(GRACE))?;
    next_events(open, answered)
}

/// Takes all that is left of the children that have ended by now, however long it takes to arrive.
fn take_ends(
    ctx: &Context,
    open: &mut BTreeMap<Id, Open>,
    children: &Children,
) -> Result<Vec<FlowEvent>, Failure> {
    let mut events = Vec::new();
    if !open.values().any(|it| matches!(it, Open::Call(..))) {
        return Ok(events);
    }
    let over = ctx.children()?.into_iter().filter(|child| is_over(child.state));
    let over: BTreeSet<_> = over.map(|child| child.task_id).collect();
    loop {
        let is_remaining = |id: &Id| children.get(id).is_some_and(|task| over.contains(task));
        let remaining: Vec<_> = open.keys().copied().filter(is_remaining).collect();
        if remaining.is_empty() {
            return Ok(events);
        }
        let ready = ready(ctx, open, &remaining, None)?;
        events.extend(next_events(open, ready)?);
    }
}

fn is_over(state: TaskState) -> bool {
    match state {
        TaskState::Completed | TaskState::Failed | TaskState::Canceled | TaskState::Rejected => {
            true
        }
        TaskState::Submitted
        | TaskState::Working
        | TaskState::InputRequired
        | TaskState::AuthRequired => false,
    }
}

fn is_timer(open: &BTreeMap<Id, Open>, id: Id) -> bool {
    matches!(open.get(&id), Some(Open::Timer(_)))
}

/// Waits until one of these is ready, and returns all that are; none after the timeout.
fn ready(
    ctx: &Context,
    open: &BTreeMap<Id, Open>,
    ids: &[Id],
    timeout: Option<Duration>,
) -> Result<Vec<Id>, Failure> {
    let (ids, sources): (Vec<_>, Vec<_>) = ids
        .iter()
        .filter_map(|id| {
            let source = match open.get(id)? {
                Open::Call(call, _) => Source::Call(call),
                Open::Question(question) => Source::Question(question),
                Open::Timer(timer) => Source::Timer(timer),
            };
            Some((*id, source))
        })
        .unzip();
    let ready = ctx.wait(&sources, timeout)?;
    drop(sources);
    if ready.is_empty() && ctx.cancelled() {
        return Err(Failure::Cancelled);
    }
    Ok(ready.into_iter().filter_map(|index| ids.get(index).copied()).collect())
}

/// Takes one event of each of these, which are ready.
fn next_events(open: &mut BTreeMap<Id, Open>, ids: Vec<Id>) -> Result<Vec<FlowEvent>, Failure> {
    let mut events = Vec::new();
    for id in ids {
        match open.remove(&id) {
            Some(Open::Timer(_)) => events.push(FlowEvent::Rang(id)),
            Some(Open::Question(question)) => match question.answer() {
                Ok(answer) => events.push(FlowEvent::Answered(id, answer.text())),
                Err(Failure::Cancelled) => return Err(Failure::Cancelled),
                Err(why) => events.push(FlowEvent::Ended(id, failed(&why))),
            },
            Some(Open::Call(call, mut output)) => match call.next(None) {
                Ok(Update::Finished(outcome)) => {
                    events.push(FlowEvent::Ended(id, ended(&outcome, output)));
                }
                Ok(Update::Event(event)) => {
                    match event {
                        Event::Artifact(update) => {
                            let wrote = add_artifact(&mut output, &update);
                            events.extend(wrote.map(|text| FlowEvent::Wrote(id, text)));
                        }
                        Event::Status(status) => {
                            let facts = facts(&status);
                            if HAS_READ.iter().any(|name| facts.contains_key(*name)) {
                                events.push(FlowEvent::Took(id));
                            }
                            let change = facts.get(BLACKBOARD_CHANGE).and_then(change_of);
                            events.extend(change.map(|change| FlowEvent::Changed(id, change)));
                            let asks = [TaskState::InputRequired, TaskState::AuthRequired];
                            let to_event = if asks.contains(&status.state) {
                                FlowEvent::Paused
                            } else {
                                FlowEvent::Resumed
                            };
                            events.push(to_event(id));
                        }
                        Event::Other(_) => {}
                    }
                    open.insert(id, Open::Call(call, output));
                }
                Err(Failure::Cancelled) => return Err(Failure::Cancelled),
                Err(why) => events.push(FlowEvent::Ended(id, failed(&why))),
            },
            None => {}
        }
    }
    Ok(events)
}

/// Metadata of a message whose child gets memory before it begins.
fn memory(Inheritance { from, scope }: Inheritance, children: &Children) -> Map<String, Value> {
    let mut metadata = Map::new();
    if let Some(from) = from {
        let Some(task) = children.get(&from) else { return metadata };
        metadata.insert("memoryFrom".to_owned(), task.as_str().into());
    }
    metadata.insert("inheritWorkingMemory".to_owned(), true.into());
    metadata.insert("inheritMemory".to_owned(), true.into());
    metadata.insert("memoryScope".to_owned(), scope.into());
    metadata
}

/// Worktree of a child; none if the child that it names did not begin.
fn worktree_of(worktree: ChildWorktree, children: &Children) -> Option<Worktree> {
    match worktree {
        ChildWorktree::New => Some(Worktree::New),
        ChildWorktree::Of(id) => Some(Worktree::Of(children.get(&id)?.clone())),
    }
}

/// End of a child that has no worktree to work in.
fn without_worktree() -> ChildEnd {
    let text = "the step in whose worktree it works did not begin".to_owned();
    ChildEnd { reason: "unavailable".to_owned(), text, ..ChildEnd::default() }
}

fn facts(status: &TaskStatus) -> Map<String, Value> {
    let metadata = status.metadata.as_deref().unwrap_or_default();
    serde_json::from_str(metadata).unwrap_or_default()
}

/// Change of a blackboard; none if the child asks for none any more.
fn change_of(fact: &Value) -> Option<BoardChange> {
    let id = fact.get("id")?.as_str()?.to_owned();
    Some(BoardChange { id, contribution: fact.get("contribution")?.clone() })
}

/// Adds a piece of an artifact, within bounds. Returns it if it continues the child's text.
fn add_artifact(output: &mut ChildOutput, update: &ArtifactUpdate) -> Option<String> {
    let ChildOutput { artifacts, worktree, written, is_rewritten } = output;
    let id = &update.artifact.id;
    if let Some(changes) = update.worktree_changes() {
        let end = changes.patch.len().min(MAX_ARTIFACT);
        let diff = String::from_utf8_lossy(&changes.patch[..end]).into_owned();
        let a2a_hub_sdk::WorktreeChanges { files, insertions, deletions, .. } = changes;
        *worktree = Some(ChildChanges { files, insertions, deletions, diff });
        return None;
    }
    if !artifacts.contains_key(id) && artifacts.len() >= MAX_ARTIFACTS {
        return None;
    }
    let is_new = !artifacts.contains_key(id);
    let mut text = match artifacts.remove(id) {
        Some(Value::String(text)) if update.append => text,
        Some(_) | None => String::new(),
    };
    let piece = update.artifact.joined_text();
    let free = MAX_ARTIFACT.saturating_sub(text.len());
    text.extend(piece.chars().scan(0, |used, it| {
        *used += it.len_utf8();
        (*used <= free).then_some(it)
    }));
    artifacts.insert(id.clone(), text.into());
    if piece.is_empty() || written.get_or_insert_with(|| id.clone()) != id {
        return None;
    }
    *is_rewritten |= !update.append && !is_new;
    (!*is_rewritten).then_some(piece)
}

/// End of a child. Without a text, its answer is its artifacts.
fn ended(outcome: &Outcome, ChildOutput { artifacts, worktree, .. }: ChildOutput) -> ChildEnd {
    let completed = matches!(outcome.state(), None | Some(TaskState::Completed));
    let mut text = outcome.text();
    if text.is_empty() && completed {
        let texts = artifacts.values().filter_map(Value::as_str);
        text = texts.collect::<Vec<_>>().join("\n");
    }
    let message = match outcome {
        Outcome::Message(message) => Some(message),
        Outcome::Status(status) => status.message.as_ref(),
    };
    let data = message.and_then(Message::data);
    let reason = match (outcome.state(), reason(outcome)) {
        (Some(TaskState::Failed), Some(reason)) => reason,
        (Some(TaskState::Failed), None) => "step_failed".to_owned(),
        (Some(TaskState::Rejected), _) => "rejected".to_owned(),
        (Some(TaskState::Canceled), _) => "canceled".to_owned(),
        _ => String::new(),
    };
    let cost_usd = outcome.metadata().get("cost_usd").and_then(Value::as_f64);
    ChildEnd { completed, text, data, artifacts, reason, worktree, cost_usd }
}

fn reason(outcome: &Outcome) -> Option<String> {
    outcome.metadata().get("reason")?.as_str().map(str::to_owned)
}

/// End of a child that could not start, or whose end the hub could not tell.
fn failed(why: &Failure) -> ChildEnd {
    let reason = match why {
        Failure::Denied(_) => "denied",
        Failure::Exhausted(_) => "limit_exceeded",
        Failure::Timeout => "timeout",
        Failure::Unavailable(_) => "unavailable",
        Failure::Cancelled => "canceled",
        Failure::Invalid(_) => "invalid_request",
        Failure::Unsupported(_) => "unsupported",
        Failure::Internal(_) => "agent_error",
    };
    ChildEnd { reason: reason.to_owned(), text: why.text().to_owned(), ..ChildEnd::default() }
}

/// Ends the flow's task. Its metadata name the child whose worktree has the result.
fn end(ctx: &Context, finish: Finish, children: &Children) -> Run {
    if !finish.completed {
        return ctx.fail(&finish.reason, finish.text);
    }
    if let Some(output) = finish.output {
        ctx.artifact(Artifact::new("output", vec![Part::data(&output)]))?;
    }
    match finish.worktree.and_then(|child| children.get(&child)) {
        Some(task) => Ok(TaskStatus::new(TaskState::Completed, finish.text)
            .with_metadata(&json!({ "worktreeTask": task }))
            .into()),
        None => ctx.done(finish.text),
    }
}
