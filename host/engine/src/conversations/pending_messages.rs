//! Client messages to a task at work: those that no run of its agent has received, and those that
//! the run at work has read.

use a2a_hub_core::task::{metadata, question::has_undelivered_answer};
use a2a_hub_protocol::{
    event::{StatusUpdate, TaskEvent},
    id::MessageId,
    message::Role,
    task::{Task, TaskState},
};
use std::collections::VecDeque;

/// Client messages of a task that no run of its agent has received, computed from the events of the
/// task's log in their order.
#[derive(Clone, Debug, Default)]
pub struct PendingMessages {
    /// Pending messages, by their number among all client messages: the next run's first message,
    /// then the queued ones, oldest first.
    waiting: VecDeque<usize>,
    /// Messages that the latest run has read at work, by their number.
    read: Vec<usize>,
    /// Ids of the client messages so far.
    message_ids: Vec<MessageId>,
    /// True if no agent is at work for the first pending message: it is the first message of the
    /// task, or an answer.
    is_due: bool,
    /// True if the task asks something.
    asks: bool,
    /// Number of the message that the latest run began with.
    begun_with: Option<usize>,
}

impl PendingMessages {
    /// Applies the next event of the log.
    pub fn follow(&mut self, event: &TaskEvent) {
        match event {
            TaskEvent::Created(created) => {
                let history = created.task.history.iter();
                let history = history.filter(|message| message.role == Role::User);
                self.message_ids = history.map(|message| message.message_id.clone()).collect();
                self.begun_with = self.message_ids.len().checked_sub(1);
                // A task that was not queued may have started without a record of it.
                if metadata::has(&created.task, metadata::QUEUED) {
                    self.waiting.extend(self.begun_with);
                    self.is_due = !self.waiting.is_empty();
                }
            }
            TaskEvent::Status(update) => self.moved(update),
            TaskEvent::Input(message) if message.role == Role::User => {
                if std::mem::take(&mut self.asks) {
                    self.waiting.push_front(self.message_ids.len());
                    self.is_due = true;
                } else {
                    self.waiting.push_back(self.message_ids.len());
                }
                self.message_ids.push(message.message_id.clone());
            }
            TaskEvent::Input(_) | TaskEvent::Artifact(_) | TaskEvent::Reply(_) => {}
        }
    }

    fn moved(&mut self, update: &StatusUpdate) {
        let (state, message) = (update.status.state, update.status.message.as_ref());
        self.asks = state.is_interrupted() && message.is_some();
        // The agent received the message, or asked something else that the message does not answer.
        if std::mem::take(&mut self.is_due) {
            self.waiting.pop_front();
        }
        let facts = update.metadata.as_ref();
        if state == TaskState::Working
            && facts.is_some_and(|facts| facts.contains_key(metadata::PENDING_MESSAGES))
        {
            self.begun_with = self.waiting.pop_front();
            self.read.clear();
        }
        // A replayed run may have read a message twice.
        let id = facts.and_then(|facts| facts.get(metadata::RECEIVED)?.as_str());
        let is_it = |number: &usize| self.message_ids.get(*number).map(MessageId::as_str) == id;
        if let Some(at) = self.waiting.iter().position(is_it).filter(|_| id.is_some()) {
            self.read.extend(self.waiting.remove(at));
        }
    }

    /// Index in the task's history of the message that the latest run began with.
    pub fn begun_with(&self, task: &Task) -> Option<usize> {
        let messages =
            task.history.iter().enumerate().filter(|(_, message)| message.role == Role::User);
        messages.map(|(at, _)| at).nth(self.begun_with?)
    }

    /// Indexes, in the task's history, of the messages that the latest run has read at work: a run
    /// that begins anew reads them again.
    pub fn read(&self, task: &Task) -> Vec<usize> {
        let messages =
            task.history.iter().enumerate().filter(|(_, message)| message.role == Role::User);
        let indexes: Vec<_> = messages.map(|(at, _)| at).collect();
        self.read.iter().filter_map(|number| indexes.get(*number).copied()).collect()
    }

    /// Indexes of the pending messages in the task's history: the first message of a run that
    /// starts now, and the messages queued for later runs. If the client has sent only one message,
    /// the log's first event is sufficient.
    pub fn places(&self, task: &Task) -> (Option<usize>, Vec<usize>) {
        let messages =
            task.history.iter().enumerate().filter(|(_, message)| message.role == Role::User);
        let indexes: Vec<_> = messages.map(|(at, _)| at).collect();
        let mut places = self.waiting.iter().filter_map(|number| indexes.get(*number).copied());
        let due = if self.is_due { places.next() } else { None };
        let is_received = !metadata::has(task, metadata::QUEUED) && !has_undelivered_answer(task);
        (due.filter(|_| !is_received), places.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_core::task::state;
    use a2a_hub_protocol::{
        event::Created,
        id::{AgentId, ContextId, QuestionId, TaskId},
        message::{Message, Metadata},
        task::TaskStatus,
    };
    use std::fmt::Write as _;

    fn created(queued: bool) -> Created {
        let state = TaskState::Submitted;
        let task = Task {
            id: TaskId::new("t"),
            context_id: ContextId::new("c"),
            status: TaskStatus { state, message: None, timestamp: String::new() },
            artifacts: Vec::new(),
            history: vec![Message::text(Role::User, "begin")],
            metadata: queued
                .then(|| Metadata::from_iter([(metadata::QUEUED.to_owned(), true.into())])),
        };
        let agent = AgentId::parse("a").unwrap();
        Created::new(agent, task)
    }

    /// Pending messages after a log of these events, as text.
    fn told(queued: bool, log: &str) -> String {
        let created = created(queued);
        let mut task = created.task.clone();
        let mut unheard = PendingMessages::default();
        unheard.follow(&TaskEvent::Created(Box::new(created)));
        let now = String::new;
        for word in log.split_whitespace() {
            let agent = |text: &str| Message::text(Role::Agent, text);
            let events = match word {
                "working" => vec![metadata::working(&task, now())],
                "asks" => {
                    vec![metadata::agent_question(
                        &task,
                        TaskState::InputRequired,
                        (QuestionId::fresh(), None),
                        agent("?"),
                        now(),
                    )]
                }
                "gone" => vec![metadata::interrupted(&task, "a", TaskState::InputRequired, now())],
                "again" | "silently" => {
                    let said = (word == "again").then(|| agent("done"));
                    let end = metadata::status(&task, TaskState::Completed, said, None, now());
                    metadata::end_of_run_events(&task, end, &[], &now())
                }
                read if read.starts_with("read:") => {
                    let mut said = task.history.iter();
                    let said = said.find(|said| said.joined_text() == read[5..]).unwrap();
                    vec![metadata::received(&task, &said.message_id, now())]
                }
                said => vec![TaskEvent::Input(Message::text(Role::User, said))],
            };
            for event in events {
                state::apply(&mut task, &event).unwrap();
                unheard.follow(&event);
            }
        }
        let (due, kept) = unheard.places(&task);
        let text = |at: usize| task.history[at].joined_text();
        let texts = |places: Vec<usize>| places.into_iter().map(text).collect::<Vec<_>>().join(" ");
        let (due, kept) = (due.map_or_else(|| "-".to_owned(), text), texts(kept));
        let read = texts(unheard.read(&task));
        if read.is_empty() { format!("{due} | {kept}") } else { format!("{due} | {kept} | {read}") }
    }

    #[test]
    fn first_event_suffices_for_single_message() {
        let (queued, mut unheard) = (created(true), PendingMessages::default());
        let mut task = queued.task.clone();
        unheard.follow(&TaskEvent::Created(Box::new(queued)));
        assert_eq!(unheard.places(&task), (Some(0), Vec::new()));
        let working = metadata::working(&task, String::new());
        state::apply(&mut task, &working).unwrap();
        assert_eq!(unheard.places(&task), (None, Vec::new()), "its agent had it");
    }

    #[test]
    fn log_lists_messages_no_run_received() {
        let mut table = String::new();
        for (queued, log) in [
            (true, ""),
            (false, ""),
            (true, "more"),
            (true, "working more"),
            (false, "working one two"),
            (false, "working one two again"),
            (false, "working one two silently"),
            (false, "working one again two silently"),
            (false, "working asks answer"),
            (false, "working asks answer more"),
            (false, "working asks answer working more"),
            (false, "working more asks answer"),
            (false, "working more asks answer working"),
            (false, "working more asks answer asks"),
            (false, "working more asks again"),
            (false, "working more gone"),
            (false, "working more gone on"),
            (false, "working more gone on working again"),
        ] {
            let begun = if queued { "queued" } else { "new" };
            writeln!(table, "{begun} {log}: {}", told(queued, log)).unwrap();
        }
        insta::assert_snapshot!(table, @r"
        queued : begin | 
        new : - | 
        queued more: begin | more
        queued working more: - | more
        new working one two: - | one two
        new working one two again: - | two
        new working one two silently: - | two
        new working one again two silently: - | 
        new working asks answer: answer | 
        new working asks answer more: answer | more
        new working asks answer working more: - | more
        new working more asks answer: answer | more
        new working more asks answer working: - | more
        new working more asks answer asks: - | more
        new working more asks again: - | 
        new working more gone: - | more
        new working more gone on: on | more
        new working more gone on working again: - | 
        ");
    }

    /// Messages that the run at work has read come last. A replayed run may read one twice.
    #[test]
    fn log_lists_messages_read_at_work() {
        let mut table = String::new();
        for log in [
            "working one two read:one",
            "working one two read:one read:one",
            "working one two read:one read:two three",
            "working one two read:one again",
            "working one read:one asks answer",
            "working one read:one gone",
        ] {
            writeln!(table, "{log}: {}", told(false, log)).unwrap();
        }
        insta::assert_snapshot!(table, @"
        working one two read:one: - | two | one
        working one two read:one read:one: - | two | one
        working one two read:one read:two three: - | three | one two
        working one two read:one again: - | 
        working one read:one asks answer: answer |  | one
        working one read:one gone: - |  | one
        ");
    }
}
