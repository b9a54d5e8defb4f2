//! Templates of `flow new`: each one is right, and runs with scripted answers.

use a2a_hub_coordination::flow::{Definition, Needs, Simulation};

macro_rules! template {
    ($name:literal) => {
        include_str!(concat!("../../../host/authoring/src/flow_template/", $name, ".flow.toml"))
    };
}

const REVIEW: &str = template!("review");
const PLAN: &str = template!("plan");
const RESEARCH: &str = template!("research");
const SECOND_OPINION: &str = template!("second-opinion");

/// Runs a template with these answers; all expectations hold.
fn simulated(text: &str, fakes: &str) -> Simulation {
    let definition = Definition::parse(text).unwrap_or_else(|why| panic!("{why:#?}"));
    let simulation = definition.simulate(fakes).unwrap_or_else(|why| panic!("{why:#?}"));
    assert_eq!(simulation.failures, [""; 0], "{:#?}", simulation.transitions);
    simulation
}

#[test]
fn templates_are_right_and_need_no_trust() {
    for text in [template!("answer"), REVIEW, PLAN, RESEARCH, SECOND_OPINION] {
        let definition = Definition::parse(text).unwrap_or_else(|why| panic!("{why:#?}"));
        assert_eq!(definition.warnings, [], "{text}");
        let needs = definition.needs();
        assert_eq!(needs, Needs::default(), "it runs as it is: {text}");
    }
}

#[test]
fn review_revises_until_approved() {
    let fakes = r#"
        [input]
        task = "a parser"
        [answers]
        write = ["one", "two", "three"]
        review = [
            { output = { verdict = "revise", findings = ["too slow"] } },
            { output = { verdict = "revise", findings = ["no tests"] } },
            { output = { verdict = "approve", findings = [] } },
        ]
        [expect]
        text = "three"
        steps = ["write", "review", "write", "review", "write", "review"]
    "#;
    simulated(REVIEW, fakes);
}

#[test]
fn review_with_same_findings_asks_person() {
    let fakes = |person: &str, expect: &str| {
        format!(
            "[input]\ntask = \"a parser\"\n[answers]\nwrite = [\"one\", \"two\", \"three\"]\n\
             review = {{ output = {{ verdict = \"revise\", findings = [\"too slow\"] }} }}\n\
             person = {person}\n[expect]\n{expect}\n"
        )
    };
    let steps = "steps = [\"write\", \"review\", \"write\", \"review\", \"person\"]";
    simulated(REVIEW, &fakes("\"Accept\"", &format!("text = \"two\"\n{steps}")));
    simulated(REVIEW, &fakes("\"stop\"", &format!("reason = \"flow_ended\"\n{steps}")));
    let late = "{ text = \"accept\", after = \"3d\" }";
    simulated(REVIEW, &fakes(late, "reason = \"flow_ended\""));
    // A wish of the person goes back to the writer.
    let steps = "[\"write\", \"review\", \"write\", \"review\", \"person\", \"write\", \"review\", \"person\"]";
    let wish =
        fakes("[\"use a table\", \"accept\"]", &format!("text = \"three\"\nsteps = {steps}"));
    let simulation = simulated(REVIEW, &wish);
    let asks = |line: &&String| line.contains("asks: The reviewer still asks for changes");
    assert_eq!(simulation.transitions.iter().filter(asks).count(), 2);
}

#[test]
fn review_cap_asks_person() {
    let review = |number: u32| {
        format!("{{ output = {{ verdict = \"revise\", findings = [\"finding {number}\"] }} }}")
    };
    let reviews: Vec<_> = (0..4).map(review).collect();
    let round = "\"write\", \"review\", ".repeat(4);
    let fakes = format!(
        "[input]\ntask = \"a parser\"\n[answers]\nwrite = \"text\"\nreview = [{}]\nperson = \"accept\"\n\
         [expect]\nsteps = [{round}\"person\"]\n",
        reviews.join(", ")
    );
    simulated(REVIEW, &fakes);
}

#[test]
fn plan_executes_only_approved_plan() {
    let fakes = |approve: &str, expect: &str| {
        let unused = if approve.contains("Yes") {
            "execute = [\"half\", \"all\"]\nverify = [{ output = { verdict = \"unfinished\", findings = [\"b\"] } }, { output = { verdict = \"done\", findings = [] } }]\n"
        } else {
            ""
        };
        format!(
            "[input]\ntask = \"a parser\"\n[answers]\nplan = [\"one\", \"two\"]\napprove = {approve}\n{unused}[expect]\n{expect}\n"
        )
    };
    let steps = "steps = [\"plan\", \"approve\", \"plan\", \"approve\", \"execute\", \"verify\", \"execute\", \"verify\"]";
    let approved = fakes("[\"without the cache\", \"Yes\"]", &format!("text = \"all\"\n{steps}"));
    simulated(PLAN, &approved);
    let steps = "steps = [\"plan\", \"approve\"]";
    simulated(PLAN, &fakes("\"no\"", &format!("reason = \"flow_ended\"\n{steps}")));
}

#[test]
fn research_names_failed_parts() {
    let fakes = r#"
        [input]
        question = "Why is it slow?"
        [answers]
        decompose = { output = { questions = ["the store?", "the wire?", "the lock?"] } }
        research = [
            { output = { answer = "no", sources = ["store.rs:1"] } },
            { failed = "quota", text = "no tokens left" },
            { output = { answer = "yes", sources = ["lock.rs:2"] } },
            { failed = "quota", text = "no tokens left" },
        ]
        synthesis = "It is the lock (lock.rs:2)."
        [expect]
        text = "It is the lock (lock.rs:2)."
        steps = ["decompose", "research", "synthesis"]
    "#;
    let simulation = simulated(RESEARCH, fakes);
    let lines = simulation.transitions;
    let parallel = lines
        .iter()
        .filter(|line| line.starts_with("      0s    -> research[") && line.contains(": codex: "))
        .count();
    assert_eq!(parallel, 3, "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("given to gemini")), "{lines:#?}");
    let failed = fakes.replace(
        "text = \"It is the lock",
        "text = \"Not answered: the wire? (no tokens left)\" # ",
    );
    simulated(RESEARCH, &failed);
    let lost = fakes.replace("failed = \"quota\"", "failed = \"quota\", after = \"1h\"");
    simulated(RESEARCH, &lost);
    let wrong = fakes.replace("\"the store?\", ", "");
    let rejected = Definition::parse(RESEARCH).unwrap().simulate(&wrong).unwrap();
    assert!(!rejected.failures.is_empty(), "two questions are no decomposition");
}

#[test]
fn second_opinions_are_independent_and_quoted() {
    let fakes = r#"
        [input]
        text = "We need no locks."
        [answers]
        first = { output = { verdict = "agree", reasons = [] }, after = "1h" }
        second = [{ failed = "quota" }, { output = { verdict = "object", reasons = ["two writers"] } }]
        third = { output = { verdict = "agree", reasons = [] } }
        synthesis = "codex disagrees: \"two writers\"."
        [expect]
        text = "two writers"
        steps = ["first", "second", "third", "synthesis"]
    "#;
    let simulation = simulated(SECOND_OPINION, fakes);
    let lines = simulation.transitions;
    let begun = lines
        .iter()
        .filter(|line| line.starts_with("      0s    -> ") && line.contains(": Is this"))
        .count();
    assert_eq!(begun, 3, "{lines:#?}");
}
