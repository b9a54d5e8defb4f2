//! Recovery of a task after the process that ran it has ended, gracefully or not.

use crate::task::{
    metadata::{self, REASON, RECOVERY},
    question::{handed_on, has_undelivered_answer},
};
use a2a_hub_protocol::{
    event::{StatusUpdate, TaskEvent},
    id::{AgentId, QuestionId},
    message::{Message, Role},
    question::Question,
    task::{Task, TaskState},
};
use std::collections::VecDeque;

/// Recorded facts of a task whose process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfinishedTask {
    /// Last state in its log.
    pub state: TaskState,
    /// True if it was still queued: its agent has not seen it.
    pub queued: bool,
    /// True if the client answered its question and the agent has not received the answer.
    pub answered: bool,
    /// Ability of its agent to resume it; `None` if the agent no longer exists.
    pub hold: Option<Resumability>,
    /// Origin of its question, if it has one.
    pub asks: Asks,
    /// True if a child of the task has not ended.
    pub has_children: bool,
    /// True if its parent has ended: no child outlives its parent.
    pub is_orphan: bool,
}

/// Origin of a task's question after its process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// Its own agent asked, or nobody did.
    Itself,
    /// A child of the task asked.
    ForChild,
    /// The hub asks the client to continue the task: its agent was at work when an earlier process
    /// ended.
    ToGoOn,
}

impl Asks {
    /// Origin of the task's question, by its record.
    pub fn of(task: &Task) -> Self {
        let asked = Question::of(task.metadata.as_ref());
        let is_hubs = metadata::text(task, REASON) == Some(RECOVERY);
        match asked {
            Some(asked) if asked.task.is_some() => Self::ForChild,
            Some(asked) if asked.replaces.is_none() && is_hubs => Self::ToGoOn,
            Some(_) | None => Self::Itself,
        }
    }
}

/// Ability of an agent to resume a task whose process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumability {
    /// None: its work ended with the hub.
    Nothing,
    /// It can continue once its client says so.
    Session,
    /// Its answers are recorded: it is replayed from the start up to the point it had reached.
    Replay,
    /// The work itself continues: the agent is remote, did not notice the end of the hub, and knows
    /// the task by an id.
    Work,
}

/// Action for a task whose process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Nothing: the task has ended.
    Leave,
    /// Start its agent with the last message of its client.
    Start,
    /// Wait for its client: a remote agent still waits for the answer, or the answer starts a
    /// replay.
    Wait,
    /// Ask its client on behalf of the lost run: a new run of the agent receives the answer and the
    /// conversation so far.
    Ask(TaskState),
    /// Run its agent again and replay the recorded answers.
    Replay,
    /// Supervise the children of its agent's lost run: they continue, and their questions are
    /// relayed here. After their end, the client is asked to continue the task.
    Tend,
    /// Re-attach to its agent, which is still at work.
    Follow,
    /// Re-attach to its remote agent, and cancel the task there.
    Cancel,
    /// Fail it as interrupted. The side effects of its agent are unknown, so the work is not
    /// repeated.
    Fail,
}

impl UnfinishedTask {
    /// Chooses the action for the task.
    pub fn recovery(self) -> Recovery {
        match (self.state, self.hold) {
            (state, _) if state.is_final() => Recovery::Leave,
            (_, Some(Resumability::Work)) if self.is_orphan => Recovery::Cancel,
            _ if self.is_orphan => Recovery::Fail,
            (_, None) => Recovery::Fail,
            (TaskState::Submitted, Some(Resumability::Replay)) if self.queued => Recovery::Start,
            // The question stays pending, and the answer starts the replay. A child's question
            // comes from that child again.
            (state, Some(Resumability::Replay))
                if state.is_interrupted() && !self.answered && self.asks != Asks::ForChild =>
            {
                Recovery::Wait
            }
            (TaskState::Unknown, Some(Resumability::Replay)) => Recovery::Fail,
            (_, Some(Resumability::Replay)) => Recovery::Replay,
            // A child's question does not stop an agent's work, so the agent was at work.
            (state, Some(Resumability::Nothing))
                if state.is_interrupted() && self.asks == Asks::ForChild =>
            {
                Recovery::Fail
            }
            (_, Some(Resumability::Session)) if self.has_children && self.was_at_work() => {
                Recovery::Tend
            }
            (state, Some(Resumability::Session))
                if state.is_interrupted() && self.asks == Asks::ForChild =>
            {
                Recovery::Ask(TaskState::InputRequired)
            }
            // The task waited without any work, so nothing is done twice. The answer was accepted,
            // and is not lost.
            (state, Some(_)) if state.is_interrupted() && self.answered => Recovery::Start,
            (state, Some(Resumability::Work)) if state.is_interrupted() => Recovery::Wait,
            (state, Some(_)) if state.is_interrupted() => Recovery::Ask(state),
            (TaskState::Submitted | TaskState::Working, Some(Resumability::Work)) => {
                Recovery::Follow
            }
            (TaskState::Submitted, Some(_)) if self.queued => Recovery::Start,
            (TaskState::Working, Some(Resumability::Session)) => {
                Recovery::Ask(TaskState::InputRequired)
            }
            // A task that was submitted and not queued may have started without a record of it.
            (_, Some(_)) => Recovery::Fail,
        }
    }

    /// True if its agent was at work when a process ended, and has not been restarted since.
    fn was_at_work(self) -> bool {
        let waits = self.state.is_interrupted();
        match self.asks {
            Asks::ForChild => waits,
            Asks::ToGoOn => waits && !self.answered,
            Asks::Itself => self.state == TaskState::Working,
        }
    }
}

/// True if the child's question is still the one that the parent task relays.
pub fn still_asks(asked_above: &Question, child: &Task) -> bool {
    open_question(child).is_some_and(|asked| asked.id == asked_above.id)
}

/// Question that a parent relays after a restart, if its child, a task of `agent`, asks again: the
/// run that had asked is gone, and the same task asks something else. `None` if the child does not
/// ask again.
pub fn asked_anew(
    asked_above: &Question,
    child: &Task,
    agent: &AgentId,
) -> Option<(Question, Message)> {
    let asked = open_question(child)?;
    let by = asked.task.as_ref().unwrap_or(&child.id);
    let is_same = asked_above.task.as_ref() == Some(by) && asked.id != asked_above.id;
    let prompt = child.status.message.clone().filter(|_| is_same)?;
    Some(handed_on(&child.id, agent, &asked, prompt))
}

/// Answer that a task's client gave to a child's open question and that the child has not received:
/// the child's current question, and the answer. `renamed` maps the id of a question to the id that
/// replaced it at a restart.
pub fn answered_for_child(
    task: &Task,
    child: &Task,
    renamed: impl Fn(&QuestionId) -> Option<QuestionId>,
) -> Option<(Question, Message)> {
    let asked = Question::of(task.metadata.as_ref()).filter(|asked| asked.task.is_some())?;
    let answer = task.history.last().filter(|_| has_undelivered_answer(task))?;
    let now = open_question(child)?;
    let is_it = now.id == asked.id || renamed(&asked.id).as_ref() == Some(&now.id);
    let was_heard = child.history.iter().any(|said| said.message_id == answer.message_id);
    (is_it && !was_heard).then(|| (now, answer.clone()))
}

/// Question of a task that its client has not answered.
fn open_question(task: &Task) -> Option<Question> {
    Question::of(task.metadata.as_ref()).filter(|_| metadata::asks(task))
}

/// Client messages of a task that no run of its agent has received, computed from the events of the
/// task's log in their order.
#[derive(Clone, Debug, Default)]
pub struct Unheard {
    /// Pending messages, by their number among all client messages: the next run's first message,
    /// then the queued ones, oldest first.
    waiting: VecDeque<usize>,
    /// Number of client messages so far.
    said: usize,
    /// True if no agent is at work for the first pending message: it is the first message of the
    /// task, or an answer.
    is_due: bool,
    /// True if the task asks something.
    asks: bool,
    /// Number of the message that the latest run began with.
    begun_with: Option<usize>,
}

impl Unheard {
    /// Applies the next event of the log.
    pub fn follow(&mut self, event: &TaskEvent) {
        match event {
            TaskEvent::Created(created) => {
                let history = created.task.history.iter();
                self.said = history.filter(|said| said.role == Role::User).count();
                self.begun_with = self.said.checked_sub(1);
                // A task that was not queued may have started without a record of it.
                if metadata::has(&created.task, metadata::QUEUED) {
                    self.waiting.extend(self.said.checked_sub(1));
                    self.is_due = !self.waiting.is_empty();
                }
            }
            TaskEvent::Status(update) => self.moved(update),
            TaskEvent::Input(message) if message.role == Role::User => {
                if std::mem::take(&mut self.asks) {
                    self.waiting.push_front(self.said);
                    self.is_due = true;
                } else {
                    self.waiting.push_back(self.said);
                }
                self.said += 1;
            }
            TaskEvent::Input(_) | TaskEvent::Artifact(_) | TaskEvent::Reply(_) => {}
        }
    }

    fn moved(&mut self, update: &StatusUpdate) {
        let (state, said) = (update.status.state, update.status.message.as_ref());
        self.asks = state.is_interrupted() && said.is_some();
        // The agent received the message, or asked something else that the message does not answer.
        if std::mem::take(&mut self.is_due) {
            self.waiting.pop_front();
        }
        let facts = update.metadata.as_ref();
        if state == TaskState::Working
            && facts.is_some_and(|facts| facts.contains_key(metadata::UNHEARD))
        {
            self.begun_with = self.waiting.pop_front();
        }
    }

    /// Index in the task's history of the message that the latest run began with.
    pub fn begun_with(&self, task: &Task) -> Option<usize> {
        let said = task.history.iter().enumerate().filter(|(_, said)| said.role == Role::User);
        said.map(|(at, _)| at).nth(self.begun_with?)
    }

    /// Indexes of the pending messages in the task's history: the first message of a run that
    /// starts now, and the messages queued for later runs. If the client has sent only one message,
    /// the log's first event is sufficient.
    pub fn places(&self, task: &Task) -> (Option<usize>, Vec<usize>) {
        let said = task.history.iter().enumerate().filter(|(_, said)| said.role == Role::User);
        let said: Vec<_> = said.map(|(at, _)| at).collect();
        let mut places = self.waiting.iter().filter_map(|number| said.get(*number).copied());
        let due = if self.is_due { places.next() } else { None };
        let is_heard = !metadata::has(task, metadata::QUEUED) && !has_undelivered_answer(task);
        (due.filter(|_| !is_heard), places.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::state;
    use a2a_hub_protocol::{
        event::Created,
        id::{ContextId, TaskId},
        message::Metadata,
        question::QuestionKind,
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
        Created::of(agent, task)
    }

    /// Pending messages after a log of these events, as text.
    fn told(queued: bool, log: &str) -> String {
        let created = created(queued);
        let mut task = created.task.clone();
        let mut unheard = Unheard::default();
        unheard.follow(&TaskEvent::Created(Box::new(created)));
        let now = String::new;
        for word in log.split_whitespace() {
            let agent = |text: &str| Message::text(Role::Agent, text);
            let events = match word {
                "working" => vec![metadata::working(&task, now())],
                "asks" => {
                    vec![metadata::asked(&task, TaskState::InputRequired, agent("?"), now())]
                }
                "gone" => vec![metadata::interrupted(&task, "a", TaskState::InputRequired, now())],
                "again" | "silently" => {
                    let said = (word == "again").then(|| agent("done"));
                    let end = metadata::status(&task, TaskState::Completed, said, None, now());
                    metadata::end_of_run_events(&task, end, &[], &now())
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
        let kept: Vec<_> = kept.into_iter().map(text).collect();
        format!("{} | {}", due.map_or_else(|| "-".to_owned(), text), kept.join(" "))
    }

    #[test]
    fn first_event_suffices_for_single_message() {
        let (queued, mut unheard) = (created(true), Unheard::default());
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

    /// The agent was at work: none of its work is repeated, even if a child's question was asked or
    /// answered meanwhile.
    #[test]
    fn child_question_does_not_restart_parent_work() {
        for state in [TaskState::InputRequired, TaskState::AuthRequired] {
            for answered in [false, true] {
                let left = |hold| UnfinishedTask {
                    state,
                    queued: false,
                    answered,
                    hold: Some(hold),
                    asks: Asks::ForChild,
                    has_children: true,
                    is_orphan: false,
                };
                assert_eq!(left(Resumability::Nothing).recovery(), Recovery::Fail);
                let tended = left(Resumability::Session);
                assert_eq!(tended.recovery(), Recovery::Tend);
                let alone = UnfinishedTask { has_children: false, ..tended };
                assert_eq!(alone.recovery(), Recovery::Ask(TaskState::InputRequired));
                assert_eq!(left(Resumability::Replay).recovery(), Recovery::Replay);
            }
        }
    }

    #[test]
    fn recovery_table() {
        let mut table = String::new();
        for state in TaskState::ALL.into_iter().filter(|state| !state.is_final()) {
            for (queued, answered, place) in
                [(true, false, " queued"), (false, true, " answered"), (false, false, "")]
            {
                let holds = [
                    Some(Resumability::Work),
                    Some(Resumability::Replay),
                    Some(Resumability::Session),
                    Some(Resumability::Nothing),
                    None,
                ];
                let left = |hold| UnfinishedTask {
                    state,
                    queued,
                    answered,
                    hold,
                    asks: Asks::Itself,
                    has_children: false,
                    is_orphan: false,
                };
                let told = holds.map(|hold| format!("{:?}", left(hold).recovery()));
                writeln!(table, "{}{place}: {}", state.name(), told.join(" | ")).unwrap();
            }
        }
        insta::assert_snapshot!(table, @r"
        submitted queued: Follow | Start | Start | Start | Fail
        submitted answered: Follow | Replay | Fail | Fail | Fail
        submitted: Follow | Replay | Fail | Fail | Fail
        working queued: Follow | Replay | Ask(InputRequired) | Fail | Fail
        working answered: Follow | Replay | Ask(InputRequired) | Fail | Fail
        working: Follow | Replay | Ask(InputRequired) | Fail | Fail
        input-required queued: Wait | Wait | Ask(InputRequired) | Ask(InputRequired) | Fail
        input-required answered: Start | Replay | Start | Start | Fail
        input-required: Wait | Wait | Ask(InputRequired) | Ask(InputRequired) | Fail
        auth-required queued: Wait | Wait | Ask(AuthRequired) | Ask(AuthRequired) | Fail
        auth-required answered: Start | Replay | Start | Start | Fail
        auth-required: Wait | Wait | Ask(AuthRequired) | Ask(AuthRequired) | Fail
        unknown queued: Fail | Fail | Fail | Fail | Fail
        unknown answered: Fail | Fail | Fail | Fail | Fail
        unknown: Fail | Fail | Fail | Fail | Fail
        ");
    }

    #[test]
    fn replayed_parent_gets_question_from_child() {
        let state = TaskState::InputRequired;
        let left = |hold, asks| {
            let (queued, answered, is_orphan, has_children) = (false, false, false, false);
            let hold = Some(hold);
            UnfinishedTask { state, queued, answered, hold, asks, has_children, is_orphan }
                .recovery()
        };
        assert_eq!(left(Resumability::Replay, Asks::ForChild), Recovery::Replay);
        assert_eq!(left(Resumability::Replay, Asks::Itself), Recovery::Wait);
        assert_eq!(left(Resumability::Session, Asks::ForChild), Recovery::Ask(state));
    }

    /// A question of the agent itself is lost with its run, and the client is asked again; the
    /// children continue meanwhile.
    #[test]
    fn children_of_lost_run_are_supervised() {
        use TaskState::{InputRequired, Working};
        let left = |state, asks, answered| {
            let (queued, is_orphan, has_children) = (false, false, true);
            let hold = Some(Resumability::Session);
            UnfinishedTask { state, queued, answered, hold, asks, has_children, is_orphan }
                .recovery()
        };
        for (state, asks, answered, wanted) in [
            (Working, Asks::Itself, false, Recovery::Tend),
            (InputRequired, Asks::ForChild, false, Recovery::Tend),
            (InputRequired, Asks::ForChild, true, Recovery::Tend),
            (InputRequired, Asks::ToGoOn, false, Recovery::Tend),
            (InputRequired, Asks::ToGoOn, true, Recovery::Start),
            (InputRequired, Asks::Itself, false, Recovery::Ask(InputRequired)),
            (InputRequired, Asks::Itself, true, Recovery::Start),
        ] {
            assert_eq!(left(state, asks, answered), wanted, "{state:?} {asks:?} {answered}");
        }
    }

    fn asking(id: &str, asked: &Question, prompt: Message) -> Task {
        let (state, message) = (TaskState::InputRequired, Some(prompt));
        let status = TaskStatus { state, message, timestamp: String::new() };
        let (id, context_id) = (TaskId::new(id), ContextId::new("c"));
        let metadata = Some(Metadata::from_iter([asked.member()]));
        Task { id, context_id, status, artifacts: Vec::new(), history: Vec::new(), metadata }
    }

    fn prompt(text: &str) -> Message {
        Message::text(Role::Agent, text)
    }

    #[test]
    fn childs_replaced_question_gets_new_id() {
        let [reviewer, codex] = ["reviewer", "codex"].map(|id| AgentId::parse(id).unwrap());
        let lost = Question::fresh(QuestionKind::Permission);
        let leaf = asking("leaf", &lost, prompt("May I?"));
        let (asked, handed) = handed_on(&leaf.id, &codex, &lost, prompt("May I?"));
        let between = asking("between", &asked, handed.clone());
        let (above, _) = handed_on(&between.id, &reviewer, &asked, handed);
        assert!(still_asks(&asked, &leaf) && asked_anew(&asked, &leaf, &codex).is_none());
        assert!(still_asks(&above, &between) && asked_anew(&above, &between, &reviewer).is_none());

        // The hub restarts, and asks on behalf of the leaf.
        let now = Question { replaces: Some(lost.kind), ..Question::fresh(QuestionKind::Input) };
        let gone = prompt("The hub was restarted while Codex asked: “May I?”");
        let leaf = asking("leaf", &now, gone);
        assert!(!still_asks(&asked, &leaf));
        let (asked, handed) = asked_anew(&asked, &leaf, &codex).unwrap();
        let between = asking("between", &asked, handed);
        let (asked, handed) = asked_anew(&above, &between, &reviewer).unwrap();
        assert_eq!((&asked.id, asked.replaces), (&now.id, Some(QuestionKind::Permission)));
        assert_eq!(
            (asked.task, asked.path),
            (Some(leaf.id.clone()), vec![reviewer, codex.clone()])
        );
        insta::assert_snapshot!(handed.joined_text(), @"
        reviewer > codex asks:
        The hub was restarted while Codex asked: “May I?”
        ");

        // A question of another child does not affect it.
        let other = asking("other", &Question::fresh(QuestionKind::Input), prompt("Which?"));
        assert_eq!(asked_anew(&above, &other, &codex), None);
        let mut answered = leaf;
        answered.status.message = None;
        assert_eq!(asked_anew(&above, &answered, &codex), None);
    }

    #[test]
    fn parents_answer_is_delivered_to_child_once() {
        let [lost, now] = [(); 2].map(|()| Question::fresh(QuestionKind::Input));
        let above = Question { task: Some(TaskId::new("leaf")), ..lost.clone() };
        let mut root = asking("root", &above, prompt("Which?"));
        let renamed = |id: &QuestionId| (*id == lost.id).then(|| now.id.clone());
        let leaf = |asked: &Question| asking("leaf", asked, prompt("Which?"));
        assert_eq!(answered_for_child(&root, &leaf(&lost), renamed), None, "nobody answered");
        root.status.message = None;
        let answer = Message::text(Role::User, "this");
        root.history.push(answer.clone());
        for asked in [&lost, &now] {
            let found = answered_for_child(&root, &leaf(asked), renamed);
            assert_eq!(found, Some((asked.clone(), answer.clone())));
        }
        let other = Question::fresh(QuestionKind::Input);
        assert_eq!(answered_for_child(&root, &leaf(&other), renamed), None);
        let mut heard = leaf(&now);
        heard.history.push(answer);
        assert_eq!(answered_for_child(&root, &heard, renamed), None, "it is taken once");
    }

    #[test]
    fn orphaned_child_is_cancelled_or_failed() {
        for state in TaskState::ALL.into_iter().filter(|state| !state.is_final()) {
            let orphan = |hold| UnfinishedTask {
                state,
                queued: true,
                answered: true,
                asks: Asks::Itself,
                has_children: true,
                hold,
                is_orphan: true,
            };
            assert_eq!(orphan(Some(Resumability::Work)).recovery(), Recovery::Cancel, "{state:?}");
            let others = [Resumability::Nothing, Resumability::Session, Resumability::Replay];
            for hold in others.into_iter().map(Some).chain([None]) {
                assert_eq!(orphan(hold).recovery(), Recovery::Fail, "{state:?} {hold:?}");
            }
        }
    }

    #[test]
    fn finished_task_is_left_alone() {
        for state in TaskState::ALL.into_iter().filter(|state| state.is_final()) {
            let left = UnfinishedTask {
                state,
                queued: false,
                answered: false,
                hold: Some(Resumability::Work),
                asks: Asks::Itself,
                has_children: true,
                is_orphan: true,
            };
            assert_eq!(left.recovery(), Recovery::Leave);
        }
    }
}
