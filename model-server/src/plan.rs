//! From the markers in a prompt to what is answered.

use super::{
    dialogue::Dialogue,
    marker::{Ending, Marker, Refusal, markers, without_markers},
    parsed_request::{ParsedRequest, Tool},
};
use serde_json::{Map, Value, json};
use std::{fmt, time::Duration};

/// What to answer to one request.
#[derive(Debug, PartialEq)]
pub(super) struct Plan {
    /// An HTTP error instead of an answer.
    pub(super) refusal: Option<Refusal>,
    /// No answer at all.
    pub(super) hangs: bool,
    /// Reasoning before the answer.
    pub(super) thinks: bool,
    /// A pause after each word.
    pub(super) pace: Option<Duration>,
    /// How the answer ends.
    pub(super) ending: Ending,
    pub(super) reply: Reply,
}

/// What the model says.
#[derive(Debug, PartialEq)]
pub(super) enum Reply {
    Text(String),
    Call { tool: String, arguments: Value },
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Call { arguments, .. } => arguments.fmt(f),
        }
    }
}

impl Plan {
    /// A whole answer, at once.
    fn reply(reply: Reply) -> Self {
        Self {
            refusal: None,
            hangs: false,
            thinks: false,
            pace: None,
            ending: Ending::Complete,
            reply,
        }
    }

    /// The next step of `dialogue`: its command, then its answer. `None` for other prompts, and for
    /// requests without tools, such as one for the title of a session.
    pub(super) fn scripted(dialogue: &Dialogue, parsed: &ParsedRequest) -> Option<Self> {
        if !parsed.prompt.contains(&dialogue.prompt) || parsed.tools.is_empty() {
            return None;
        }
        let mut plan = Self::reply(match parsed.results.is_empty() {
            true => run(&dialogue.command, &parsed.tools),
            false => Reply::Text(dialogue.answer.clone()),
        });
        if let Reply::Call { arguments, .. } = &mut plan.reply
            && arguments.get("description").is_some()
        {
            arguments["description"] = dialogue.purpose.as_str().into();
        }
        plan.pace = Some(dialogue.pace);
        Some(plan)
    }

    /// The plan for a request.
    pub(super) fn for_request(parsed: &ParsedRequest) -> Self {
        Self::marked(&parsed.prompt, parsed, |words| text(parsed, words))
    }

    /// The plan for a request with a canned answer: its tools, then its text.
    pub(super) fn canned(answer: &str, parsed: &ParsedRequest) -> Self {
        let plain = without_markers(answer).trim().to_owned();
        Self::marked(answer, parsed, |words| words.map_or(plain, numbered))
    }

    /// The plan of the markers in `text`. Without a tool to ask for, `answer` gives the answer,
    /// from the count of words that a marker asks for.
    fn marked(
        text: &str,
        parsed: &ParsedRequest,
        answer: impl FnOnce(Option<usize>) -> String,
    ) -> Self {
        let mut plan = Self::reply(Reply::Text(String::new()));
        let mut words = None;
        let mut calls = Vec::new();
        let mut used_up = None;
        for marker in markers(text) {
            match marker {
                Marker::Words(count) => words = Some(count),
                Marker::Slow(pace) => plan.pace = Some(pace),
                Marker::Think => plan.thinks = true,
                Marker::Error(refusal) => plan.refusal = Some(refusal),
                Marker::UsedUp(seconds) => used_up = Some(seconds),
                Marker::Ending(ending) => plan.ending = ending,
                Marker::Hang => plan.hangs = true,
                Marker::Tool(spec) => calls.push(spec),
            }
        }
        plan.reply = if let Some(dictated) = &parsed.dictated {
            Reply::Text(dictated.clone())
        } else if let Some(spec) = calls.get(parsed.results.len()) {
            call(spec, &parsed.tools)
        } else {
            let refusal = |seconds| Refusal { status: 429, times: None, resets_in: Some(seconds) };
            plan.refusal = used_up.map(refusal).or(plan.refusal);
            Reply::Text(answer(words))
        };
        plan
    }
}

fn text(parsed: &ParsedRequest, words: Option<usize>) -> String {
    let mut text = match words {
        Some(count) => numbered(count),
        None => format!("ECHO: {}", parsed.prompt.trim()),
    };
    if !parsed.results.is_empty() {
        text.push_str(&format!(" | TOOL_RESULTS: {}", Value::from(parsed.results.clone())));
    }
    text
}

/// So many words.
fn numbered(count: usize) -> String {
    (1..=count).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ")
}

/// What the four CLIs call their tools and the arguments that name a file, best first.
const SHELLS: &[&str] =
    &["Bash", "run_shell_command", "exec_command", "shell_command", "shell", "bash"];
const READERS: &[&str] = &["Read", "read_file", "read"];
const WRITERS: &[&str] = &["Write", "write_file", "write"];
const PATHS: &[&str] = &["file_path", "path", "absolute_path"];

fn call(spec: &str, tools: &[Tool]) -> Reply {
    let (kind, rest) = spec.split_once(':').unwrap_or((spec, ""));
    match kind {
        "shell" => run(rest, tools),
        "read" => match offered(READERS, tools) {
            Some(tool) => asks(tool, json!({path_of(tool): rest})),
            None => run(&format!("cat {rest}"), tools),
        },
        "write" => {
            let (path, content) = rest.split_once(':').unwrap_or((rest, ""));
            match offered(WRITERS, tools) {
                Some(tool) => asks(tool, json!({path_of(tool): path, "content": content})),
                None => run(&format!("printf %s '{content}' > '{path}'"), tools),
            }
        }
        "raw" => {
            let (tool, arguments) = rest.split_once(':').unwrap_or((rest, ""));
            let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| Map::new().into());
            Reply::Call { tool: tool.to_owned(), arguments }
        }
        unknown => Reply::Call { tool: unknown.to_owned(), arguments: json!({}) },
    }
}

fn run(command: &str, tools: &[Tool]) -> Reply {
    let Some(tool) = offered(SHELLS, tools) else {
        return Reply::Call { tool: "shell".into(), arguments: json!({"command": command}) };
    };
    let mut arguments = if tool.takes("cmd") {
        json!({"cmd": command})
    } else if tool.name == "shell" && tool.takes("command") {
        json!({"command": ["bash", "-lc", command]})
    } else {
        json!({"command": command})
    };
    if tool.takes("description") {
        arguments["description"] = "runs a command for a test".into();
    }
    asks(tool, arguments)
}

fn asks(tool: &Tool, arguments: Value) -> Reply {
    Reply::Call { tool: tool.name.clone(), arguments }
}

fn offered<'a>(names: &[&str], tools: &'a [Tool]) -> Option<&'a Tool> {
    names.iter().find_map(|name| tools.iter().find(|tool| tool.name == *name))
}

fn path_of(tool: &Tool) -> &'static str {
    PATHS.iter().find(|path| tool.takes(path)).copied().unwrap_or("path")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marker::is_marked;

    fn plan(prompt: &str) -> Plan {
        Plan::for_request(&ParsedRequest { prompt: prompt.into(), ..ParsedRequest::default() })
    }

    fn says(text: &str) -> Reply {
        Reply::Text(text.into())
    }

    #[test]
    fn without_markers_it_echoes() {
        assert_eq!(plan(" hi [[there]] [[slow:x]]\n").reply, says("ECHO: hi [[there]] [[slow:x]]"));
        assert!(!is_marked("[[there]] [[slow:x]] [[words"));
    }

    #[test]
    fn markers_add_up() {
        let plan = plan("[[words:3]] [[slow:20]] [[think]] [[drop]] [[error:429:2]]");
        assert_eq!(plan.reply, says("w1 w2 w3"));
        assert_eq!(plan.pace, Some(Duration::from_millis(20)));
        assert_eq!((plan.thinks, plan.hangs, plan.ending), (true, false, Ending::Cut));
        assert_eq!(plan.refusal, Some(Refusal { status: 429, times: Some(2), resets_in: None }));
    }

    #[test]
    fn tools_are_asked_for_one_a_turn_by_the_names_on_offer() {
        let schema = json!({"properties": {"file_path": {}, "command": {}}});
        let mut heard = ParsedRequest {
            prompt: "[[tool:write:/a:b:c]] [[tool:shell:ls]] [[tool:raw:Other:{\"n\":1}]]".into(),
            tools: vec![Tool::new(&"Bash".into(), &schema), Tool::new(&"Write".into(), &schema)],
            ..ParsedRequest::default()
        };
        let expected = [
            ("Write", json!({"file_path": "/a", "content": "b:c"})),
            ("Bash", json!({"command": "ls"})),
            ("Other", json!({"n": 1})),
        ];
        for (tool, arguments) in expected {
            assert_eq!(
                Plan::for_request(&heard).reply,
                Reply::Call { tool: tool.into(), arguments }
            );
            heard.tool("done", false);
        }
        let Reply::Text(text) = Plan::for_request(&heard).reply else {
            panic!("every tool was used")
        };
        assert!(text.ends_with(r#"{"is_error":false,"text":"done"}]"#), "{text}");
    }

    #[test]
    fn dialogue_runs_command_then_answers() {
        let dialogue = Dialogue {
            prompt: "why".into(),
            command: "make test".into(),
            purpose: "Run the tests".into(),
            answer: "because".into(),
            pace: Duration::ZERO,
        };
        let schema = json!({"properties": {"command": {}, "description": {}}});
        let tools = vec![Tool::new(&"Bash".into(), &schema)];
        let mut heard = ParsedRequest { prompt: "why?".into(), tools, ..ParsedRequest::default() };
        let arguments = json!({"command": "make test", "description": "Run the tests"});
        let next = |heard: &ParsedRequest| Plan::scripted(&dialogue, heard).map(|plan| plan.reply);
        assert_eq!(next(&heard), Some(Reply::Call { tool: "Bash".into(), arguments }));
        heard.tool("failed", false);
        assert_eq!(next(&heard), Some(says("because")));
        assert_eq!(next(&ParsedRequest { prompt: "how?".into(), ..heard }), None);
    }

    #[test]
    fn canned_answer_uses_tools_then_says_text() {
        let mut heard = ParsedRequest { prompt: "[[words:2]]".into(), ..ParsedRequest::default() };
        let answer = "[[tool:raw:Other:{\"n\":1}]] {\"list\": [[1], [2]]} [[slow:20]]\n";
        let call = Reply::Call { tool: "Other".into(), arguments: json!({"n": 1}) };
        assert_eq!(Plan::canned(answer, &heard).reply, call);
        heard.tool("done", false);
        let plan = Plan::canned(answer, &heard);
        assert_eq!(plan.reply, says("{\"list\": [[1], [2]]}"), "neither markers nor results");
        assert_eq!(plan.pace, Some(Duration::from_millis(20)));
    }

    #[test]
    fn without_a_tool_for_files_the_shell_does_it() {
        let reply = plan("[[tool:read:/etc/hosts]]").reply;
        let arguments = json!({"command": "cat /etc/hosts"});
        assert_eq!(reply, Reply::Call { tool: "shell".into(), arguments });
    }
}
