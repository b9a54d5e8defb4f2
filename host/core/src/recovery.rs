//! What becomes of a task when the hub that ran it is gone, in order or not.

use a2a_hub_protocol::task::TaskState;

/// What is known of a task whose hub is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Where it stood.
    pub state: TaskState,
    /// Whether it still waited for its turn: its agent has not seen it.
    pub queued: bool,
    /// Whether its agent takes a task up again; none if there is no such agent any more.
    pub resumes: Option<bool>,
}

/// What to do with a task whose hub is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Nothing: it is over.
    Leave,
    /// Give it to its agent.
    Start,
    /// Ask its client to go on: a fresh run of the agent hears what was said so far.
    Ask(TaskState),
    /// Tell that it was cut off. What its agent has done to the world is not known, so it is not done twice.
    Fail,
}

impl Left {
    /// What to do with it.
    pub fn recovery(self) -> Recovery {
        match (self.state, self.resumes) {
            (state, _) if state.is_final() => Recovery::Leave,
            (_, None) => Recovery::Fail,
            // It waited and did nothing, so nothing is done twice.
            (state, Some(_)) if state.is_interrupted() => Recovery::Ask(state),
            (TaskState::Submitted, Some(_)) if self.queued => Recovery::Start,
            (TaskState::Working, Some(true)) => Recovery::Ask(TaskState::InputRequired),
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
            for queued in [true, false] {
                let told = [Some(true), Some(false), None]
                    .map(|resumes| format!("{:?}", Left { state, queued, resumes }.recovery()));
                let place = if queued { " queued" } else { "" };
                writeln!(table, "{}{place}: {}", state.name(), told.join(" | ")).unwrap();
            }
        }
        insta::assert_snapshot!(table, @r"
        submitted queued: Start | Start | Fail
        submitted: Fail | Fail | Fail
        working queued: Ask(InputRequired) | Fail | Fail
        working: Ask(InputRequired) | Fail | Fail
        input-required queued: Ask(InputRequired) | Ask(InputRequired) | Fail
        input-required: Ask(InputRequired) | Ask(InputRequired) | Fail
        auth-required queued: Ask(AuthRequired) | Ask(AuthRequired) | Fail
        auth-required: Ask(AuthRequired) | Ask(AuthRequired) | Fail
        unknown queued: Fail | Fail | Fail
        unknown: Fail | Fail | Fail
        ");
    }

    #[test]
    fn what_is_over_stays_over() {
        for state in TaskState::ALL.into_iter().filter(|state| state.is_final()) {
            let left = Left { state, queued: false, resumes: Some(true) };
            assert_eq!(left.recovery(), Recovery::Leave);
        }
    }
}
