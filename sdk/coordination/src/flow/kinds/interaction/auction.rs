//! Steps with `auction`: agents bid for the work of the prompt, and the winner does it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::rules::{
    Course, InteractionKey, MAX_AMOUNT, MAX_BIDDERS, PastTurns, RuleBook, Rules, TurnResult,
    amount, is_set, passed, replay, statement, unit, with_reasons,
};
use crate::{
    auction::{Auction, AuctionAction, AuctionEvent, AuctionOutcome, Lot, Price, Side, Tie, mixed},
    flow::{
        position::{Problems, Table},
        turn::{Turn, Verdict},
    },
};

pub(super) const RULES: InteractionKey = InteractionKey {
    name: "auction",
    keys: &["side", "price", "reserve", "tie", "unit"],
    agents: (1, MAX_BIDDERS),
    has_work: true,
    parse: |table, _, problems| Some(Arc::new(parse(table, problems)?)),
};

/// Rules of an auction.
#[derive(Clone, Debug)]
struct AuctionStep {
    side: Side,
    price: Price,
    reserve: Option<u64>,
    is_drawn: bool,
    unit: String,
}

impl Rules for AuctionStep {
    fn verb(&self) -> &'static str {
        "bid"
    }

    fn course(&self, past: &PastTurns<'_>) -> Result<Course, String> {
        let PastTurns { agents, items, seed, .. } = *past;
        let tie = if self.is_drawn { Tie::Drawn(mixed(0, seed)) } else { Tie::Listed };
        let state = Auction::new(Lot {
            bidders: agents.to_vec(),
            side: self.side,
            price: self.price,
            reserve: self.reserve,
            tie,
            timeout_ms: None,
            work_ms: None,
        })?;
        Ok(replay(
            Bidding {
                rules: self,
                state,
                reasons: Vec::new(),
                absent: Vec::new(),
                answer: String::new(),
            },
            items,
        ))
    }
}

impl AuctionStep {
    fn call(&self, bidder: String) -> Turn {
        let (wins, limit) = match self.side {
            Side::Buy => ("lowest", "at most"),
            Side::Sell => ("highest", "at least"),
        };
        let unit = &self.unit;
        let reserve =
            self.reserve.map(|reserve| format!(" A bid counts if it is {limit} {reserve}."));
        let price = match self.price {
            Price::First => "its own bid",
            Price::Second => "the bid next to its own, so that your true value is your best bid",
        };
        let request = format!(
            "This is a call for bids for the task above. Do not begin with it. Bid a whole number of {unit}: the \
             {wins} bid wins, and then does the task.{} The price is {price}. Nobody sees the bid of another. If you \
             cannot do the task, set `pass` to true, and `bid` to 0.",
            reserve.unwrap_or_default()
        );
        let members = [
            ("bid", json!({ "type": "integer", "minimum": 0, "maximum": MAX_AMOUNT })),
            ("pass", json!({ "type": "boolean" })),
            ("reason", json!({ "type": "string" })),
        ];
        Turn::answer(bidder, members, request)
    }

    fn award(&self, bidder: String, price: u64) -> Turn {
        let unit = &self.unit;
        let request = format!("Your bid won; the price is {price} {unit}. Do the task now.");
        Turn::work(bidder, request)
    }

    fn verdict(
        &self,
        AuctionOutcome { winner, bids, failed }: &AuctionOutcome,
        reasons: &[(String, String)],
        absent: &[(String, String)],
        answer: &str,
    ) -> Verdict {
        let reason = |bidder: &String| {
            reasons.iter().find(|(name, _)| name == bidder).map_or("", |(_, reason)| reason)
        };
        let bids: Vec<_> = bids
            .iter()
            .map(|(bidder, bid)| json!({ "agent": bidder, "bid": bid, "reason": reason(bidder) }))
            .collect();
        let beyond =
            reasons.iter().filter(|(bidder, _)| !bids.iter().any(|bid| bid["agent"] == **bidder));
        let beyond =
            beyond.map(|(bidder, _)| (bidder.clone(), "the bid is beyond the reserve".to_owned()));
        let without: Vec<_> = absent.iter().cloned().chain(beyond).collect();
        let output = json!({
            "winner": winner.as_ref().map(|(who, _)| who),
            "price": winner.as_ref().map(|(_, price)| price),
            "unit": self.unit,
            "bids": bids,
            "without": with_reasons(&without),
            "failed": with_reasons(failed),
        });
        if winner.is_some() {
            return Verdict { failure: None, text: answer.to_owned(), output };
        }
        let mut text = "nobody won the auction".to_owned();
        for (bidder, why) in without.iter().chain(failed) {
            text.push_str(&format!("\n{bidder}: {why}"));
        }
        Verdict { failure: Some("no_winner"), text, output }
    }
}

/// Auction with what its agents said, besides the amounts.
struct Bidding<'r> {
    rules: &'r AuctionStep,
    state: Auction,
    /// Reasons of the bids.
    reasons: Vec<(String, String)>,
    /// Agents without a bid, and the reason.
    absent: Vec<(String, String)>,
    /// Text of the work.
    answer: String,
}

impl RuleBook for Bidding<'_> {
    type Action = AuctionAction;

    fn begin(&mut self) -> Vec<AuctionAction> {
        self.state.step(0, AuctionEvent::Begun)
    }

    fn on_result(&mut self, turn: &Turn, result: TurnResult<'_>) -> Vec<AuctionAction> {
        let bidder = turn.agent.clone();
        let event = match result {
            TurnResult::Answer(bid) if is_set(bid, "pass") => {
                self.absent.push((bidder.clone(), passed(bid, "reason")));
                AuctionEvent::Passed(bidder)
            }
            TurnResult::Answer(bid) => {
                self.reasons.push((bidder.clone(), statement(bid, "reason")));
                AuctionEvent::Bid(
                    bidder,
                    bid.get("bid").and_then(Value::as_u64).unwrap_or_default(),
                )
            }
            TurnResult::Done(text) => {
                text.clone_into(&mut self.answer);
                AuctionEvent::Done(bidder)
            }
            TurnResult::Failed(why) => {
                // The outcome lists those that failed at the work.
                if turn.schema().is_some() {
                    self.absent.push((bidder.clone(), why.clone()));
                }
                AuctionEvent::Failed(bidder, why)
            }
        };
        self.state.step(0, event)
    }

    fn act(&mut self, action: AuctionAction, course: &mut Course) {
        match action {
            AuctionAction::Call(bidder) => course.add(|| self.rules.call(bidder)),
            AuctionAction::Award(bidder, price) => course.add(|| self.rules.award(bidder, price)),
            AuctionAction::Finish(outcome) => {
                let Self { reasons, absent, answer, .. } = self;
                course.verdict = Some(self.rules.verdict(&outcome, reasons, absent, answer));
            }
            AuctionAction::Wait(_) | AuctionAction::Reject(..) | AuctionAction::Cancel(_) => {}
        }
    }
}

fn parse(table: &Table<'_, '_>, problems: &mut Problems<'_>) -> Option<AuctionStep> {
    let side = table.word("side", &["buy", "sell"], problems);
    let price = table.word("price", &["first", "second"], problems);
    let tie = table.word("tie", &["listed", "drawn"], problems);
    let side = if side.as_deref() == Some("sell") { Side::Sell } else { Side::Buy };
    let price = if price.as_deref() == Some("second") { Price::Second } else { Price::First };
    let reserve = amount(table, "reserve", problems);
    if (side, price) == (Side::Buy, Price::Second) && table.get("reserve").is_none() {
        let rule =
            "an auction with `price = \"second\"` has a `reserve`: the price of a single bid";
        problems.error(&table.at, rule);
        return None;
    }
    let is_drawn = tie.as_deref() == Some("drawn");
    Some(AuctionStep { side, price, reserve, is_drawn, unit: unit(table, "points", problems) })
}
