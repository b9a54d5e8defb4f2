//! Usage of one task, from its log.

use crate::{
    task::{
        metadata,
        prices::{MODEL, PRICED},
        tree_budget::{COST_USD, USAGE},
    },
    text::plain_text::line,
};
use a2a_hub_protocol::{
    event::{StatusUpdate, TaskEvent},
    id::QuestionId,
    message::Metadata,
    permission::RuleAnswer,
    question::Question,
    task::TaskState,
};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};

/// Longest name of a model, in characters.
const MAX_MODEL: usize = 80;

/// Most models that one task counts apart. An agent writes their names.
const MAX_MODELS: usize = 32;

/// Model that stands for those beyond the limit of models that count apart.
pub const OTHER_MODELS: &str = "other";

/// Largest count of a report: a larger one is an error of its agent.
const MAX_COUNT: i64 = 1_000_000_000_000;

/// Number of millionths in a dollar.
pub(super) const MICROS: f64 = 1e6;

/// Length of the date of a time (RFC 3339).
pub const DATE: usize = 10;

/// Amounts of usage. All are zero by default, and sums never overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageAmounts {
    /// Tasks that began.
    pub tasks: i64,
    /// Of these, tasks whose agents reported no tokens.
    pub without_tokens: i64,
    /// Of these, tasks without a cost.
    pub without_cost: i64,
    /// Input tokens.
    pub input_tokens: i64,
    /// Output tokens.
    pub output_tokens: i64,
    /// Tokens of the input from the vendor's cache.
    pub cached_tokens: i64,
    /// Cost as agents report it, in millionths of a dollar.
    pub cost_micros: i64,
    /// Cost by the hub's price list, in millionths of a dollar.
    pub priced_micros: i64,
    /// Time in which the tasks worked, in milliseconds.
    pub work_ms: i64,
    /// Questions that the tasks asked.
    pub questions: i64,
    /// Requests for permission that a rule answered.
    pub ruled: i64,
}

impl UsageAmounts {
    /// Number of the amounts.
    pub const COUNT: usize = 11;

    /// The amounts, in the order of their declaration.
    pub fn to_array(self) -> [i64; Self::COUNT] {
        let Self { tasks, without_tokens, without_cost, input_tokens, output_tokens, .. } = self;
        let Self { cached_tokens, cost_micros, priced_micros, work_ms, questions, ruled, .. } =
            self;
        [
            tasks,
            without_tokens,
            without_cost,
            input_tokens,
            output_tokens,
            cached_tokens,
            cost_micros,
            priced_micros,
            work_ms,
            questions,
            ruled,
        ]
    }

    /// Amounts from the output of [`UsageAmounts::to_array`].
    pub fn from_array(amounts: [i64; Self::COUNT]) -> Self {
        let [tasks, without_tokens, without_cost, input_tokens, output_tokens, rest @ ..] = amounts;
        let [cached_tokens, cost_micros, priced_micros, work_ms, questions, ruled] = rest;
        Self {
            tasks,
            without_tokens,
            without_cost,
            input_tokens,
            output_tokens,
            cached_tokens,
            cost_micros,
            priced_micros,
            work_ms,
            questions,
            ruled,
        }
    }

    /// Adds `other` to these amounts.
    pub fn add(&mut self, other: Self) {
        let mut sums = self.to_array();
        for (sum, more) in sums.iter_mut().zip(other.to_array()) {
            *sum = sum.saturating_add(more);
        }
        *self = Self::from_array(sums);
    }
}

/// Usage of a task on one day, with one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageEntry {
    /// Day in UTC, such as `2026-01-31`.
    pub day: String,
    /// Model; empty if the agent named none.
    pub model: String,
    /// Amounts.
    pub amounts: UsageAmounts,
}

/// Report of a run so far: each number, if the agent has reported it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RunReport {
    input_tokens: Option<i64>,
    output_tokens: Option<i64>,
    cached_tokens: Option<i64>,
    cost_micros: Option<i64>,
    priced_micros: Option<i64>,
}

impl RunReport {
    fn from_metadata(facts: &Metadata, is_priced: bool) -> Self {
        let usage = |name: &str| {
            let tokens = facts.get(USAGE)?.get(name)?.as_u64()?;
            Some(i64::try_from(tokens).unwrap_or(i64::MAX).min(MAX_COUNT))
        };
        let micros = facts.get(COST_USD).and_then(Value::as_f64).and_then(micros);
        Self {
            input_tokens: usage("input_tokens"),
            output_tokens: usage("output_tokens"),
            cached_tokens: usage("cached_input_tokens")
                .or_else(|| usage("cache_read_input_tokens")),
            cost_micros: micros.filter(|_| !is_priced),
            priced_micros: micros.filter(|_| is_priced),
        }
    }

    /// Amounts of this report beyond those of an earlier one.
    fn beyond(self, before: Self) -> UsageAmounts {
        let more = |now: Option<i64>, before: Option<i64>| {
            now.unwrap_or_default() - before.unwrap_or_default()
        };
        UsageAmounts {
            input_tokens: more(self.input_tokens, before.input_tokens),
            output_tokens: more(self.output_tokens, before.output_tokens),
            cached_tokens: more(self.cached_tokens, before.cached_tokens),
            cost_micros: more(self.cost_micros, before.cost_micros),
            priced_micros: more(self.priced_micros, before.priced_micros),
            ..UsageAmounts::default()
        }
    }
}

/// Cost in millionths of a dollar; none for a number that is no cost.
fn micros(dollars: f64) -> Option<i64> {
    let micros = (dollars * MICROS).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "the number is whole, and within the limit"
    )]
    (dollars >= 0.0 && micros.is_finite()).then(|| micros.min(MAX_COUNT as f64) as i64)
}

/// Counts the usage of a task, event by event. A run reports its usage so far, again and again; a
/// task may have several runs.
#[derive(Clone, Debug)]
pub struct UsageMeter {
    /// Converts a time (RFC 3339) to milliseconds since 1970.
    millis_of: fn(&str) -> Option<i64>,
    entries: BTreeMap<(String, String), UsageAmounts>,
    begun: String,
    day: String,
    state: Option<TaskState>,
    since_ms: Option<i64>,
    model: String,
    models: HashSet<String>,
    facts: Metadata,
    is_priced: bool,
    counted: RunReport,
    has_tokens: bool,
    has_cost: bool,
    counted_questions: HashSet<QuestionId>,
}

impl UsageMeter {
    /// Creates the meter of a task. `millis_of` converts a time (RFC 3339) to milliseconds since
    /// 1970, and gives none for another text.
    pub fn new(millis_of: fn(&str) -> Option<i64>) -> Self {
        Self {
            millis_of,
            entries: BTreeMap::new(),
            begun: String::new(),
            day: String::new(),
            state: None,
            since_ms: None,
            model: String::new(),
            models: HashSet::new(),
            facts: Metadata::new(),
            is_priced: false,
            counted: RunReport::default(),
            has_tokens: false,
            has_cost: false,
            counted_questions: HashSet::new(),
        }
    }

    /// Counts the next event of the log.
    pub fn add(&mut self, event: &TaskEvent) {
        match event {
            TaskEvent::Created(created) => {
                let status = &created.task.status;
                self.pass_time(&status.timestamp, status.state);
                self.begun.clone_from(&self.day);
                self.count(UsageAmounts { tasks: 1, ..UsageAmounts::default() });
            }
            TaskEvent::Status(update) => self.add_status(update),
            TaskEvent::Artifact(_) | TaskEvent::Input(_) | TaskEvent::Reply(_) => {}
        }
    }

    fn add_status(&mut self, update: &StatusUpdate) {
        self.pass_time(&update.status.timestamp, update.status.state);
        let Some(reported) = &update.metadata else { return };
        // A task that waits for its quota is in the state `working`, and nobody works.
        self.state
            .take_if(|_| reported.get(metadata::WAITS_UNTIL).is_some_and(|until| !until.is_null()));
        if let Some(answer) = RuleAnswer::from_metadata(Some(reported))
            && self.counted_questions.insert(answer.id)
        {
            self.count(UsageAmounts { ruled: 1, ..UsageAmounts::default() });
        }
        // A question that a task relays for another one is that task's.
        let question = update.status.state.is_interrupted().then_some(reported);
        let question = Question::from_metadata(question).filter(|question| question.task.is_none());
        if let Some(question) = question
            && self.counted_questions.insert(question.id)
        {
            self.count(UsageAmounts { questions: 1, ..UsageAmounts::default() });
        }
        self.read_report(reported);
        if metadata::ends_run(update) {
            self.facts.clear();
            self.counted = RunReport::default();
        }
    }

    /// Counts what the run has reported beyond its earlier reports.
    fn read_report(&mut self, reported: &Metadata) {
        if let Some(model) = reported.get(MODEL).and_then(Value::as_str) {
            self.set_model(&line(model, MAX_MODEL));
        }
        for name in [USAGE, COST_USD] {
            match reported.get(name) {
                None => {}
                Some(Value::Null) => drop(self.facts.remove(name)),
                Some(value) => drop(self.facts.insert(name.to_owned(), value.clone())),
            }
        }
        if reported.contains_key(COST_USD) {
            self.is_priced = reported.get(PRICED).and_then(Value::as_bool) == Some(true);
        }
        let report = RunReport::from_metadata(&self.facts, self.is_priced);
        self.has_tokens |= report.input_tokens.is_some() || report.output_tokens.is_some();
        self.has_cost |= report.cost_micros.is_some() || report.priced_micros.is_some();
        let more = report.beyond(self.counted);
        self.counted = report;
        self.count(more);
    }

    fn set_model(&mut self, model: &str) {
        if self.models.len() < MAX_MODELS {
            self.models.insert(model.to_owned());
        }
        let known = if self.models.contains(model) { model } else { OTHER_MODELS };
        known.clone_into(&mut self.model);
    }

    /// Goes on to the time of an event, after which the task has this state.
    fn pass_time(&mut self, timestamp: &str, state: TaskState) {
        let now = (self.millis_of)(timestamp);
        if now.is_some()
            && let Some(day) = timestamp.get(..DATE)
        {
            day.clone_into(&mut self.day);
        }
        if self.state == Some(TaskState::Working)
            && let (Some(since), Some(now)) = (self.since_ms, now)
        {
            let work_ms = now.saturating_sub(since).clamp(0, MAX_COUNT);
            self.count(UsageAmounts { work_ms, ..UsageAmounts::default() });
        }
        (self.state, self.since_ms) = (Some(state), now.or(self.since_ms));
    }

    fn count(&mut self, amounts: UsageAmounts) {
        if amounts != UsageAmounts::default() {
            let key = (self.day.clone(), self.model.clone());
            self.entries.entry(key).or_default().add(amounts);
        }
    }

    /// Usage of the task so far, by day and model. Amounts before the agent named a model count for
    /// the latest model.
    pub fn entries(&self) -> Vec<UsageEntry> {
        let mut entries = BTreeMap::<_, UsageAmounts>::new();
        for ((day, model), amounts) in &self.entries {
            let model = if model.is_empty() { &self.model } else { model };
            entries.entry((day.clone(), model.clone())).or_default().add(*amounts);
        }
        let missing = UsageAmounts {
            without_tokens: i64::from(!self.has_tokens),
            without_cost: i64::from(!self.has_cost),
            ..UsageAmounts::default()
        };
        if let Some(begun) = entries.get_mut(&(self.begun.clone(), self.model.clone())) {
            begun.add(missing);
        }
        let entry = |((day, model), amounts)| UsageEntry { day, model, amounts };
        entries.into_iter().map(entry).filter(|it| it.amounts != UsageAmounts::default()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::metadata::PENDING_MESSAGES;
    use a2a_hub_protocol::{
        event::Created,
        id::{AgentId, ContextId, TaskId},
        task::{Task, TaskStatus},
    };
    use serde_json::json;

    fn millis_of(time: &str) -> Option<i64> {
        // Times of these tests are in one minute.
        time.strip_prefix("2026-01-3")?.get(8..10)?.parse::<i64>().ok().map(|s| s * 1_000)
    }

    fn status(state: TaskState, second: u32, day: u32, facts: Value) -> TaskEvent {
        let timestamp = format!("2026-01-3{day}T00:00:{second:02}Z");
        let status = TaskStatus { state, message: None, timestamp };
        let metadata = if let Value::Object(facts) = facts { Some(facts) } else { None };
        TaskEvent::Status(StatusUpdate { status, metadata })
    }

    fn metered(events: &[TaskEvent]) -> Vec<UsageEntry> {
        let TaskEvent::Status(begun) = status(TaskState::Submitted, 0, 0, Value::Null) else {
            return Vec::new();
        };
        let task = Task {
            id: TaskId::new("t"),
            context_id: ContextId::new("c"),
            status: begun.status,
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: None,
        };
        let mut meter = UsageMeter::new(millis_of);
        let created = Created::new(AgentId::parse("echo").unwrap(), task);
        meter.add(&TaskEvent::Created(Box::new(created)));
        events.iter().for_each(|event| meter.add(event));
        meter.entries()
    }

    /// Amounts of the only entry.
    fn total(events: &[TaskEvent]) -> UsageAmounts {
        let mut total = UsageAmounts::default();
        metered(events).into_iter().for_each(|entry| total.add(entry.amounts));
        total
    }

    #[test]
    fn runs_are_summed_and_repeated_reports_are_not() {
        use TaskState::{Completed, Working};
        let usage = |input: i64, cost: f64| {
            json!({ "model": "m", "cost_usd": cost,
            "usage": { "input_tokens": input, "output_tokens": 1, "cached_input_tokens": 2 } })
        };
        let mut ends_run = json!({});
        ends_run.as_object_mut().unwrap().insert(PENDING_MESSAGES.to_owned(), json!([]));
        let amounts = total(&[
            status(Working, 1, 0, Value::Null),
            status(Working, 2, 0, usage(10, 0.25)),
            status(Working, 3, 0, usage(30, 0.5)),
            status(Working, 3, 0, ends_run),
            status(Completed, 9, 0, usage(5, 0.125)),
        ]);
        let wanted = UsageAmounts {
            tasks: 1,
            input_tokens: 35,
            output_tokens: 2,
            cached_tokens: 4,
            cost_micros: 625_000,
            work_ms: 8_000,
            ..UsageAmounts::default()
        };
        assert_eq!(amounts, wanted);
    }

    #[test]
    fn wait_for_quota_is_no_work() {
        use TaskState::{Completed, Working};
        let cost = |dollars: f64, until: Value| json!({ "cost_usd": dollars, "waitsUntil": until });
        let amounts = total(&[
            status(Working, 1, 0, Value::Null),
            status(Working, 3, 0, cost(0.5, json!("2026-01-31T00:00:00Z"))),
            status(Working, 50, 0, json!({ "waitsUntil": null })),
            status(Completed, 54, 0, json!({ "cost_usd": 0.25 })),
        ]);
        assert_eq!((amounts.work_ms, amounts.cost_micros), (6_000, 750_000));
    }

    #[test]
    fn usage_counts_for_its_day_and_model() {
        let of = |model: &str, tokens: i64| {
            json!({ "model": model,
            "usage": { "output_tokens": tokens } })
        };
        let entries = metered(&[
            status(TaskState::Working, 1, 0, Value::Null),
            status(TaskState::Working, 2, 0, of("a", 10)),
            status(TaskState::Completed, 2, 1, of("b", 15)),
        ]);
        let entries: Vec<_> = entries
            .iter()
            .map(|it| (&it.day[8..], &*it.model, it.amounts.tasks, it.amounts.output_tokens))
            .collect();
        assert_eq!(entries, [("30", "a", 0, 10), ("30", "b", 1, 0), ("31", "b", 0, 5)]);
    }

    #[test]
    fn missing_and_priced_figures_are_apart() {
        let plain = total(&[status(TaskState::Completed, 1, 0, Value::Null)]);
        assert_eq!((plain.without_tokens, plain.without_cost), (1, 1));
        let priced = json!({ "cost_usd": 0.5, "costFromPrices": true });
        let priced = total(&[status(TaskState::Failed, 1, 0, priced)]);
        assert_eq!((priced.without_tokens, priced.without_cost), (1, 0));
        assert_eq!((priced.cost_micros, priced.priced_micros), (0, 500_000));
    }

    #[test]
    fn questions_count_once() {
        let asked = |id: &str| json!({ "question": { "id": id, "kind": "permission" } });
        let relayed = json!({ "question": { "id": "r", "kind": "input", "task": "child" } });
        let amounts = total(&[
            status(TaskState::InputRequired, 1, 0, asked("a")),
            status(TaskState::InputRequired, 2, 0, asked("a")),
            status(TaskState::InputRequired, 3, 0, asked("b")),
            status(TaskState::InputRequired, 4, 0, relayed),
            status(TaskState::Working, 5, 0, asked("c")),
        ]);
        assert_eq!((amounts.questions, amounts.ruled, amounts.work_ms), (2, 0, 0));
    }

    #[test]
    fn hostile_reports_are_bounded() {
        let wrong = [
            json!({ "usage": { "input_tokens": u64::MAX, "output_tokens": -5 } }),
            json!({ "usage": [1], "cost_usd": -1.0 }),
            json!({ "usage": { "input_tokens": "7" }, "cost_usd": 1e300 }),
            json!({ "cost_usd": "free", "model": 3, "question": 1 }),
        ];
        let mut events: Vec<_> =
            wrong.into_iter().map(|facts| status(TaskState::Working, 1, 0, facts)).collect();
        for model in 0..1_000 {
            let facts = json!({ "model": format!("{model}\u{1b}\n{}", "x".repeat(500)),
                "usage": { "output_tokens": model } });
            events.push(status(TaskState::Working, 2, 0, facts));
        }
        let entries = metered(&events);
        assert!(entries.len() <= MAX_MODELS + 2, "{}", entries.len());
        let is_line =
            |it: &UsageEntry| it.model.len() <= 90 && !it.model.contains(char::is_control);
        assert!(entries.iter().all(is_line));
        let sum = entries.iter().map(|it| it.amounts.output_tokens).sum::<i64>();
        assert_eq!(sum, 999, "the report of a run replaces the one before");
        assert!(total(&events).cost_micros <= MAX_COUNT);
    }
}
