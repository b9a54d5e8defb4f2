//! Recovery of a task after the process that ran it has ended, gracefully or not.

use crate::task::{
    metadata::{self, REASON, RECOVERY},
    question::{handed_on, has_undelivered_answer},
};
use a2a_hub_protocol::{
    id::{AgentId, QuestionId},
    message::Message,
    question::Question,
    task::{Task, TaskState},
};

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
    /// True if it waited for the reset of its agent's quota: the agent's run had ended.
    pub waits_for_quota: bool,
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
    pub fn for_task(task: &Task) -> Self {
        let question = Question::from_metadata(task.metadata.as_ref());
        let is_hubs = metadata::text(task, REASON) == Some(RECOVERY);
        match question {
            Some(question) if question.task.is_some() => Self::ForChild,
            Some(question) if question.replaces.is_none() && is_hubs => Self::ToGoOn,
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
    /// Start its agent again without its client: the run is unattended
    /// ([`UnattendedRun`](super::unattended::UnattendedRun)).
    Again,
    /// Wait for the reset of its agent's quota, and have the agent continue then.
    AwaitQuota,
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
            (TaskState::Working, Some(Resumability::Session)) if self.waits_for_quota => {
                Recovery::AwaitQuota
            }
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
pub fn still_asks(relayed: &Question, child: &Task) -> bool {
    open_question(child).is_some_and(|question| question.id == relayed.id)
}

/// Question that a parent relays after a restart, if its child, a task of `agent`, asks again: the
/// run that had asked is gone, and the same task asks something else. `None` if the child does not
/// ask again.
pub fn renewed_question(
    relayed: &Question,
    child: &Task,
    agent: &AgentId,
) -> Option<(Question, Message)> {
    let question = open_question(child)?;
    let by = question.task.as_ref().unwrap_or(&child.id);
    let is_same = relayed.task.as_ref() == Some(by) && question.id != relayed.id;
    let prompt = child.status.message.clone().filter(|_| is_same)?;
    Some(handed_on(&child.id, agent, &question, prompt))
}

/// Answer that a task's client gave to a child's open question and that the child has not received:
/// the child's current question, and the answer. `renamed` maps the id of a question to the id that
/// replaced it at a restart.
pub fn answered_for_child(
    task: &Task,
    child: &Task,
    renamed: impl Fn(&QuestionId) -> Option<QuestionId>,
) -> Option<(Question, Message)> {
    let question = Question::from_metadata(task.metadata.as_ref())
        .filter(|question| question.task.is_some())?;
    let answer = task.history.last().filter(|_| has_undelivered_answer(task))?;
    let now = open_question(child)?;
    let is_it = now.id == question.id || renamed(&question.id).as_ref() == Some(&now.id);
    let was_received = child.history.iter().any(|message| message.message_id == answer.message_id);
    (is_it && !was_received).then(|| (now, answer.clone()))
}

/// Question of a task that its client has not answered.
fn open_question(task: &Task) -> Option<Question> {
    Question::from_metadata(task.metadata.as_ref()).filter(|_| metadata::asks(task))
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::{ContextId, TaskId},
        message::{Metadata, Role},
        question::QuestionKind,
        task::TaskStatus,
    };
    use std::fmt::Write as _;

    /// Task in this state whose agent can do this: it was at work, and nobody asked.
    fn unfinished(state: TaskState, hold: Option<Resumability>) -> UnfinishedTask {
        UnfinishedTask {
            state,
            queued: false,
            answered: false,
            hold,
            asks: Asks::Itself,
            has_children: false,
            is_orphan: false,
            waits_for_quota: false,
        }
    }

    /// The agent was at work: none of its work is repeated, even if a child's question was asked or
    /// answered meanwhile.
    #[test]
    fn child_question_does_not_restart_parent_work() {
        for state in [TaskState::InputRequired, TaskState::AuthRequired] {
            for answered in [false, true] {
                let left = |hold| UnfinishedTask {
                    answered,
                    asks: Asks::ForChild,
                    has_children: true,
                    ..unfinished(state, Some(hold))
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

    /// Its run had ended with a report: the agent continues without its client, if it can.
    #[test]
    fn waiting_for_quota_survives_restart() {
        for (hold, expected) in [
            (Some(Resumability::Session), Recovery::AwaitQuota),
            (Some(Resumability::Nothing), Recovery::Fail),
            (None, Recovery::Fail),
        ] {
            for (answered, has_children) in [(false, false), (true, false), (false, true)] {
                let waiting = UnfinishedTask {
                    answered,
                    has_children,
                    waits_for_quota: true,
                    ..unfinished(TaskState::Working, hold)
                };
                assert_eq!(waiting.recovery(), expected, "{hold:?}");
                let orphan = UnfinishedTask { is_orphan: true, ..waiting };
                assert_eq!(orphan.recovery(), Recovery::Fail);
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
                let left = |hold| UnfinishedTask { queued, answered, ..unfinished(state, hold) };
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
        let left = |hold, asks| UnfinishedTask { asks, ..unfinished(state, Some(hold)) }.recovery();
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
            let of_session = unfinished(state, Some(Resumability::Session));
            UnfinishedTask { asks, answered, has_children: true, ..of_session }.recovery()
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
        assert!(still_asks(&asked, &leaf) && renewed_question(&asked, &leaf, &codex).is_none());
        assert!(
            still_asks(&above, &between) && renewed_question(&above, &between, &reviewer).is_none()
        );

        // The hub restarts, and asks on behalf of the leaf.
        let now = Question { replaces: Some(lost.kind), ..Question::fresh(QuestionKind::Input) };
        let gone = prompt("The hub was restarted while Codex asked: “May I?”");
        let leaf = asking("leaf", &now, gone);
        assert!(!still_asks(&asked, &leaf));
        let (asked, handed) = renewed_question(&asked, &leaf, &codex).unwrap();
        let between = asking("between", &asked, handed);
        let (asked, handed) = renewed_question(&above, &between, &reviewer).unwrap();
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
        assert_eq!(renewed_question(&above, &other, &codex), None);
        let mut answered = leaf;
        answered.status.message = None;
        assert_eq!(renewed_question(&above, &answered, &codex), None);
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
                waits_for_quota: false,
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
                waits_for_quota: false,
            };
            assert_eq!(left.recovery(), Recovery::Leave);
        }
    }
}
