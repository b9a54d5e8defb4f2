//! Events that the hub itself writes into a task's log, and the machine-readable members of the
//! task's metadata.

use crate::{
    context_memory::transfer::INHERITED,
    failure_reason::FailureReason,
    routing::ROUTING,
    task::{
        prices::{PRICED, UNCOUNTED},
        question, trace_context,
        tree_budget::EARLIER_USAGE,
    },
};
use a2a_hub_protocol::{
    event::{StatusUpdate, TaskEvent},
    hub_metadata::TARGET_SKILL,
    id::{AgentId, MessageId, QuestionId, TaskId},
    message::{Message, Metadata, Role},
    permission::{ANSWERED_BY_RULE, PermissionRequest, RuleAnswer},
    question::{QUESTION, Question, QuestionKind},
    scheduled::{SCHEDULE, TRIGGER},
    task::{Task, TaskState, TaskStatus},
};
use std::collections::BTreeSet;

/// Metadata member of a task that is still queued.
pub const QUEUED: &str = "queued";

/// Metadata member with the reason of the task's state: the name of a [`FailureReason`],
/// [`RECOVERY`], or an agent's own word.
pub const REASON: &str = "reason";

/// Value of [`REASON`] for a task that its client must continue with a message.
pub const RECOVERY: &str = "recovery";

/// Metadata member with the ids of messages that the agent had not received at the end of a run. In
/// a finished task, these messages were never received.
pub const PENDING_MESSAGES: &str = "unheard";

/// Metadata member with the id of the message that the agent read last while it was at work.
pub const RECEIVED: &str = "received";

/// Metadata member of a task whose agent's program changes the blackboard of the flow that called
/// it.
pub use a2a_hub_protocol::boards::BLACKBOARD_CHANGE;

/// Metadata member with the permissions that the operator grants an agent's program in a task from
/// another agent: the word of a [`Permissions`](crate::grant::permissions::Permissions).
pub const GRANTED_PERMISSIONS: &str = "grantedPermissions";

/// Metadata member of a task that a narrowed key began, and of those below it: the agents that the
/// tree may reach, as a list of ids.
pub const REACHABLE_AGENTS: &str = "reachableAgents";

/// Metadata member of tasks that a person or a tenant's client began: scopes of cards, as a list.
pub const CARD_SCOPES: &str = "cardScopes";

/// Metadata member of a failed task: capabilities that its agent requested and lacks.
pub const NOT_GRANTED: &str = "notGranted";

/// Metadata member with the command that repairs a failure.
const FIX: &str = "fix";

/// Capabilities that a task requested in vain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedCapabilities {
    /// Names in the words of a grant, such as `process.git`.
    pub capabilities: BTreeSet<String>,
    /// Command that grants them.
    pub fix: Option<String>,
}

/// Metadata member with the digest of the flow file that the task's agent had when the task began:
/// `{"sha256": "…"}`.
pub const FLOW_FILE: &str = "flowFile";

/// Metadata member of a task with a worktree: `{"path": …, "base": …, "repository": …}`.
pub const WORKTREE: &str = "worktree";

/// Id of the artifact with the changes of a task in a worktree. Only the hub writes it.
pub const PATCH: &str = "patch";

/// Metadata member of that artifact: the other tasks whose changes conflict with it.
pub const CONFLICTS: &str = "conflicts";

/// Metadata member of a task that was handed over: `{"to": agent, "task": id}`, and the `reason` of
/// the failure if the hub did it.
pub const HANDOFF: &str = "handoff";

/// Metadata member of the task that goes on: `{"agent": id, "task": id}` of the old one, and the
/// `reason` of its failure if the hub handed it over.
pub const HANDOFF_FROM: &str = "handoffFrom";

/// Metadata member of a task that waits for the reset of a used-up quota: the time at which it
/// continues (RFC 3339).
pub const WAITS_UNTIL: &str = "waitsUntil";

/// Metadata member with the number of times that the task has waited for its quota.
pub const QUOTA_WAITS: &str = "quotaWaits";

/// Metadata member of an agent's failure for lack of quota: the time of the reset, in seconds or
/// milliseconds since 1970 or in RFC 3339.
pub const QUOTA_RESETS_AT: &str = "quotaResetsAt";

/// Number of waits of a task so far.
pub fn quota_waits(task: &Task) -> u64 {
    let facts = task.metadata.as_ref();
    facts.and_then(|facts| facts.get(QUOTA_WAITS)?.as_u64()).unwrap_or_default()
}

/// Time until which a task at work waits for its quota (RFC 3339), if it waits.
pub fn waiting_until(task: &Task) -> Option<&str> {
    let facts = task.metadata.as_ref().filter(|_| task.status.state == TaskState::Working)?;
    facts.get(WAITS_UNTIL)?.as_str()
}

/// Text of a metadata member.
pub fn text<'a>(task: &'a Task, name: &str) -> Option<&'a str> {
    task.metadata.as_ref()?.get(name)?.as_str()
}

/// True if the task has that metadata member, with any value.
pub fn has(task: &Task, name: &str) -> bool {
    task.metadata.as_ref().is_some_and(|facts| facts.contains_key(name))
}

/// Working directory that the client set last.
pub fn working_directory(task: &Task) -> Option<String> {
    task.history.iter().rev().find_map(directory_of).map(str::to_owned)
}

/// Working directory that a message requests.
pub fn directory_of(message: &Message) -> Option<&str> {
    message.metadata.as_ref()?.get("workingDirectory")?.as_str()
}

/// Value that the client set last under this name, in the metadata of its messages.
pub fn last_client_value<'a>(task: &'a Task, name: &str) -> Option<&'a str> {
    let value = |message: &'a Message| message.metadata.as_ref()?.get(name)?.as_str();
    task.history.iter().rev().filter(|message| message.role == Role::User).find_map(value)
}

/// True if the task has a question that its client has not answered.
pub fn asks(task: &Task) -> bool {
    task.status.state.is_interrupted() && task.status.message.is_some()
}

/// True if the task relays this question of a child, and its client has not answered.
pub fn asks_for_child(task: &Task, question: &Question) -> bool {
    asks(task)
        && Question::from_metadata(task.metadata.as_ref())
            .is_some_and(|current| current == *question)
}

/// Adds the ids of the task and its context to a message of the agent, or of the hub on its behalf.
pub fn addressed(task: &Task, mut message: Message) -> Message {
    message.task_id = Some(task.id.clone());
    message.context_id = Some(task.context_id.clone());
    message
}

/// Status event of the task at the time `now`.
pub fn status(
    task: &Task,
    state: TaskState,
    message: Option<Message>,
    metadata: Option<Metadata>,
    now: String,
) -> TaskEvent {
    let message = message.map(|message| addressed(task, message));
    let status = TaskStatus { state, message, timestamp: now };
    TaskEvent::Status(StatusUpdate { status, metadata })
}

/// Status message for a task that waits for another one of its context.
pub fn queued_after(agent: &str, first: &TaskId) -> Message {
    let why = format!(
        "{agent} does one task of a conversation at a time: this one begins when task `{first}` is over. Answer that one, or \
         cancel it, if it waits."
    );
    Message::text(Role::Agent, why)
}

/// Agents that the tree of a task may reach ([`REACHABLE_AGENTS`]); `None` for all.
pub fn reachable_agents(task: &Task) -> Option<Vec<String>> {
    let named = task.metadata.as_ref()?.get(REACHABLE_AGENTS)?;
    let ids = named.as_array().into_iter().flatten();
    Some(ids.filter_map(|id| id.as_str().map(str::to_owned)).collect())
}

/// True if the tree of a task may reach an agent.
pub fn may_reach(task: &Task, agent: &AgentId) -> bool {
    reachable_agents(task).is_none_or(|reach| reach.iter().any(|id| id == agent.as_str()))
}

/// Limits of a tree of tasks, for a task that follows this one or is below it.
pub fn tree_limits(task: &Task) -> impl Iterator<Item = (String, serde_json::Value)> {
    let named =
        |name: &&str| Some(((*name).to_owned(), task.metadata.as_ref()?.get(*name)?.clone()));
    [REACHABLE_AGENTS, CARD_SCOPES].into_iter().filter_map(move |name| named(&name))
}

/// Id of the skill that the first message of a task names.
pub fn first_skill(task: &Task) -> Option<String> {
    named_skill(task.history.first()?).map(str::to_owned)
}

/// Id of the skill that a message names.
pub fn named_skill(message: &Message) -> Option<&str> {
    message.metadata.as_ref()?.get(TARGET_SKILL)?.as_str()
}

/// Removes the metadata members that only the hub may write from an agent's metadata.
pub fn of_agent(mut metadata: Metadata) -> Option<Metadata> {
    let of_hub = [
        PENDING_MESSAGES,
        RECEIVED,
        QUEUED,
        GRANTED_PERMISSIONS,
        REACHABLE_AGENTS,
        CARD_SCOPES,
        FLOW_FILE,
        WORKTREE,
        ROUTING,
        INHERITED,
        SCHEDULE,
        TRIGGER,
        QUESTION,
        EARLIER_USAGE,
        PRICED,
        UNCOUNTED,
        NOT_GRANTED,
        HANDOFF,
        HANDOFF_FROM,
        BLACKBOARD_CHANGE,
        ANSWERED_BY_RULE,
        WAITS_UNTIL,
        QUOTA_WAITS,
    ];
    for known in of_hub.iter().chain(&trace_context::MEMBERS) {
        metadata.remove(*known);
    }
    // An agent may report its own reasons, but not the hub's reason `recovery`.
    metadata.retain(|name, fact| name != REASON || fact != RECOVERY);
    Some(metadata).filter(|metadata| !metadata.is_empty())
}

/// Status event: the agent works, and no longer waits.
pub fn working(task: &Task, now: String) -> TaskEvent {
    let mut over = Metadata::new();
    if has(task, QUEUED) {
        over.insert(QUEUED.to_owned(), ().into());
    }
    if text(task, REASON) == Some(RECOVERY) {
        over.insert(REASON.to_owned(), ().into());
    }
    if has(task, QUESTION) {
        over.insert(QUESTION.to_owned(), ().into());
    }
    over.extend(wait_over(task));
    status(task, TaskState::Working, None, Some(over).filter(|over| !over.is_empty()), now)
}

/// Status event: the agent's quota is used up, and the task waits until this time. It ends the
/// agent's run, whose `end` has the agent's words and its usage.
pub fn waits_for_quota(task: &Task, end: StatusUpdate, until: &str, now: String) -> TaskEvent {
    let mut facts = end.metadata.unwrap_or_default();
    facts.insert(WAITS_UNTIL.to_owned(), until.into());
    facts.insert(QUOTA_WAITS.to_owned(), quota_waits(task).saturating_add(1).into());
    status(task, TaskState::Working, end.status.message, Some(facts), now)
}

/// Events at the end of a wait for a quota: the hub's message to the agent, and the status of the
/// run that receives it.
pub fn continues(task: &Task, message: Message, now: String) -> [TaskEvent; 2] {
    let mut facts = wait_over(task);
    facts.insert(RECEIVED.to_owned(), message.message_id.as_str().into());
    let working = status(task, TaskState::Working, None, Some(facts), now);
    [TaskEvent::Input(addressed(task, message)), working]
}

/// Removes the members of a wait for a quota.
fn wait_over(task: &Task) -> Metadata {
    let mut over = Metadata::new();
    if has(task, WAITS_UNTIL) {
        let known = [WAITS_UNTIL, REASON, QUOTA_RESETS_AT].into_iter();
        over.extend(known.filter(|name| has(task, name)).map(|name| (name.to_owned(), ().into())));
    }
    over
}

/// Status event: the agent at work has read this message.
pub fn received(task: &Task, message: &MessageId, now: String) -> TaskEvent {
    let facts = Metadata::from_iter([(RECEIVED.to_owned(), message.as_str().into())]);
    status(task, TaskState::Working, None, Some(facts), now)
}

/// Status event: a program of the agent at work changes a blackboard.
pub fn blackboard_change(task: &Task, change: serde_json::Value, now: String) -> TaskEvent {
    let facts = Metadata::from_iter([(BLACKBOARD_CHANGE.to_owned(), change)]);
    status(task, TaskState::Working, None, Some(facts), now)
}

/// Status event: a rule has answered a request for permission of the agent's program.
pub fn answered_by_rule(task: &Task, answer: &RuleAnswer, text: &str, now: String) -> TaskEvent {
    let facts = Metadata::from_iter([answer.member()]);
    status(task, TaskState::Working, Some(Message::text(Role::Agent, text)), Some(facts), now)
}

/// Status event: the task was cancelled; `facts` if another agent goes on.
pub fn canceled(task: &Task, facts: Option<Metadata>, now: String) -> TaskEvent {
    let over = wait_over(task);
    let facts = if over.is_empty() { facts } else { Some(joined(over, facts)) };
    status(task, TaskState::Canceled, None, facts, now)
}

fn joined(mut facts: Metadata, more: Option<Metadata>) -> Metadata {
    facts.extend(more.into_iter().flatten());
    facts
}

/// Events at the end of a run in a task that continues because its client has sent more: the
/// agent's final message becomes a status and part of the history. The next run receives the next
/// message; [`PENDING_MESSAGES`] names those that stay queued. It is always present, because it
/// separates one run from the next.
pub fn end_of_run_events(
    task: &Task,
    end: TaskEvent,
    pending: &[MessageId],
    now: &str,
) -> Vec<TaskEvent> {
    let (message, metadata) = match end {
        TaskEvent::Status(update) => (update.status.message, update.metadata),
        TaskEvent::Reply(message) => (Some(message), None),
        TaskEvent::Created(_) | TaskEvent::Artifact(_) | TaskEvent::Input(_) => (None, None),
    };
    let input = message.clone().map(|message| TaskEvent::Input(addressed(task, message)));
    let mut facts = metadata.unwrap_or_default();
    let named = if pending.is_empty() { ().into() } else { names(pending).into() };
    facts.insert(PENDING_MESSAGES.to_owned(), named);
    let status_event = status(task, TaskState::Working, message, Some(facts), now.to_owned());
    [Some(status_event), input].into_iter().flatten().collect()
}

/// True if this status ends the agent's run in a task that continues: the run ended, was lost with
/// its process, or was evicted to free capacity.
pub(crate) fn ends_run(update: &StatusUpdate) -> bool {
    let Some(facts) = &update.metadata else { return false };
    let state = update.status.state;
    // Only the hub writes these members: `of_agent` removes them from status events, and an agent's
    // question has no other metadata.
    let waits = facts.get(WAITS_UNTIL).is_some_and(|until| !until.is_null());
    let is_over = state == TaskState::Working && (waits || facts.contains_key(PENDING_MESSAGES));
    let reason = facts.get(REASON).and_then(|reason| reason.as_str());
    is_over || (state.is_interrupted() && reason == Some(RECOVERY))
}

/// Adds the capabilities that the task refused to the status of its failure, and the command that
/// grants them, unless the agent names a remedy itself.
pub fn with_refused(mut event: TaskEvent, refused: RefusedCapabilities) -> TaskEvent {
    if let TaskEvent::Status(update) = &mut event
        && update.status.state == TaskState::Failed
    {
        let RefusedCapabilities { capabilities, fix } = refused;
        let message_text =
            update.status.message.as_ref().map(Message::joined_text).unwrap_or_default();
        let facts = update.metadata.get_or_insert_with(Metadata::new);
        facts.insert(NOT_GRANTED.to_owned(), capabilities.into_iter().collect());
        if let Some(fix) = fix.filter(|_| !message_text.contains("a2a-hub plugin grant")) {
            facts.entry(FIX).or_insert_with(|| fix.into());
        }
    }
    event
}

/// Adds the ids of messages that the agent never received to the task's final status.
pub fn with_pending_messages(mut event: TaskEvent, messages: &[MessageId]) -> TaskEvent {
    if let TaskEvent::Status(update) = &mut event
        && update.status.state.is_final()
        && !messages.is_empty()
    {
        let facts = update.metadata.get_or_insert_with(Metadata::new);
        facts.insert(PENDING_MESSAGES.to_owned(), names(messages).into());
    }
    event
}

fn names(messages: &[MessageId]) -> Vec<String> {
    messages.iter().map(|message| message.as_str().to_owned()).collect()
}

/// Status event: the task failed; `why` is for people, `reason` for machines.
pub fn failed(task: &Task, reason: FailureReason, why: &str, now: String) -> TaskEvent {
    let fact = Metadata::from_iter([(REASON.to_owned(), reason.name().into())]);
    let facts = joined(wait_over(task), Some(fact));
    status(task, TaskState::Failed, Some(Message::text(Role::Agent, why)), Some(facts), now)
}

/// Status event: the agent asks its client the question with this id, about the request of its
/// program if it named one, and the task waits in `state`.
pub fn agent_question(
    task: &Task,
    state: TaskState,
    (id, request): (QuestionId, Option<PermissionRequest>),
    prompt: Message,
    now: String,
) -> TaskEvent {
    let question = Question { id, request, ..Question::fresh(question::kind(state, &prompt)) };
    let fact = Metadata::from_iter([question.member()]);
    status(task, state, Some(prompt), Some(fact), now)
}

/// Status event: a child of the task asks, and the task waits with it.
pub fn child_question(
    task: &Task,
    state: TaskState,
    question: &Question,
    prompt: Message,
    now: String,
) -> TaskEvent {
    let fact = Metadata::from_iter([question.member()]);
    status(task, state, Some(prompt), Some(fact), now)
}

/// Adds the pending question to the agent's events, and repeats the question after them, so that it
/// stays open. A child's question always stays open; the agent's own question does if the agent
/// still waits for the answer (`agent_waits`). Without such a question, returns the events
/// unchanged.
pub fn with_repeated_question(
    task: &Task,
    mut events: Vec<TaskEvent>,
    agent_waits: bool,
    now: String,
) -> Vec<TaskEvent> {
    let Some(question) = pending_question(task, agent_waits) else { return events };
    let mut has_status = false;
    for event in &mut events {
        let TaskEvent::Status(update) = event else { continue };
        // Subscribers must not take the question for withdrawn.
        update.metadata.get_or_insert_default().extend([question.member()]);
        has_status = true;
    }
    if has_status {
        let (state, prompt) = (task.status.state, task.status.message.clone());
        events.push(status(
            task,
            state,
            prompt,
            Some(Metadata::from_iter([question.member()])),
            now,
        ));
    }
    events
}

/// Size in bytes, as JSON, of the question that [`with_repeated_question`] repeats; 0 if the task
/// has none.
pub fn repeated_question_bytes(task: &Task, agent_waits: bool) -> u64 {
    let prompt = pending_question(task, agent_waits).and(task.status.message.as_ref());
    let json = prompt.and_then(|prompt| serde_json::to_string(prompt).ok());
    json.map_or(0, |json| json.len() as u64)
}

/// Question of the task that stays pending during events of its agent.
fn pending_question(task: &Task, agent_waits: bool) -> Option<Question> {
    let is_open = asks(task);
    let question = is_open.then(|| Question::from_metadata(task.metadata.as_ref())).flatten();
    question.filter(|question| agent_waits || question.task.is_some())
}

/// True if the last status among these events leaves the task working.
pub fn is_at_work(events: &[TaskEvent]) -> bool {
    let state = |event: &TaskEvent| match event {
        TaskEvent::Status(update) => Some(update.status.state),
        TaskEvent::Created(_)
        | TaskEvent::Artifact(_)
        | TaskEvent::Input(_)
        | TaskEvent::Reply(_) => None,
    };
    events.iter().rev().find_map(state) == Some(TaskState::Working)
}

/// Status event: a task of `agent` waits for its client because the process that ran it is gone.
/// Replaces the agent's question, if it had one.
pub fn interrupted(task: &Task, agent: &str, state: TaskState, now: String) -> TaskEvent {
    let lost = lost(task, state);
    let quoted = lost.as_ref().map(|(kind, prompt)| (*kind, prompt.as_str()));
    let prompt = question::after_restart(agent, quoted);
    renewed_question(task, state, prompt, lost.map(|(kind, _)| kind), now)
}

/// Status event: a task of `agent` keeps waiting for its client, but its agent was evicted to free
/// capacity.
pub fn evicted(task: &Task, agent: &str, now: String) -> TaskEvent {
    let state = task.status.state;
    let (kind, lost_prompt) = lost(task, state).unwrap_or((QuestionKind::Input, String::new()));
    let prompt = question::after_eviction(agent, (kind, &lost_prompt));
    renewed_question(task, state, prompt, Some(kind), now)
}

/// Question that a task in `state` asks and that is now replaced. A child's question is not the
/// task's own.
fn lost(task: &Task, state: TaskState) -> Option<(QuestionKind, String)> {
    let known = Question::from_metadata(task.metadata.as_ref());
    let of_child = known.as_ref().is_some_and(|question| question.task.is_some());
    let waits = task.status.state.is_interrupted() && !of_child;
    let prompt = task.status.message.as_ref().filter(|_| waits)?;
    let kind = known.map_or_else(|| question::kind(state, prompt), |question| question.kind);
    Some((kind, prompt.joined_text()))
}

fn renewed_question(
    task: &Task,
    state: TaskState,
    prompt: String,
    replaces: Option<QuestionKind>,
    now: String,
) -> TaskEvent {
    let prompt = Message::text(Role::Agent, prompt);
    let question = Question { replaces, ..Question::fresh(question::kind(state, &prompt)) };
    let facts = Metadata::from_iter([(REASON.to_owned(), RECOVERY.into()), question.member()]);
    status(task, state, Some(prompt), Some(facts), now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::quota;
    use a2a_hub_protocol::id::{ContextId, TaskId};
    use serde_json::{Value, json};

    fn task(state: TaskState, facts: Value) -> Task {
        let status = TaskStatus { state, message: None, timestamp: String::new() };
        let Value::Object(facts) = facts else { panic!("{facts}") };
        Task {
            id: TaskId::new("t"),
            context_id: ContextId::new("c"),
            status,
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: Some(facts.into_iter().collect()),
        }
    }

    fn told(event: TaskEvent) -> StatusUpdate {
        let TaskEvent::Status(update) = event else { panic!("{event:?}") };
        update
    }

    #[test]
    fn failure_names_lacked_capabilities() {
        let refused = || RefusedCapabilities {
            capabilities: ["memory".to_owned()].into(),
            fix: Some("a2a-hub plugin grant notes --memory".to_owned()),
        };
        let ended = |state, text: &str, facts: Value| {
            let message = Some(Message::text(Role::Agent, text));
            let event = status(
                &task(state, json!({})),
                state,
                message,
                facts.as_object().cloned(),
                String::new(),
            );
            json!(told(with_refused(event, refused())).metadata)
        };
        let (failed, named) = (TaskState::Failed, json!(["memory"]));
        let told = ended(failed, "it did not work", Value::Null);
        assert_eq!(told, json!({ "notGranted": named, "fix": refused().fix }));
        let told = ended(failed, "say `a2a-hub plugin grant notes --memory`", Value::Null);
        assert_eq!(told, json!({ "notGranted": named }), "the text has the command");
        let told = ended(failed, "x", json!({ "fix": "buy more" }));
        assert_eq!(told, json!({ "notGranted": named, "fix": "buy more" }));
        assert_eq!(ended(TaskState::Completed, "x", Value::Null), Value::Null);
    }

    #[test]
    fn working_status_clears_only_hub_members() {
        let waits = json!({"queued": true, "reason": "recovery", "question": {}, "tokens": 3});
        let update = told(working(&task(TaskState::InputRequired, waits), "now".to_owned()));
        assert_eq!(
            json!(update.metadata),
            json!({"queued": null, "reason": null, "question": null})
        );
        let other = task(TaskState::Working, json!({"reason": "told-to"}));
        assert_eq!(told(working(&other, "now".to_owned())).metadata, None);
    }

    /// Only the hub may say that it asks on behalf of an agent after a restart.
    #[test]
    fn agent_cannot_write_hub_metadata() {
        let told = json!({"reason": "recovery", "queued": true, "tokens": 1});
        let said = |told: &Value| of_agent(told.as_object().unwrap().clone());
        assert_eq!(json!(said(&told)), json!({"tokens": 1}));
        let own = json!({"reason": "out-of-scope"});
        assert_eq!(json!(said(&own)), own);
    }

    #[test]
    fn quota_wait_begins_and_ends_in_metadata() {
        let mut working = task(TaskState::Working, json!({ "tokens": 1 }));
        working.history.push(Message::text(Role::User, "Fix it"));
        let end = json!({ "reason": "rate_limited", "quotaResetsAt": 7, "costUsd": 2.0 });
        let end =
            status(&working, TaskState::Failed, None, end.as_object().cloned(), String::new());
        let waits = waits_for_quota(&working, told(end), "2026-01-01T15:00:00.000Z", String::new());
        let TaskEvent::Status(update) = &waits else { panic!("{waits:?}") };
        assert!(ends_run(update), "another run follows, with its own usage");
        crate::task::state::apply(&mut working, &waits).unwrap();
        assert_eq!(waiting_until(&working), Some("2026-01-01T15:00:00.000Z"));
        assert_eq!(quota_waits(&working), 1);

        let canceled = told(canceled(&working, None, String::new())).metadata;
        assert_eq!(
            json!(canceled),
            json!({ "waitsUntil": null, "reason": null, "quotaResetsAt": null })
        );
        let failed = told(failed(&working, FailureReason::Timeout, "", String::new())).metadata;
        assert_eq!(json!(failed)["reason"], "timeout");

        let message = quota::continue_message(&working, true).unwrap();
        assert_eq!((message.parts.len(), message.role), (1, Role::User));
        assert!(message.message_id.as_str().ends_with(":quota-1"), "one message a wait");
        let repeated = quota::continue_message(&working, false).unwrap();
        assert!(
            repeated.joined_text().starts_with("Fix it"),
            "to an agent without the conversation"
        );
        for event in continues(&working, message, String::new()) {
            crate::task::state::apply(&mut working, &event).unwrap();
        }
        assert_eq!(waiting_until(&working), None);
        assert_eq!((quota_waits(&working), text(&working, REASON)), (1, None));
        let hostile = json!({ "waitsUntil": "9999-01-01T00:00:00Z", "quotaWaits": 0 });
        assert_eq!(of_agent(hostile.as_object().unwrap().clone()), None);
    }

    #[test]
    fn childs_question_stays_open_during_agent_events() {
        let mut task = task(TaskState::InputRequired, json!({}));
        let said = |text| Some(Message::text(Role::Agent, text));
        let progress = |task: &Task| {
            vec![status(task, TaskState::Working, said("half done"), None, "now".to_owned())]
        };
        let states = |told: &[TaskEvent]| {
            told.iter().map(|event| told_state(event.clone())).collect::<Vec<_>>()
        };
        fn told_state(event: TaskEvent) -> TaskState {
            told(event).status.state
        }
        // The agent's own question is withdrawn by an event, unless the agent still waits for the
        // answer.
        task.status.message = said("which?");
        let own = Question::fresh(QuestionKind::Input);
        task.metadata = Some(Metadata::from_iter([own.member()]));
        let told = with_repeated_question(&task, progress(&task), false, "now".to_owned());
        assert_eq!(states(&told), [TaskState::Working]);
        let told = with_repeated_question(&task, progress(&task), true, "now".to_owned());
        assert_eq!(states(&told), [TaskState::Working, TaskState::InputRequired]);

        let asked = Question { task: Some(TaskId::new("below")), ..own };
        task.metadata = Some(Metadata::from_iter([asked.member()]));
        let told = with_repeated_question(&task, progress(&task), false, "now".to_owned());
        assert_eq!(states(&told), [TaskState::Working, TaskState::InputRequired]);
        for event in &told {
            let TaskEvent::Status(update) = event else { panic!("{event:?}") };
            assert_eq!(Question::from_metadata(update.metadata.as_ref()), Some(asked.clone()));
            let of_agent = update.metadata.clone().and_then(of_agent);
            assert_eq!(of_agent, None, "an agent that is run again tells it as it did");
            crate::task::state::apply(&mut task, event).unwrap();
        }
        assert!(asks(&task) && Question::from_metadata(task.metadata.as_ref()) == Some(asked));
        let yes = TaskEvent::Input(Message::text(Role::User, "yes"));
        crate::task::state::apply(&mut task, &yes).unwrap();
        let history: Vec<_> = task.history.iter().map(Message::joined_text).collect();
        assert_eq!(history, ["which?", "yes"], "the question is there once");

        task.status.state = TaskState::Working;
        let told = with_repeated_question(&task, progress(&task), false, "now".to_owned());
        assert_eq!(states(&told), [TaskState::Working], "nothing is asked");
    }

    #[test]
    fn lost_question_is_replaced_after_restart() {
        let mut task = task(TaskState::InputRequired, json!({}));
        task.status.message = Some(Message::text(Role::Agent, "Which one?"));
        let update = told(interrupted(&task, "Echo", TaskState::InputRequired, "now".to_owned()));
        let question = Question::from_metadata(update.metadata.as_ref()).unwrap();
        assert_eq!(question.replaces, Some(QuestionKind::Input));
        let prompt = update.status.message.unwrap();
        assert!(prompt.joined_text().contains("Which one?"));
        assert_eq!((prompt.task_id, prompt.context_id), (Some(task.id), Some(task.context_id)));
    }
}
