//! Steps that are read while they are written.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use a2a_hub_coordination::flow::{ChildEnd, Definition, FlowAction, FlowEvent, FlowState, Id};
use serde_json::{Value, json};

const FLOW: &str = r#"
description = "Writes, and reviews meanwhile"
[[step]]
id = "write"
agent = "writer"
prompt = "Write."
stream = true
[[step]]
id = "review"
needs = ["write"]
agent = "reviewer"
prompt = "Review: {{ steps.write.text | data }}"
output = { verdict = { enum = ["approve", "revise"] } }
"#;

/// A run whose actions are collected as lines.
struct Run {
    state: FlowState,
    lines: Vec<String>,
    children: Vec<(String, Id)>,
    pauses: Vec<Id>,
}

impl Run {
    fn begin(text: &str) -> Self {
        let definition = Definition::parse(text).unwrap();
        let state = FlowState::new(definition, json!({}), "flow");
        let mut run = Self { state, lines: Vec::new(), children: Vec::new(), pauses: Vec::new() };
        run.step(FlowEvent::Begun);
        run
    }

    fn step(&mut self, event: FlowEvent) {
        for action in self.state.step(event) {
            match action {
                FlowAction::Call { id, agent, text, stream, .. } => {
                    let open = stream.map(|facts| told(&facts)).unwrap_or_default();
                    self.lines.push(format!("call {agent}{open}: {}", data(&text)));
                    self.children.push((agent, id));
                }
                FlowAction::Send { id, text, facts } => {
                    let of = &self.children.iter().rev().find(|(_, it)| *it == id).unwrap().0;
                    self.lines.push(format!("send {of}{}: {}", told(&facts), data(&text)));
                }
                FlowAction::Wait { id, .. } => self.pauses.push(id),
                FlowAction::Cancel(id) => {
                    self.pauses.retain(|it| *it != id);
                    let of = self.children.iter().find(|(_, it)| *it == id);
                    self.lines.extend(of.map(|(of, _)| format!("cancel {of}")));
                }
                FlowAction::Finish(finish) => {
                    let state = if finish.completed { "completed" } else { "failed" };
                    self.lines.push(format!("{state} {}: {}", finish.reason, finish.text));
                }
                FlowAction::Say(_) | FlowAction::Ask { .. } => {}
            }
        }
    }

    fn child(&self, agent: &str) -> Id {
        self.children.iter().rev().find(|(of, _)| of == agent).unwrap().1
    }

    fn writes(&mut self, text: &str) {
        self.step(FlowEvent::Wrote(self.child("writer"), text.to_owned()));
    }

    /// The pauses are over.
    fn rings(&mut self) {
        for id in std::mem::take(&mut self.pauses) {
            self.step(FlowEvent::Rang(id));
        }
    }

    fn reads(&mut self) {
        self.step(FlowEvent::Took(self.child("reviewer")));
    }

    fn ends(&mut self, agent: &str, text: &str) {
        let end = ChildEnd { completed: true, text: text.to_owned(), ..ChildEnd::default() };
        self.step(FlowEvent::Ended(self.child(agent), end));
    }

    fn fails(&mut self, agent: &str) {
        let (reason, text) = ("quota".to_owned(), "no tokens left".to_owned());
        let end = ChildEnd { reason, text, ..ChildEnd::default() };
        self.step(FlowEvent::Ended(self.child(agent), end));
    }

    fn lines(&self) -> Vec<&str> {
        self.lines.iter().map(String::as_str).collect()
    }
}

/// Number of a piece, and whether it is the last one.
fn told(facts: &Value) -> String {
    assert_eq!(facts["step"], "write");
    let last = if facts["last"] == true { " last" } else { "" };
    let failed = facts["failed"].as_str().map(|reason| format!(" {reason}")).unwrap_or_default();
    format!(" {}{last}{failed}", facts["piece"])
}

/// Data of a message, without its marks.
fn data(text: &str) -> String {
    let lines = text.lines().filter_map(|line| line.strip_prefix("| "));
    lines.collect::<Vec<_>>().join("/")
}

const APPROVED: &str = r#"{"verdict": "approve"}"#;

#[test]
fn reader_gets_text_while_it_is_written() {
    let mut run = Run::begin(FLOW);
    run.writes("Roses ");
    run.writes("are ");
    assert_eq!(run.lines(), ["call writer: "], "the text is collected");
    run.rings();
    run.writes("red, ");
    run.rings();
    // The first piece is on its way.
    run.writes("violets ");
    run.rings();
    run.reads();
    run.rings();
    run.reads();
    run.ends("writer", "Roses are red, violets are blue.");
    run.ends("reviewer", APPROVED);
    assert_eq!(
        run.lines(),
        [
            "call writer: ",
            "call reviewer 1: Roses are ",
            "send reviewer 2: red, ",
            "send reviewer 3: violets ",
            "send reviewer 4 last:  are blue.",
            r#"completed : {"verdict": "approve"}"#,
        ]
    );
}

#[test]
fn reader_that_ends_early_gets_whole_text() {
    let mut run = Run::begin(FLOW);
    run.writes("Roses");
    run.rings();
    // Not even its form counts.
    run.ends("reviewer", "fine so far");
    run.writes(" are red.");
    run.rings();
    run.ends("writer", "Roses are red.");
    run.ends("reviewer", APPROVED);
    let last = [
        "call reviewer 1: Roses",
        "call reviewer: Roses are red.",
        r#"completed : {"verdict": "approve"}"#,
    ];
    assert_eq!(run.lines()[1..], last);
}

#[test]
fn other_final_text_replaces_written_one() {
    let mut run = Run::begin(FLOW);
    run.writes("I think about roses.");
    run.rings();
    run.ends("writer", "Violets are blue.");
    let last = "send reviewer 2 last: Violets are blue.";
    assert_eq!(run.lines().last(), Some(&last));
}

#[test]
fn failed_writer_ends_input_of_reader() {
    let mut run = Run::begin(FLOW);
    run.writes("Roses");
    run.rings();
    run.fails("writer");
    let last = [
        "send reviewer 2 last quota: write: writer: no tokens left",
        "cancel reviewer",
        "failed quota: write: writer: no tokens left",
    ];
    assert_eq!(run.lines()[2..], last);
}

#[test]
fn retried_writer_starts_its_reader_anew() {
    let mut run =
        Run::begin(&FLOW.replace("stream = true", "stream = true\nretry = { times = 1 }"));
    run.writes("Roses");
    run.rings();
    let first = run.child("reviewer");
    run.fails("writer");
    run.writes("Violets");
    run.rings();
    assert_ne!(run.child("reviewer"), first, "it is another task");
    run.ends("writer", "Violets.");
    run.ends("reviewer", APPROVED);
    let last = [
        "send reviewer 2 last superseded: the step begins anew, and so do you, in another task",
        "cancel reviewer",
        "call writer: ",
        "call reviewer 1: Violets",
        "send reviewer 2 last: .",
        r#"completed : {"verdict": "approve"}"#,
    ];
    assert_eq!(run.lines()[2..], last);
}

#[test]
fn refused_piece_is_sent_again() {
    let mut run = Run::begin(FLOW);
    run.writes("Roses");
    run.rings();
    run.ends("writer", "Roses are red.");
    run.step(FlowEvent::Unsent(run.child("reviewer")));
    run.rings();
    let last = run.lines().last().unwrap().to_string();
    assert_eq!(last, "send reviewer 3 last:  are red.");
    run.ends("reviewer", APPROVED);
    assert!(run.lines().last().unwrap().starts_with("completed"));
}

#[test]
fn asking_reader_gets_pieces_after_its_answer() {
    let mut run = Run::begin(FLOW);
    run.writes("Roses");
    run.rings();
    let reader = run.child("reviewer");
    run.step(FlowEvent::Paused(reader));
    run.writes(" are red.");
    run.rings();
    run.ends("writer", "Roses are red.");
    assert_eq!((run.lines.len(), run.pauses.len()), (2, 0), "nothing is tried meanwhile");
    run.step(FlowEvent::Resumed(reader));
    let last = "send reviewer 2 last:  are red.";
    assert_eq!(run.lines().last(), Some(&last));
}

#[test]
fn goto_starts_writer_and_reader_anew() {
    let flow = format!(
        "{FLOW}next = [{{ when = \"output.verdict == 'revise'\", goto = \"write\", max = 1 }}]\n"
    );
    let mut run = Run::begin(&flow);
    run.writes("Roses");
    run.rings();
    run.ends("writer", "Roses");
    run.ends("reviewer", r#"{"verdict": "revise"}"#);
    run.writes("Violets");
    run.rings();
    let begun = "call reviewer 1: Violets";
    assert_eq!(run.lines().last(), Some(&begun));
    run.ends("writer", "Violets");
    run.ends("reviewer", APPROVED);
    assert!(run.lines().last().unwrap().starts_with("completed"));
}

/// The sizes and numbers of pieces are bounded, whatever the writer does.
#[test]
fn endless_writer_sends_bounded_pieces() {
    let mut run = Run::begin(FLOW);
    for _ in 0..10_000 {
        run.writes(&"ä".repeat(300));
        run.rings();
        if run.lines.len() > 1 {
            run.reads();
        }
    }
    let sizes: Vec<_> = run.lines[1..].iter().map(String::len).collect();
    assert!(sizes.len() <= 100 && sizes.iter().sum::<usize>() < 80 << 10, "{sizes:?}");
    let mut run = Run::begin(FLOW);
    for _ in 0..1_000 {
        run.writes("x");
        run.rings();
        if run.lines.len() > 1 {
            run.reads();
        }
    }
    assert_eq!(run.lines.len() - 1, 100);
}

/// The same events lead a copy of a run to the same actions.
#[test]
fn repeated_events_lead_to_same_actions() {
    let mut run = Run::begin(FLOW);
    let writer = run.child("writer");
    run.writes("Roses");
    run.rings();
    let reader = run.child("reviewer");
    let events = [
        FlowEvent::Wrote(writer, " are".to_owned()),
        FlowEvent::Took(reader),
        FlowEvent::Paused(reader),
        FlowEvent::Unsent(reader),
        FlowEvent::Resumed(reader),
        FlowEvent::Ended(
            writer,
            ChildEnd { completed: true, text: "Roses are".to_owned(), ..ChildEnd::default() },
        ),
    ];
    let mut twin = run.state.clone();
    for event in events {
        assert_eq!(run.state.step(event.clone()), twin.step(event));
    }
}

fn errors(flow: &str) -> String {
    let problems = Definition::parse(flow).unwrap_err();
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn wrong_use_is_refused_with_position() {
    for (from, to, error) in [
        ("stream = true", "stream = \"yes\"", "line 7, column 10: `stream` is true or false"),
        (
            "agent = \"writer\"\nprompt = \"Write.\"",
            "run = [\"cargo\", \"test\"]",
            "line 6, column 10: `stream` is a key of a step with `agent` or `skill`",
        ),
        (
            "agent = \"writer\"\n",
            "agents = [\"a\", \"b\"]\n",
            "line 7, column 10: `stream` is a key of a step that is done once: remove `for_each` or `agents`",
        ),
        (
            "stream = true",
            "stream = true\noutput = { a = { type = \"string\" } }",
            "line 7, column 10: a step with `stream` has no `output`",
        ),
        (
            "needs = [\"write\"]\n",
            "needs = [\"write\"]\nfor_each = \"[1]\"\n",
            "`stream`: no step reads `write`",
        ),
        (
            "{{ steps.write.text | data }}",
            "it",
            "line 7, column 10: `stream`: no step reads `write` while it writes",
        ),
        (
            "steps.write.text | data }}",
            "steps.write.text | data }} {{ steps.write.state }}",
            "`steps.write.state`: `review` begins before `write` has ended, which has `stream`; only `steps.write.text` is there",
        ),
        (
            "needs = [\"write\"]\n",
            "needs = [\"write\"]\ninherit = { from = \"write\" }\n",
            "`inherit`: `review` begins before `write` has ended",
        ),
    ] {
        let flow = FLOW.replacen(from, to, 1);
        assert_ne!(flow, FLOW, "{from}");
        let found = errors(&flow);
        assert!(found.contains(error), "{found}\n{error}");
    }
}

#[test]
fn without_stream_nothing_changes() {
    let mut run = Run::begin(&FLOW.replace("stream = true\n", ""));
    run.writes("Roses");
    run.rings();
    assert_eq!(run.lines(), ["call writer: "]);
    run.ends("writer", "Roses");
    assert_eq!(run.lines()[1..], ["call reviewer: Roses"]);
}

#[test]
fn flow_test_scripts_written_parts() {
    let fakes = r#"
[answers]
write = { writes = ["Roses ", "are red."], after = "9s" }
review = { output = { verdict = "approve" }, after = "1s" }
[expect]
steps = ["write", "review"]
"#;
    let simulation = Definition::parse(FLOW).unwrap().simulate(fakes).unwrap();
    assert_eq!(simulation.failures, [""; 0]);
    let told = simulation.transitions.join("\n");
    let [reads, ends] = ["-> review: reviewer", "<- write: completed"].map(|it| told.find(it));
    assert!(reads.unwrap() < ends.unwrap(), "{told}");
    let wrong =
        Definition::parse(FLOW).unwrap().simulate("[answers]\nreview = { writes = [\"a\"] }\n");
    let wrong = wrong.unwrap_err();
    assert!(wrong[0].text.contains("of a step with `stream`"), "{wrong:?}");
}

#[test]
fn facts_name_step_and_end() {
    let mut run = Run::begin(FLOW);
    run.writes("Roses");
    let mut facts = None;
    for id in std::mem::take(&mut run.pauses) {
        for action in run.state.step(FlowEvent::Rang(id)) {
            if let FlowAction::Call { stream, .. } = action {
                facts = stream;
            }
        }
    }
    let expected: Value = json!({ "step": "write", "piece": 1, "last": false });
    assert_eq!(facts, Some(expected));
}
