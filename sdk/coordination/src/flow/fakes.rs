//! Scripted answers and expectations of `flow test`: the file `fakes.toml`.

use std::collections::BTreeMap;

use serde_json::Value;
use toml::{Spanned, de::DeTable, de::DeValue};

use super::{
    definition::Definition,
    kinds::Work,
    position::{KeyName as _, Problems, Table, did_you_mean, json},
    problem::Problem,
    toml_words::plain,
};

/// Keys of an answer, and of the expectations.
const ANSWER: [&str; 7] = ["text", "output", "failed", "after", "exit", "lines", "writes"];
const EXPECT: [&str; 5] = ["state", "reason", "text", "output", "steps"];

/// Scripted world of one simulation.
#[derive(Clone, Debug, Default)]
pub(super) struct Fakes {
    pub(super) input: Value,
    /// Answers of each step, by its id. The last answer serves all further calls.
    pub(super) answers: BTreeMap<String, Vec<FakeAnswer>>,
    pub(super) expect: Expect,
}

/// Answer to one call of a step.
#[derive(Clone, Debug, Default)]
pub(super) struct FakeAnswer {
    pub(super) text: String,
    pub(super) output: Option<Value>,
    /// Failure reason; none if the call completes.
    pub(super) failed: Option<String>,
    /// Exit code of a program.
    pub(super) exit: u32,
    /// Changed lines in the worktree of a step that has one.
    pub(super) lines: u32,
    /// Simulated time from call to answer.
    pub(super) after_ms: u64,
    /// Parts of the text of a step with `stream`, in equal times before the answer.
    pub(super) writes: Vec<String>,
}

/// Expected end of the flow. Members that are not given are not compared.
#[derive(Clone, Debug, Default)]
pub(super) struct Expect {
    pub(super) state: Option<String>,
    pub(super) reason: Option<String>,
    /// Part of the text.
    pub(super) text: Option<String>,
    pub(super) output: Option<Value>,
    /// Ids of the steps in the order in which they begin.
    pub(super) steps: Option<Vec<String>>,
}

impl Fakes {
    /// Parses the file and checks its steps and input against the flow.
    ///
    /// # Errors
    ///
    /// All problems of the file, in its order.
    pub(super) fn parse(text: &str, flow: &Definition) -> Result<Self, Vec<Problem>> {
        let mut problems = Problems::new(text);
        let parsed = match DeTable::parse(text) {
            Ok(parsed) => parsed,
            Err(why) => {
                problems.error(&why.span().unwrap_or(0..0), plain(why.message()));
                return Err(problems.into_sorted());
            }
        };
        let at = parsed.span();
        let table = Table { table: parsed.get_ref(), at, name: "a file of answers".to_owned() };
        table.check_keys(&["input", "answers", "expect"], &mut problems);
        let input_value = table.get("input");
        let input =
            input_value.map_or_else(|| Value::Object(Default::default()), |it| json(it.get_ref()));
        let input = flow.with_defaults(input).unwrap_or_else(|why| {
            problems.error(&input_value.map_or(0..0, Spanned::span), format!("[input]: {why}"));
            Value::Null
        });
        let answers = answers(&table, flow, &mut problems);
        let expect = expect(&table, flow, &mut problems);
        if problems.has_errors() {
            return Err(problems.into_sorted());
        }
        Ok(Self { input, answers, expect })
    }
}

fn answers(
    table: &Table<'_, '_>,
    flow: &Definition,
    problems: &mut Problems<'_>,
) -> BTreeMap<String, Vec<FakeAnswer>> {
    let mut found = BTreeMap::new();
    let section = table.get("answers").and_then(|it| Table::from_value(it, "[answers]", problems));
    for (key, value) in section.iter().flat_map(|section| section.table) {
        let id = key.to_string_key();
        let Some(step) = flow.steps.iter().find(|step| step.id == id) else {
            let near = did_you_mean(&id, flow.step_ids());
            problems.error(&key.span(), format!("there is no step `{id}`{near}"));
            continue;
        };
        if matches!(step.work, Work::Wait(_)) {
            let rule = format!("the step `{id}` waits, and takes no answer; remove it");
            problems.error(&key.span(), rule);
        }
        let all: Vec<_> = match value.get_ref().as_array() {
            Some(all) => all.iter().collect(),
            None => vec![value],
        };
        if all.is_empty() {
            problems.error(&value.span(), format!("the step `{id}` has at least one answer"));
        }
        let streams = step.stream;
        found.insert(id, all.into_iter().map(|one| answer(one, streams, problems)).collect());
    }
    found
}

/// One answer: a text, or a table.
fn answer(value: &Spanned<DeValue<'_>>, streams: bool, problems: &mut Problems<'_>) -> FakeAnswer {
    if let Some(text) = value.get_ref().as_str() {
        return FakeAnswer { text: text.to_owned(), lines: 1, ..FakeAnswer::default() };
    }
    let Some(table) = Table::from_value(value, "an answer", problems) else {
        return FakeAnswer::default();
    };
    table.check_keys(&ANSWER, problems);
    let output = table.get("output").map(|it| json(it.get_ref()));
    let text = table.text("text", problems).map(|(text, _)| text);
    if let Some(value) = table.get("writes").filter(|_| !streams) {
        problems.error(&value.span(), "`writes` is a key of an answer of a step with `stream`");
    }
    let writes = table.texts("writes", problems);
    let writes: Vec<_> = writes.into_iter().map(|(text, _)| text).collect();
    let text = text.or_else(|| output.as_ref().map(Value::to_string));
    FakeAnswer {
        text: text.unwrap_or_else(|| writes.concat()),
        writes,
        output,
        failed: table.text("failed", problems).map(|(reason, _)| reason),
        exit: table.number("exit", (0, 255), problems).unwrap_or(0),
        lines: table.number("lines", (0, 1_000_000), problems).unwrap_or(1),
        after_ms: table.duration("after", problems).unwrap_or(0),
    }
}

fn expect(table: &Table<'_, '_>, flow: &Definition, problems: &mut Problems<'_>) -> Expect {
    let Some(table) =
        table.get("expect").and_then(|it| Table::from_value(it, "[expect]", problems))
    else {
        return Expect::default();
    };
    table.check_keys(&EXPECT, problems);
    let steps = table.texts("steps", problems);
    for (id, at) in &steps {
        if !flow.step_ids().any(|it| it == id) {
            let near = did_you_mean(id, flow.step_ids());
            problems.error(at, format!("there is no step `{id}`{near}"));
        }
    }
    Expect {
        state: table.word("state", &["completed", "failed"], problems),
        reason: table.text("reason", problems).map(|(reason, _)| reason),
        text: table.text("text", problems).map(|(text, _)| text),
        output: table.get("output").map(|it| json(it.get_ref())),
        steps: table.get("steps").map(|_| steps.into_iter().map(|(id, _)| id).collect()),
    }
}
