//! Checked form of a flow file.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{
    kinds::Work,
    permission::is_elevated,
    problem::Problem,
    program::StepProgram,
    schema,
    template::{Condition, Template},
};
use crate::record::Record;

/// A flow file that was parsed and checked.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Description for the card.
    pub description: String,
    /// False if lists of agents leave the flow out.
    pub is_listed: bool,
    /// Input: the name and the JSON schema of each member, in the order of the file.
    pub input: Vec<(String, Value)>,
    /// Warnings; the flow runs nevertheless.
    pub warnings: Vec<Problem>,
    pub(super) max_calls: Option<u32>,
    pub(super) budget: TreeBudget,
    /// Working time of the flow.
    pub(super) minutes: Option<u32>,
    pub(super) timeout_ms: Option<u64>,
    /// Commit from which the worktree of the whole flow starts; none without one.
    pub(super) worktree: Option<String>,
    pub(super) result: Option<Template>,
    pub(super) steps: Vec<Step>,
    /// Steps so that each comes after those it needs.
    pub(super) order: Vec<usize>,
}

/// Rights of a flow beyond those of every flow, and its budget.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// Programs that its steps run, each command once.
    pub run: Vec<RunNeed>,
    /// Permissions above `ask`, by the agent that gets them.
    pub permissions: BTreeMap<String, String>,
    /// Limits of the tasks below the flow's.
    pub budget: TreeBudget,
    /// True if a step gets the memory that the flow's caller passes on, or the flow keeps a record
    /// of its voters.
    pub memory: bool,
    /// Commit from which the worktree of the whole flow starts; none without one.
    pub worktree: Option<String>,
    /// True if lists of agents leave the flow out.
    pub unlisted: bool,
}

impl Needs {
    /// Adds a program, or variables of one that is there.
    fn add_run(&mut self, script: &StepProgram, variables: BTreeSet<String>) {
        match self.run.iter_mut().find(|other| other.command == script.command) {
            Some(other) => other.variables.extend(variables),
            None => self.run.push(RunNeed { command: script.command.clone(), variables }),
        }
    }
}

/// Program with its arguments, and the names of its variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunNeed {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Names of the variables.
    pub variables: BTreeSet<String>,
}

/// Limits of the tree of tasks below a flow, which the hub counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TreeBudget {
    /// Levels of tasks.
    pub depth: Option<u32>,
    /// Tokens, as the agents report them.
    pub tokens: Option<u32>,
    /// Dollars, as the agents report them.
    pub cost_usd: Option<f64>,
}

/// Variables of an item of a `for_each`.
pub(super) const ITEM: &str = "A2A_ITEM";
pub(super) const INDEX: &str = "A2A_INDEX";

/// Variable of an input.
pub(super) fn input_variable(name: &str) -> String {
    format!("A2A_INPUT_{}", name.to_ascii_uppercase())
}

/// Variable of a step's text.
pub(super) fn text_variable(id: &str) -> String {
    format!("A2A_STEP_{}_TEXT", id.to_ascii_uppercase())
}

/// One step.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) id: String,
    /// Text for its progress, in place of its agents or its command.
    pub(super) description: Option<String>,
    /// Steps that come before this one.
    pub(super) needs: Vec<usize>,
    /// Number of `needs` that have to be done.
    pub(super) at_least: usize,
    pub(super) work: Work,
    pub(super) each: Option<Each>,
    pub(super) retry: Retry,
    /// Agents that get the work after the first one failed.
    pub(super) fallback: Vec<String>,
    pub(super) compensate: Option<Undo>,
    pub(super) inherit: Option<Inherit>,
    pub(super) worktree: Option<StepWorktree>,
    pub(super) timeout_ms: Option<u64>,
    /// JSON schema of the answer.
    pub(super) output: Option<Value>,
    pub(super) next: Vec<Next>,
    /// True if its text is handed to its readers while it is written.
    pub(super) stream: bool,
    /// Step with `stream` whose text this step reads while it is written.
    pub(super) reads: Option<usize>,
}

/// Worktree of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepWorktree {
    /// Each task of the step gets a new one.
    New,
    /// The step works in the worktree of this step.
    Of(usize),
}

/// Repetition of a step.
#[derive(Clone, Debug)]
pub(super) struct Each {
    pub(super) items: Items,
    pub(super) concurrency: usize,
    /// Items that may fail.
    pub(super) allow_failures: usize,
}

/// Items of a step that is done several times.
#[derive(Clone, Debug)]
pub(super) enum Items {
    /// Elements of a list.
    List(Condition),
    /// Names of agents, each of which does the step.
    Agents(Vec<String>),
    /// Records of the tasks of this step, in whose worktrees the step is done.
    Worktrees(usize),
}

/// Attempts after a failure.
#[derive(Clone, Debug, Default)]
pub(super) struct Retry {
    pub(super) times: u32,
    pub(super) backoff_ms: u64,
    /// Failure reasons that are retried; all if empty.
    pub(super) on: Vec<String>,
}

/// Work that undoes a step when the flow fails.
#[derive(Clone, Debug)]
pub(super) enum Undo {
    /// A task of another agent.
    Agent { agent: String, prompt: Template },
    /// A program with its arguments, as they stand in the file.
    Run(StepProgram),
}

/// Memory that a step's agent gets before it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Inherit {
    /// Step whose agent's memory is passed on; without one, the memory that the flow's caller
    /// passed on.
    pub(super) from: Option<usize>,
    /// `full`, `minimal` or `summary`.
    pub(super) scope: String,
}

/// Conditional continuation after a step.
#[derive(Clone, Debug)]
pub(super) struct Next {
    pub(super) when: Option<Condition>,
    pub(super) go: Go,
}

/// Target of a [`Next`].
#[derive(Clone, Debug)]
pub(super) enum Go {
    /// Repeats a step and all that depend on it.
    To { step: usize, max: u32, continues_at_max: bool },
    /// Ends the flow.
    End { completed: bool },
}

impl Definition {
    /// Ids of the steps, in the order of the file.
    pub fn step_ids(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().map(|step| step.id.as_str())
    }

    /// Names of the agents and flows that the steps call, each once.
    pub fn agents(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for step in &self.steps {
            names.extend(step.work.kind().agents());
            names.extend(&step.fallback);
            if let Some(Undo::Agent { agent, .. }) = &step.compensate {
                names.push(agent);
            }
        }
        let mut once: Vec<&str> = Vec::new();
        for name in names {
            if !once.contains(&name.as_str()) {
                once.push(name);
            }
        }
        once
    }

    /// Rights beyond those of every flow, which the operator has to trust.
    pub fn needs(&self) -> Needs {
        let (budget, worktree) = (self.budget, self.worktree.clone());
        let unlisted = !self.is_listed;
        let mut needs = Needs { budget, worktree, unlisted, ..Needs::default() };
        let from_caller = |step: &Step| step.inherit.as_ref().is_some_and(|it| it.from.is_none());
        needs.memory = self.uses_record() || self.steps.iter().any(from_caller);
        for (index, step) in self.steps.iter().enumerate() {
            let work = step.work.kind();
            if let Some(program) = work.program() {
                needs.add_run(program, self.variable_names(index));
            }
            if let Some(word) = work.permissions().filter(|word| is_elevated(word)) {
                for name in work.agents().iter().chain(&step.fallback) {
                    let level = needs.permissions.entry(name.clone()).or_default();
                    if level != "full" {
                        word.clone_into(level);
                    }
                }
            }
            if let Some(Undo::Run(script)) = &step.compensate {
                let mut variables = self.variable_names(index);
                variables.insert(text_variable(&step.id));
                needs.add_run(script, variables);
            }
        }
        needs
    }

    /// True if a vote has the rule `record`.
    pub fn uses_record(&self) -> bool {
        self.steps.iter().any(|step| matches!(&step.work, Work::Vote(vote) if vote.is_by_record()))
    }

    /// Gives the votes with that rule the records of their voters. Without one, a voter has the
    /// weight 1.
    pub fn weigh(&mut self, records: &BTreeMap<String, Record>) {
        for step in &mut self.steps {
            if let Work::Vote(vote) = &mut step.work {
                vote.weigh(records);
            }
        }
    }

    /// True if a step runs a program, or is undone by one.
    pub(super) fn runs_programs(&self) -> bool {
        let runs = |step: &Step| {
            step.work.kind().program().is_some() || matches!(step.compensate, Some(Undo::Run(_)))
        };
        self.steps.iter().any(runs)
    }

    /// Names of the variables that the program of a step may get.
    fn variable_names(&self, step: usize) -> BTreeSet<String> {
        let inputs = self.input.iter().map(|(name, _)| input_variable(name));
        let before = (0..self.steps.len()).filter(|&other| self.is_before(other, step));
        let texts = before.map(|other| text_variable(&self.steps[other].id));
        let of_item = self.steps[step].each.as_ref().map(|_| [ITEM, INDEX].map(str::to_owned));
        inputs.chain(texts).chain(of_item.into_iter().flatten()).collect()
    }

    /// JSON schema of the input: an object with the members of `[input]`. Those without a default
    /// are required.
    pub fn input_schema(&self) -> Value {
        let required = self.input.iter().filter(|(_, schema)| schema.get("default").is_none());
        let required: Vec<_> = required.map(|(name, _)| Value::from(name.as_str())).collect();
        let properties: Map<_, _> = self.input.iter().cloned().collect();
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), properties.into());
        if !required.is_empty() {
            schema.insert("required".to_owned(), required.into());
        }
        schema.insert("additionalProperties".to_owned(), false.into());
        schema.into()
    }

    /// Checks an input and adds the defaults.
    ///
    /// # Errors
    ///
    /// If the input does not fit the schema: a text for the client.
    pub fn with_defaults(&self, input: Value) -> Result<Value, String> {
        let Value::Object(mut members) = input else {
            return Err("the input of a flow is a JSON object".to_owned());
        };
        for (name, schema) in &self.input {
            if let Some(default) = schema.get("default")
                && !members.contains_key(name)
            {
                members.insert(name.clone(), default.clone());
            }
        }
        let input = Value::Object(members);
        schema::check_value(&input, &self.input_schema(), "input")?;
        Ok(input)
    }

    /// True if `step` comes, directly or not, before `of`.
    pub(super) fn is_before(&self, step: usize, of: usize) -> bool {
        is_before(&self.steps, step, of)
    }

    /// Steps that need this one directly.
    pub(super) fn dependents(&self, step: usize) -> Vec<usize> {
        (0..self.steps.len()).filter(|&other| self.steps[other].needs.contains(&step)).collect()
    }
}

/// True if `step` comes, directly or not, before `of`; also in a circle of needs.
pub(super) fn is_before(steps: &[Step], step: usize, of: usize) -> bool {
    let mut reached = vec![false; steps.len()];
    let mut open = steps[of].needs.clone();
    while let Some(at) = open.pop() {
        if at == step {
            return true;
        }
        if !std::mem::replace(&mut reached[at], true) {
            open.extend(&steps[at].needs);
        }
    }
    false
}

/// First member of an input schema that takes a text: it gets the text of a plain message.
pub fn first_text_input(input: &[(String, Value)]) -> Option<&str> {
    let is_text = |schema: &Value| schema.get("type").is_none_or(|it| it == "string");
    input.iter().find(|(_, schema)| is_text(schema)).map(|(name, _)| name.as_str())
}
