//! Questions of the CLI: permission to use a tool, and the model's open questions.

use a2a_hub_sdk::Message;
use a2a_hub_sdk::cli::{Decision, Kind, Question, answer_text, is_inside};
use serde_json::{Map, Value, json};

use crate::change;
use crate::shell::Shell;

/// Tool by which the model asks the user something. Its permission carries the answer.
const ASKING_TOOL: &str = "AskUserQuestion";

/// Member of the control request with the CLI's suggested rules; the question's id carries them
/// along.
const SUGGESTIONS: &str = "permission_suggestions";

/// Reads the question of a control request. For a kind that this version does not know, returns the
/// line that refuses it, since the CLI would wait for ever.
pub fn question(
    request_id: &Value,
    mut request: Value,
    directory: Option<String>,
    additional: &[String],
    shell: &Shell,
) -> Result<Question, String> {
    let (Some("can_use_tool"), Some(tool)) =
        (request["subtype"].as_str(), request["tool_name"].as_str())
    else {
        let error = format!(
            "{} is not supported here",
            request["subtype"].as_str().unwrap_or("this request")
        );
        return Err(refusal(request_id, &error));
    };
    let (tool, mut kind) = (tool.to_owned(), kind(tool));
    let shell_directory = directory.as_ref().filter(|_| !shell.may_have_moved());
    let facts = json!({ "vendor": "claude", "request": request, "directory": shell_directory });
    let mut take = |member| request.get_mut(member).map(Value::take).unwrap_or_default();
    let (input, suggestions) = (take("input"), rules(take(SUGGESTIONS)));
    if kind == Kind::Edit {
        let file = input["file_path"].as_str().or_else(|| input["notebook_path"].as_str());
        let mut directories = directory.iter().chain(additional);
        let is_ours = file.is_some_and(|file| directories.any(|dir| is_inside(file, dir)));
        // Permission to edit ends at the task's directories. A symlink may lead out of them; the
        // CLI resolves it.
        kind = if is_ours && request["blocked_path"].is_null() { Kind::Edit } else { Kind::Run };
    }
    let description = match kind {
        Kind::Open => Some(questions(&input)),
        Kind::Read | Kind::Edit | Kind::Run => {
            let blocked = !request["blocked_path"].is_null();
            let why = blocked.then(|| request["decision_reason"].as_str()).flatten();
            // A command says itself what it does; the model's words for it need not be true.
            let summary = request["description"].as_str().filter(|_| input["command"].is_null());
            let texts: Vec<_> = summary.into_iter().chain(why).collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
    };
    let changes = change::planned(&tool, &input).into_iter().collect();
    let for_session = !suggestions.is_empty();
    let tool_call = request["tool_use_id"].as_str().map(|id| json!({ "id": id }));
    let id = json!({ "request": request_id, SUGGESTIONS: suggestions });
    Ok(Question {
        id,
        kind,
        tool,
        input,
        description,
        changes,
        directory,
        for_session,
        vendor_options: Vec::new(),
        tool_call,
        facts: (kind != Kind::Open).then_some(facts),
    })
}

/// Line that refuses a control request.
pub fn refusal(request_id: &Value, why: &str) -> String {
    let response = json!({ "subtype": "error", "request_id": request_id, "error": why });
    json!({ "type": "control_response", "response": response }).to_string()
}

/// Line that sends the decision to the CLI.
pub fn answer(question: &Question, decision: &Decision) -> String {
    let allow = |input: &Value| json!({ "behavior": "allow", "updatedInput": input });
    let response = match decision {
        Decision::Allow => allow(&question.input),
        Decision::AllowForSession => json!({
            "behavior": "allow",
            "updatedInput": question.input,
            "updatedPermissions": question.id[SUGGESTIONS],
        }),
        Decision::Answer(answer) => allow(&answered(&question.input, answer)),
        Decision::Deny(why) => json!({ "behavior": "deny", "message": why, "interrupt": false }),
        // The program offers no choices of its own.
        Decision::Chosen(id) => json!({ "behavior": "deny", "message": id, "interrupt": false }),
    };
    let id = &question.id["request"];
    let response = json!({ "subtype": "success", "request_id": id, "response": response });
    json!({ "type": "control_response", "response": response }).to_string()
}

fn kind(tool: &str) -> Kind {
    match tool {
        ASKING_TOOL => Kind::Open,
        "Read" | "Glob" | "Grep" | "LS" | "NotebookRead" => Kind::Read,
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => Kind::Edit,
        _ => Kind::Run,
    }
}

/// Rules among the CLI's suggestions, for its session only. Other modes would allow more than was
/// asked, and the workspace's settings would outlive the run.
fn rules(mut suggestions: Value) -> Vec<Value> {
    let each = suggestions.as_array_mut().map(std::mem::take).unwrap_or_default();
    let mut rules: Vec<_> = each.into_iter().filter(|of| of["type"] == "addRules").collect();
    for rule in rules.iter_mut().filter_map(Value::as_object_mut) {
        rule.insert("destination".to_owned(), "session".into());
    }
    rules
}

fn questions(input: &Value) -> String {
    let lines = each_question(input).map(|(question, entry)| {
        let options = entry["options"].as_array().into_iter().flatten();
        let labels: Vec<&str> = options.filter_map(|option| option["label"].as_str()).collect();
        format!("{question} ({})", labels.join(", "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Input with its answers: from data `{"answers": {question: answer}}`, or one text for all.
fn answered(input: &Value, answer: &Message) -> Value {
    let answers = answer.data().map(|data| data["answers"].clone());
    let answers = answers.filter(Value::is_object).unwrap_or_else(|| {
        let text = answer_text(answer);
        each_question(input)
            .map(|(question, _)| (question.to_owned(), text.as_str().into()))
            .collect::<Map<_, _>>()
            .into()
    });
    let mut input = input.as_object().cloned().unwrap_or_default();
    input.insert("answers".to_owned(), answers);
    input.into()
}

fn each_question(input: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let questions = input["questions"].as_array().into_iter().flatten();
    questions.filter_map(|entry| Some((entry["question"].as_str()?, entry)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_through_outside_symlink_needs_approval() {
        let write = |file: &str, more: Value| {
            let mut request = json!({
                "subtype": "can_use_tool", "tool_name": "Write", "input": { "file_path": file },
                "description": "a",
            });
            for (member, value) in more.as_object().into_iter().flatten() {
                request[member] = value.clone();
            }
            let additional = ["/more".to_owned()];
            let shell = Shell::default();
            question(&"1".into(), request, Some("/w".into()), &additional, &shell)
                .expect("it is a question")
        };
        let why = "/w/link/a resolves through a symlink to /elsewhere/a";
        let blocked = json!({ "blocked_path": "/elsewhere/a", "decision_reason": why });
        for (asked, kind, description) in [
            (write("/w/a", json!({})), Kind::Edit, "a"),
            (write("/more/a", json!({})), Kind::Edit, "a"),
            (write("/more/../a", json!({})), Kind::Run, "a"),
            (write("/elsewhere/a", json!({})), Kind::Run, "a"),
            (write("/w/link/a", blocked), Kind::Run, &*format!("a\n{why}")),
        ] {
            assert_eq!((asked.kind, asked.description.as_deref()), (kind, Some(description)));
        }
    }
}
