//! Steps with `run`: one program, whose arguments stand in the file. Values reach the program as
//! variables of its environment.

use serde_json::{Map, Value, json};

use super::{
    definition::{
        Definition, Go, INDEX, ITEM, Next, OnRestart, StepProgram, input_variable, text_variable,
    },
    parse::{SourceRange, Targets, goto_of},
    position::{Problems, Table},
    row::{Row, cut},
    template::Condition,
};

/// Agent that runs the programs of flows. The hub lets no other agent and no client call it.
pub const SCRIPT: &str = "script";

/// Most words of a command, and the most bytes of one.
const MAX_WORDS: usize = 64;
const MAX_WORD: usize = 4 << 10;

/// Most bytes of one variable. Linux takes 128 KiB for one.
const MAX_VARIABLE: usize = 32 << 10;

/// Most bytes of all variables together.
const MAX_VARIABLES: usize = 256 << 10;

/// Refuses the agent that runs programs: its commands would not stand in a `run`.
pub(super) fn refuse_by_name(name: &str, at: &SourceRange, problems: &mut Problems<'_>) {
    if name == SCRIPT {
        problems.error(at, "the agent `script` works for `run` only: write `run = [\"PROGRAM\"]`");
    }
}

/// Program of a step.
pub(super) fn parse(table: &Table<'_, '_>, problems: &mut Problems<'_>) -> Option<StepProgram> {
    let value = table.get("run")?;
    let words = table.texts("run", problems);
    if words.is_empty() || words.len() > MAX_WORDS {
        let rule = format!("`run` is a program and its arguments, {MAX_WORDS} at most");
        problems.error(&value.span(), rule);
        return None;
    }
    for (index, (word, at)) in words.iter().enumerate() {
        if let Some(why) = word_rule(word, index == 0) {
            problems.error(at, format!("`run`: {why}"));
        }
    }
    let on_restart = table.word("on_restart", &["retry", "ask", "fail"], problems);
    Some(StepProgram {
        command: words.into_iter().map(|(word, _)| word).collect(),
        takes_any_exit: table.get("on_exit").is_some(),
        on_restart: match on_restart.as_deref() {
            Some("retry") => OnRestart::Retry,
            Some("fail") => OnRestart::Fail,
            Some(_) | None => OnRestart::Ask,
        },
    })
}

/// Rule that a word of a command breaks.
fn word_rule(word: &str, is_program: bool) -> Option<String> {
    if word.len() > MAX_WORD || word.contains('\0') {
        return Some(format!("a word has at most {MAX_WORD} bytes, and none of them is zero"));
    }
    if ["{{", "{%", "{#"].iter().any(|mark| word.contains(mark)) {
        let rule = "a program's arguments stand in the file, and are no texts with variables; the program reads values from its environment, such as `A2A_INPUT_TASK`";
        return Some(rule.to_owned());
    }
    if is_program && (word.is_empty() || word.contains('/') || word.starts_with('-')) {
        let rule = "the first word is the name of a program on the hub's PATH; for a file of the working directory, write [\"sh\", \"./FILE\"]";
        return Some(rule.to_owned());
    }
    // The hub's patterns of arguments give these a meaning of their own.
    if word.ends_with("{}") || word == "{}*" || (word.starts_with('[') && word.ends_with(']')) {
        let rule = format!(
            "`{word}`: a word does not end in {{}}, and is not in brackets; put the command into a file, and write [\"sh\", \"./FILE\"]"
        );
        return Some(rule);
    }
    None
}

/// Continuation of `on_exit` after an exit code other than 0.
pub(super) fn on_exit(
    table: &Table<'_, '_>,
    targets: &Targets<'_>,
    problems: &mut Problems<'_>,
) -> Option<Next> {
    let table = Table::from_value(table.get("on_exit")?, "on_exit", problems)?;
    table.check_keys(&["nonzero"], problems);
    let Some(value) = table.get("nonzero") else {
        problems.error(&table.at, "`on_exit` has the key `nonzero`");
        return None;
    };
    if value.get_ref().as_str() == Some("continue") {
        return None;
    }
    if !value.get_ref().is_table() {
        let rule = "`nonzero` is \"continue\", or a table such as { goto = \"STEP\", max = 3 }";
        problems.error(&value.span(), rule);
        return None;
    }
    let inner = Table::from_value(value, "nonzero", problems)?;
    inner.check_keys(&["goto", "max", "at_max"], problems);
    let Some((name, at)) = inner.text("goto", problems) else {
        problems.error(&inner.at, "`nonzero` names the step to go back to: add `goto`");
        return None;
    };
    let go: Go = goto_of(&inner, &name, &at, targets, problems)?;
    let when = Condition::parse("exit != 0").ok();
    Some(Next { when, go })
}

/// Refuses names that differ only in case if a program gets them: their variables would be one.
pub(super) fn check_variables(definition: &Definition, problems: &mut Problems<'_>) {
    if !definition.runs_programs() {
        return;
    }
    let inputs = definition.input.iter().map(|(name, _)| (name.as_str(), input_variable(name)));
    let steps = definition.step_ids().map(|id| (id, text_variable(id)));
    let mut known: Vec<(&str, String)> = Vec::new();
    for (name, variable) in inputs.chain(steps) {
        if let Some((other, _)) = known.iter().find(|(_, it)| *it == variable) {
            let rule = format!(
                "`{other}` and `{name}` differ in case only, and are one variable of a program; rename one"
            );
            problems.error(&(0..0), rule);
        }
        known.push((name, variable));
    }
}

/// Data of the message to [`SCRIPT`].
///
/// # Errors
///
/// If the variables are too long: a text for the client.
pub(super) fn request(
    script: &StepProgram,
    definition: &Definition,
    step: usize,
    rows: &[Row],
    input: &Value,
    item: Option<&(usize, Value)>,
) -> Result<Value, String> {
    let mut env = Map::new();
    for (name, value) in input.as_object().into_iter().flatten() {
        env.insert(input_variable(name), text_of(value).into());
    }
    for (other, row) in rows.iter().enumerate() {
        // A step has a record of its own when its program undoes it.
        let is_visible = other == step || definition.is_before(other, step);
        let record = row.record.as_ref().filter(|_| is_visible);
        if let Some(text) = record.and_then(|record| record["text"].as_str()) {
            env.insert(text_variable(&definition.steps[other].id), text.into());
        }
    }
    if let Some((index, item)) = item {
        env.insert(ITEM.to_owned(), text_of(item).into());
        env.insert(INDEX.to_owned(), index.to_string().into());
    }
    let mut size = 0;
    for (name, value) in &mut env {
        // A variable ends at a zero byte.
        let mut text = value.as_str().unwrap_or_default().replace('\0', "");
        cut(&mut text, MAX_VARIABLE);
        size += name.len() + text.len() + 2;
        *value = text.into();
    }
    if size > MAX_VARIABLES {
        let max_kib = MAX_VARIABLES >> 10;
        return Err(format!("the variables of the program have more than {max_kib} KiB"));
    }
    Ok(json!({ "run": script.command, "env": env }))
}

/// Text of a value: a text as it is, and JSON otherwise.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Exit code in the answer of [`SCRIPT`].
pub(super) fn exit_of(data: Option<&Value>) -> Option<i64> {
    data?.get("exit")?.as_i64()
}
