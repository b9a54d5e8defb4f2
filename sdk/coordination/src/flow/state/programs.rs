//! Programs of steps: exit codes and restarts of the hub. Also the permissions and the memory of a
//! step's agent.

use super::{
    super::{
        definition::{Inherit, Step},
        event::{ChildEnd, FlowAction, Id, Inheritance, Role},
        permission::is_elevated,
        program::{HUB_RESTARTED, OnRestart, exit_of},
        row::{CallFailure, StepPhase},
    },
    FlowState,
};

impl FlowState {
    /// Ends the item of a program by its exit code.
    pub(super) fn program_ended(
        &mut self,
        id: Id,
        end: ChildEnd,
        takes_any_exit: bool,
        actions: &mut Vec<FlowAction>,
    ) {
        match exit_of(end.data.as_ref()) {
            Some(exit) if exit == 0 || takes_any_exit => self.item_done(id, end, None),
            exit => {
                let exit = exit.map_or_else(|| "no exit code".to_owned(), |it| it.to_string());
                let text = format!("the program ended with {exit}\n{}", end.text);
                let failed = CallFailure { reason: "exit_nonzero".to_owned(), text };
                self.item_failed(id, failed, actions);
            }
        }
    }

    /// Continues after a restart of the hub that cut off a program.
    pub(super) fn cut_off(
        &mut self,
        id: Id,
        rule: OnRestart,
        failed: CallFailure,
        actions: &mut Vec<FlowAction>,
    ) {
        let step = &self.definition.steps[id.step].id;
        match rule {
            OnRestart::Retry => {
                actions.push(FlowAction::Say(format!(
                    "{step}: runs again after a restart of the hub"
                )));
                self.call(id.step, id.item, actions);
            }
            OnRestart::Ask => self.ask_to_repeat(id, actions),
            OnRestart::Fail => self.item_failed_for_good(id, failed, actions),
        }
    }

    /// Asks the client whether a program that was cut off runs again.
    pub(super) fn ask_to_repeat(&mut self, id: Id, actions: &mut Vec<FlowAction>) {
        let step = &self.definition.steps[id.step].id;
        let program = match id.role {
            Role::Compensation => "The program that undoes the step",
            Role::Work
            | Role::Backoff
            | Role::Timeout
            | Role::Restart
            | Role::Minutes
            | Role::Answers
            | Role::Piece => "The program of the step",
        };
        let text = format!(
            "{program} {step} was cut off by a restart of the hub, and may have done a part of its work. \
             Run it again?\n(yes / no)"
        );
        let id = Id { role: Role::Restart, ..id };
        self.open.insert(id, ());
        actions.push(FlowAction::Ask { id, text });
    }

    /// Follows the answer of the client about a program that was cut off.
    pub(super) fn restart_answered(&mut self, id: Id, text: &str, actions: &mut Vec<FlowAction>) {
        let says_yes = ["yes", "y"].contains(&text.trim().to_lowercase().as_str());
        // Nothing but a compensation is open once the flow has failed.
        if self.ending.is_some() {
            return self.undo_again(id, says_yes, actions);
        }
        if says_yes {
            return self.call(id.step, id.item, actions);
        }
        let text = "its program was cut off by a restart of the hub".to_owned();
        let failed = CallFailure { reason: HUB_RESTARTED.to_owned(), text };
        self.item_failed_for_good(Id { role: Role::Work, ..id }, failed, actions);
    }

    /// Memory that the agent of a step gets: none if the step that gives it was not needed.
    pub(super) fn inheritance(&self, step: usize) -> Option<Inheritance> {
        let Inherit { from, scope } = self.definition.steps[step].inherit.as_ref()?;
        let of_step = |from: usize| {
            let row = self.rows.get(from).filter(|row| row.phase == StepPhase::Done)?;
            let attempt = row.items.first()?.attempt;
            Some(Id { step: from, round: row.round, item: 0, attempt, role: Role::Work })
        };
        let from = match from {
            Some(from) => Some(of_step(*from)?),
            None => None,
        };
        Some(Inheritance { from, scope: scope.clone() })
    }

    /// Permissions of a child: those of its step. If an agent of the flow may do more than ask, all
    /// others get `ask`.
    pub(super) fn permitted(&self, wanted: Option<&String>) -> Option<String> {
        let elevated = |step: &Step| step.work.kind().permissions().is_some_and(is_elevated);
        let ask = || self.definition.steps.iter().any(elevated).then(|| "ask".to_owned());
        wanted.cloned().or_else(ask)
    }
}
