//! Simulations of flows with scripted answers, and their flowcharts.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use a2a_hub_coordination::flow::{Definition, Simulation};

const REVIEW: &str = r#"
description = "Writes a text, and has it reviewed"

[input]
task = { type = "string" }

[[step]]
id = "write"
agent = "writer"
prompt = "{{ input.task }}"
retry = { times = 1, backoff = "10s", on = ["quota"] }

[[step]]
id = "review"
needs = ["write"]
agent = "reviewer"
prompt = "Review: {{ steps.write.text | data }}"
output = { verdict = { enum = ["approve", "revise"] } }
next = [{ when = "output.verdict == 'revise'", goto = "write", max = 2 }]

[[step]]
id = "ship"
needs = ["review"]
ask = "Ship \"it\"?"
choices = ["yes", "no"]
timeout = "2d"
default = "no"
next = [{ when = "output == 'no'", end = "failed" }]
"#;

const FAKES: &str = r#"
[input]
task = "a poem"

[answers]
write = [{ failed = "quota", text = "no tokens" }, "roses", { text = "violets", after = "1h" }]
review = [{ output = { verdict = "revise" } }, { output = { verdict = "approve" } }]
ship = { text = "yes", after = "1d" }

[expect]
state = "completed"
steps = ["write", "review", "write", "review", "ship"]
text = "yes"
"#;

fn simulated(fakes: &str) -> Simulation {
    let flow = Definition::parse(REVIEW).unwrap();
    flow.simulate(fakes).unwrap_or_else(|why| panic!("{why:#?}"))
}

fn problem(fakes: &str) -> String {
    let flow = Definition::parse(REVIEW).unwrap();
    flow.simulate(fakes).unwrap_err().first().unwrap().to_string()
}

#[test]
fn scripted_answers_drive_flow_to_its_end() {
    let Simulation { transitions, failures } = simulated(FAKES);
    assert_eq!(failures, [""; 0]);
    let shown = transitions.join("\n");
    for line in [
        "      0s    <- write: failed (quota): no tokens",
        "     10s    -> write, attempt 2: writer: a poem",
        "     10s  review: goes back to write",
        "  1h 10s    <- write: completed: violets",
        "  1h 10s    -> ship: asks: Ship \"it\"?",
        "1d 1h 10s    <- ship: answered: yes",
        "1d 1h 10s  the flow completed: yes",
    ] {
        assert!(transitions.iter().any(|it| it == line), "{line}\n{shown}");
    }
}

#[test]
fn unmet_expectations_are_listed() {
    let late = FAKES.replace("after = \"1d\"", "after = \"3d\"");
    let failures = simulated(&late).failures;
    assert_eq!(
        failures,
        [
            "`state` is `failed`, and `completed` was expected",
            "`text` is `ended by ship: no`, and `yes` was expected",
        ]
    );
    let unasked = FAKES.replace("ship = { text = \"yes\", after = \"1d\" }", "");
    let failures = simulated(&unasked).failures;
    assert_eq!(failures, ["the step `ship` began, and [answers] has no `ship`"]);
    let capped = FAKES.replace("{ output = { verdict = \"approve\" } }", "");
    let capped = capped.replace("ship = { text = \"yes\", after = \"1d\" }", "");
    let capped =
        capped.split("[expect]").next().unwrap().to_owned() + "[expect]\nreason = \"flow_cap\"";
    assert_eq!(simulated(&capped).failures, [""; 0]);
}

#[test]
fn wrong_fakes_name_line_and_way_out() {
    for (from, to, why) in [
        ("ship =", "shp =", "line 8, column 1: there is no step `shp`; did you mean `ship`?"),
        ("after = \"1d\"", "aftr = \"1d\"", "has no key `aftr`; did you mean `after`?"),
        ("task = ", "tsk = ", "[input]: "),
        ("\"review\", \"ship\"", "\"revew\", \"ship\"", "there is no step `revew`"),
        ("state = \"completed\"", "state = \"done\"", "`state` is one of completed, failed"),
        ("[expect]", "[expect", "line 10"),
    ] {
        assert!(FAKES.contains(from), "{from}");
        let told = problem(&FAKES.replace(from, to));
        assert!(told.contains(why), "{to}: {told}");
    }
}

#[test]
fn endless_flow_is_stopped() {
    const EACH: &str = "description = \"x\"\n[input]\nmany = { type = \"array\" }\n[[step]]\nid = \"a\"\nfor_each = \"input.many\"\nagent = \"x\"\nprompt = \"y\"\nallow_failures = 1000\nretry = { times = 10 }\nnext = [{ goto = \"a\", max = 100 }]\n";
    let many: Vec<_> = (0..20).map(|it| it.to_string()).collect();
    let fakes =
        format!("[input]\nmany = [{}]\n[answers]\na = {{ failed = \"x\" }}\n", many.join(", "));
    let simulation = Definition::parse(EACH).unwrap().simulate(&fakes).unwrap();
    assert_eq!(simulation.failures, ["the flow did not end within 10000 events"]);
    assert_eq!(simulation.transitions.len(), 2_001, "and it is not listed for ever");
}

#[test]
fn flowchart_shows_needs_and_ways_back() {
    let chart = Definition::parse(REVIEW).unwrap().mermaid();
    let expected = "flowchart TD
    s0[\"write: writer\"]
    s1[\"review: reviewer\"]
    s2{{\"ship: asks\"}}
    s0 --> s1
    s1 -. \"output.verdict == 'revise', at most 2\" .-> s0
    s1 --> s2
    s2 -. \"output == 'no'\" .-> failed([\"failed\"])
";
    assert_eq!(chart, expected);
    let hostile = REVIEW.replace("agent = \"writer\"", r##"agent = 'x"] --> y; <b>#quot;'"##);
    let chart = Definition::parse(&hostile).unwrap().mermaid();
    assert!(chart.contains("s0[\"write: x#quot;] --#gt; y; #lt;b#gt;#35;quot;\"]"), "{chart}");
}
