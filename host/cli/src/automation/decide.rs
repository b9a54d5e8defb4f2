//! `decide`: the options by which several agents decide together, and the flow that they become.

use a2a_hub_authoring::decision_flow::DecisionFlow;
use a2a_hub_protocol::id::AgentId;
use a2a_hub_socket_client::{completion, failure::CommandError};
use a2a_hub_terminal::duration;
use anyhow::bail;
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Largest amount of an auction: whole numbers up to it are exact in any JSON reader.
const MAX_AMOUNT: u64 = 1 << 53;

/// Text at the end of `decide --help`.
const OUTCOMES: &str = "\
Exit status: 0 if the agents decided; 1 if they did not, for example for a tie, a missing quorum or
no agreement, which are printed like decisions.";

/// Arguments of `decide`.
#[derive(Debug, Args)]
#[command(after_help = OUTCOMES)]
pub(crate) struct Decide {
    #[command(subcommand)]
    rule: DecideRule,
}

#[derive(Debug, Subcommand)]
enum DecideRule {
    /// Have agents vote among choices, each alone, with a reason
    Vote {
        #[command(flatten)]
        asked: DecideMessage,
        /// Answers among which they choose: 2 to 32
        #[arg(long, value_name = "CHOICE", value_delimiter = ',', default_values = ["yes", "no"])]
        choices: Vec<String>,
        /// Rule that counts the ballots: more than half of them, or the same with their confidence,
        /// or with how often their agent was right so far, as `a2a-hub record confirm` said
        #[arg(long, value_parser = ["majority", "weighted", "record"], default_value = "majority")]
        rule: String,
        /// Ballots that decide, in place of a majority
        #[arg(long, value_name = "COUNT", conflicts_with_all = ["rule", "weights"], value_parser = clap::value_parser!(u32).range(1..=128))]
        quorum: Option<u32>,
        /// Weights of agents, as `codex=2`, in a weighted vote; 1 by default
        #[arg(long, value_name = "AGENT=WEIGHT", value_delimiter = ',', value_parser = weight)]
        weights: Vec<(String, f64)>,
    },
    /// Have agents estimate in anonymous rounds, until their answers are stable
    #[command(visible_alias = "estimate")]
    Delphi {
        #[command(flatten)]
        asked: DecideMessage,
        /// Answers to choose from, in place of numbers
        #[arg(long, value_name = "CHOICE", value_delimiter = ',', conflicts_with_all = ["unit", "tolerance"])]
        choices: Vec<String>,
        /// Unit of the numbers, such as `days`
        #[arg(long)]
        unit: Option<String>,
        /// Most rounds [default: 4]
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(2..=10))]
        rounds: Option<u32>,
        /// Difference up to which a number counts as the same [default: 0]
        #[arg(long, value_name = "NUMBER", value_parser = number)]
        tolerance: Option<f64>,
        /// Agents that may change their answer in a round that is stable [default: 0]
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(0..=32))]
        max_changes: Option<u32>,
        /// Least answers of a round [default: more than half of the agents]
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=32))]
        least: Option<u32>,
    },
    /// Have agents bid for the work of the message; the best bid does it
    Auction {
        #[command(flatten)]
        asked: DecideMessage,
        #[command(flatten)]
        work: DecideWork,
        /// Winner: the lowest bid, with `buy`, or the highest one
        #[arg(long, value_parser = ["buy", "sell"], default_value = "buy")]
        side: String,
        /// Price: the winner's bid, or the one next to it
        #[arg(long, value_parser = ["first", "second"], default_value = "first")]
        price: String,
        /// Highest bid that counts; the lowest one with `--side sell`
        #[arg(long, value_name = "AMOUNT", value_parser = clap::value_parser!(u64).range(..=MAX_AMOUNT))]
        reserve: Option<u64>,
        /// Winner of equal bids: the agent that is named first, or a draw
        #[arg(long, value_parser = ["listed", "drawn"], default_value = "listed")]
        tie: String,
        /// Unit of the bids [default: points]
        #[arg(long)]
        unit: Option<String>,
    },
    /// Have agents propose how they would do the work of the message; the best one does it
    #[command(visible_alias = "propose")]
    ContractNet {
        #[command(flatten)]
        asked: DecideMessage,
        #[command(flatten)]
        work: DecideWork,
        /// Number of proposals that are accepted [default: 1]
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=32))]
        awards: Option<u32>,
        /// Weights of `confidence`, `time` and `cost`, as `confidence=2,time=1`; by default, only
        /// the confidence counts
        #[arg(long, value_name = "CRITERION=WEIGHT", value_delimiter = ',', value_parser = weight)]
        weights: Vec<(String, f64)>,
        /// Least confidence that is accepted: 0 to 1
        #[arg(long, value_name = "NUMBER", value_parser = number)]
        min_confidence: Option<f64>,
        /// Longest time that is accepted, such as `2h`
        #[arg(long, value_name = "TIME", value_parser = duration::milliseconds)]
        max_time: Option<u64>,
        /// Highest cost that is accepted
        #[arg(long, value_name = "AMOUNT", value_parser = clap::value_parser!(u64).range(..=MAX_AMOUNT))]
        max_cost: Option<u64>,
        /// Times that agents beyond these limits are asked [default: 1]
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=10))]
        rounds: Option<u32>,
        /// Unit of the cost [default: cents]
        #[arg(long)]
        unit: Option<String>,
    },
    /// Have agents propose terms in turn, until all accept the same ones
    #[command(visible_alias = "agree")]
    Negotiation {
        #[command(flatten)]
        asked: DecideMessage,
        /// Most proposals [default: 10]
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=50))]
        proposals: Option<u32>,
    },
    /// Have agents elect the one that does the work of the message, and another one if it fails
    Election {
        #[command(flatten)]
        asked: DecideMessage,
        #[command(flatten)]
        work: DecideWork,
        /// Scores of all agents, as `codex=2,gemini=1`; nobody is asked then
        #[arg(long, value_name = "AGENT=SCORE", value_delimiter = ',', value_parser = weight, conflicts_with = "answer_timeout")]
        scores: Vec<(String, f64)>,
        /// Most leaders, one after the other [default: 3]
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=32))]
        terms: Option<u32>,
        /// Time for the work of one leader, such as `30m`
        #[arg(long, value_name = "TIME", value_parser = duration::milliseconds)]
        work_timeout: Option<u64>,
    },
    /// Have agents share a board of items, which they add, claim and finish
    Blackboard {
        #[command(flatten)]
        asked: DecideMessage,
        /// Item with which the board begins. May be given several times
        #[arg(long = "item", value_name = "ID=TEXT", value_parser = item)]
        items: Vec<(String, String)>,
        /// Most rounds [default: 10]
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100))]
        rounds: Option<u32>,
        /// Further rounds in which a claim holds [default: 2]
        #[arg(long, value_name = "ROUNDS", value_parser = clap::value_parser!(u32).range(1..=100))]
        lease: Option<u32>,
        /// Order: all agents at the same time, or one after the other
        #[arg(long, value_parser = ["all", "turns"], default_value = "all")]
        control: String,
    },
}

/// Message and agents of a decision.
#[derive(Debug, Args)]
struct DecideMessage {
    /// Question or work; `-` reads it from standard input
    message: String,
    /// Agents that decide, up to 32; up to 128 in a vote or an auction
    #[arg(long, value_name = "AGENT", value_delimiter = ',', required = true, add = completion::agents(), value_parser = |name: &str| AgentId::parse(name))]
    of: Vec<AgentId>,
    /// Time for the answers of one round, such as `5m`; the others decide without those that are
    /// late
    #[arg(long, value_name = "TIME", value_parser = duration::milliseconds)]
    answer_timeout: Option<u64>,
    /// Directory in which the agents work [default: the current directory]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Time limit of the whole decision, such as `30m`; a bare number counts milliseconds
    #[arg(long, value_name = "TIME", value_parser = duration::milliseconds)]
    timeout: Option<u64>,
    /// Start the hub first if it does not run
    #[arg(long)]
    start: bool,
}

/// Options of those that do the work.
#[derive(Debug, Args)]
struct DecideWork {
    /// Permissions of the agent that does the work. The others only read
    #[arg(long, default_value = "ask", value_parser = ["read-only", "ask"])]
    permissions: String,
    /// Work in a worktree: a working copy of the directory's git repository that starts from BASE
    #[arg(
        long,
        value_name = "BASE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "HEAD"
    )]
    worktree: Option<String>,
}

/// Decision that is ready to be sent.
#[derive(Debug)]
pub(crate) struct DecisionRequest {
    /// Key of the flow's step, such as `vote`.
    pub rule: &'static str,
    /// Text of the flow.
    pub flow: String,
    /// Agents that decide.
    pub of: Vec<AgentId>,
    /// Message to them; `-` stands for standard input.
    pub message: String,
    /// Directory in which they work.
    pub cwd: Option<PathBuf>,
    /// Base of the worktree in which they work, if any.
    pub worktree: Option<String>,
    /// Time limit of all, in milliseconds.
    pub timeout: Option<u64>,
    /// True if the hub is started first.
    pub start: bool,
}

impl Decide {
    /// Turns the options into a flow.
    ///
    /// # Errors
    ///
    /// The message is empty, or the options do not fit each other.
    pub(crate) fn request(self) -> anyhow::Result<DecisionRequest> {
        let RuleParts { rule, options, work, rules } = self.rule.parts();
        let action = format!("decide by {}", rule.replace('_', "-"));
        let wrong = |why: &str| CommandError::usage(format!("{action}: {why}"));
        if options.message.trim().is_empty() {
            bail!(wrong("the message is empty; ask something"));
        }
        let (permissions, worktree) =
            work.map_or((None, None), |work| (Some(work.permissions), work.worktree));
        let DecideMessage { message, of, answer_timeout, cwd, timeout, start } = options;
        let flow = DecisionFlow {
            rule,
            agents: of.clone(),
            rules,
            answer_ms: answer_timeout,
            permissions,
        };
        let flow = flow.text().map_err(|why| wrong(&why))?;
        Ok(DecisionRequest { rule, flow, of, message, cwd, worktree, timeout, start })
    }
}

/// Parts of a rule: the key of its step, and its options.
struct RuleParts {
    rule: &'static str,
    options: DecideMessage,
    work: Option<DecideWork>,
    rules: Map<String, Value>,
}

impl DecideRule {
    fn parts(self) -> RuleParts {
        let (rule, options, work, rules) = match self {
            Self::Vote { asked: options, choices, rule, quorum, weights } => {
                let rule = quorum.map_or_else(|| json!(rule), |quorum| json!({ "quorum": quorum }));
                let rules =
                    json!({ "choices": choices, "rule": rule, "weights": numbers(weights) });
                ("vote", options, None, rules)
            }
            Self::Delphi {
                asked: options,
                choices,
                unit,
                rounds,
                tolerance,
                max_changes,
                least: min_answers,
            } => {
                let choices = Some(choices).filter(|choices| !choices.is_empty());
                let rules = json!({
                    "choices": choices, "unit": unit, "rounds": rounds, "tolerance": tolerance,
                    "max_changes": max_changes, "least": min_answers,
                });
                ("delphi", options, None, rules)
            }
            Self::Auction { asked: options, work, side, price, reserve, tie, unit } => {
                let rules = json!({
                    "side": side, "price": price, "reserve": reserve, "tie": tie, "unit": unit,
                });
                ("auction", options, Some(work), rules)
            }
            Self::ContractNet {
                asked: options,
                work,
                awards,
                weights,
                min_confidence,
                max_time,
                max_cost,
                rounds,
                unit,
            } => {
                let time = max_time.map(|ms| format!("{ms}ms"));
                let limits =
                    json!({ "confidence": min_confidence, "time": time, "cost": max_cost });
                let limits = Some(non_null(limits)).filter(|limits| !limits.is_empty());
                let rules = json!({
                    "awards": awards, "weights": numbers(weights), "limits": limits,
                    "rounds": rounds, "unit": unit,
                });
                ("contract_net", options, Some(work), rules)
            }
            Self::Negotiation { asked: options, proposals } => {
                ("negotiation", options, None, json!({ "proposals": proposals }))
            }
            Self::Election { asked: options, work, scores, terms, work_timeout } => {
                let work_timeout = work_timeout.map(|ms| format!("{ms}ms"));
                let rules = json!({
                    "scores": numbers(scores), "terms": terms, "work_timeout": work_timeout,
                });
                ("election", options, Some(work), rules)
            }
            Self::Blackboard { asked: options, items, rounds, lease, control } => {
                let items = items.iter().map(|(id, text)| json!({ "id": id, "text": text }));
                let items: Vec<_> = items.collect();
                let rules = json!({
                    "items": Some(items).filter(|items| !items.is_empty()), "rounds": rounds,
                    "lease": lease, "control": control,
                });
                ("blackboard", options, None, rules)
            }
        };
        RuleParts { rule, options, work, rules: non_null(rules) }
    }
}

/// Members that are not null: TOML has no null.
fn non_null(members: Value) -> Map<String, Value> {
    let Value::Object(members) = members else { return Map::new() };
    members.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

/// Table of numbers; none if it is empty.
fn numbers(pairs: Vec<(String, f64)>) -> Option<Map<String, Value>> {
    let table: Map<_, _> = pairs.into_iter().map(|(name, number)| (name, number.into())).collect();
    Some(table).filter(|table| !table.is_empty())
}

fn number(typed: &str) -> Result<f64, String> {
    let number = typed.parse::<f64>().ok().filter(|it| it.is_finite() && *it >= 0.0);
    number.ok_or_else(|| format!("`{typed}` is not a number from 0 on"))
}

fn weight(typed: &str) -> Result<(String, f64), String> {
    let (name, weight) = typed.split_once('=').ok_or("write it as NAME=NUMBER")?;
    Ok((name.to_owned(), number(weight)?))
}

fn item(typed: &str) -> Result<(String, String), String> {
    let (id, text) = typed.split_once('=').ok_or("write it as ID=TEXT")?;
    if text.trim().is_empty() {
        return Err(format!("the item `{id}` has no text; write it as ID=TEXT"));
    }
    Ok((id.to_owned(), text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        decide: Decide,
    }

    fn request(typed: &str) -> Result<DecisionRequest, String> {
        let line = Line::try_parse_from(["x"].into_iter().chain(typed.split(' ')));
        line.map_err(|why| why.to_string())?.decide.request().map_err(|why| why.to_string())
    }

    fn step(typed: &str) -> toml::Table {
        let flow: toml::Table = request(typed).unwrap().flow.parse().unwrap();
        flow["step"][0].as_table().unwrap().clone()
    }

    #[test]
    fn options_become_rules_of_step() {
        let vote = step("vote hi --of a,b");
        insta::assert_snapshot!(vote["vote"], @r#"{ agents = ["a", "b"], choices = ["yes", "no"], rule = "majority" }"#);
        let vote = step("vote hi --of a,b --quorum 2 --answer-timeout 5s");
        insta::assert_snapshot!(vote["vote"]["rule"], @"{ quorum = 2 }");
        insta::assert_snapshot!(vote["timeout"], @r#""5000ms""#);
        let vote = step("vote hi --of a,b --rule weighted --weights a=2,b=0.5 --choices x,y");
        insta::assert_snapshot!(vote["vote"], @r#"{ agents = ["a", "b"], choices = ["x", "y"], rule = "weighted", weights = { a = 2.0, b = 0.5 } }"#);
        let delphi = step("delphi hi --of a,b --unit days --tolerance 1 --rounds 3");
        insta::assert_snapshot!(delphi["delphi"], @r#"{ agents = ["a", "b"], rounds = 3, tolerance = 1.0, unit = "days" }"#);
        let auction =
            step("auction hi --of a,b --price second --reserve 9 --permissions read-only");
        insta::assert_snapshot!(auction["auction"], @r#"{ agents = ["a", "b"], price = "second", reserve = 9, side = "buy", tie = "listed" }"#);
        insta::assert_snapshot!(auction["permissions"], @r#""read-only""#);
        let net = step("contract-net hi --of a,b --max-time 2h --min-confidence 0.5 --rounds 2");
        insta::assert_snapshot!(net["contract_net"], @r#"{ agents = ["a", "b"], limits = { confidence = 0.5, time = "7200000ms" }, rounds = 2 }"#);
        let terms = step("negotiation hi --of a,b --proposals 3 --answer-timeout 1m");
        insta::assert_snapshot!(terms["negotiation"], @r#"{ agents = ["a", "b"], answer_timeout = "60000ms", proposals = 3 }"#);
        let election = step("election hi --of a,b --scores a=2,b=1 --work-timeout 1h");
        insta::assert_snapshot!(election["election"], @r#"{ agents = ["a", "b"], scores = { a = 2.0, b = 1.0 }, work_timeout = "3600000ms" }"#);
        let board = step("blackboard hi --of a --item x=find --control turns");
        insta::assert_snapshot!(board["blackboard"], @r#"{ agents = ["a"], control = "turns", items = [{ id = "x", text = "find" }] }"#);
    }

    #[test]
    fn wrong_options_are_refused() {
        for (typed, why) in [
            ("vote hi", "--of"),
            ("vote hi --of a,a", "decide by vote: `a` is listed twice"),
            ("negotiation hi --of a", "decide by negotiation: 1 agents; name 2 to 32"),
            ("vote hi --of a,b --quorum 2 --rule weighted", "cannot be used"),
            ("vote hi --of a,b --weights a", "NAME=NUMBER"),
            ("vote hi --of a,b --weights a=NaN", "is not a number"),
            ("delphi hi --of a,b --rounds 99", "99 is not in 2..=10"),
            ("delphi hi --of a,b --choices x,y --unit days", "cannot be used"),
            ("auction hi --of a --reserve -1", "unexpected argument"),
            ("auction hi --of a --permissions full", "invalid value 'full'"),
            ("blackboard hi --of a --item x=", "has no text"),
            ("vote  --of a,b", "the message is empty"),
        ] {
            let refused = request(typed).unwrap_err();
            assert!(refused.contains(why), "{typed}: {refused}");
        }
    }
}
