//! Steps in which agents decide or work together over several turns: `auction`, `blackboard`,
//! `contract_net`, `delphi`, `election` and `negotiation`.
//!
//! ```text
//!   turns of one batch, all at the same time ── all are over ──► the rule book
//!             ▲                                                     │
//!             └───────────── the next batch ────────────────────────┴──► verdict
//! ```
//!
//! The rule books are state machines of this crate. A step stores none: it replays its turns, in
//! their order, so that the order in which agents answer decides nothing.

mod auction;
mod blackboard;
mod contract_net;
mod delphi;
mod election;
mod negotiation;

use serde_json::{Map, Value, json};

use super::{
    answer,
    definition::is_elevated,
    parse::{SourceRange, TextScope, Texts, only, owned, template},
    position::{Problems, Table},
    row::{ItemEnd, StepCall, cut, one_line},
    schema, script,
    template::Template,
    vote_step::{READ_ONLY, names},
};

/// Keys of the steps, each of which names its rules.
pub(super) const KEYS: [&str; 6] =
    ["auction", "blackboard", "contract_net", "delphi", "election", "negotiation"];

/// Keys of steps whose winner or leader does the work of the prompt.
const WITH_WORK: [&str; 3] = ["auction", "contract_net", "election"];

/// Most agents of a step, and of an auction, whose bidders read nothing of the others.
const MAX_AGENTS: usize = 32;
const MAX_BIDDERS: usize = 128;

/// Bytes kept of a reason, plan or proposal.
const MAX_STATEMENT: usize = 8 << 10;

/// Largest amount: whole numbers up to it are exact in any JSON reader.
const MAX_AMOUNT: u64 = 1 << 53;

/// Decision of a step over several turns.
#[derive(Clone, Debug)]
pub(super) struct Interaction {
    pub(super) agents: Vec<String>,
    pub(super) prompt: Template,
    /// Permissions of those that do the work; all others only read.
    pub(super) permissions: Option<String>,
    pub(super) limits: TurnLimits,
    rules: InteractionKind,
}

/// Time limits of one batch of turns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TurnLimits {
    /// Time for the answers.
    pub(super) answer_ms: Option<u64>,
    /// Time for the work of a leader.
    pub(super) work_ms: Option<u64>,
}

#[derive(Clone, Debug)]
enum InteractionKind {
    Auction(auction::AuctionStep),
    Blackboard(blackboard::BlackboardStep),
    ContractNet(contract_net::ContractNetStep),
    Delphi(delphi::DelphiStep),
    Election(election::ElectionStep),
    Negotiation(negotiation::NegotiationStep),
}

/// Task of one agent in an interaction.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) agent: String,
    pub(super) kind: TurnKind,
    /// Text behind the prompt.
    request: String,
}

#[derive(Clone, Debug)]
pub(super) enum TurnKind {
    /// An answer by this JSON schema. The agent only reads.
    Answer(Value),
    /// The work of the prompt.
    Work,
}

/// Further course of an interaction, and its end.
#[derive(Debug, Default)]
pub(super) struct Course {
    /// Turns that are over, and come again in the replay.
    over: usize,
    /// Turns that come next.
    pub(super) turns: Vec<Turn>,
    pub(super) verdict: Option<Verdict>,
    /// State of a blackboard, for people: before these turns, or at its end.
    pub(super) board: Option<Value>,
}

/// Change of a blackboard by an agent at work.
#[derive(Clone, Debug)]
pub(super) struct MidTurnChange {
    /// Index of the agent's turn.
    pub(super) turn: usize,
    /// Id of the change.
    pub(super) id: String,
    pub(super) contribution: Value,
}

impl Course {
    /// True if the next turn is one that was not taken yet.
    fn is_new(&self) -> bool {
        self.over == 0
    }

    /// Adds a turn. One that is over is not made again: its request may be long.
    fn add(&mut self, turn: impl FnOnce() -> Turn) {
        match self.over {
            0 => self.turns.push(turn()),
            over => self.over = over - 1,
        }
    }
}

/// End of an interaction.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    /// Failure reason; none if the step completes.
    pub(super) failure: Option<&'static str>,
    pub(super) text: String,
    pub(super) output: Value,
}

impl Turn {
    fn answer<'m>(
        agent: String,
        members: impl IntoIterator<Item = (&'m str, Value)>,
        request: String,
    ) -> Self {
        let members = members.into_iter().map(|(name, schema)| (name.to_owned(), schema));
        let members: Map<_, _> = members.collect();
        Self { agent, kind: TurnKind::Answer(schema::object(members)), request }
    }

    fn work(agent: String, request: String) -> Self {
        Self { agent, kind: TurnKind::Work, request }
    }

    /// Drops the request of a turn that is over.
    pub(super) fn close(&mut self) {
        self.request = String::new();
    }

    /// JSON schema of the answer; none for work.
    pub(super) fn schema(&self) -> Option<&Value> {
        match &self.kind {
            TurnKind::Answer(schema) => Some(schema),
            TurnKind::Work => None,
        }
    }
}

impl Interaction {
    /// Course after these items, all of which are over, with the changes that agents made while
    /// they worked. `seed` is the id of the flow's task.
    pub(super) fn course(
        &self,
        items: &[StepCall],
        changes: &[MidTurnChange],
        seed: &str,
    ) -> Course {
        let course = match &self.rules {
            InteractionKind::Auction(rules) => rules.course(&self.agents, items, seed),
            InteractionKind::Blackboard(rules) => rules.course(&self.agents, items, changes),
            InteractionKind::ContractNet(rules) => rules.course(&self.agents, items),
            InteractionKind::Delphi(rules) => rules.course(&self.agents, items),
            InteractionKind::Election(rules) => rules.course(&self.agents, items),
            InteractionKind::Negotiation(rules) => rules.course(&self.agents, items),
        };
        // The file was checked for what the rule books refuse.
        course.unwrap_or_else(|why| {
            let (failure, output) = (Some("invalid_flow"), Value::Null);
            Course { verdict: Some(Verdict { failure, text: why, output }), ..Course::default() }
        })
    }

    /// True if the agents share a blackboard.
    pub(super) fn has_board(&self) -> bool {
        matches!(self.rules, InteractionKind::Blackboard(_))
    }

    /// Answer to the last of these changes, and the board after it; none without a blackboard.
    /// The turns of `items` are over.
    pub(super) fn changed(
        &self,
        items: &[StepCall],
        changes: &[MidTurnChange],
    ) -> Option<(Value, Value)> {
        match &self.rules {
            InteractionKind::Blackboard(rules) => rules.changed(&self.agents, items, changes),
            InteractionKind::Auction(_)
            | InteractionKind::ContractNet(_)
            | InteractionKind::Delphi(_)
            | InteractionKind::Election(_)
            | InteractionKind::Negotiation(_) => None,
        }
    }

    /// Message of a turn.
    ///
    /// # Errors
    ///
    /// If the prompt cannot be rendered.
    pub(super) fn text(
        &self,
        turn: &Turn,
        context: &minijinja::Value,
        correction: Option<&String>,
    ) -> Result<String, String> {
        let mut text = self.prompt.render(context)?;
        text.push_str("\n\n");
        text.push_str(&turn.request);
        if let Some(schema) = turn.schema() {
            text.push_str(&answer::request(schema));
        }
        text.push_str(&correction.map(|why| answer::correction(why)).unwrap_or_default());
        Ok(text)
    }

    /// Permissions of a turn, if its step allows `work`.
    pub(super) fn permissions(turn: &Turn, work: Option<String>) -> Option<String> {
        match turn.kind {
            TurnKind::Answer(_) => Some(READ_ONLY.to_owned()),
            TurnKind::Work => work,
        }
    }

    /// Short text for charts and progress.
    pub(super) fn label(&self) -> String {
        let verb = match &self.rules {
            InteractionKind::Auction(_) => "bid",
            InteractionKind::Blackboard(_) => "share a board",
            InteractionKind::ContractNet(_) => "propose",
            InteractionKind::Delphi(_) => "estimate",
            InteractionKind::Election(_) => "elect a leader",
            InteractionKind::Negotiation(_) => "negotiate",
        };
        format!("{} {verb}", self.agents.join(", "))
    }
}

/// Rule book of an interaction, which turns drive.
trait RuleBook {
    /// Action of the rule book.
    type Action;

    /// Actions with which it begins.
    fn begin(&mut self) -> Vec<Self::Action>;

    /// Takes the result of a turn, and returns what to do.
    fn on_result(&mut self, turn: &Turn, result: TurnResult<'_>) -> Vec<Self::Action>;

    /// Adds the turn of an action to the course, or its end.
    fn act(&mut self, action: Self::Action, course: &mut Course);

    /// Takes what the agents of the present batch did before its first turn was over.
    fn before_results(&mut self) {}
}

/// Replays the turns of these items, all of which are over.
fn replay<B: RuleBook>(mut book: B, items: &[StepCall]) -> Course {
    replay_in(&mut book, items)
}

/// Replays the turns in a rule book, which has their results afterwards.
fn replay_in<B: RuleBook>(book: &mut B, items: &[StepCall]) -> Course {
    let mut course = Course { over: items.len(), ..Course::default() };
    let mut actions = book.begin();
    let mut results = items.iter().filter_map(turn_result);
    loop {
        for action in actions {
            book.act(action, &mut course);
        }
        book.before_results();
        let Some((turn, result)) = results.next() else { return course };
        actions = book.on_result(turn, result);
    }
}

/// Result of a turn that is over.
enum TurnResult<'i> {
    /// Structured answer.
    Answer(&'i Value),
    /// Text of the work.
    Done(&'i str),
    /// Failure with a text for people.
    Failed(String),
}

/// Turn of an item, with its result.
fn turn_result(item: &StepCall) -> Option<(&Turn, TurnResult<'_>)> {
    let turn = item.turn.as_ref()?;
    let Some(ItemEnd { completed, end, output, .. }) = &item.done else {
        return Some((turn, TurnResult::Failed("no answer".to_owned())));
    };
    let result = match (completed, &turn.kind, output) {
        (true, TurnKind::Work, _) => TurnResult::Done(&end.text),
        (true, TurnKind::Answer(_), Some(output)) => TurnResult::Answer(output),
        _ => {
            let text = one_line(&end.text);
            TurnResult::Failed(if text.is_empty() { end.reason.clone() } else { text })
        }
    };
    Some((turn, result))
}

/// Text of a member of an answer, within bounds.
fn statement(answer: &Value, name: &str) -> String {
    let mut text = answer.get(name).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    cut(&mut text, MAX_STATEMENT);
    text
}

/// Reason of an agent that passed, with the text of a member of its answer.
fn passed(answer: &Value, name: &str) -> String {
    match statement(answer, name).as_str() {
        "" => "passed".to_owned(),
        reason => format!("passed: {reason}"),
    }
}

/// True if an answer has this member, and it is true.
fn is_set(answer: &Value, name: &str) -> bool {
    answer.get(name).and_then(Value::as_bool).unwrap_or_default()
}

/// Rows `{ agent, reason }`.
fn with_reasons(rows: &[(String, String)]) -> Value {
    rows.iter().map(|(agent, reason)| json!({ "agent": agent, "reason": reason })).collect()
}

/// Reads the keys of a step with one of [`KEYS`].
pub(super) fn parse(
    key: &str,
    table: &Table<'_, '_>,
    scope: TextScope,
    texts: &mut Texts,
    problems: &mut Problems<'_>,
) -> Option<Interaction> {
    if !WITH_WORK.contains(&key) {
        let of = "a step whose agents work; the agents of this one only answer";
        only(table, &["permissions"], of, problems);
    }
    let inner = Table::from_value(table.get(key)?, key, problems)?;
    let known: &[&str] = match key {
        "auction" => &auction::KEYS,
        "blackboard" => &blackboard::KEYS,
        "contract_net" => &contract_net::KEYS,
        "delphi" => &delphi::KEYS,
        "election" => &election::KEYS,
        _ => &negotiation::KEYS,
    };
    let known: Vec<_> = ["agents", "answer_timeout"].iter().chain(known).copied().collect();
    inner.check_keys(&known, problems);
    let min = if key == "negotiation" { 2 } else { 1 };
    let max = if key == "auction" { MAX_BIDDERS } else { MAX_AGENTS };
    let agents = names((&inner, key), "agents", (min, max), problems);
    for (name, at) in agents.iter().flatten() {
        script::refuse_by_name(name, at, problems);
    }
    let agents: Option<Vec<_>> = agents.map(|all| all.into_iter().map(|(name, _)| name).collect());
    let count = agents.as_ref().map_or(1, Vec::len);
    let rules = match key {
        "auction" => auction::parse(&inner, problems).map(InteractionKind::Auction),
        "blackboard" => blackboard::parse(&inner, count, problems).map(InteractionKind::Blackboard),
        "election" => {
            let agents = agents.as_deref().unwrap_or_default();
            election::parse(&inner, agents, problems).map(InteractionKind::Election)
        }
        "contract_net" => {
            contract_net::parse(&inner, count, problems).map(InteractionKind::ContractNet)
        }
        "delphi" => delphi::parse(&inner, count, problems).map(InteractionKind::Delphi),
        _ => negotiation::parse(&inner, problems).map(InteractionKind::Negotiation),
    };
    let answer_ms = inner.duration("answer_timeout", problems);
    let limits = TurnLimits { answer_ms, work_ms: inner.duration("work_timeout", problems) };
    let permissions = permissions(table, agents.as_deref().unwrap_or_default(), problems);
    let prompt = template(table, "prompt", problems);
    if prompt.is_none() && table.get("prompt").is_none() {
        problems.error(&table.at, format!("{} has a `prompt`", table.name));
    }
    let (prompt, at) = prompt?;
    texts.push((owned(prompt.names()), at, scope));
    Some(Interaction { agents: agents?, prompt, permissions, limits, rules: rules? })
}

fn permissions(
    table: &Table<'_, '_>,
    agents: &[String],
    problems: &mut Problems<'_>,
) -> Option<String> {
    let permissions = table.word("permissions", &["read-only", "ask", "edit", "full"], problems);
    let is_routed = agents.iter().any(|agent| agent.contains(':'));
    if is_routed && permissions.as_deref().is_some_and(is_elevated) {
        let at: SourceRange =
            table.get("permissions").map_or(table.at.clone(), toml::Spanned::span);
        problems.error(&at, "permissions above \"ask\" are for agents that are named");
    }
    permissions
}

/// Whole number of a key, such as an amount; an error if it is below 0 or too large.
fn amount(table: &Table<'_, '_>, key: &str, problems: &mut Problems<'_>) -> Option<u64> {
    let value = table.get(key)?;
    let number = value.get_ref().as_integer();
    let number = number.and_then(|it| it.to_string().parse::<u64>().ok());
    let number = number.filter(|number| *number <= MAX_AMOUNT);
    if number.is_none() {
        problems.error(&value.span(), format!("`{key}` is a whole number from 0 to {MAX_AMOUNT}"));
    }
    number
}

/// Number of a key between two limits.
fn decimal(
    table: &Table<'_, '_>,
    key: &str,
    (min, max): (f64, f64),
    problems: &mut Problems<'_>,
) -> Option<f64> {
    let value = table.get(key)?;
    let number = super::position::json(value.get_ref()).as_f64();
    let number = number.filter(|number| (min..=max).contains(number));
    if number.is_none() {
        problems.error(&value.span(), format!("`{key}` is a number from {min} to {max}"));
    }
    number
}

/// Unit of amounts: a short text.
fn unit(table: &Table<'_, '_>, default: &str, problems: &mut Problems<'_>) -> String {
    let Some((unit, at)) = table.text("unit", problems) else { return default.to_owned() };
    if unit.trim().is_empty() || unit.len() > 40 || unit.chars().any(char::is_control) {
        problems.error(&at, "`unit` is a short text, such as \"cents\"");
    }
    unit
}
