//! Compensations of a flow that failed: an agent or a program undoes each completed step.

use super::{
    super::{
        definition::Undo,
        event::{ChildEnd, FlowAction, Id, Role},
        program::{OnRestart, SCRIPT, exit_of, is_cut_off},
        text::one_line,
        variables,
    },
    FlowState,
};

impl FlowState {
    /// Undoes the completed steps one after the other, and then ends the flow.
    pub(super) fn compensate(&mut self, actions: &mut Vec<FlowAction>) {
        while self.open.is_empty() {
            if let Some(step) = self.compensating.pop() {
                self.undo(step, 1, actions);
                continue;
            }
            if let Some(finish) = self.ending.take() {
                self.is_over = true;
                actions.push(FlowAction::Finish(finish));
            }
            return;
        }
    }

    /// Begins the compensation of a step.
    fn undo(&mut self, step: usize, attempt: u32, actions: &mut Vec<FlowAction>) {
        let definition = &self.definition.steps[step];
        let Some(undo) = &definition.compensate else { return };
        let name = definition.id.clone();
        let call = match undo {
            Undo::Agent { agent, prompt } => {
                let text = prompt.render(&self.context(step, None, &[]));
                text.map(|text| (agent.clone(), agent.clone(), text, None, self.permitted(None)))
            }
            Undo::Run(program) => {
                let (rows, input) = (&self.rows, &self.input);
                let environment = variables::environment(&self.definition, step, rows, input, None);
                let by = one_line(&program.command.join(" "));
                environment.map(|environment| {
                    let data = program.request(&environment);
                    (by, SCRIPT.to_owned(), String::new(), Some(data), None)
                })
            }
        };
        match call {
            Ok((by, agent, text, data, permissions)) => {
                let (round, item, role) = (self.rows[step].round, 0, Role::Compensation);
                let id = Id { step, round, item, attempt, role };
                self.open.insert(id, ());
                actions.push(FlowAction::Say(format!("{name}: is undone by {by}")));
                let (inherit, worktree) = (None, self.undo_worktree(step));
                actions.push(FlowAction::Call {
                    id,
                    agent,
                    text,
                    data,
                    permissions,
                    inherit,
                    worktree,
                    stream: None,
                });
            }
            Err(why) => self.not_undone(step, &why, actions),
        }
    }

    /// Takes the end of a compensation. A program is undone by its exit code 0.
    pub(super) fn undone(&mut self, id: Id, end: &ChildEnd, actions: &mut Vec<FlowAction>) {
        let undo = self.definition.steps[id.step].compensate.as_ref();
        let Some(Undo::Run(program)) = undo else {
            if !end.completed {
                self.not_undone(id.step, &end.text, actions);
            }
            return;
        };
        let is_cut_off = !end.completed && is_cut_off(&end.reason);
        match (program.on_restart, exit_of(end.data.as_ref())) {
            (OnRestart::Retry, _) if is_cut_off => self.undo(id.step, id.attempt + 1, actions),
            (OnRestart::Ask, _) if is_cut_off => self.ask_to_repeat(id, actions),
            _ if !end.completed => self.not_undone(id.step, &end.text, actions),
            (_, Some(0)) => {}
            (_, exit) => {
                let exit = exit.map_or_else(|| "no exit code".to_owned(), |it| it.to_string());
                let why = format!("its program ended with {exit}: {}", one_line(&end.text));
                self.not_undone(id.step, &why, actions);
            }
        }
    }

    /// Follows the answer about the program of a compensation that a restart cut off.
    pub(super) fn undo_again(&mut self, id: Id, is_wanted: bool, actions: &mut Vec<FlowAction>) {
        if is_wanted {
            return self.undo(id.step, id.attempt + 1, actions);
        }
        self.not_undone(id.step, "its program was cut off by a restart of the hub", actions);
    }

    fn not_undone(&self, step: usize, why: &str, actions: &mut Vec<FlowAction>) {
        let (step, why) = (&self.definition.steps[step].id, one_line(why));
        actions.push(FlowAction::Say(format!("{step}: cannot be undone: {why}")));
    }
}
