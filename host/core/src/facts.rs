//! What the hub writes into a task's log of its own accord: the statuses, and the facts beside them that machines read in the
//! task's metadata.

use crate::{
    context_memory::transfer::INHERITED, question, reason::FailureReason, routing::ROUTING, trace,
    tree::EARLIER_USAGE,
};
use a2a_hub_protocol::{
    event::{StatusUpdate, TaskEvent},
    id::MessageId,
    id::TaskId,
    message::{Message, Metadata, Role},
    question::{QUESTION, Question, QuestionKind},
    task::{Task, TaskState, TaskStatus},
};
/// The fact that tells a task still waits for its turn.
pub const QUEUED: &str = "queued";

/// The fact that tells why a task is where it is: the name of a [`FailureReason`], [`RECOVERY`], or an agent's own word.
pub const REASON: &str = "reason";

/// The reason of a task that its client must send on its way again.
pub const RECOVERY: &str = "recovery";

/// The fact that names the messages which the agent has not come to, as of the end of one of its runs: of a task that is over,
/// nobody heard them.
pub const UNHEARD: &str = "unheard";

/// The fact that tells what an agent's program may do without asking in a task that another agent gave it, where the operator grants
/// that: the word of a [`Permissions`](crate::permissions::Permissions).
pub const GRANTED_PERMISSIONS: &str = "grantedPermissions";

/// A fact of a task that is a text.
pub fn text<'a>(task: &'a Task, name: &str) -> Option<&'a str> {
    task.metadata.as_ref()?.get(name)?.as_str()
}

/// Whether the task has that fact, whatever it says.
pub fn has(task: &Task, name: &str) -> bool {
    task.metadata.as_ref().is_some_and(|facts| facts.contains_key(name))
}

/// Where the client would have the work done, as it said last.
pub fn working_directory(task: &Task) -> Option<String> {
    task.history.iter().rev().find_map(directory_of).map(str::to_owned)
}

/// Where the work is to be done that a message asks for, if it says.
pub fn directory_of(message: &Message) -> Option<&str> {
    message.metadata.as_ref()?.get("workingDirectory")?.as_str()
}

/// What the client said last under this name, in the metadata of its messages.
pub fn said_last<'a>(task: &'a Task, name: &str) -> Option<&'a str> {
    let said = |message: &'a Message| message.metadata.as_ref()?.get(name)?.as_str();
    task.history.iter().rev().filter(|message| message.role == Role::User).find_map(said)
}

/// Whether the client answered what the task asked, and the agent has not heard the answer: what was asked is history.
pub fn is_answered(task: &Task) -> bool {
    let last = task.history.last();
    task.status.state.is_interrupted()
        && task.status.message.is_none()
        && last.is_some_and(|said| said.role == Role::User)
}

/// Whether the task asks something that its client has not answered.
pub fn asks(task: &Task) -> bool {
    task.status.state.is_interrupted() && task.status.message.is_some()
}

/// Whether the task asks this in the place of a child, and its client has not answered.
pub fn asks_for_child(task: &Task, question: &Question) -> bool {
    asks(task) && Question::of(task.metadata.as_ref()).is_some_and(|asked| asked == *question)
}

/// A message of the agent, or of the hub in its place, with the task and the conversation that it belongs to.
pub fn addressed(task: &Task, mut message: Message) -> Message {
    message.task_id = Some(task.id.clone());
    message.context_id = Some(task.context_id.clone());
    message
}

/// A status of the task, as of `now`.
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

/// What a task is told that waits for another one of its conversation.
pub fn queued_behind(agent: &str, first: &TaskId) -> Message {
    let why = format!(
        "{agent} does one task of a conversation at a time: this one begins when task `{first}` is over. Answer that one, or \
         cancel it, if it waits."
    );
    Message::text(Role::Agent, why)
}

/// What an agent tells of its task, without what only the hub knows of it.
pub fn of_agent(mut told: Metadata) -> Option<Metadata> {
    let of_hub =
        [UNHEARD, QUEUED, GRANTED_PERMISSIONS, ROUTING, INHERITED, QUESTION, EARLIER_USAGE];
    for known in of_hub.iter().chain(&trace::MEMBERS) {
        told.remove(*known);
    }
    // An agent's own reasons are told, but not that the hub asks in its place.
    told.retain(|name, fact| name != REASON || fact != RECOVERY);
    Some(told).filter(|told| !told.is_empty())
}

/// That the agent is at work, and no longer waits for whatever it waited for.
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
    status(task, TaskState::Working, None, Some(over).filter(|over| !over.is_empty()), now)
}

/// That the task was cancelled.
pub fn canceled(task: &Task, now: String) -> TaskEvent {
    status(task, TaskState::Canceled, None, None, now)
}

/// The end of a run of the agent's, in a task that goes on because its client has said more: what the agent said is told like
/// any status, and is part of the conversation. The next run hears another message; those that wait even then are `unheard`. That
/// fact is there in any case, for it tells one run from the next.
pub fn interim(task: &Task, end: TaskEvent, unheard: &[MessageId], now: &str) -> Vec<TaskEvent> {
    let (message, metadata) = match end {
        TaskEvent::Status(update) => (update.status.message, update.metadata),
        TaskEvent::Reply(message) => (Some(message), None),
        TaskEvent::Created(_) | TaskEvent::Artifact(_) | TaskEvent::Input(_) => (None, None),
    };
    let said = message.clone().map(|message| TaskEvent::Input(addressed(task, message)));
    let mut facts = metadata.unwrap_or_default();
    let named = if unheard.is_empty() { ().into() } else { names(unheard).into() };
    facts.insert(UNHEARD.to_owned(), named);
    let told = status(task, TaskState::Working, message, Some(facts), now.to_owned());
    [Some(told), said].into_iter().flatten().collect()
}

/// Whether no run of the agent's is left after this status, in a task that goes on: its run is over, or is gone with its hub or for the
/// room that it took up.
pub(crate) fn ends_run(update: &StatusUpdate) -> bool {
    let Some(facts) = &update.metadata else { return false };
    let state = update.status.state;
    // Only the hub says either: see `of_agent`, and an agent's question has no facts beside it.
    let is_over = state == TaskState::Working && facts.contains_key(UNHEARD);
    let reason = facts.get(REASON).and_then(|reason| reason.as_str());
    is_over || (state.is_interrupted() && reason == Some(RECOVERY))
}

/// What is recorded of a task whose agent has not heard these messages: its last status names them.
pub fn with_unheard(mut event: TaskEvent, messages: &[MessageId]) -> TaskEvent {
    if let TaskEvent::Status(update) = &mut event
        && update.status.state.is_final()
        && !messages.is_empty()
    {
        let facts = update.metadata.get_or_insert_with(Metadata::new);
        facts.insert(UNHEARD.to_owned(), names(messages).into());
    }
    event
}

fn names(messages: &[MessageId]) -> Vec<String> {
    messages.iter().map(|message| message.as_str().to_owned()).collect()
}

/// That the task failed, and why: `why` for people, `reason` for machines.
pub fn failed(task: &Task, reason: FailureReason, why: &str, now: String) -> TaskEvent {
    let facts = Metadata::from_iter([(REASON.to_owned(), reason.name().into())]);
    status(task, TaskState::Failed, Some(Message::text(Role::Agent, why)), Some(facts), now)
}

/// That the agent asks its client something, and waits in `state`.
pub fn asked(task: &Task, state: TaskState, prompt: Message, now: String) -> TaskEvent {
    let asked = Question::fresh(question::kind(state, &prompt));
    let fact = Metadata::from_iter([asked.member()]);
    status(task, state, Some(prompt), Some(fact), now)
}

/// That a child of the task asks, and the task waits with it.
pub fn asked_for_child(
    task: &Task,
    state: TaskState,
    question: &Question,
    prompt: Message,
    now: String,
) -> TaskEvent {
    let fact = Metadata::from_iter([question.member()]);
    status(task, state, Some(prompt), Some(fact), now)
}

/// What the task's agent tells while the task asks something: the question stands, which is told once more behind it. A child's
/// question does in any case, one of the agent's own if the agent still waits for the answer (`own`). Without such a question, what
/// the agent tells, as it is.
pub fn told_beside_question(
    task: &Task,
    mut told: Vec<TaskEvent>,
    own: bool,
    now: String,
) -> Vec<TaskEvent> {
    let Some(asked) = standing_question(task, own) else { return told };
    let mut is_beside = false;
    for event in &mut told {
        let TaskEvent::Status(update) = event else { continue };
        // Who listens need not take the question for withdrawn.
        update.metadata.get_or_insert_default().extend([asked.member()]);
        is_beside = true;
    }
    if is_beside {
        let (state, prompt) = (task.status.state, task.status.message.clone());
        told.push(status(task, state, prompt, Some(Metadata::from_iter([asked.member()])), now));
    }
    told
}

/// How long the question is, as JSON in bytes, that [`told_beside_question`] tells once more; 0 if there is none.
pub fn bytes_beside_question(task: &Task, own: bool) -> u64 {
    let prompt = standing_question(task, own).and(task.status.message.as_ref());
    let json = prompt.and_then(|prompt| serde_json::to_string(prompt).ok());
    json.map_or(0, |json| json.len() as u64)
}

/// The question that the task waits with, and that stands whatever its agent tells.
fn standing_question(task: &Task, own: bool) -> Option<Question> {
    let is_asked = asks(task);
    let asked = is_asked.then(|| Question::of(task.metadata.as_ref())).flatten();
    asked.filter(|asked| own || asked.task.is_some())
}

/// Whether the last status of these leaves a task at work.
pub fn is_at_work(told: &[TaskEvent]) -> bool {
    let state = |event: &TaskEvent| match event {
        TaskEvent::Status(update) => Some(update.status.state),
        TaskEvent::Created(_)
        | TaskEvent::Artifact(_)
        | TaskEvent::Input(_)
        | TaskEvent::Reply(_) => None,
    };
    told.iter().rev().find_map(state) == Some(TaskState::Working)
}

/// That a task of `agent` waits for its client, for the hub that ran it is gone: another question than its agent had asked,
/// if it had.
pub fn interrupted(task: &Task, agent: &str, state: TaskState, now: String) -> TaskEvent {
    let lost = lost(task, state);
    let quoted = lost.as_ref().map(|(kind, prompt)| (*kind, prompt.as_str()));
    let prompt = question::after_restart(agent, quoted);
    asked_anew(task, state, prompt, lost.map(|(kind, _)| kind), now)
}

/// That a task of `agent` goes on waiting for its client, but without the agent, which was let go to make room.
pub fn parked(task: &Task, agent: &str, now: String) -> TaskEvent {
    let state = task.status.state;
    let (kind, asked) = lost(task, state).unwrap_or((QuestionKind::Input, String::new()));
    let prompt = question::after_parking(agent, (kind, &asked));
    asked_anew(task, state, prompt, Some(kind), now)
}

/// What a task in `state` asks, and is not to ask any more. What a child of its asks it does not ask itself.
fn lost(task: &Task, state: TaskState) -> Option<(QuestionKind, String)> {
    let known = Question::of(task.metadata.as_ref());
    let of_child = known.as_ref().is_some_and(|asked| asked.task.is_some());
    let waits = task.status.state.is_interrupted() && !of_child;
    let asked = task.status.message.as_ref().filter(|_| waits)?;
    let kind = known.map_or_else(|| question::kind(state, asked), |asked| asked.kind);
    Some((kind, asked.joined_text()))
}

fn asked_anew(
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
    fn a_task_at_work_waits_for_nothing_and_keeps_what_its_agent_says() {
        let waits = json!({"queued": true, "reason": "recovery", "question": {}, "tokens": 3});
        let update = told(working(&task(TaskState::InputRequired, waits), "now".to_owned()));
        assert_eq!(
            json!(update.metadata),
            json!({"queued": null, "reason": null, "question": null})
        );
        let other = task(TaskState::Working, json!({"reason": "told-to"}));
        assert_eq!(told(working(&other, "now".to_owned())).metadata, None);
    }

    /// Who asks in an agent's place after a restart is the hub's to say.
    #[test]
    fn an_agent_is_no_hub() {
        let told = json!({"reason": "recovery", "queued": true, "tokens": 1});
        let said = |told: &Value| of_agent(told.as_object().unwrap().clone());
        assert_eq!(json!(said(&told)), json!({"tokens": 1}));
        let own = json!({"reason": "out-of-scope"});
        assert_eq!(json!(said(&own)), own);
    }

    #[test]
    fn a_childs_question_stands_whatever_the_agent_tells_beside_it() {
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
        // Its own question is withdrawn by what it tells, unless it waits for the answer still.
        task.status.message = said("which?");
        let own = Question::fresh(QuestionKind::Input);
        task.metadata = Some(Metadata::from_iter([own.member()]));
        let told = told_beside_question(&task, progress(&task), false, "now".to_owned());
        assert_eq!(states(&told), [TaskState::Working]);
        let told = told_beside_question(&task, progress(&task), true, "now".to_owned());
        assert_eq!(states(&told), [TaskState::Working, TaskState::InputRequired]);

        let asked = Question { task: Some(TaskId::new("below")), ..own };
        task.metadata = Some(Metadata::from_iter([asked.member()]));
        let told = told_beside_question(&task, progress(&task), false, "now".to_owned());
        assert_eq!(states(&told), [TaskState::Working, TaskState::InputRequired]);
        for event in &told {
            let TaskEvent::Status(update) = event else { panic!("{event:?}") };
            assert_eq!(Question::of(update.metadata.as_ref()), Some(asked.clone()));
            let of_agent = update.metadata.clone().and_then(of_agent);
            assert_eq!(of_agent, None, "an agent that is run again tells it as it did");
            crate::task::apply(&mut task, event).unwrap();
        }
        assert!(asks(&task) && Question::of(task.metadata.as_ref()) == Some(asked));
        let yes = TaskEvent::Input(Message::text(Role::User, "yes"));
        crate::task::apply(&mut task, &yes).unwrap();
        let history: Vec<_> = task.history.iter().map(Message::joined_text).collect();
        assert_eq!(history, ["which?", "yes"], "the question is there once");

        task.status.state = TaskState::Working;
        let told = told_beside_question(&task, progress(&task), false, "now".to_owned());
        assert_eq!(states(&told), [TaskState::Working], "nothing is asked");
    }

    #[test]
    fn a_question_that_its_hub_took_along_is_replaced_by_one_that_says_so() {
        let mut task = task(TaskState::InputRequired, json!({}));
        task.status.message = Some(Message::text(Role::Agent, "Which one?"));
        let update = told(interrupted(&task, "Echo", TaskState::InputRequired, "now".to_owned()));
        let question = Question::of(update.metadata.as_ref()).unwrap();
        assert_eq!(question.replaces, Some(QuestionKind::Input));
        let prompt = update.status.message.unwrap();
        assert!(prompt.joined_text().contains("Which one?"));
        assert_eq!((prompt.task_id, prompt.context_id), (Some(task.id), Some(task.context_id)));
    }

    #[test]
    fn a_question_that_is_history_and_has_a_users_word_after_it_is_answered() {
        let mut task = task(TaskState::InputRequired, json!({}));
        let said = |role| Message::text(role, "said");
        for (history, message, answered) in [
            (vec![said(Role::User)], None, true),
            (vec![said(Role::User), said(Role::Agent)], None, false),
            (vec![said(Role::User)], Some(said(Role::Agent)), false),
        ] {
            (task.history, task.status.message) = (history, message);
            assert_eq!(is_answered(&task), answered, "{task:?}");
        }
    }
}
