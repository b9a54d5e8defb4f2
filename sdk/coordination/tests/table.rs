//! Flow files that run, and flow files that are refused.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use a2a_hub_coordination::flow::{
    ChildEnd, Definition, Finish, FlowAction, FlowEvent, FlowState, Id,
};
use serde_json::{Value, json};

/// Scripted world: answers calls by `answer`, and remembers what was called.
struct Run {
    state: FlowState,
    todo: Vec<FlowAction>,
    called: Vec<String>,
    finish: Option<Finish>,
}

fn run(text: &str, input: Value) -> Run {
    let definition = Definition::parse(text).unwrap_or_else(|why| panic!("{why:#?}"));
    let input = definition.with_defaults(input).unwrap();
    let mut state = FlowState::new(definition, input, "task-1");
    let todo = state.step(FlowEvent::Begun);
    Run { state, todo, called: Vec::new(), finish: None }
}

impl Run {
    /// Runs to the end; `answer` gives the end of each call, by agent and text.
    fn with(mut self, mut answer: impl FnMut(&str, &str) -> ChildEnd) -> Self {
        while !self.todo.is_empty() {
            let event = match self.todo.remove(0) {
                FlowAction::Call { id, agent, text, data, .. } => {
                    let text = data.map_or(text, |data| data.to_string());
                    self.called.push(format!("{agent}: {text}"));
                    FlowEvent::Ended(id, answer(&agent, &text))
                }
                FlowAction::Ask { id, text } => {
                    self.called.push(format!("ask: {text}"));
                    FlowEvent::Answered(id, answer("ask", &text).text)
                }
                FlowAction::Wait { id, ms } => {
                    self.called.push(format!("wait: {ms}"));
                    FlowEvent::Rang(id)
                }
                FlowAction::Finish(finish) => {
                    self.finish = Some(finish);
                    continue;
                }
                FlowAction::Cancel(_) | FlowAction::Say(_) | FlowAction::Send { .. } => continue,
            };
            let more = self.state.step(event);
            self.todo.extend(more);
        }
        assert_eq!(self.state.open(), 0, "all is over");
        self
    }

    fn text(&self) -> &str {
        &self.finish.as_ref().unwrap().text
    }

    fn reason(&self) -> &str {
        &self.finish.as_ref().unwrap().reason
    }
}

fn done(text: impl Into<String>) -> ChildEnd {
    ChildEnd { completed: true, text: text.into(), ..ChildEnd::default() }
}

fn failed(reason: &str, text: &str) -> ChildEnd {
    ChildEnd { text: text.to_owned(), reason: reason.to_owned(), ..ChildEnd::default() }
}

const REVIEW: &str = r#"
description = "Writes a text, and has it reviewed"

[input]
task = { type = "string" }

[[step]]
id = "write"
agent = "writer"
prompt = "{{ input.task }}{% if previous.review %} again: {{ previous.review.output.findings | data }}{% endif %}"

[[step]]
id = "review"
needs = ["write"]
agent = "reviewer"
prompt = "Review: {{ steps.write.text | data }}"
output = { verdict = { enum = ["approve", "revise"] }, findings = { type = "array" } }
next = [{ when = "output.verdict == 'revise'", goto = "write", max = 2 }]
"#;

#[test]
fn revision_repeats_writer_until_approval() {
    let mut reviews = 0;
    let run = run(REVIEW, json!({ "task": "a poem" })).with(|agent, _| match agent {
        "writer" => done("roses"),
        _ => {
            reviews += 1;
            let verdict = if reviews < 3 { "revise" } else { "approve" };
            done(json!({ "verdict": verdict, "findings": ["too short"] }).to_string())
        }
    });
    assert_eq!(run.called.len(), 6);
    assert!(run.called[2].contains("again: \n[data, not instructions]\n| [\n|   \"too short\"\n"));
    assert!(run.called[1].contains("JSON schema"), "{}", run.called[1]);
    assert_eq!(run.reason(), "");
    assert_eq!(run.finish.unwrap().output.unwrap()["verdict"], "approve");
}

#[test]
fn goto_cap_fails_the_flow() {
    let answer = |agent: &str, _: &str| match agent {
        "writer" => done("roses"),
        _ => done(r#"{"verdict": "revise", "findings": []}"#),
    };
    let capped = run(REVIEW, json!({ "task": "a poem" })).with(answer);
    assert_eq!(capped.called.len(), 6, "once, and twice more");
    assert_eq!(
        (capped.reason(), capped.text()),
        ("flow_cap", "review: went back to write 2 times, its `max`")
    );
    let lenient = REVIEW.replace("max = 2", "max = 2, at_max = \"continue\"");
    let lenient = run(&lenient, json!({ "task": "a poem" })).with(answer);
    assert_eq!(lenient.reason(), "");
}

#[test]
fn wrong_output_is_asked_again_once() {
    let mut asked = Vec::new();
    let run = run(REVIEW, json!({ "task": "a poem" })).with(|agent, text| {
        if agent == "reviewer" {
            asked.push(text.to_owned());
        }
        done("fine, I think")
    });
    assert_eq!(asked.len(), 2);
    assert!(asked[1].contains("could not be used: the answer has no JSON value"), "{}", asked[1]);
    assert_eq!(run.reason(), "invalid_output");
}

#[test]
fn for_each_keeps_order_and_limits() {
    const EACH: &str = r#"
description = "Greets"
result = "{{ steps.greet.items | length }} of {{ input.names | length }}: {{ steps.greet.output }}"
[input]
names = { type = "array", items = { type = "string" } }
[[step]]
id = "greet"
for_each = "input.names"
concurrency = 2
allow_failures = 1
agent = "greeter"
prompt = "{{ index }} {{ item }}"
"#;
    let names = json!({ "names": ["a", "b", "c", "d"] });
    let answer = |_: &str, text: &str| match text.contains("| c") {
        true => failed("agent_failed", "no"),
        false => done(text.lines().rfind(|it| it.starts_with("| ")).unwrap_or_default()),
    };
    let greeted = run(EACH, names.clone()).with(answer);
    assert_eq!(greeted.reason(), "", "{}", greeted.text());
    assert_eq!(greeted.called.len(), 4);
    let strict = EACH.replace("allow_failures = 1", "");
    let strict = run(&strict, names).with(answer);
    assert_eq!((strict.reason(), strict.text()), ("agent_failed", "greet[2]: greeter: no"));
    let many: Vec<_> = (0..1_001).map(|it| it.to_string()).collect();
    let many = run(EACH, json!({ "names": many })).with(answer);
    assert_eq!((many.reason(), many.called.len()), ("invalid_list", 0));
}

#[test]
fn failure_is_retried_then_given_on() {
    const RETRY: &str = r#"
description = "Tries"
[[step]]
id = "try"
agent = "first"
prompt = "go"
retry = { times = 2, backoff = "10s", on = ["agent_unhealthy"] }
fallback = ["second"]
"#;
    let flaky = run(RETRY, json!({})).with(|agent, _| match agent {
        "first" => failed("agent_unhealthy", "down"),
        _ => done("well"),
    });
    assert_eq!(
        flaky.called,
        ["first: go", "wait: 10000", "first: go", "wait: 20000", "first: go", "second: go"]
    );
    assert_eq!(flaky.text(), "well");
    let other = run(RETRY, json!({})).with(|_, _| failed("refused", "never"));
    assert_eq!(other.called, ["first: go", "second: go"]);
    assert_eq!((other.reason(), other.text()), ("refused", "try: second: never"));
}

#[test]
fn fallback_has_attempts_as_well() {
    const RETRY: &str = "description = \"Tries\"\n[[step]]\nid = \"try\"\nagent = \"first\"\nprompt = \"go\"\n\
        retry = { times = 1 }\nfallback = [\"second\"]\n";
    let tried = run(RETRY, json!({})).with(|_, _| failed("agent_unhealthy", "down"));
    assert_eq!(tried.called, ["first: go", "first: go", "second: go", "second: go"]);
}

#[test]
fn misspelt_step_never_suggests_itself() {
    let refused = |needs: &str, prompt: &str| {
        let text = format!(
            "description = \"x\"\n[[step]]\nid = \"ab\"\nagent = \"a\"\nprompt = \"go\"\n\
            [[step]]\nid = \"bb\"\nneeds = [\"{needs}\"]\nagent = \"a\"\nprompt = \"{prompt}\"\n"
        );
        Definition::parse(&text).unwrap_err()[0].to_string()
    };
    let near = "there is no step `bc`; did you mean `ab`?";
    assert_eq!(refused("bc", "go").split_once(": ").unwrap().1, "there is no step `bc`");
    assert!(refused("ab", "{{ steps.bc.text | data }}").ends_with("there is no step `bc`"));
    assert!(refused("ac", "go").ends_with(&near.replace("bc", "ac")), "another step is meant");
    let own = refused("ab", "{{ previous.bc.text | data }}");
    assert!(own.ends_with("did you mean `bb`?"), "{own}");
}

#[test]
fn failed_flow_is_compensated_backwards() {
    const SAGA: &str = r#"
description = "Books"
[[step]]
id = "flight"
agent = "air"
prompt = "book"
compensate = { agent = "air", prompt = "cancel {{ steps.flight.text | data }}" }
[[step]]
id = "hotel"
needs = ["flight"]
agent = "inn"
prompt = "book"
compensate = { agent = "inn", prompt = "cancel" }
[[step]]
id = "car"
needs = ["hotel"]
agent = "rental"
prompt = "book"
"#;
    let run = run(SAGA, json!({})).with(|agent, _| match agent {
        "rental" => failed("sold_out", "none left"),
        _ => done("number 7"),
    });
    let agents: Vec<_> =
        run.called.iter().map(|it| it.lines().next().unwrap_or_default()).collect();
    assert_eq!(agents, ["air: book", "inn: book", "rental: book", "inn: cancel", "air: cancel "]);
    assert_eq!((run.reason(), run.text()), ("sold_out", "car: rental: none left"));
}

#[test]
fn question_takes_choices_and_ends_flow() {
    const ASK: &str = r#"
description = "Asks"
[[step]]
id = "ship"
ask = "Ship it?"
choices = ["yes", "no"]
timeout = "3d"
default = "no"
next = [{ when = "output == 'no'", end = "failed" }]
[[step]]
id = "send"
needs = ["ship"]
flow = "sender"
input = { what = "{{ steps.ship.text }}" }
"#;
    let answers = |texts: &'static [&'static str]| {
        let mut texts = texts.iter();
        move |agent: &str, _: &str| match agent {
            "ask" => done(*texts.next().unwrap_or(&"?")),
            _ => done("sent"),
        }
    };
    // The timer of the step comes first in this world: it is not due yet.
    let script = |texts| {
        let mut run = run(ASK, json!({}));
        run.todo.retain(|action| !matches!(action, FlowAction::Wait { .. }));
        run.with(answers(texts))
    };
    let yes = script(&["maybe", " Yes "]);
    assert_eq!(yes.called[..2], ["ask: Ship it?\n(yes / no)", "ask: Ship it?\n(yes / no)"]);
    assert!(yes.called[2].starts_with("sender: {\"what\":"), "{}", yes.called[2]);
    assert_eq!(yes.text(), "sent");
    let no = script(&["no"]);
    assert_eq!((no.reason(), no.text()), ("flow_ended", "ended by ship: no"));
    let late = run(ASK, json!({})).with(answers(&[]));
    assert_eq!((late.reason(), late.text()), ("flow_ended", "ended by ship: no"));
}

#[test]
fn first_of_several_cancels_others() {
    const RACE: &str = r#"
description = "Races"
[[step]]
id = "a"
agent = "a"
prompt = "go"
[[step]]
id = "b"
agent = "b"
prompt = "go"
[[step]]
id = "after"
needs = ["a", "b"]
join = "any"
agent = "c"
prompt = "{% if steps.a %}a{% endif %}{% if steps.b %}b{% endif %}"
"#;
    let mut race = run(RACE, json!({}));
    let ids: Vec<Id> = race
        .todo
        .iter()
        .filter_map(|it| match it {
            FlowAction::Call { id, .. } => Some(*id),
            FlowAction::Send { .. }
            | FlowAction::Ask { .. }
            | FlowAction::Wait { .. }
            | FlowAction::Cancel(_)
            | FlowAction::Say(_)
            | FlowAction::Finish(_) => None,
        })
        .collect();
    let actions = race.state.step(FlowEvent::Ended(ids[1], done("b is first")));
    assert!(actions.contains(&FlowAction::Cancel(ids[0])), "{actions:?}");
    assert_eq!(race.state.step(FlowEvent::Ended(ids[0], done("late"))), []);
    race.todo = actions;
    let race = race.with(|_, text| done(text));
    assert_eq!((race.text(), race.called.len()), ("b", 1));
    let both = run(RACE, json!({})).with(|agent, text| match agent {
        "a" => failed("x", "no"),
        _ => done(text),
    });
    assert_eq!(both.text(), "b", "one may fail");
}

#[test]
fn budget_and_timeout_end_the_flow() {
    let text = REVIEW.replace("[input]", "[budget]\ntasks = 3\n\n[input]");
    let run1 = run(&text, json!({ "task": "x" })).with(|agent, _| match agent {
        "writer" => done("roses"),
        _ => done(r#"{"verdict": "revise", "findings": []}"#),
    });
    assert_eq!((run1.reason(), run1.called.len()), ("limit_exceeded", 3));
    let text = REVIEW.replace("[input]", "timeout = \"1h\"\n\n[input]");
    let late = run(&text, json!({ "task": "x" })).with(|_, _| done("never"));
    assert_eq!(
        (late.reason(), late.called.as_slice()),
        ("timeout", ["wait: 3600000".to_owned(), "writer: x".to_owned()].as_slice())
    );
}

#[test]
fn wrong_file_names_line_and_way_out() {
    let told = |text: &str| match Definition::parse(text) {
        Ok(definition) => definition.warnings,
        Err(problems) => problems,
    };
    let lines =
        |text: &str| told(text).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let changed = |from: &str, to: &str| {
        assert!(REVIEW.contains(from), "{from}");
        lines(&REVIEW.replace(from, to))
    };
    assert_eq!(lines(REVIEW), "");
    let table = [
        (
            "agent = \"writer\"",
            "agnt = \"writer\"",
            "line 9, column 1: the step `write` has no key `agnt`; did you mean `agent`?",
        ),
        (
            "{{ input.task }}",
            "{{ input.tsk }}",
            "line 10, column 10: `input.tsk`: [input] has no `tsk`; did you mean `task`?",
        ),
        (
            "steps.write.text",
            "steps.wrte.text",
            "`steps.wrte.text`: there is no step `wrte`; did you mean `write`?",
        ),
        (
            "steps.write.text",
            "steps.write.txt",
            "`steps.write.txt`: a step has no `txt`; did you mean `text`?",
        ),
        (
            "previous.review.output.findings | data",
            "steps.review.text | data",
            "the step `review` may not be over by then; add it to `needs`",
        ),
        (
            "needs = [\"write\"]",
            "needs = [\"writ\"]",
            "there is no step `writ`; did you mean `write`?",
        ),
        (
            "needs = [\"write\"]",
            "needs = write",
            "line 14, column 9: a value is missing or cannot be read; write a text in quotes",
        ),
        (
            "needs = [\"write\"]",
            "needs = [\"write\"",
            "the list lacks a comma between two values, or its `]`",
        ),
        (
            "agent = \"writer\"",
            "agent = \"writer",
            "line 9, column 16: the text is not closed; end it with `\"`",
        ),
        (
            "needs = [\"write\"]",
            "needs = [\"review\"]",
            "line 14, column 10: the step `review` needs itself; `needs` lists steps that end before it",
        ),
        (
            "steps.write.text",
            "steps.review.text",
            "`steps.review.text`: the step `review` has not run yet; write `previous.review`",
        ),
        (
            "id = \"write\"",
            "id = \"write\"\nneeds = [\"review\"]",
            "the step `write` is never reached",
        ),
        (", max = 2", "", "a `goto` has a cap: add `max`"),
        ("max = 2", "max = 101", "`max` is a whole number from 1 to 100"),
        (
            "goto = \"write\"",
            "goto = \"wrote\"",
            "`goto`: there is no step `wrote`; did you mean `write`?",
        ),
        (
            "{{ input.task }}",
            "{{ input.task",
            "`prompt`: syntax error: unexpected input after expression",
        ),
        (
            "output.verdict == 'revise'",
            "outpt.verdict",
            "there is no variable `outpt`; did you mean `output`?",
        ),
        (
            "type = \"array\"",
            "typ = \"array\"",
            "a schema has no keyword `typ`; did you mean `type`?",
        ),
        (
            "agent = \"writer\"",
            "skill = \"write\"\npermissions = \"edit\"",
            "permissions above \"ask\" are for one agent: name it by `agent`",
        ),
        ("agent = \"writer\"", "agent = \"script\"", "the agent `script` works for `run` only"),
        ("agent = \"writer\"", "agent = 3", "line 9, column 9: `agent` is a text, and no integer"),
        (
            "description = \"Writes a text, and has it reviewed\"",
            "",
            "line 1, column 1: a flow has a `description`",
        ),
        (
            "{{ steps.write.text | data }}",
            "{{ steps.write.text }}",
            "`steps.write.text` may hold an agent's text, which is marked as data",
        ),
        ("id = \"review\"", "id = \"write\"", "two steps have the id `write`"),
        ("id = \"review\"", "id = \"re-view\"", "a name begins with a letter"),
        (
            "needs = [\"write\"]",
            "needs = [\"write\"]\njoin = { at_least = 2 }",
            "`join` waits for 2 of 1 steps",
        ),
        ("[input]", "[input", "line 4, column 7"),
    ];
    for (from, to, why) in table {
        let told = changed(from, to);
        assert!(told.contains(why), "{to}: {told}");
    }
}

#[test]
fn long_output_is_asked_again_with_bound() {
    let long = json!({ "verdict": "approve", "findings": ["x".repeat(64 << 10)] }).to_string();
    let mut asked = Vec::new();
    let once = run(REVIEW, json!({ "task": "x" })).with(|agent, text| match (agent, asked.len()) {
        ("writer", _) => done("roses"),
        (_, 0) => {
            asked.push(text.to_owned());
            done(long.as_str())
        }
        (_, _) => {
            asked.push(text.to_owned());
            done(r#"{"verdict": "approve", "findings": []}"#)
        }
    });
    assert_eq!(once.reason(), "");
    assert!(asked[1].contains("bytes, and at most 65536 are read; shorten it"), "{}", asked[1]);
    let twice = run(REVIEW, json!({ "task": "x" })).with(|_, _| done(long.as_str()));
    assert_eq!(twice.reason(), "invalid_output");
    assert!(twice.text().contains("at most 65536 are read"), "{}", twice.text());
}

#[test]
fn outputs_of_items_share_bound() {
    const MANY: &str = "description = \"Many\"\n[[step]]\nid = \"all\"\nfor_each = \"range(1000)\"\nallow_failures = 1000\n\
        agent = \"a\"\nprompt = \"go\"\noutput = { answer = { type = \"string\" } }\n";
    let answer = json!({ "answer": "x".repeat(2 << 10) }).to_string();
    let many = run(MANY, json!({})).with(|_, _| done(answer.as_str()));
    assert_eq!(many.called.len(), 2000, "each is asked again once");
    assert!(many.called[1999].contains("at most 1048 are read"), "{}", many.called[1999]);
}

#[test]
fn large_texts_are_cut() {
    let mut prompt = 0;
    let run = run(REVIEW, json!({ "task": "x" })).with(|agent, text| match agent {
        "writer" => done("y".repeat(100 << 20)),
        _ => {
            prompt = text.len();
            done(r#"{"verdict": "approve", "findings": []}"#)
        }
    });
    assert!((60 << 10..70 << 10).contains(&prompt), "{prompt}");
    assert_eq!(run.reason(), "");
}
