//! Steps with `vote`: tasks of the voters, outcomes, and what a file may say.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod voters;

use a2a_hub_coordination::flow::{ChildEnd, Definition, FlowEvent, Role};
use serde_json::{Value, json};
use voters::Run;

const FLOW: &str = r#"
description = "Decides on a change"

[input]
change = { type = "string" }

[[step]]
id = "decide"
vote = { agents = ["a", "b", "c"], rule = "majority", choices = ["approve", "revise"] }
prompt = "Is this right? {{ input.change }}"
timeout = "10m"
next = [{ when = "output.outcome == 'tie'", end = "failed" }]

[[step]]
id = "report"
needs = ["decide"]
agent = "writer"
prompt = "{{ steps.decide.output.choice }} {{ steps.decide.output.ballots | data }}"
"#;

fn begin(text: &str) -> Run {
    Run::begin(text, json!({ "change": "x = 1" }))
}

fn ballot(choice: &str, confidence: f64) -> ChildEnd {
    let data =
        json!({ "choice": choice, "confidence": confidence, "reason": format!("{choice}!") });
    ChildEnd { completed: true, text: data.to_string(), ..ChildEnd::default() }
}

fn failed(reason: &str) -> ChildEnd {
    ChildEnd { text: format!("{reason}: gone"), reason: reason.to_owned(), ..ChildEnd::default() }
}

/// Output of a flow whose only step is this vote.
fn outcome(vote: &str, ends: &[(&str, ChildEnd)]) -> Value {
    let text = format!(
        "description = \"x\"\n[[step]]\nid = \"decide\"\nvote = {{ agents = [\"a\", \"b\", \"c\"], choices = [\"approve\", \"revise\"]{vote} }}\nprompt = \"?\"\n"
    );
    let mut run = begin(&text);
    for (agent, end) in ends {
        run.end(agent, end.clone());
    }
    let finish = run.finish.unwrap();
    assert!(finish.completed, "an outcome is no error: {}", finish.text);
    finish.output.unwrap()
}

#[test]
fn voters_are_called_at_once_read_only() {
    let mut run = begin(FLOW);
    let called = run.calls.iter().map(|(_, agent, _, may)| (agent.as_str(), may.as_deref()));
    let expected = ["a", "b", "c"].map(|agent| (agent, Some("read-only")));
    assert_eq!(called.collect::<Vec<_>>(), expected);
    let text = run.text_of("b");
    assert!(text.starts_with("Is this right? x = 1\n\nAnswer with one JSON value"), "{text}");
    assert!(text.contains(r#"{"choice":{"enum":["approve","revise"]}"#), "{text}");
    run.end("c", ballot("approve", 0.5));
    run.end("a", ballot("revise", 1.0));
    run.end("b", ballot("approve", 0.5));
    let text = run.text_of("writer");
    assert!(text.contains("| approve") && text.contains("revise!"), "{text}");
}

#[test]
fn outcome_lists_ballots_and_failures() {
    let ends =
        [("b", failed("quota")), ("c", ballot("revise", 0.5)), ("a", ballot("revise", 0.25))];
    let expected = json!({
        "outcome": "decided", "choice": "revise", "tally": { "approve": 0.0, "revise": 2.0 },
        "ballots": [
            { "agent": "a", "choice": "revise", "confidence": 0.25, "reason": "revise!" },
            { "agent": "c", "choice": "revise", "confidence": 0.5, "reason": "revise!" },
        ],
        "failed": [{ "agent": "b", "reason": "quota: gone" }],
    });
    assert_eq!(outcome("", &ends), expected);
    assert_eq!(outcome(", rule = { quorum = 2 }", &ends)["choice"], "revise");
    assert_eq!(outcome(", rule = { quorum = 3 }", &ends)["outcome"], "no_quorum");
    let split = [("a", ballot("approve", 0.9)), ("b", failed("x")), ("c", ballot("revise", 0.5))];
    assert_eq!(outcome("", &split)["outcome"], "tie");
    assert_eq!(outcome("", &split)["choice"], Value::Null);
    assert_eq!(outcome(", rule = \"weighted\"", &split)["choice"], "approve");
    let weights = ", rule = \"weighted\", weights = { c = 2 }";
    assert_eq!(outcome(weights, &split)["choice"], "revise");
    let none = ["a", "b", "c"].map(|agent| (agent, failed("x")));
    assert_eq!(outcome("", &none)["outcome"], "no_quorum");
}

#[test]
fn order_of_voters_ends_decides_nothing() {
    let ends = [("a", ballot("approve", 0.1)), ("b", ballot("revise", 0.2)), ("c", failed("x"))];
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let found =
        orders.map(|order| outcome(", rule = \"weighted\"", &order.map(|it| ends[it].clone())));
    assert!(found.iter().all(|it| it == &found[0]), "{found:?}");
}

#[test]
fn unusable_ballot_is_asked_for_once() {
    let mut run = begin(FLOW);
    let wrong = ChildEnd { completed: true, text: "I like it".to_owned(), ..ChildEnd::default() };
    run.end("a", wrong.clone());
    assert!(run.text_of("a").contains("Your last answer could not be used"));
    run.end("a", wrong);
    assert!(run.calls.iter().all(|(_, agent, ..)| agent != "a"), "its ballot is lost");
    run.end("b", ballot("approve", 1.0));
    run.end("c", ballot("maybe", 1.0));
    run.end("c", ballot("revise", 1.0));
    let finish = run.finish.unwrap();
    assert_eq!(finish.text, "ended by decide: tie: approve, revise", "`next` read the outcome");
}

#[test]
fn time_limit_closes_vote_with_ballots() {
    let mut run = begin(FLOW);
    run.end("a", ballot("approve", 1.0));
    run.end("b", ballot("approve", 1.0));
    let timer = run.timers.iter().map(|(id, _)| *id).find(|id| id.role == Role::Timeout);
    run.step(FlowEvent::Rang(timer.unwrap()));
    assert_eq!(run.state.open(), 1, "the voter at work is cancelled");
    assert!(run.text_of("writer").contains("| approve"));
}

#[test]
fn wrong_votes_name_place_and_way_out() {
    let at = |text: &str| {
        Definition::parse(text).unwrap_err().first().map(ToString::to_string).unwrap_or_default()
    };
    for (from, to, why) in [
        ("rule =", "rul =", "line 9, column 36: vote has no key `rul`; did you mean `rule`?"),
        ("\"majority\"", "\"mayority\"", "`rule` is \"majority\", \"weighted\", \"record\" or {"),
        ("\"majority\"", "{ quorum = 4 }", "`quorum` is a whole number from 1 to 3"),
        ("\"majority\"", "{}", "`rule` has the key `quorum`"),
        ("\"majority\"", "\"majority\", weights = { a = 2 }", "`weights` is a key of a vote with"),
        ("\"majority\"", "\"weighted\", weights = { d = 2 }", "`weights`: `d` does not vote"),
        ("\"majority\"", "\"weighted\", weights = { a = -2 }", "a number from 0 to 1000"),
        (
            "[\"a\", \"b\", \"c\"]",
            "[]",
            "line 9, column 19: `vote`: `agents` is a list of 1 to 128",
        ),
        ("[\"a\", \"b\", \"c\"]", "[\"a\", \"a\"]", "`agents`: `a` is listed twice"),
        ("\"b\"", "\"script\"", "the agent `script` works for `run` only"),
        (", \"revise\"]", "]", "`choices` is a list of 2 to 32 texts"),
        ("timeout =", "permissions = \"edit\"\ntimeout =", "`permissions` is a key of a step with"),
        ("timeout =", "fallback = [\"d\"]\ntimeout =", "`fallback` is a key of a step that calls"),
        ("timeout =", "for_each = \"[1]\"\ntimeout =", "`for_each` is a key of a step that calls"),
        ("prompt = \"Is", "# \"Is", "the step `decide` has a `prompt`"),
        ("{{ input.change }}", "{{ input.chnge }}", "[input] has no `chnge`; did you mean"),
    ] {
        assert!(FLOW.contains(from), "{from}");
        let told = at(&FLOW.replacen(from, to, 1));
        assert!(told.contains(why), "{to}: {told}");
    }
}

#[test]
fn chart_and_simulation_know_votes() {
    let definition = Definition::parse(FLOW).unwrap();
    assert_eq!(definition.agents(), ["a", "b", "c", "writer"]);
    assert!(definition.mermaid().contains("s0{\"decide: a, b, c vote\"}"));
    let ballots = r#"[{ output = { choice = "approve", confidence = 1, reason = "" } }, { failed = "quota" }]"#;
    let fakes = format!(
        "[input]\nchange = \"x\"\n[answers]\ndecide = {ballots}\nreport = \"well\"\n[expect]\nsteps = [\"decide\", \"report\"]\n"
    );
    let simulation = definition.simulate(&fakes).unwrap();
    assert_eq!(simulation.failures, [""; 0], "{:#?}", simulation.transitions);
    let line = "      0s    -> decide[b]: b: Is this right? x";
    assert!(simulation.transitions.iter().any(|it| it == line), "{:#?}", simulation.transitions);
}
