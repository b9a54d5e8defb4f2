//! One run of a flow.
//!
//! [`FlowState::step`] takes an event and returns actions. A child, question or timer is open from
//! its action to its event or its `Cancel`; events of those that are not open are ignored.

mod answers;
mod boards;
mod ending;
mod failures;
mod items;
mod minutes;
mod programs;
mod results;
mod streams;
mod turns;
mod undo;
mod worktrees;

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    answer,
    definition::{Definition, Go},
    event::{ChildEnd, Finish, FlowAction, FlowEvent, Id, Role},
    kinds::kind::{Attempt, AttemptValues, CallRights},
    permission::READ_ONLY,
    program::{self, SCRIPT},
    progress,
    row::{CallFailure, ItemEnd, Row, StepCall, StepPhase, agents},
    text::{cut, one_line},
    variables,
};
use boards::BoardReports;

/// Bytes kept of a child's text, or of one artifact.
const MAX_TEXT: usize = 64 << 10;

/// Bytes kept of the texts of all items of a step.
const MAX_ITEM_TEXTS: usize = 1 << 20;

/// Times that a question is asked again for an answer that is none of the choices.
const MAX_REPROMPTS: u32 = 10;

/// Index that stands for the flow itself.
const FLOW_INDEX: usize = usize::MAX;

/// One run of a flow.
#[derive(Clone, Debug)]
pub struct FlowState {
    definition: Definition,
    input: Value,
    flow_id: String,
    rows: Vec<Row>,
    /// Open children, questions and timers.
    open: BTreeMap<Id, ()>,
    /// Calls that were made, for the budget.
    calls: u32,
    /// End of the flow, while completed steps are compensated.
    ending: Option<Finish>,
    /// Steps that are still to be compensated, last first.
    compensating: Vec<usize>,
    is_over: bool,
    /// Open children; true for those that work, and do not wait for a person.
    working: BTreeMap<Id, bool>,
    /// Parts of the working time that were counted.
    parts: u32,
    boards: BoardReports,
}

impl FlowState {
    /// Creates a run; `flow_id` is the id of its task.
    pub fn new(definition: Definition, input: Value, flow_id: &str) -> Self {
        let rows = definition.steps.iter().map(|step| Row {
            round: 1,
            jumps: vec![0; step.next.len()],
            ..Row::default()
        });
        Self {
            rows: rows.collect(),
            definition,
            input,
            flow_id: flow_id.to_owned(),
            open: BTreeMap::new(),
            calls: 0,
            ending: None,
            compensating: Vec::new(),
            is_over: false,
            working: BTreeMap::new(),
            parts: 0,
            boards: BoardReports::default(),
        }
    }

    /// Number of open children, questions and timers.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Takes an event and returns what to do. After [`FlowAction::Finish`] events have no effect.
    pub fn step(&mut self, event: FlowEvent) -> Vec<FlowAction> {
        let mut actions = Vec::new();
        if self.is_over {
            return actions;
        }
        match event {
            FlowEvent::Begun => self.begin(&mut actions),
            FlowEvent::Ended(id, end) => {
                if self.open.remove(&id).is_some() {
                    self.ended(id, end, &mut actions);
                }
            }
            FlowEvent::Answered(id, text) => {
                if self.open.remove(&id).is_some() {
                    self.answered(id, &text, &mut actions);
                }
            }
            FlowEvent::Rang(id) => {
                if self.open.remove(&id).is_some() {
                    self.rang(id, &mut actions);
                }
            }
            FlowEvent::Paused(id) => self.set_working(id, false),
            FlowEvent::Resumed(id) => self.set_working(id, true),
            FlowEvent::Wrote(id, text) => self.wrote(id, &text),
            FlowEvent::Took(id) => self.took(id),
            FlowEvent::Unsent(id) => self.unsent(id),
            FlowEvent::Changed(id, change) => self.change_board(id, change),
        }
        self.advance(&mut actions);
        self.count_minutes(&mut actions);
        actions
    }

    fn begin(&mut self, actions: &mut Vec<FlowAction>) {
        if let Some(ms) = self.definition.timeout_ms {
            self.wait(
                Id { step: FLOW_INDEX, round: 1, item: 0, attempt: 1, role: Role::Timeout },
                ms,
                actions,
            );
        }
    }

    fn wait(&mut self, id: Id, ms: u64, actions: &mut Vec<FlowAction>) {
        self.open.insert(id, ());
        actions.push(FlowAction::Wait { id, ms });
    }

    fn ended(&mut self, id: Id, mut end: ChildEnd, actions: &mut Vec<FlowAction>) {
        if id.role == Role::Compensation {
            return self.undone(id, &end, actions);
        }
        if self.has_ended_early(id, &end) {
            return;
        }
        let items = self.rows[id.step].items.len().max(1);
        let max_bytes = (MAX_ITEM_TEXTS / items).clamp(1 << 10, MAX_TEXT);
        // Cut before anything reads it, but only after the JSON of a structured answer.
        let turn = self.rows[id.step].items.get(id.item).and_then(|item| item.turn.as_ref());
        let of_step = self.definition.steps[id.step].output.as_ref();
        let output = match turn.map_or(of_step, |turn| turn.schema()) {
            Some(schema) if end.completed => {
                let limit = if turn.is_some() { answer::MAX_ANSWER } else { max_bytes };
                let output = answer::read(&end.text, end.data.as_ref(), schema);
                Some(output.and_then(|it| answer::bounded(it, limit)))
            }
            Some(_) | None => None,
        };
        cut(&mut end.text, max_bytes);
        if let Some(changes) = &mut end.worktree {
            cut(&mut changes.diff, max_bytes);
        }
        for (_, text) in &mut end.artifacts {
            if let Value::String(text) = text {
                cut(text, max_bytes);
            }
        }
        if !end.completed {
            let failed = CallFailure { reason: end.reason, text: end.text };
            match self.definition.steps[id.step].work.kind().program() {
                Some(program) if program::is_cut_off(&failed.reason) => {
                    self.cut_off(id, program.on_restart, failed, actions);
                }
                Some(_) | None => self.item_failed(id, failed, actions),
            }
            return;
        }
        if let Some(program) = self.definition.steps[id.step].work.kind().program() {
            let takes_any_exit = program.takes_any_exit;
            return self.program_ended(id, end, takes_any_exit, actions);
        }
        match output {
            Some(Err(why)) => {
                let (at, n) = (id.step, id.item);
                let item = &mut self.rows[at].items[n];
                if item.correction.is_some() {
                    let text = format!("its answer does not fit `output`: {why}");
                    let failed = CallFailure { reason: "invalid_output".to_owned(), text };
                    item.correction = None;
                    self.item_failed(id, failed, actions);
                } else {
                    item.correction = Some(why);
                    self.call(id.step, id.item, actions);
                }
            }
            Some(Ok(output)) => self.item_done(id, end, Some(output)),
            None => {
                let output = end.data.take().filter(|data| data.to_string().len() <= max_bytes);
                self.item_done(id, end, output);
            }
        }
    }

    /// Starts the steps that can start, drops those that nobody needs any more, and ends the flow.
    fn advance(&mut self, actions: &mut Vec<FlowAction>) {
        while !self.is_over {
            if self.ending.is_some() {
                self.compensate(actions);
                return;
            }
            for step in self.definition.order.clone() {
                self.start_items(step, actions);
            }
            if self.ending.is_some() || self.is_over {
                continue;
            }
            self.drop_losers(actions);
            self.feed(actions);
            if self.ending.is_some() {
                continue;
            }
            let ready = |step: &usize| {
                let needs = &self.definition.steps[*step].needs;
                let done =
                    needs.iter().filter(|&&need| self.rows[need].phase == StepPhase::Done).count();
                let is_complete = done >= self.definition.steps[*step].at_least;
                self.rows[*step].phase == StepPhase::Waiting
                    && (is_complete || self.begins_reading(*step))
            };
            if let Some(step) = self.definition.order.iter().copied().find(ready) {
                self.start(step, actions);
                continue;
            }
            if self.rows.iter().any(|row| row.phase == StepPhase::Running) {
                return;
            }
            // All that could run did; a step that still waits would have failed the flow.
            self.complete(actions);
        }
    }

    /// Cancels each step that is not over, and whose dependents have all begun without it.
    fn drop_losers(&mut self, actions: &mut Vec<FlowAction>) {
        for &step in self.definition.order.clone().iter().rev() {
            if !matches!(self.rows[step].phase, StepPhase::Waiting | StepPhase::Running) {
                continue;
            }
            let dependents = self.definition.dependents(step);
            let is_loser = !dependents.is_empty()
                && !self.is_read(step)
                && dependents.iter().all(|&it| self.rows[it].phase != StepPhase::Waiting);
            if is_loser {
                self.close(step, actions);
                self.rows[step].phase = StepPhase::Dropped;
            }
        }
    }

    fn start(&mut self, step: usize, actions: &mut Vec<FlowAction>) {
        let definition = self.definition.steps[step].clone();
        self.rows[step].phase = StepPhase::Running;
        self.stop_pause(step, actions);
        match self.items(step) {
            Ok(list) => self.rows[step].list = list,
            Err(why) => {
                let text = format!("{}: `for_each`: {why}", definition.id);
                return self.step_failed(step, "invalid_list", text, actions);
            }
        }
        let row = &mut self.rows[step];
        let items = match definition.each {
            Some(_) => row.list.len(),
            None => definition.work.kind().items().max(1),
        };
        row.items = vec![StepCall::default(); items];
        row.verdict = None;
        let round = row.round;
        actions.push(FlowAction::Say(progress::begun(&definition, round, items)));
        if let Some(ms) = definition.timeout_ms {
            self.wait(Id { step, round, item: 0, attempt: 1, role: Role::Timeout }, ms, actions);
        }
        self.first_turns(step, actions);
    }

    /// Makes the next attempt of an item.
    fn call(&mut self, step: usize, item: usize, actions: &mut Vec<FlowAction>) {
        let definition = self.definition.steps[step].clone();
        let row = &mut self.rows[step];
        row.items[item].attempt += 1;
        let (round, attempt) = (row.round, row.items[item].attempt);
        let id = Id { step, round, item, attempt, role: Role::Work };
        if self.is_without_worktree(step, item) {
            return self.skip(step, item);
        }
        let work = definition.work.kind();
        if work.calls() && self.definition.max_calls.is_some_and(|max| self.calls >= max) {
            let text = format!("the flow's budget of {} tasks is used up", self.calls);
            return self.fail("limit_exceeded", text, actions);
        }
        if definition.stream {
            self.restart_readers(step, actions);
        }
        let element = definition.each.is_some().then(|| (item, self.rows[step].list[item].clone()));
        let (flow, call) = (&*self, &self.rows[step].items[item]);
        let attempted = work.attempt(&AttemptValues {
            variables: &|| flow.context(step, element.clone(), &[]),
            environment: &|| {
                let (definition, rows, input) = (&flow.definition, &flow.rows, &flow.input);
                variables::environment(definition, step, rows, input, element.as_ref())
            },
            output: definition.output.as_ref(),
            correction: call.correction.as_ref(),
            turn: call.turn.as_ref(),
        });
        let action = match attempted {
            Ok(Attempt::Call { text, data, rights }) => {
                let permissions = match rights {
                    CallRights::OfStep(wanted) => self.permitted(wanted.as_ref()),
                    CallRights::ReadOnly => Some(READ_ONLY.to_owned()),
                };
                self.task(id, self.agent_of(id), text, data, permissions)
            }
            Ok(Attempt::Run { data }) => {
                self.task(id, SCRIPT.to_owned(), String::new(), Some(data), None)
            }
            Ok(Attempt::Ask { text }) => FlowAction::Ask { id, text },
            Ok(Attempt::Wait { ms }) => FlowAction::Wait { id, ms },
            Ok(Attempt::Pick) => match self.picked(id, actions) {
                Some(question) => question,
                None => return,
            },
            Err(failed) => return self.item_failed_for_good(id, failed, actions),
        };
        self.calls += u32::from(work.calls());
        self.open.insert(id, ());
        actions.push(action);
    }

    /// Call of an agent or a program for an item, with what the step hands over.
    fn task(
        &mut self,
        id: Id,
        agent: String,
        mut text: String,
        data: Option<Value>,
        permissions: Option<String>,
    ) -> FlowAction {
        let mut stream = None;
        if let Some((note, facts)) = self.begin_reading(id.step) {
            text.push_str(&note);
            stream = Some(facts);
        }
        let inherit = self.inheritance(id.step);
        let worktree = self.child_worktree(id.step, id.item);
        FlowAction::Call { id, agent, text, data, permissions, inherit, worktree, stream }
    }

    fn item_done(&mut self, id: Id, end: ChildEnd, output: Option<Value>) {
        let agent = self.agent_of(id);
        let is_run = self.definition.steps[id.step].work.kind().program().is_some();
        let exit = program::exit_of(end.data.as_ref()).filter(|_| is_run);
        let (at, n) = (id.step, id.item);
        let item = &mut self.rows[at].items[n];
        item.correction = None;
        item.done = Some(ItemEnd { completed: true, end, output, agent, exit });
    }

    fn agent_of(&self, id: Id) -> String {
        let step = &self.definition.steps[id.step];
        let item = self.rows[id.step].items.get(id.item);
        if let Some(turn) = item.and_then(|item| item.turn.as_ref()) {
            return turn.agent.clone();
        }
        let which = item.map_or(0, |item| item.agent);
        agents(step.work.kind().agent(id.item), &step.fallback, which).to_owned()
    }

    /// Ends a step whose items are over, and follows its `next`.
    fn step_done(&mut self, step: usize, actions: &mut Vec<FlowAction>) {
        self.close(step, actions);
        let definition = self.definition.steps[step].clone();
        let row = &mut self.rows[step];
        row.phase = StepPhase::Done;
        row.record = Some(progress::record(row, &definition));
        let record = row.record.clone().unwrap_or_default();
        actions.extend(progress::ended(&definition, &record).map(FlowAction::Say));
        let extra = ["output", "text", "exit"].map(|name| (name, record[name].clone()));
        for (index, next) in definition.next.iter().enumerate() {
            let holds = next.when.as_ref().map_or(Ok(true), |when| {
                let context = self.context(step, None, &extra);
                when.value(&context).map(|value| value.is_true())
            });
            match holds {
                Ok(false) => continue,
                Ok(true) => {}
                Err(why) => {
                    let text = format!("{}: `next`: {why}", definition.id);
                    return self.fail("template", text, actions);
                }
            }
            match &next.go {
                Go::End { completed: true } => return self.complete(actions),
                Go::End { completed: false } => {
                    let text = record["text"].as_str().map(one_line).unwrap_or_default();
                    let text = format!("ended by {}: {text}", definition.id);
                    return self.fail("flow_ended", text, actions);
                }
                Go::To { step: target, max, continues_at_max } => {
                    if self.rows[step].jumps[index] < *max {
                        self.rows[step].jumps[index] += 1;
                        let to = &self.definition.steps[*target].id;
                        actions
                            .push(FlowAction::Say(format!("{}: goes back to {to}", definition.id)));
                        return self.rearm(*target, actions);
                    }
                    if !continues_at_max {
                        let to = &self.definition.steps[*target].id;
                        let text =
                            format!("{}: went back to {to} {max} times, its `max`", definition.id);
                        return self.fail("flow_cap", text, actions);
                    }
                    return;
                }
            }
        }
    }

    /// Sets a step, and all that depend on it, back to waiting.
    fn rearm(&mut self, target: usize, actions: &mut Vec<FlowAction>) {
        let all = 0..self.rows.len();
        let mut chosen: Vec<bool> =
            all.map(|step| step == target || self.definition.is_before(target, step)).collect();
        // Those that were dropped for a step that waits again.
        for &step in self.definition.order.iter().rev() {
            let dependents = self.definition.dependents(step);
            if self.rows[step].phase == StepPhase::Dropped
                && dependents.iter().any(|&it| chosen[it])
            {
                chosen[step] = true;
            }
        }
        for step in (0..self.rows.len()).filter(|&step| chosen[step]) {
            self.close(step, actions);
            let row = &mut self.rows[step];
            if let Some(record) = row.record.take() {
                row.previous = Some(record);
            }
            row.phase = StepPhase::Waiting;
            row.round += 1;
            row.items.clear();
            row.written.clear();
            (row.handed, row.is_due) = (None, false);
        }
    }
}
