//! What becomes of a task when the hub that ran it is gone, in order or not.

use a2a_hub_protocol::task::TaskState;

/// What is known of a task whose hub is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfinishedTask {
    /// The state that its log ends with.
    pub state: TaskState,
    /// Whether it still waited for its turn: its agent has not seen it.
    pub queued: bool,
    /// Whether its client answered what it asked, and its agent has not heard the answer.
    pub answered: bool,
    /// What its agent still has of it; none if there is no such agent any more.
    pub hold: Option<Resumability>,
}

/// What an agent still has of a task whose hub is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumability {
    /// Nothing: its work ended with the hub.
    Nothing,
    /// Enough to go on once its client says so.
    Session,
    /// All of it: it is elsewhere, where the hub's end was not noticed, and is known by a name.
    Work,
}

/// What to do with a task whose hub is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Nothing: it is over.
    Leave,
    /// Give it to its agent, with what its client said last.
    Start,
    /// Let it wait for its client: who asked is elsewhere, and still waits for the answer.
    Wait,
    /// Ask its client in the place of who asked or worked, who is gone: a fresh run of the agent hears the answer, and what
    /// was said so far.
    Ask(TaskState),
    /// Listen to its agent again, which is still at work.
    Follow,
    /// Tell that it was cut off. What its agent has done to the world is not known, so it is not done twice.
    Fail,
}

impl UnfinishedTask {
    /// What to do with it.
    pub fn recovery(self) -> Recovery {
        match (self.state, self.hold) {
            (state, _) if state.is_final() => Recovery::Leave,
            (_, None) => Recovery::Fail,
            // It waited and did nothing, so nothing is done twice. The answer was taken, and is not lost.
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
            // One that was submitted and not queued may have begun, untold.
            (_, Some(_)) => Recovery::Fail,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    #[test]
    fn recovery_table() {
        let mut table = String::new();
        for state in TaskState::ALL.into_iter().filter(|state| !state.is_final()) {
            for (queued, answered, place) in
                [(true, false, " queued"), (false, true, " answered"), (false, false, "")]
            {
                let holds = [
                    Some(Resumability::Work),
                    Some(Resumability::Session),
                    Some(Resumability::Nothing),
                    None,
                ];
                let left = |hold| UnfinishedTask { state, queued, answered, hold };
                let told = holds.map(|hold| format!("{:?}", left(hold).recovery()));
                writeln!(table, "{}{place}: {}", state.name(), told.join(" | ")).unwrap();
            }
        }
        insta::assert_snapshot!(table, @r"
        submitted queued: Follow | Start | Start | Fail
        submitted answered: Follow | Fail | Fail | Fail
        submitted: Follow | Fail | Fail | Fail
        working queued: Follow | Ask(InputRequired) | Fail | Fail
        working answered: Follow | Ask(InputRequired) | Fail | Fail
        working: Follow | Ask(InputRequired) | Fail | Fail
        input-required queued: Wait | Ask(InputRequired) | Ask(InputRequired) | Fail
        input-required answered: Start | Start | Start | Fail
        input-required: Wait | Ask(InputRequired) | Ask(InputRequired) | Fail
        auth-required queued: Wait | Ask(AuthRequired) | Ask(AuthRequired) | Fail
        auth-required answered: Start | Start | Start | Fail
        auth-required: Wait | Ask(AuthRequired) | Ask(AuthRequired) | Fail
        unknown queued: Fail | Fail | Fail | Fail
        unknown answered: Fail | Fail | Fail | Fail
        unknown: Fail | Fail | Fail | Fail
        ");
    }

    #[test]
    fn what_is_over_stays_over() {
        for state in TaskState::ALL.into_iter().filter(|state| state.is_final()) {
            let left = UnfinishedTask {
                state,
                queued: false,
                answered: false,
                hold: Some(Resumability::Work),
            };
            assert_eq!(left.recovery(), Recovery::Leave);
        }
    }
}
