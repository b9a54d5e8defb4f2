//! Simulation of a flow with scripted answers and simulated time: `flow test`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::{
    FlowState,
    definition::{Definition, StepWorktree},
    event::{ChildChanges, ChildEnd, Finish, FlowAction, FlowEvent, Id, Role},
    fakes::{Expect, Fakes},
    kinds::{Work, kind::StepKind as _},
    problem::Problem,
    program::SCRIPT,
    text::{duration, one_line},
};

/// Most events of one simulation.
const MAX_EVENTS: usize = 10_000;

/// Most lines of the transitions.
const MAX_LINES: usize = 2_000;

/// Course of a simulated flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Simulation {
    /// Transitions, one a line, each with its simulated time.
    pub transitions: Vec<String>,
    /// Expectations that do not hold; empty if the test passes.
    pub failures: Vec<String>,
}

/// State of a simulation at work.
struct World<'a> {
    flow: &'a Definition,
    fakes: &'a Fakes,
    now_ms: u64,
    /// Coming events by due time, in the order in which they were scheduled.
    due: BTreeMap<(u64, usize), (Id, FlowEvent)>,
    scheduled: usize,
    /// Calls of each step.
    calls: BTreeMap<String, usize>,
    /// Ids of the steps in the order in which they began.
    begun: Vec<String>,
    finish: Option<Finish>,
    simulation: Simulation,
}

impl Definition {
    /// Runs the flow with the scripted answers of `fakes`, the text of a TOML file, and compares
    /// its end with the expectations there.
    ///
    /// # Errors
    ///
    /// The problems of that file.
    pub fn simulate(&self, fakes: &str) -> Result<Simulation, Vec<Problem>> {
        let fakes = Fakes::parse(fakes, self)?;
        let mut world = World {
            flow: self,
            fakes: &fakes,
            now_ms: 0,
            due: BTreeMap::new(),
            scheduled: 0,
            calls: BTreeMap::new(),
            begun: Vec::new(),
            finish: None,
            simulation: Simulation::default(),
        };
        world.run();
        Ok(world.simulation)
    }
}

impl World<'_> {
    fn run(&mut self) {
        let mut state = FlowState::new(self.flow.clone(), self.fakes.input.clone(), "test");
        let mut event = FlowEvent::Begun;
        for _ in 0..MAX_EVENTS {
            for action in state.step(event) {
                self.act(action);
            }
            if let Some(finish) = self.finish.take() {
                return self.compare(&finish);
            }
            if !self.simulation.failures.is_empty() {
                return;
            }
            let Some(((at, _), (id, next))) = self.due.pop_first() else { break };
            self.now_ms = at;
            self.report(id, &next);
            event = next;
        }
        self.fail(format!("the flow did not end within {MAX_EVENTS} events"));
    }

    fn act(&mut self, action: FlowAction) {
        match action {
            FlowAction::Send { id, text, facts } => {
                self.line(&format!("  -> {}: {}", self.name(id), one_line(&text)));
                // It reads at once, and answers after the last message.
                self.schedule(id, 0, FlowEvent::Took(id));
                if facts["last"] == true && facts.get("failed").is_none() {
                    self.answer(id);
                }
            }
            FlowAction::Call { id, agent, text, data, stream, .. } => {
                let text = match data {
                    Some(data) if agent == SCRIPT => data["run"].to_string(),
                    Some(data) => data.to_string(),
                    None => text,
                };
                self.line(&format!("  -> {}: {agent}: {}", self.name(id), one_line(&text)));
                self.note_begin(id);
                if stream.is_none() {
                    self.answer(id);
                }
            }
            FlowAction::Ask { id, text } => {
                self.line(&format!("  -> {}: asks: {}", self.name(id), one_line(&text)));
                self.note_begin(id);
                self.answer(id);
            }
            FlowAction::Wait { id, ms } => {
                if !is_limit(id) {
                    self.line(&format!("  -> {}: waits {}", self.name(id), duration(ms)));
                }
                self.note_begin(id);
                self.schedule(id, ms, FlowEvent::Rang(id));
            }
            FlowAction::Cancel(id) => {
                if !is_limit(id) {
                    self.line(&format!("  -- {}: is cancelled", self.name(id)));
                }
                self.due.retain(|_, (other, _)| *other != id);
            }
            FlowAction::Say(text) => self.line(&text),
            FlowAction::Finish(finish) => self.finish = Some(finish),
        }
    }

    /// Schedules the scripted answer of a call or question.
    fn answer(&mut self, id: Id) {
        if id.role == Role::Compensation {
            let data = Some(json!({ "exit": 0 }));
            let end = ChildEnd { completed: true, data, ..ChildEnd::default() };
            return self.schedule(id, 0, FlowEvent::Ended(id, end));
        }
        let step = &self.flow.steps[id.step];
        let Some(answers) = self.fakes.answers.get(&step.id).filter(|all| !all.is_empty()) else {
            let id = &step.id;
            return self.fail(format!("the step `{id}` began, and [answers] has no `{id}`"));
        };
        let call = self.calls.entry(step.id.clone()).or_default();
        let answer = answers[(*call).min(answers.len() - 1)].clone();
        *call += 1;
        let parts = u64::try_from(answer.writes.len()).unwrap_or(u64::MAX).saturating_add(1);
        for (text, part) in answer.writes.into_iter().zip(1..) {
            self.schedule(id, answer.after_ms / parts * part, FlowEvent::Wrote(id, text));
        }
        // A test has no restarts, so each question is one of a step.
        let is_question = matches!(step.work, Work::Ask(_) | Work::Pick(_));
        let is_run = step.work.kind().program().is_some();
        let data = if is_run { Some(json!({ "exit": answer.exit })) } else { answer.output };
        let has_worktree = step.worktree == Some(StepWorktree::New) && answer.lines > 0;
        let worktree = has_worktree.then(|| ChildChanges {
            files: 1,
            insertions: u64::from(answer.lines),
            ..ChildChanges::default()
        });
        let event = if is_question && answer.failed.is_none() {
            FlowEvent::Answered(id, answer.text)
        } else {
            FlowEvent::Ended(
                id,
                ChildEnd {
                    completed: answer.failed.is_none(),
                    text: answer.text,
                    data,
                    reason: answer.failed.unwrap_or_default(),
                    worktree,
                    ..ChildEnd::default()
                },
            )
        };
        self.schedule(id, answer.after_ms, event);
    }

    fn note_begin(&mut self, id: Id) {
        if id.role == Role::Work && (id.item, id.attempt) == (0, 1) {
            self.begun.push(self.flow.steps[id.step].id.clone());
        }
    }

    fn schedule(&mut self, id: Id, after_ms: u64, event: FlowEvent) {
        let at = self.now_ms.saturating_add(after_ms);
        self.due.insert((at, self.scheduled), (id, event));
        self.scheduled += 1;
    }

    /// Adds the line of a coming event.
    fn report(&mut self, id: Id, event: &FlowEvent) {
        let name = self.name(id);
        let text = match event {
            FlowEvent::Begun
            | FlowEvent::Paused(_)
            | FlowEvent::Resumed(_)
            | FlowEvent::Took(_)
            | FlowEvent::Unsent(_)
            | FlowEvent::Changed(..) => return,
            FlowEvent::Wrote(_, text) => format!("  <- {name}: writes: {}", one_line(text)),
            FlowEvent::Rang(Id { role: Role::Minutes | Role::Piece, .. }) => return,
            FlowEvent::Ended(_, ChildEnd { completed: true, text, data, .. }) => {
                let step = self.flow.steps.get(id.step);
                let is_run = step.is_some_and(|step| step.work.kind().program().is_some());
                let exit = data.as_ref().filter(|_| is_run).and_then(|data| data.get("exit"));
                let exit = exit.map(|exit| format!(" (exit {exit})")).unwrap_or_default();
                format!("  <- {name}: completed{exit}: {}", one_line(text))
            }
            FlowEvent::Ended(_, ChildEnd { reason, text, .. }) => {
                format!("  <- {name}: failed ({reason}): {}", one_line(text))
            }
            FlowEvent::Answered(_, text) => format!("  <- {name}: answered: {}", one_line(text)),
            FlowEvent::Rang(id) if matches!(id.role, Role::Timeout | Role::Answers) => {
                format!("  <- {name}: time limit")
            }
            FlowEvent::Rang(_) => format!("  <- {name}: waited"),
        };
        self.line(&text);
    }

    /// Step of a child, with its item, round and attempt where they say something.
    fn name(&self, id: Id) -> String {
        let Some(step) = self.flow.steps.get(id.step) else { return "the flow".to_owned() };
        let mut name = step.id.clone();
        if let Work::Vote(vote) = &step.work {
            let voter = vote.agent(id.item);
            name.push_str(&format!("[{voter}]"));
        }
        if step.each.is_some() {
            name.push_str(&format!("[{}]", id.item));
        }
        if id.attempt > 1 {
            name.push_str(&format!(", attempt {}", id.attempt));
        }
        name
    }

    fn line(&mut self, text: &str) {
        let transitions = &mut self.simulation.transitions;
        match transitions.len() {
            0..MAX_LINES => {
                transitions.push(format!("{:>8}  {}", duration(self.now_ms), one_line_of(text)));
            }
            MAX_LINES => transitions.push("[cut]".to_owned()),
            _ => {}
        }
    }

    fn fail(&mut self, text: String) {
        self.simulation.failures.push(text);
    }

    fn compare(&mut self, finish: &Finish) {
        let state = if finish.completed { "completed" } else { "failed" };
        let reason = match finish.reason.as_str() {
            "" => String::new(),
            reason => format!(" ({reason})"),
        };
        self.line(&format!("the flow {state}{reason}: {}", one_line(&finish.text)));
        let Expect { state: want, reason, text, output, steps } = self.fakes.expect.clone();
        // Without a wish, a flow is expected to complete.
        let want = want.unwrap_or_else(|| {
            if reason.is_some() { "failed".to_owned() } else { "completed".to_owned() }
        });
        self.check("state", state == want, &want, state);
        if let Some(reason) = reason {
            self.check("reason", finish.reason == reason, &reason, &finish.reason);
        }
        if let Some(text) = text {
            self.check("text", finish.text.contains(&text), &text, &finish.text);
        }
        if let Some(output) = output {
            let found = finish.output.clone().unwrap_or_default();
            self.check("output", found == output, &output.to_string(), &found.to_string());
        }
        if let Some(steps) = steps {
            self.check("steps", self.begun == steps, &steps.join(", "), &self.begun.join(", "));
        }
        let begun: BTreeSet<_> = self.begun.iter().collect();
        let unused: Vec<_> = self.fakes.answers.keys().filter(|id| !begun.contains(id)).collect();
        if let [first, ..] = unused.as_slice() {
            let why = format!("[answers] has `{first}`, and the step did not begin");
            self.fail(why);
        }
    }

    fn check(&mut self, key: &str, holds: bool, want: &str, found: &str) {
        if !holds {
            let (want, found) = (one_line(want), one_line(found));
            self.fail(format!("`{key}` is `{found}`, and `{want}` was expected"));
        }
    }
}

/// True for a timer that bounds other work.
fn is_limit(id: Id) -> bool {
    matches!(id.role, Role::Timeout | Role::Minutes | Role::Answers | Role::Piece)
}

/// First line of a text, with its indentation.
fn one_line_of(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
