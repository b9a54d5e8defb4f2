//! Steps with `blackboard`: agents share a list of items, and add, claim and finish them in rounds.

use std::sync::Arc;

use serde_json::{Value, json};

use super::rules::{
    Course, InteractionKey, MAX_AGENTS, PastTurns, RuleBook, Rules, TurnResult, replay_in,
    statement, with_reasons,
};
use crate::{
    blackboard::{
        ChangeRefusal, Item as BoardItem, ItemChange, ItemState,
        rounds::{
            Contribution, ContributionRefusal, MAX_CONTRIBUTIONS, NewItem, RefusedContribution,
            RoundsAction, RoundsEnd, RoundsEvent, RoundsOutcome, RoundsRules as Book, RoundsState,
            TurnOrder,
        },
        share_of_agent,
    },
    flow::{
        position::{Problems, Table, did_you_mean},
        template::as_data,
        text::{cut, one_line},
        turn::{MidTurnChange as EarlyChange, Turn, Verdict},
    },
};

pub(super) const RULES: InteractionKey = InteractionKey {
    name: "blackboard",
    keys: &["items", "rounds", "control", "lease"],
    agents: (1, MAX_AGENTS),
    has_work: false,
    parse: |table, agents, problems| Some(Arc::new(parse(table, agents.len().max(1), problems)?)),
};

/// Most rounds, and those without the key.
const MAX_ROUNDS: u32 = 100;
const ROUNDS: u32 = 10;

/// Most answers of a step: each of them is replayed.
const MAX_ANSWERS: u32 = 1_000;

/// Rounds of a claim without the key.
const LEASE: u32 = 2;

/// Most items of a board.
const MAX_ITEMS: usize = 100;

/// Most bytes of a board, which is shown to each agent in each round.
const MAX_BOARD: usize = 64 << 10;

/// Changes of an item, and refusals, that the output shows.
const MAX_SHOWN: usize = 20;

/// Most bytes of all texts and results of a board that is reported whole.
const MAX_UNCUT_BYTES: usize = 8 << 10;

/// Bytes of an item's text or result in the report of a larger board.
const MAX_REPORTED: usize = 512;

/// Author of the items of the file.
const FLOW: &str = "flow";

/// Rules of a blackboard.
#[derive(Clone, Debug)]
struct BlackboardStep {
    items: Vec<NewItem>,
    control: TurnOrder,
    rounds: u32,
    lease: u32,
}

impl Rules for BlackboardStep {
    fn verb(&self) -> &'static str {
        "share a board"
    }

    fn course(&self, past: &PastTurns<'_>) -> Result<Course, String> {
        let PastTurns { agents, items, changes, .. } = *past;
        Ok(replay_in(&mut self.sharing(agents, changes)?, items))
    }

    fn has_board(&self) -> bool {
        true
    }

    fn changed(&self, past: &PastTurns<'_>) -> Option<(Value, Value)> {
        let PastTurns { agents, items, changes, .. } = *past;
        let mut sharing = self.sharing(agents, changes).ok()?;
        replay_in(&mut sharing, items);
        let answer = sharing.answer.take().unwrap_or(Value::Null);
        Some((answer, self.report(&sharing.state, sharing.round, None)))
    }
}

impl BlackboardStep {
    fn sharing<'r>(
        &'r self,
        agents: &'r [String],
        changes: &'r [EarlyChange],
    ) -> Result<Sharing<'r>, String> {
        let mut state = self.board(agents)?;
        for item in &self.items {
            state.post(FLOW, item.clone()).map_err(|why| reason(&why))?;
        }
        let (called, answer) = (Vec::new(), None);
        Ok(Sharing { rules: self, agents, state, round: 1, changes, called, answer })
    }

    fn board(&self, agents: &[String]) -> Result<RoundsState, String> {
        RoundsState::new(Book {
            agents: agents.to_vec(),
            control: self.control,
            lease: self.lease,
            max_rounds: self.rounds,
            max_items: MAX_ITEMS,
            max_bytes: MAX_BOARD,
            timeout_ms: None,
        })
    }

    fn call(&self, agents: &[String], agent: String, round: u32, of: &Shown<'_>) -> Turn {
        let others: Vec<_> = agents.iter().filter(|it| **it != agent).map(String::as_str).collect();
        let others = match others.as_slice() {
            [] => String::new(),
            others => format!(" with {}", others.join(", ")),
        };
        let mut request = format!(
            "You are {agent}, and work on this{others} by a shared board of items. This is round {round} of at most {}. \
             The board is now:{}",
            self.rounds,
            as_data(&of.board())
        );
        request.push_str(&format!(
            "While you work, the tools `read_blackboard`, `add_item`, `claim_item`, `finish_item` and `release_item` of the \
             hub, if you have them, show and change the board at once; a claim by a tool keeps the others from the item.\n\
             Answer with `contributions`, a list of up to {MAX_CONTRIBUTIONS}, each with `do` and the `id` of the \
             item:\n\
             - `add` an item with a new `id`, its `kind`, a `text` that says what to do, and `needs`, the ids of items \
             that have to be done before.\n\
             - `claim` an item that is open before you work on it, so that nobody else does. A claim holds for {} \
             further rounds; claim the item again to renew it.\n\
             - `finish` an item that you claimed, with its result as `text`.\n\
             - `release` an item that you claimed and cannot finish.\n\
             Give the `version` of the item that you see here, except with `add`. You may add, claim and finish an \
             item in one answer. Items that are added begin with version 1. An empty list says that you have nothing \
             to add; changes by tools are on the board already. The work ends when all items are done, or when nobody \
             contributes.",
            self.lease
        ));
        if !of.refusals.is_empty() {
            let lines = of.refusals.iter().map(line).collect::<Vec<_>>().join("\n");
            request.push_str(" Of your last answer, this was refused:");
            request.push_str(&as_data(&lines));
        }
        Turn::answer(agent, [("contributions", contributions())], request)
    }

    /// Board for people and agents who look at it while agents work. The texts of a board with many
    /// are shortened.
    fn report(&self, state: &RoundsState, round: u32, outcome: Option<&str>) -> Value {
        let text_of = |item: &BoardItem, name: &str| item.body[name].as_str().map_or(0, str::len);
        let bytes = state.items().map(|(_, it)| text_of(it, "text") + text_of(it, "result"));
        let max_bytes =
            if bytes.sum::<usize>() <= MAX_UNCUT_BYTES { MAX_UNCUT_BYTES } else { MAX_REPORTED };
        let items = state.items().map(|(id, item)| {
            let mut shown = of_item(state, id, item);
            for name in ["text", "result"] {
                if let Some(Value::String(text)) = shown.get_mut(name) {
                    cut(text, max_bytes);
                }
            }
            shown
        });
        let items: Vec<_> = items.collect();
        json!({ "round": round, "rounds": self.rounds, "outcome": outcome, "items": items })
    }

    fn verdict(&self, state: &RoundsState, outcome: &RoundsOutcome) -> Verdict {
        let RoundsOutcome { end, rounds, refused, departed } = outcome;
        let items: Vec<_> = state.items().map(|(id, item)| of_item(state, id, item)).collect();
        let done = state.items().filter(|(_, item)| item.state == ItemState::Done);
        let done: Vec<_> = done.collect();
        let progress = format!("{} of {} items are done", done.len(), items.len());
        let (word, failure, why) = match end {
            RoundsEnd::Goal => ("goal", None, format!("after {rounds} rounds")),
            RoundsEnd::Quiescent => {
                ("quiescent", None, format!("nobody contributed in round {rounds}"))
            }
            RoundsEnd::Capped => ("capped", None, format!("the cap of {rounds} rounds is reached")),
            RoundsEnd::NoAgents => ("no_agents", Some("no_agents"), "all agents failed".to_owned()),
        };
        let skipped = refused.len().saturating_sub(MAX_SHOWN);
        let refused = refused.iter().skip(skipped).map(|(round, agent, refusal)| {
            let RefusedContribution { verb, id, why } = refusal;
            json!({ "round": round, "agent": agent, "do": verb, "id": id, "reason": reason(why) })
        });
        let output = json!({
            "outcome": word,
            "reason": why,
            "rounds": rounds,
            "items": items,
            "refused": refused.collect::<Vec<_>>(),
            "failed": with_reasons(departed),
        });
        let mut text = format!("{progress}: {why}");
        for (agent, why) in departed {
            text.push_str(&format!("\n{agent} left: {}", one_line(why)));
        }
        for (id, item) in done {
            let result = item.body["result"].as_str().unwrap_or_default();
            text.push_str(&format!("\n\n{id}: {result}"));
        }
        Verdict { failure, text, output }
    }
}

/// JSON schema of the contributions.
fn contributions() -> Value {
    let name = || json!({ "type": "string", "maxLength": 64 });
    let item = json!({
        "type": "object",
        "properties": {
            "do": { "enum": ["add", "claim", "finish", "release"] },
            "id": name(),
            "version": { "type": "integer", "minimum": 1 },
            "kind": name(),
            "text": { "type": "string" },
            "needs": { "type": "array", "items": name() },
        },
        "required": ["do", "id"],
    });
    json!({ "type": "array", "maxItems": MAX_CONTRIBUTIONS, "items": item })
}

/// Contribution of an answer that fits the schema. Without a version it is refused as outdated.
fn contribution(answer: &Value) -> Contribution {
    let text = |name: &str| statement(answer, name);
    let version = answer.get("version").and_then(Value::as_u64).unwrap_or_default();
    match answer.get("do").and_then(Value::as_str) {
        Some("claim") => Contribution::Claim(text("id"), version),
        Some("finish") => Contribution::Finish(text("id"), version, text("text")),
        Some("release") => Contribution::Release(text("id"), version),
        Some(_) | None => {
            let needs = answer.get("needs").and_then(Value::as_array).into_iter().flatten();
            let needs = needs.filter_map(|it| it.as_str().map(|it| it.trim().to_owned())).collect();
            let kind = Some(text("kind")).filter(|kind| !kind.is_empty());
            let kind = kind.unwrap_or_else(|| KIND.to_owned());
            Contribution::Add(NewItem { id: text("id"), kind, text: text("text"), needs })
        }
    }
}

/// Kind of an item without one.
const KIND: &str = "task";

/// Board as an agent sees it, and what was refused of its last answer.
struct Shown<'s> {
    state: &'s RoundsState,
    refusals: &'s [RefusedContribution],
}

impl Shown<'_> {
    /// Items as JSON: no text of an agent can imitate another item.
    fn board(&self) -> String {
        let items = self.state.items().map(|(id, item)| agent_view(self.state, id, item));
        serde_json::to_string_pretty(&items.collect::<Value>()).unwrap_or_default()
    }
}

/// Item as an agent sees it.
fn agent_view(state: &RoundsState, id: &str, item: &BoardItem) -> Value {
    let mut shown = of_item(state, id, item);
    if let Value::Object(members) = &mut shown {
        members.remove("history");
    }
    shown
}

/// Item with its last changes.
fn of_item(state: &RoundsState, id: &str, item: &BoardItem) -> Value {
    let (word, by, until) = match &item.state {
        ItemState::Open if state.is_ready(item) => ("open", None, None),
        ItemState::Open => ("waiting", None, None),
        // The claim ends when the round `until` begins.
        ItemState::Claimed(by, until) => ("claimed", Some(by), Some(until.saturating_sub(1))),
        ItemState::Done => ("done", item.history.last().map(|entry| &entry.by), None),
    };
    let skipped = item.history.len().saturating_sub(MAX_SHOWN);
    let history = item.history.iter().skip(skipped).map(|entry| {
        let change = match entry.change {
            ItemChange::Posted => "added",
            ItemChange::Claimed => "claimed",
            ItemChange::Released => "released",
            ItemChange::Expired => "expired",
            ItemChange::Written => "written",
            ItemChange::Done => "done",
        };
        json!({ "round": entry.at, "agent": entry.by, "change": change })
    });
    json!({
        "id": id,
        "kind": item.kind,
        "author": item.author,
        "version": item.version,
        "state": word,
        "by": by,
        "until": until,
        "needs": item.needs.iter().map(|need| state.id(*need)).collect::<Vec<_>>(),
        "text": item.body["text"],
        "result": item.body["result"],
        "history": history.collect::<Vec<_>>(),
    })
}

/// Refusal as a line for its agent.
fn line(refusal: &RefusedContribution) -> String {
    let RefusedContribution { verb, id, why } = refusal;
    format!("{verb} {}: {}", one_line(id), reason(why))
}

/// Reason of a refusal, with the way out.
fn reason(why: &ContributionRefusal) -> String {
    match why {
        ContributionRefusal::Missing(id) => format!("the board has no item `{}`", one_line(id)),
        ContributionRefusal::Taken => {
            "the board has an item with this id; choose another".to_owned()
        }
        ContributionRefusal::Name => {
            "an id and a kind have 1 to 64 letters, digits, `-`, `_` and `.`".to_owned()
        }
        ContributionRefusal::Needs => "`needs` lists up to 32 other items, each once".to_owned(),
        ContributionRefusal::LimitReached => format!(
            "a turn has at most {MAX_CONTRIBUTIONS} contributions by tools, and as many in its answer; repeat this one, and \
             those after it, in the next"
        ),
        ContributionRefusal::ShareReached => {
            let (max_items, max_kib) = (share_of_agent(MAX_ITEMS), share_of_agent(MAX_BOARD) >> 10);
            format!(
                "one agent has at most {max_items} items and {max_kib} KiB of text on a board, and the others need the rest; \
                 shorten it, or leave it to them"
            )
        }
        ContributionRefusal::Rule(why) => match why {
            ChangeRefusal::Unknown => "the board has no such item".to_owned(),
            ChangeRefusal::Version(version) => {
                format!("the item has version {version}; look at it, and name this version")
            }
            ChangeRefusal::ClaimedBy(agent) => format!("{agent} claimed it"),
            ChangeRefusal::NotClaimed => "claim it before".to_owned(),
            ChangeRefusal::NotReady => "items that it needs are not done".to_owned(),
            ChangeRefusal::Done => "it is done".to_owned(),
            ChangeRefusal::Full => {
                let max_kib = MAX_BOARD >> 10;
                format!(
                    "a board has at most {MAX_ITEMS} items and {max_kib} KiB of text; shorten it"
                )
            }
            ChangeRefusal::Stranger => "you have no turn at the board now".to_owned(),
        },
    }
}

/// Blackboard in one of its rounds.
struct Sharing<'r> {
    rules: &'r BlackboardStep,
    agents: &'r [String],
    state: RoundsState,
    round: u32,
    /// Changes by agents at work that were not made yet.
    changes: &'r [EarlyChange],
    /// Agents of the turns so far.
    called: Vec<String>,
    /// Answer to the latest change.
    answer: Option<Value>,
}

impl Sharing<'_> {
    fn change(&mut self, agent: &str, change: &EarlyChange) -> Value {
        let wish = contribution(&change.contribution);
        let verb = wish.verb();
        match self.state.change(agent, wish) {
            Ok(index) => {
                let item = self.state.items().nth(index);
                let item = item.map(|(id, item)| agent_view(&self.state, id, item));
                json!({ "agent": agent, "do": verb, "item": item })
            }
            Err(why) => json!({ "agent": agent, "do": verb, "refused": reason(&why) }),
        }
    }
}

impl RuleBook for Sharing<'_> {
    type Action = RoundsAction;

    fn begin(&mut self) -> Vec<RoundsAction> {
        self.state.step(0, RoundsEvent::Begun)
    }

    fn on_result(&mut self, turn: &Turn, result: TurnResult<'_>) -> Vec<RoundsAction> {
        let (agent, round) = (turn.agent.clone(), self.round);
        let event = match result {
            TurnResult::Answer(answer) => {
                let list = answer.get("contributions").and_then(Value::as_array);
                let list = list.into_iter().flatten().map(contribution).collect();
                RoundsEvent::Contributed(agent, round, list)
            }
            TurnResult::Done(_) => {
                RoundsEvent::Failed(agent, round, "it gave no answer".to_owned())
            }
            TurnResult::Failed(why) => RoundsEvent::Failed(agent, round, why),
        };
        self.state.step(0, event)
    }

    fn act(&mut self, action: RoundsAction, course: &mut Course) {
        match action {
            RoundsAction::Call(agent, round, refusals) => {
                self.round = round;
                self.called.push(agent.clone());
                if course.is_new() && course.board.is_none() {
                    course.board = Some(self.rules.report(&self.state, round, None));
                }
                let shown = Shown { state: &self.state, refusals: &refusals };
                course.add(|| self.rules.call(self.agents, agent, round, &shown));
            }
            RoundsAction::Finish(outcome) => {
                let verdict = self.rules.verdict(&self.state, &outcome);
                let end = verdict.output["outcome"].as_str();
                course.board = Some(self.rules.report(&self.state, outcome.rounds, end));
                course.verdict = Some(verdict);
            }
            RoundsAction::Wait(_) | RoundsAction::Cancel(..) => {}
        }
    }

    /// Makes the changes whose turns have begun. Answers of their round count later.
    fn before_results(&mut self) {
        while let Some((change, rest)) = self.changes.split_first() {
            let Some(agent) = self.called.get(change.turn).cloned() else { return };
            self.changes = rest;
            self.answer = Some(self.change(&agent, change));
        }
    }
}

fn parse(
    table: &Table<'_, '_>,
    agents: usize,
    problems: &mut Problems<'_>,
) -> Option<BlackboardStep> {
    let control = table.word("control", &["all", "turns"], problems);
    let control =
        if control.as_deref() == Some("turns") { TurnOrder::Turns } else { TurnOrder::All };
    let rounds = table.number("rounds", (1, MAX_ROUNDS), problems).unwrap_or(ROUNDS);
    let lease = table.number("lease", (1, MAX_ROUNDS), problems).unwrap_or(LEASE);
    let agents = u32::try_from(agents).unwrap_or(u32::MAX);
    if rounds.saturating_mul(agents) > MAX_ANSWERS {
        let at = table.get("rounds").map_or(table.at.clone(), toml::Spanned::span);
        let max_rounds = MAX_ANSWERS / agents.max(1);
        let rule = format!(
            "a blackboard has at most {MAX_ANSWERS} answers: `rounds` is at most {max_rounds} with {agents} agents"
        );
        problems.error(&at, rule);
    }
    let mut rules = BlackboardStep { items: Vec::new(), control, rounds, lease };
    rules.items = items(table, &rules, problems);
    Some(rules)
}

/// Items with which the board begins, checked by posting them.
fn items(
    table: &Table<'_, '_>,
    rules: &BlackboardStep,
    problems: &mut Problems<'_>,
) -> Vec<NewItem> {
    let Some(value) = table.get("items") else { return Vec::new() };
    let Some(all) = value.get_ref().as_array() else {
        let rule = "`items` is a list of tables, such as [{ id = \"api\", text = \"Design it\" }]";
        problems.error(&value.span(), rule);
        return Vec::new();
    };
    let Ok(mut board) = rules.board(&[FLOW.to_owned()]) else { return Vec::new() };
    let mut items: Vec<NewItem> = Vec::new();
    for one in all.iter() {
        let Some(table) = Table::from_value(one, "items", problems) else { continue };
        table.check_keys(&["id", "kind", "text", "needs"], problems);
        let mut text = |key| table.text(key, problems).map(|(text, _)| text);
        let (id, kind, text) = (text("id"), text("kind"), text("text"));
        let needs = table.texts("needs", problems).into_iter().map(|(name, _)| name).collect();
        let (Some(id), Some(text)) = (id, text) else {
            if table.get("id").is_none() || table.get("text").is_none() {
                problems.error(&table.at, "an item of `items` has an `id` and a `text`");
            }
            continue;
        };
        let kind = kind.unwrap_or_else(|| KIND.to_owned());
        let item = NewItem { id, kind, text, needs };
        if let Err(why) = board.post(FLOW, item.clone()) {
            let way_out = match &why {
                ContributionRefusal::Missing(id) => {
                    let near = did_you_mean(id, items.iter().map(|it| it.id.as_str()));
                    format!("{near}; an item comes behind those that it needs")
                }
                ContributionRefusal::Taken
                | ContributionRefusal::Name
                | ContributionRefusal::Needs
                | ContributionRefusal::LimitReached
                | ContributionRefusal::ShareReached
                | ContributionRefusal::Rule(_) => String::new(),
            };
            let (id, why) = (one_line(&item.id), reason(&why));
            problems.error(&table.at, format!("`items`: `{id}`: {why}{way_out}"));
        }
        items.push(item);
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the book has the same numbers: `core::scheduling::resources`.
    #[test]
    fn shares_are_those_of_the_book() {
        let totals = [MAX_ITEMS, MAX_BOARD].map(|total| (total, share_of_agent(total)));
        assert_eq!(totals, [(100, 50), (65_536, 32_768)]);
    }
}
