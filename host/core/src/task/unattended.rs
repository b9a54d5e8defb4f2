//! Unattended runs, which schedules and triggers start, after the end of the hub has interrupted
//! them: they have no client that could continue them.

use crate::task::{
    question::NOTE,
    recovery::{Asks, Recovery, Resumability, UnfinishedTask},
};
use a2a_hub_protocol::{
    id::MessageId,
    message::{Message, Metadata, Part, Role},
    scheduled::{AnswerRule, AutomatedRun, RestartRule},
    task::{Task, TaskState},
};

/// End of the id of the message that starts a run again; the beginning is the id of its first
/// message. So the task's log says that the run was started again.
const AGAIN: &str = ":again";

/// Text for an agent that still knows what it was told.
const GO_ON: &str = "[Your run was ended by a restart of the hub, and nobody watches it. See what is done already, do \
                     not repeat it, and finish the rest.]";

/// A task of a run that a schedule or trigger started, and its rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnattendedRun {
    /// Section of the configuration, such as `schedule.nightly`.
    section: String,
    on_restart: RestartRule,
    answers: AnswerRule,
    /// True if the task was started again before.
    was_restarted: bool,
}

/// Rule for a run at work that the end of the hub interrupts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interruption {
    /// The client is asked whether the run is to go on.
    #[default]
    AskClient,
    /// The next process starts the run again.
    StartAgain,
    /// The task fails.
    Fail,
}

impl UnattendedRun {
    /// Run of a task; `None` if a client began the task.
    pub fn for_task(task: &Task) -> Option<Self> {
        let run = AutomatedRun::from_metadata(task.metadata.as_ref())?;
        let again = first_message(task).map(|first| again_id(&first.message_id));
        let mut messages = task.history.iter().filter(|message| message.role == Role::User);
        Some(Self {
            section: run.section(),
            on_restart: run.on_restart(),
            answers: run.answers(),
            was_restarted: messages.any(|message| Some(&message.message_id) == again.as_ref()),
        })
    }

    /// True if a question of the task counts as unanswered at once.
    pub fn denies(&self) -> bool {
        self.answers == AnswerRule::Deny
    }

    /// Rule for the next interruption.
    pub fn interruption(&self) -> Interruption {
        match self.on_restart {
            RestartRule::Again if !self.was_restarted => Interruption::StartAgain,
            RestartRule::Again | RestartRule::Fail => Interruption::Fail,
        }
    }

    /// Action for the task after its process has ended: as for any other task, but its client is
    /// never asked to continue it.
    pub fn recovery(&self, unfinished: UnfinishedTask) -> Recovery {
        let (usual, denies) = (unfinished.recovery(), self.denies());
        let starts_again = self.interruption() == Interruption::StartAgain;
        match usual {
            // The replayed agent asks again, and learns that nobody answers.
            Recovery::Wait if denies && unfinished.hold == Some(Resumability::Replay) => {
                Recovery::Replay
            }
            Recovery::Leave
            | Recovery::Start
            | Recovery::Replay
            | Recovery::Follow
            | Recovery::Cancel
            | Recovery::Again
            | Recovery::AwaitQuota
            | Recovery::Wait => usual,
            // The agent's own question waits for the operator.
            Recovery::Ask(_)
                if !denies
                    && unfinished.asks == Asks::Itself
                    && unfinished.state.is_interrupted() =>
            {
                usual
            }
            Recovery::Fail
                if unfinished.hold.is_none()
                    || unfinished.is_orphan
                    || unfinished.state == TaskState::Unknown =>
            {
                usual
            }
            // Its children go on first.
            Recovery::Tend if starts_again => usual,
            Recovery::Ask(_) | Recovery::Fail | Recovery::Tend if starts_again => Recovery::Again,
            Recovery::Ask(_) | Recovery::Fail | Recovery::Tend => Recovery::Fail,
        }
    }

    /// Description, for people, of the reason why the interrupted task fails.
    pub fn why_it_fails(&self) -> String {
        let section = &self.section;
        let rule = match (self.on_restart, self.was_restarted) {
            (RestartRule::Again, true) => {
                "It was the second time, and a run without a person starts again once.".to_owned()
            }
            (RestartRule::Fail, _) => {
                format!("`{section}.on_restart` is \"fail\", so the run does not start again.")
            }
            (RestartRule::Again, false) => "It cannot start again.".to_owned(),
        };
        format!(
            "The hub was restarted while the agent was at work; what it had done by then is kept. {rule}"
        )
    }
}

/// Message that starts the run of a task again. With `is_known`, the agent knows the conversation,
/// and the message asks it to go on; otherwise the message repeats the parts of the first one. It
/// has the metadata of the first one, such as its permissions. `None` if the task has no message.
pub fn again_message(task: &Task, is_known: bool) -> Option<Message> {
    let first = first_message(task)?;
    let mark = Metadata::from_iter([(NOTE.to_owned(), "hub_restarted".into())]);
    let parts = match is_known {
        true => vec![Part { metadata: Some(mark), ..Part::text(GO_ON) }],
        false => first.parts.clone(),
    };
    Some(Message { message_id: again_id(&first.message_id), parts, ..first.clone() })
}

fn first_message(task: &Task) -> Option<&Message> {
    task.history.iter().find(|message| message.role == Role::User)
}

fn again_id(first: &MessageId) -> MessageId {
    MessageId::new(format!("{first}{AGAIN}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::{ContextId, TaskId},
        scheduled::{ScheduledRun, TriggeredRun},
        task::TaskStatus,
    };
    use std::fmt::Write as _;

    fn runs(on_restart: RestartRule, answers: AnswerRule) -> [AutomatedRun; 2] {
        let (name, at, after) = ("nightly".to_owned(), "T".to_owned(), Vec::new());
        let (planned, named) = (at.clone(), name.clone());
        [
            AutomatedRun::Schedule(ScheduledRun { name, planned, answers, on_restart }),
            AutomatedRun::Trigger(TriggeredRun { name: named, at, answers, on_restart, after }),
        ]
    }

    fn task(run: &AutomatedRun) -> Task {
        let first = Message { message_id: MessageId::new("m"), ..Message::text(Role::User, "do") };
        let state = TaskState::Working;
        Task {
            id: TaskId::new("t"),
            context_id: ContextId::new("c"),
            status: TaskStatus { state, message: None, timestamp: String::new() },
            artifacts: Vec::new(),
            history: vec![first],
            metadata: Some(run.facts()),
        }
    }

    fn left(state: TaskState, hold: Resumability) -> UnfinishedTask {
        UnfinishedTask {
            state,
            queued: false,
            answered: false,
            hold: Some(hold),
            asks: Asks::Itself,
            has_children: false,
            is_orphan: false,
            waits_for_quota: false,
        }
    }

    #[test]
    fn rule_decides_each_interruption() {
        let mut table = String::new();
        for on_restart in [RestartRule::Again, RestartRule::Fail] {
            for run in runs(on_restart, AnswerRule::Deny) {
                let mut task = task(&run);
                for time in ["once", "twice"] {
                    let run = UnattendedRun::for_task(&task).unwrap();
                    let told = [Resumability::Session, Resumability::Nothing]
                        .map(|hold| run.recovery(left(TaskState::Working, hold)));
                    let (section, then) = (&run.section, run.interruption());
                    writeln!(table, "{section} {on_restart:?} {time}: {told:?} {then:?}").unwrap();
                    task.history.extend(again_message(&task, true));
                }
                let why = UnattendedRun::for_task(&task).unwrap().why_it_fails();
                writeln!(table, "  {}", why.split_once("is kept. ").unwrap().1).unwrap();
            }
        }
        insta::assert_snapshot!(table, @r#"
        schedule.nightly Again once: [Again, Again] StartAgain
        schedule.nightly Again twice: [Fail, Fail] Fail
          It was the second time, and a run without a person starts again once.
        trigger.nightly Again once: [Again, Again] StartAgain
        trigger.nightly Again twice: [Fail, Fail] Fail
          It was the second time, and a run without a person starts again once.
        schedule.nightly Fail once: [Fail, Fail] Fail
        schedule.nightly Fail twice: [Fail, Fail] Fail
          `schedule.nightly.on_restart` is "fail", so the run does not start again.
        trigger.nightly Fail once: [Fail, Fail] Fail
        trigger.nightly Fail twice: [Fail, Fail] Fail
          `trigger.nightly.on_restart` is "fail", so the run does not start again.
        "#);
    }

    #[test]
    fn unattended_run_is_never_asked() {
        use Recovery::{Again, Ask, Fail, Follow, Replay, Start, Tend, Wait};
        use TaskState::{InputRequired, Submitted, Unknown, Working};
        let [again, _] = runs(RestartRule::Again, AnswerRule::Deny);
        let [fails, _] = runs(RestartRule::Fail, AnswerRule::Deny);
        let [inbox, _] = runs(RestartRule::Again, AnswerRule::Inbox);
        let run = |run| UnattendedRun::for_task(&task(run)).unwrap();
        let (again, fails, inbox) = (run(&again), run(&fails), run(&inbox));
        let (no, session) = (Resumability::Nothing, Resumability::Session);
        let to_go_on = UnfinishedTask { asks: Asks::ToGoOn, ..left(InputRequired, session) };
        let parent = UnfinishedTask { has_children: true, ..left(Working, session) };
        let orphan = UnfinishedTask { is_orphan: true, ..left(Working, session) };
        let answered = UnfinishedTask { answered: true, ..to_go_on };
        let gone = UnfinishedTask { hold: None, ..left(Working, no) };
        let queued = UnfinishedTask { queued: true, ..left(Submitted, no) };
        let replayed = Resumability::Replay;
        for (left, again_is, fails_is, inbox_is) in [
            (left(Submitted, no), Again, Fail, Again),
            (queued, Start, Start, Start),
            (to_go_on, Again, Fail, Again),
            (answered, Start, Start, Start),
            (left(InputRequired, session), Again, Fail, Ask(InputRequired)),
            (left(InputRequired, replayed), Replay, Replay, Wait),
            (left(Working, replayed), Replay, Replay, Replay),
            (left(Working, Resumability::Work), Follow, Follow, Follow),
            (parent, Tend, Fail, Tend),
            (orphan, Fail, Fail, Fail),
            (gone, Fail, Fail, Fail),
            (left(Unknown, no), Fail, Fail, Fail),
        ] {
            let is = [&again, &fails, &inbox].map(|run| run.recovery(left));
            assert_eq!(is, [again_is, fails_is, inbox_is], "{left:?}");
        }
    }

    #[test]
    fn agent_without_memory_gets_first_message() {
        let [run, _] = runs(RestartRule::Again, AnswerRule::Deny);
        let mut task = task(&run);
        let permissions = Metadata::from_iter([("permissions".to_owned(), "read-only".into())]);
        task.history[0].metadata = Some(permissions);
        let [known, new] = [true, false].map(|is_known| again_message(&task, is_known).unwrap());
        assert_eq!(
            (new.parts.clone(), new.message_id.as_str()),
            (task.history[0].parts.clone(), "m:again")
        );
        assert_eq!([&known.metadata, &new.metadata], [&task.history[0].metadata; 2]);
        assert!(known.joined_text().contains("finish the rest"));
        task.history.clear();
        assert_eq!(again_message(&task, true), None);
    }
}
