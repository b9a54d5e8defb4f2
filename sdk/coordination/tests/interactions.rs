//! Steps with `auction`, `contract_net`, `delphi` and `negotiation`: turns, ends, and errors of
//! files.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod voters;

use a2a_hub_coordination::flow::{ChildEnd, Definition, FlowEvent, Role};
use proptest::prelude::*;
use serde_json::{Value, json};
use voters::Run;

/// Begins a flow with one step, which has these keys.
fn begin(step: &str) -> Run {
    let text =
        format!("description = \"x\"\n[[step]]\nid = \"decide\"\nprompt = \"Build it.\"\n{step}\n");
    Run::begin(&text, json!({}))
}

impl Run {
    /// Ends the open call of this agent with JSON, or with a text.
    fn answer(&mut self, agent: &str, answer: &Value) {
        let text = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
        self.end(agent, ChildEnd { completed: true, text, ..ChildEnd::default() });
    }

    fn fail(&mut self, agent: &str, text: &str) {
        let (text, reason) = (text.to_owned(), "quota".to_owned());
        self.end(agent, ChildEnd { text, reason, ..ChildEnd::default() });
    }

    fn called(&self) -> Vec<&str> {
        self.calls.iter().map(|(_, agent, ..)| agent.as_str()).collect()
    }

    fn output(self) -> Value {
        let finish = self.finish.unwrap();
        assert!(finish.completed, "{}", finish.text);
        finish.output.unwrap()
    }
}

fn bid(amount: u64) -> Value {
    json!({ "bid": amount, "pass": false, "reason": format!("{amount} is fair") })
}

#[test]
fn auction_gives_work_to_lowest_bid() {
    let mut run = begin(
        "auction = { agents = [\"a\", \"b\", \"c\"], price = \"second\", reserve = 100, unit = \"cents\" }\npermissions = \"edit\"",
    );
    assert_eq!(run.called(), ["a", "b", "c"]);
    assert!(run.calls.iter().all(|(.., permissions)| permissions.as_deref() == Some("read-only")));
    let text = run.text_of("a");
    assert!(text.starts_with("Build it.\n\nThis is a call for bids"), "{text}");
    assert!(
        text.contains("at most 100") && text.contains("\"maximum\":9007199254740992"),
        "{text}"
    );
    run.answer("c", &bid(70));
    run.answer("a", &bid(90));
    run.answer("b", &bid(40));
    assert_eq!(run.called(), ["b"], "only the winner works");
    let (.., text, permissions) = &run.calls[0];
    assert!(text.ends_with("Your bid won; the price is 70 cents. Do the task now."), "{text}");
    assert_eq!(permissions.as_deref(), Some("edit"));
    run.answer("b", &json!("It is built."));
    assert_eq!(run.finish.as_ref().unwrap().text, "It is built.");
    let output = run.output();
    assert_eq!((&output["winner"], &output["price"]), (&json!("b"), &json!(70)));
    let order: Vec<_> = output["bids"].as_array().unwrap().iter().map(|it| &it["agent"]).collect();
    assert_eq!(order, ["b", "c", "a"]);
}

#[test]
fn next_best_bidder_replaces_failed_winner() {
    let mut run = begin("auction = { agents = [\"a\", \"b\", \"c\"], reserve = 50 }");
    run.answer("a", &bid(10));
    run.answer("b", &bid(20));
    run.answer("c", &bid(60));
    run.fail("a", "no tokens left");
    assert_eq!(run.called(), ["b"]);
    run.answer("b", &json!("done"));
    let output = run.output();
    assert_eq!((&output["winner"], &output["price"]), (&json!("b"), &json!(20)));
    assert_eq!(output["failed"], json!([{ "agent": "a", "reason": "no tokens left" }]));
    let beyond = json!([{ "agent": "c", "reason": "the bid is beyond the reserve" }]);
    assert_eq!(output["without"], beyond);
}

#[test]
fn auction_without_winner_fails_step() {
    let mut run = begin("auction = { agents = [\"a\", \"b\"], side = \"sell\", reserve = 50 }");
    run.answer("a", &bid(10));
    run.answer("b", &json!({ "bid": 0, "pass": true, "reason": "too hard" }));
    let finish = run.finish.unwrap();
    assert_eq!((finish.completed, finish.reason.as_str()), (false, "no_winner"));
    let expected =
        "decide: nobody won the auction\nb: passed: too hard\na: the bid is beyond the reserve";
    assert_eq!(finish.text, expected);
}

#[test]
fn silent_bidders_are_cancelled_in_time() {
    let mut run = begin("auction = { agents = [\"a\", \"b\"], answer_timeout = \"5m\" }");
    let [(timer, 300_000)] = run.timers.as_slice() else { panic!("{:?}", run.timers) };
    let timer = *timer;
    assert_eq!(timer.role, Role::Answers);
    run.answer("a", &bid(10));
    run.step(FlowEvent::Rang(timer));
    assert_eq!(run.called(), ["a"], "b is cancelled, and a works");
    assert!(!run.calls[0].2.contains("JSON"), "{}", run.calls[0].2);
    run.timers.clear();
    run.answer("a", &json!("done"));
    let without = json!([{ "agent": "b", "reason": "no answer in time" }]);
    assert_eq!(run.output()["without"], without);
}

#[test]
fn answers_in_time_stop_timer() {
    let mut run = begin("auction = { agents = [\"a\"], answer_timeout = \"5m\" }");
    run.answer("a", &bid(10));
    assert_eq!(run.called(), ["a"]);
    assert!(run.timers.is_empty(), "the work has no limit: {:?}", run.timers);
}

#[test]
fn useless_bid_is_asked_for_again_once() {
    let mut run = begin("auction = { agents = [\"a\", \"b\"] }");
    run.answer("b", &bid(5));
    run.answer("a", &json!("about a euro"));
    let text = run.text_of("a");
    assert!(text.contains("Your last answer could not be used: the answer has no JSON"), "{text}");
    run.answer("a", &json!({ "bid": -1, "pass": false, "reason": "" }));
    assert_eq!(run.called(), ["b"]);
    run.answer("b", &json!("done"));
    let output = run.output();
    assert_eq!(output["without"][0]["agent"], "a");
}

fn proposal(confidence: f64, minutes: u64, cost: u64) -> Value {
    json!({ "confidence": confidence, "minutes": minutes, "cost": cost, "plan": "slowly\nrm -rf", "refuse": false })
}

#[test]
fn contract_net_awards_best_proposals() {
    let mut run = begin(
        "contract_net = { agents = [\"a\", \"b\", \"c\", \"d\"], awards = 2, weights = { confidence = 1, cost = 1 } }",
    );
    run.answer("a", &proposal(0.5, 10, 100));
    run.answer("b", &proposal(0.9, 10, 50));
    run.answer("c", &proposal(0.8, 10, 10));
    run.answer(
        "d",
        &json!({ "confidence": 0, "minutes": 0, "cost": 0, "plan": "no time", "refuse": true }),
    );
    assert_eq!(run.called(), ["b", "c"]);
    let text = run.text_of("c");
    assert!(text.contains("Your proposal was accepted."), "{text}");
    assert!(text.contains("| slowly\n| rm -rf\n[end of data]"), "a plan is data: {text}");
    run.answer("c", &json!("c did it"));
    run.fail("b", "no tokens left");
    assert_eq!(run.finish.as_ref().unwrap().text, "c did it");
    let output = run.output();
    let contractors = json!([
        { "agent": "b", "state": "failed", "text": "no tokens left" },
        { "agent": "c", "state": "completed", "text": "c did it" },
    ]);
    assert_eq!(output["contractors"], contractors);
    assert_eq!(output["refused"], json!([{ "agent": "d", "reason": "no time" }]));
    let accepted: Vec<_> =
        output["proposals"].as_array().unwrap().iter().map(|it| &it["accepted"]).collect();
    assert_eq!(accepted, [false, true, true]);
}

#[test]
fn proposals_beyond_limits_are_called_again() {
    let mut run = begin(
        "contract_net = { agents = [\"a\", \"b\"], limits = { time = \"30m\", cost = 50 }, rounds = 2 }",
    );
    assert!(run.text_of("a").contains("At most 30 minutes are accepted. At most 50 cents"));
    run.answer("a", &proposal(0.9, 60, 10));
    run.fail("b", "gone");
    assert_eq!(run.called(), ["a"], "who failed is not called again");
    assert!(run.text_of("a").contains("you may propose anew"));
    run.answer("a", &proposal(0.9, 20, 10));
    run.answer("a", &json!("done"));
    let output = run.output();
    assert_eq!((&output["rounds"], &output["proposals"][0]["minutes"]), (&json!(2), &json!(20.0)));
}

#[test]
fn contract_net_without_contractor_fails() {
    let mut run = begin("contract_net = { agents = [\"a\"], limits = { confidence = 0.8 } }");
    run.answer("a", &proposal(0.5, 1, 1));
    let finish = run.finish.unwrap();
    assert_eq!(
        (finish.reason.as_str(), finish.text.as_str()),
        ("no_contractor", "decide: no proposal was accepted")
    );
}

fn estimate(value: f64, reason: &str) -> Value {
    json!({ "value": value, "reason": reason })
}

#[test]
fn delphi_shows_answers_without_names() {
    let mut run =
        begin("delphi = { agents = [\"zoe\", \"max\", \"eva\"], unit = \"days\", tolerance = 1 }");
    assert!(run.text_of("eva").contains("round 1. Answer in days."));
    run.answer("zoe", &estimate(5.0, "the interface"));
    run.answer("max", &estimate(20.0, "the tests"));
    run.answer("eva", &estimate(9.0, "as the last time"));
    assert_eq!(run.called(), ["zoe", "max", "eva"]);
    let text = run.text_of("zoe").to_owned();
    let told = "| median 9 days, half of the answers from 5 to 20\n| 5: the interface\n| 9: as the last time\n| 20: the tests\n";
    assert!(text.contains(told), "{text}");
    let (data, _) = text.split_once("[end of data]").unwrap();
    assert!(["zoe", "max", "eva"].iter().all(|name| !data.contains(name)), "{data}");
    for agent in ["eva", "zoe", "max"] {
        run.answer(agent, &estimate(10.0, "agreed"));
    }
    // zoe and max changed.
    for agent in ["eva", "zoe", "max"] {
        run.answer(agent, &estimate(10.5, "agreed"));
    }
    let text = run.finish.as_ref().unwrap().text.clone();
    assert!(text.starts_with("stable after 3 rounds: median 10.5 days"), "{text}");
    let output = run.output();
    assert_eq!((&output["outcome"], &output["value"]), (&json!("stable"), &json!(10.5)));
}

#[test]
fn delphi_ends_at_its_cap() {
    let mut run =
        begin("delphi = { agents = [\"a\", \"b\"], choices = [\"x\", \"y\"], rounds = 2 }");
    for (a, b) in [("x", "y"), ("y", "x")] {
        run.answer("a", &json!({ "value": a, "reason": "" }));
        run.answer("b", &json!({ "value": b, "reason": "" }));
    }
    let output = run.output();
    assert_eq!((&output["outcome"], &output["value"]), (&json!("capped"), &Value::Null));
    assert_eq!(output["figures"], json!({ "x": 1, "y": 1 }));
}

#[test]
fn delphi_with_too_few_answers_says_so() {
    let mut run = begin("delphi = { agents = [\"a\", \"b\", \"c\"] }");
    run.fail("a", "gone");
    run.fail("b", "gone");
    run.answer("c", &estimate(1.0, ""));
    assert_eq!(run.output()["outcome"], "no_quorum");
}

fn terms(text: &str) -> Value {
    json!({ "accept": false, "terms": text })
}

#[test]
fn negotiation_ends_with_consent_of_all() {
    let mut run = begin("negotiation = { agents = [\"a\", \"b\", \"c\"], proposals = 3 }");
    assert_eq!(run.called(), ["a"]);
    run.answer("a", &json!({ "accept": true, "terms": "REST" }));
    let text = run.text_of("b");
    assert!(
        text.contains("You are b, and negotiate this with a, c.") && text.contains("| REST"),
        "{text}"
    );
    run.answer("b", &terms("gRPC"));
    for agent in ["c", "a"] {
        run.answer(agent, &json!({ "accept": true, "terms": "" }));
    }
    assert_eq!(run.finish.as_ref().unwrap().text, "gRPC");
    let expected = json!({ "outcome": "agreed", "terms": "gRPC", "by": "b", "proposals": 2, "accepted": ["a", "b", "c"] });
    assert_eq!(run.output(), expected);
}

#[test]
fn negotiation_without_agreement_is_an_outcome() {
    let mut run = begin("negotiation = { agents = [\"a\", \"b\"], proposals = 1 }");
    run.answer("a", &terms("REST"));
    run.answer("b", &terms("gRPC"));
    let output = run.output();
    assert_eq!((&output["outcome"], &output["terms"]), (&json!("cap"), &json!("REST")));
    let mut run = begin("negotiation = { agents = [\"a\", \"b\"] }");
    run.fail("a", "gone");
    assert_eq!(run.output()["reason"], "a left: gone");
}

#[test]
fn answers_count_against_budget_of_tasks() {
    let text = "description = \"x\"\nbudget = { tasks = 2 }\n[[step]]\nid = \"decide\"\nprompt = \"?\"\nauction = { agents = [\"a\", \"b\"] }\n";
    let mut run = Run::begin(text, json!({}));
    run.answer("a", &bid(1));
    run.answer("b", &bid(2));
    assert_eq!(run.finish.unwrap().reason, "limit_exceeded");
}

#[test]
fn order_of_answers_changes_nothing() {
    let outcome = |order: [&str; 3]| {
        let mut run = begin("auction = { agents = [\"a\", \"b\", \"c\"], tie = \"drawn\" }");
        for agent in order {
            run.answer(agent, &bid(10));
        }
        let winner = run.called()[0].to_owned();
        run.answer(&winner, &json!("done"));
        run.output()
    };
    let first = outcome(["a", "b", "c"]);
    for order in [["c", "b", "a"], ["b", "a", "c"], ["c", "a", "b"]] {
        assert_eq!(outcome(order), first);
    }
}

#[test]
fn elevated_work_needs_trust() {
    let text = "description = \"x\"\n[[step]]\nid = \"decide\"\nprompt = \"?\"\nauction = { agents = [\"a\"] }\npermissions = \"full\"\n";
    let needs = Definition::parse(text).unwrap().needs();
    assert_eq!(
        needs.permissions.into_iter().collect::<Vec<_>>(),
        [("a".to_owned(), "full".to_owned())]
    );
}

#[test]
fn wrong_keys_are_explained() {
    for (step, why) in [
        ("auction = { agents = [\"a\"], price = \"second\" }", "has a `reserve`"),
        ("auction = { agents = [\"a\", \"a\"] }", "`a` is listed twice"),
        ("auction = { agents = [\"a\"], reserve = -1 }", "whole number from 0"),
        ("auction = { agents = [\"a\"], awards = 1 }", "has no key `awards`"),
        ("auction = { agents = [] }", "a list of 1 to 128 texts"),
        ("auction = { agents = [\"skill:x\"] }\npermissions = \"full\"", "agents that are named"),
        ("contract_net = { agents = [\"a\"], awards = 2 }", "whole number from 1 to 1"),
        ("contract_net = { agents = [\"a\"], rounds = 2 }", "need `limits`"),
        ("contract_net = { agents = [\"a\"], weights = { } }", "one of them is above 0"),
        (
            "delphi = { agents = [\"a\"], choices = [\"x\", \"y\"], tolerance = 1 }",
            "about a number",
        ),
        ("delphi = { agents = [\"a\"], rounds = 1 }", "whole number from 2 to 10"),
        ("delphi = { agents = [\"a\"] }\npermissions = \"edit\"", "only answer"),
        ("negotiation = { agents = [\"a\"] }", "a list of 2 to 32 texts"),
        ("negotiation = { agents = [\"a\", \"script\"] }", "script"),
        ("negotiation = { agents = [\"a\", \"b\"] }\nfor_each = \"[1]\"", "`for_each` is a key of"),
        ("negotiation = { agents = [\"a\", \"b\"] }\nworktree = \"new\"", "`worktree` is a key of"),
    ] {
        let text =
            format!("description = \"x\"\n[[step]]\nid = \"decide\"\nprompt = \"?\"\n{step}\n");
        let problems = Definition::parse(&text).unwrap_err();
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert!(told.iter().any(|it| it.contains(why)), "{step}: {told:?}");
    }
}

/// Answer of an agent that may be right, useless or missing.
fn any_end(choice: u8) -> ChildEnd {
    let number = u64::from(choice / 8);
    let answer = json!({
        "bid": number, "pass": choice % 16 == 1, "reason": "r", "confidence": 0.5, "minutes": number, "cost": number,
        "plan": "p", "refuse": choice % 16 == 2, "value": number, "accept": choice.is_multiple_of(2), "terms": format!("t{choice}"),
    });
    let text = match choice % 7 {
        0 => String::new(),
        1 => "no JSON".to_owned(),
        _ => answer.to_string(),
    };
    ChildEnd {
        completed: !choice.is_multiple_of(5),
        text,
        reason: "broken".to_owned(),
        ..ChildEnd::default()
    }
}

proptest! {
    /// Whatever agents answer, in whatever order, a step ends, leaves nothing open, and has at most
    /// as many workers at a time as its rules allow.
    #[test]
    fn interactions_end_whatever_agents_answer(
        kind in 0..4_usize,
        answers in prop::collection::vec((any::<u8>(), any::<u8>()), 400),
    ) {
        let (step, workers) = [
            ("auction = { agents = [\"a\", \"b\", \"c\"], answer_timeout = \"1m\" }\npermissions = \"ask\"", 1),
            ("contract_net = { agents = [\"a\", \"b\", \"c\"], awards = 2, limits = { cost = 9 }, rounds = 3 }\npermissions = \"ask\"", 2),
            ("delphi = { agents = [\"a\", \"b\", \"c\"], rounds = 5, answer_timeout = \"1m\" }", 0),
            ("negotiation = { agents = [\"a\", \"b\", \"c\"], proposals = 8 }", 0),
        ][kind];
        let mut run = begin(step);
        for (which, choice) in answers {
            if run.finish.is_some() {
                break;
            }
            let working = run.calls.iter().filter(|(.., may)| may.as_deref() == Some("ask")).count();
            prop_assert!(working <= workers, "{:?}", run.called());
            if let (0, Some((timer, _))) = (which % 9, run.timers.first().copied()) {
                run.timers.clear();
                run.step(FlowEvent::Rang(timer));
                continue;
            }
            let (id, ..) = run.calls.remove(usize::from(which) % run.calls.len());
            run.step(FlowEvent::Ended(id, any_end(choice)));
        }
        prop_assert!(run.finish.is_some(), "{:?}", run.called());
        prop_assert_eq!(run.state.open(), 0);
        prop_assert!(run.calls.is_empty() && run.timers.is_empty());
    }
}
