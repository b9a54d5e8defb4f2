//! Tools for MCP clients: one for each agent, named by its id, four to manage tasks, and those for
//! topics, blackboards and questions. Agent ids contain no underscore, so the names cannot collide.

use super::structured::{self, object};
use crate::mcp::model::{question_tools, skill_tools};
use a2a_hub_core::{access_control::Principal, text::plain_text};
use a2a_hub_protocol::boards::{BoardRequest, BoardTool, board_call, board_tools};
use a2a_hub_protocol::topics::{TopicTool, topic_call, topic_tools};
use a2a_hub_protocol::{
    id::{AgentId, TaskId},
    operation::{AgentInfo, QuestionRequest, TopicRequest},
};
use rmcp::model::{Icon, JsonObject, Tool, ToolAnnotations};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) const LIST_AGENTS: &str = "list_agents";
pub(super) const CHECK_TASK: &str = "check_task";
const CANCEL_TASK: &str = "cancel_task";
pub(super) const ANSWER_TASK: &str = "answer_task";

/// Default wait of a call in seconds, because several clients time out after a minute.
const WAIT: u64 = 50;

/// Default wait in seconds before a call becomes a task: quick answers need no poll.
const WAIT_AS_TASK: u64 = 5;

/// Maximum wait of a call in seconds.
const MAX_WAIT: u64 = 3600;

/// Maximum number of characters of an agent's description, and of each skill's, in the description
/// of its tool.
const MAX_DESCRIPTION: usize = 400;
const MAX_SKILL: usize = 160;

/// Maximum number of skills in the description of a tool.
const MAX_SKILLS: usize = 8;

/// Maximum length in bytes of an icon's URI: a client receives all icons with each list of tools.
const MAX_ICON: usize = 8_192;

/// A parsed tool call.
#[derive(Debug, PartialEq)]
pub(super) enum Called {
    /// Sends a message to an agent.
    Agent(AgentId, Ask),
    /// Hands these arguments of its tool to a skill of an agent.
    Skill(AgentId, JsonObject),
    /// Lists the agents.
    ListAgents,
    /// Waits this long for a task and returns its state.
    Check(TaskId, Duration),
    /// Cancels a task.
    Cancel(TaskId),
    /// Answers a task's question.
    Answer(Answer),
    /// Publishes to topics, reads them or lists them.
    Topic(TopicRequest),
    /// Reads or changes blackboards.
    Board(BoardRequest),
    /// Lists, answers or postpones the questions of all tasks.
    Question(QuestionRequest),
}

/// Error of a tool call.
#[derive(Debug, PartialEq)]
pub(super) enum Miscalled {
    /// No tool can have this name.
    NoTool,
    /// The arguments are invalid.
    Arguments(String),
}

/// Arguments of an agent's tool.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    pub(super) message: String,
    pub(super) context_id: Option<String>,
    pub(super) working_directory: Option<String>,
    pub(super) model: Option<String>,
    /// Input of a skill in place of the message.
    #[serde(skip)]
    pub(super) input: Option<SkillInput>,
    #[serde(default, deserialize_with = "seconds")]
    wait_seconds: Option<u64>,
}

/// Checked input of a skill.
#[derive(Debug, PartialEq)]
pub(super) struct SkillInput {
    pub(super) skill: String,
    pub(super) data: Value,
    /// Text for an agent that does not take JSON.
    pub(super) text: Option<String>,
}

/// Arguments of `answer_task`.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    pub(super) task_id: String,
    pub(super) message: String,
    pub(super) question_id: Option<String>,
    #[serde(default, deserialize_with = "seconds")]
    wait_seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OneTask {
    task_id: String,
    #[serde(default, deserialize_with = "seconds")]
    wait_seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

impl Ask {
    /// The input of a skill, as its tool takes it.
    pub(super) fn of_skill(skill: String, data: Value, text: Option<String>) -> Self {
        let (context_id, working_directory, model, wait_seconds) = Default::default();
        let input = Some(SkillInput { skill, data, text });
        Self { message: String::new(), context_id, working_directory, model, input, wait_seconds }
    }

    /// Maximum wait for the end of the task.
    pub(super) fn wait(&self) -> Duration {
        wait(self.wait_seconds)
    }

    /// Wait after which the call becomes a task: a short one, unless the call names another.
    pub(super) fn wait_as_task(&self) -> Duration {
        wait(self.wait_seconds.or(Some(WAIT_AS_TASK)))
    }
}

impl Answer {
    /// Replaces task, question and answer.
    pub(super) fn instead(self, task: &str, message: String, question: Option<String>) -> Self {
        Self { task_id: task.to_owned(), message, question_id: question, ..self }
    }

    /// Maximum wait for the end of the task.
    pub(super) fn wait(&self) -> Duration {
        wait(self.wait_seconds)
    }
}

/// Reads a number of seconds; models write it as `5`, `5.0` or `"5"`.
fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(from)?;
    if value.is_null() {
        return Ok(None);
    }
    let digits = value.as_str().and_then(|digits| digits.trim().parse().ok());
    let number: Option<f64> = digits.or_else(|| value.as_f64());
    let number = number.filter(|number| (0.0..=1e9).contains(number));
    let wanted = "`wait_seconds` must be a number of seconds, such as 60";
    let number = number.ok_or_else(|| serde::de::Error::custom(wanted))?;
    Ok(Duration::try_from_secs_f64(number).ok().map(|wait| wait.as_secs()))
}

fn wait(seconds: Option<u64>) -> Duration {
    Duration::from_secs(seconds.unwrap_or(WAIT).min(MAX_WAIT))
}

/// Parses a tool call.
pub(super) fn read(name: &str, arguments: Option<JsonObject>) -> Result<Called, Miscalled> {
    let object = arguments.unwrap_or_default();
    let arguments = Value::Object(object.clone());
    match name {
        LIST_AGENTS => arguments_of::<Nothing>(name, arguments).map(|_| Called::ListAgents),
        CHECK_TASK => {
            let OneTask { task_id, wait_seconds } = arguments_of(name, arguments)?;
            Ok(Called::Check(TaskId::new(task_id), wait(wait_seconds)))
        }
        CANCEL_TASK => {
            let OneTask { task_id, .. } = arguments_of(name, arguments)?;
            Ok(Called::Cancel(TaskId::new(task_id)))
        }
        ANSWER_TASK => arguments_of(name, arguments).map(Called::Answer),
        _ => match (topic_call(name, &arguments), AgentId::parse(name)) {
            (Some(request), _) => request.map(Called::Topic).map_err(Miscalled::Arguments),
            (None, Err(_)) if let Some(request) = board_call(name, &arguments) => {
                request.map(Called::Board).map_err(Miscalled::Arguments)
            }
            (None, Err(_))
                if let Some(request) = question_tools::question_call(name, &arguments) =>
            {
                request.map(Called::Question).map_err(Miscalled::Arguments)
            }
            (None, Ok(agent)) => {
                let ask: Ask = arguments_of(name, arguments)?;
                Ok(Called::Agent(agent, ask))
            }
            (None, Err(_)) => match skill_tools::agent_in(name) {
                Some(agent) => Ok(Called::Skill(agent, object)),
                None => Err(Miscalled::NoTool),
            },
        },
    }
}

fn arguments_of<T: DeserializeOwned>(tool: &str, arguments: Value) -> Result<T, Miscalled> {
    serde_json::from_value(arguments)
        .map_err(|why| Miscalled::Arguments(format!("call `{tool}`: {why}")))
}

/// Unlisted agent that models call nevertheless: it checks and runs the flow files that they write.
const FLOW_RUNNER: &str = "flow";

/// True if the agent is a tool for clients.
pub(super) fn is_for_clients(agent: &AgentInfo) -> bool {
    !agent.unlisted || agent.id.as_str() == FLOW_RUNNER
}

/// All tools: one for each agent, those of skills, and those for tasks, topics, blackboards and
/// questions. The names of the hub's own tools are for no skill.
pub(super) fn all(agents: &[AgentInfo]) -> Vec<Tool> {
    let of_topics = topic_tools().into_iter().map(of_topics);
    let of_boards = board_tools().into_iter().map(of_boards);
    let hub_tools = of_tasks().into_iter().chain(of_topics).chain(of_boards);
    let hub_tools: Vec<_> = hub_tools.chain(question_tools::all()).collect();
    let skills = skill_tools::all(agents).into_iter().map(|skill| skill.tool());
    let skills = skills.map(|tool| tool.with_raw_output_schema(structured::result_schema()));
    let skills = skills.filter(|tool| hub_tools.iter().all(|hub_tool| hub_tool.name != tool.name));
    let skills: Vec<_> = skills.collect();
    agents.iter().map(of_agent).chain(skills).chain(hub_tools).collect()
}

fn of_topics(tool: TopicTool) -> Tool {
    let TopicTool { name, description, arguments, answer, is_read_only } = tool;
    let kind = ToolAnnotations::new().read_only(is_read_only).destructive(false).open_world(false);
    Tool::new(name, description, object(arguments))
        .with_raw_output_schema(object(answer))
        .with_annotations(kind)
}

fn of_boards(tool: BoardTool) -> Tool {
    let BoardTool { name, description, arguments, answer, is_read_only } = tool;
    of_topics(TopicTool { name, description, arguments, answer, is_read_only })
}

/// True if the caller may have use for the tool: only programs of agents change blackboards, and
/// none of them answers questions.
pub(super) fn is_for(caller: &Principal, tool: &Tool) -> bool {
    let is_change = board_tools().iter().any(|it| it.name == tool.name && !it.is_read_only);
    let has_use = !is_change || matches!(caller, Principal::AgentTask { .. });
    has_use && is_known_to(caller, &tool.name)
}

/// True unless a tool of this name does not exist for the caller: the tools for questions are for
/// those with the access of their operations.
pub(super) fn is_known_to(caller: &Principal, tool: &str) -> bool {
    !question_tools::is_one(tool) || question_tools::are_for(caller)
}

fn of_agent(agent: &AgentInfo) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "message": { "type": "string", "description": "What to say to the agent. It knows nothing of this conversation: say all that it needs" },
            "context_id": { "type": "string", "description": "Goes on with an earlier conversation with the agent: the context of its result" },
            "working_directory": { "type": "string", "description": "An absolute path: where the agent is to work" },
            "model": { "type": "string", "description": "The model that the agent is to use, if it has a choice" },
            "wait_seconds": wait_schema(),
        },
        "required": ["message"],
        "additionalProperties": false,
    });
    let tool = Tool::new(agent.id.to_string(), describe(agent), object(schema));
    // Agents act beyond this machine and may change files.
    let tool = tool
        .with_title(plain_text::line(&agent.name, 80))
        .with_raw_output_schema(structured::result_schema())
        .with_annotations(ToolAnnotations::new().read_only(false).open_world(true));
    match icon(&agent.card["iconUrl"]) {
        Some(icon) => tool.with_icons(vec![icon]),
        None => tool,
    }
}

/// Icon of an agent's card. Clients load it, so other schemes than those of MCP are left out:
/// `javascript:`, `file:`, and `http:`, which others can change on its way.
fn icon(url: &Value) -> Option<Icon> {
    let url = url.as_str().filter(|url| url.len() <= MAX_ICON)?;
    let parsed = url::Url::parse(url).ok()?;
    let is_image = parsed.scheme() == "data" && parsed.path().starts_with("image/");
    (is_image || parsed.scheme() == "https").then(|| Icon::new(url))
}

/// Description of an agent's tool: the hub's text first, then the agent's own words, marked as
/// such.
fn describe(agent: &AgentInfo) -> String {
    let id = &agent.id;
    let mut text = format!(
        "Has the agent `{id}` work on a message, and waits for the result. It can take minutes: what is not done in time goes on, \
         and `{CHECK_TASK}` tells what became of it."
    );
    if let Some(agent_text) = agent.card["description"].as_str() {
        text += &format!(
            " The agent says of itself: \"{}\"",
            plain_text::line(agent_text, MAX_DESCRIPTION)
        );
    }
    let skills = agent.card["skills"].as_array().into_iter().flatten().filter_map(|skill| {
        let (name, description) =
            (skill["name"].as_str()?, skill["description"].as_str().unwrap_or_default());
        Some(format!("\"{}\"", plain_text::line(&format!("{name}: {description}"), MAX_SKILL)))
    });
    let skills: Vec<_> = skills.take(MAX_SKILLS).collect();
    if !skills.is_empty() {
        text += &format!(" Its skills, in its own words: {}", skills.join(", "));
    }
    text
}

fn of_tasks() -> [Tool; 4] {
    let task =
        json!({ "type": "string", "description": "The task, as the result of a call names it" });
    let takes = |properties: Value, required: &[&str]| {
        object(
            json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false }),
        )
    };
    let looks = || ToolAnnotations::new().read_only(true).idempotent(true).open_world(false);
    let acts = || ToolAnnotations::new().read_only(false).open_world(true);
    [
        Tool::new(
            LIST_AGENTS,
            "Lists the agents of this hub: what each is good for, in its own words, and how it is.",
            takes(json!({}), &[]),
        )
        .with_raw_output_schema(structured::list_schema())
        .with_annotations(looks()),
        Tool::new(
            CHECK_TASK,
            "Tells what became of a task that an agent works on: its result, what it asks, or that it is still at work.",
            takes(json!({ "task_id": task, "wait_seconds": wait_schema() }), &["task_id"]),
        )
        .with_raw_output_schema(structured::result_schema())
        .with_annotations(looks()),
        Tool::new(
            CANCEL_TASK,
            "Stops a task and the programs that it runs.",
            takes(json!({ "task_id": task }), &["task_id"]),
        )
        .with_raw_output_schema(structured::result_schema())
        .with_annotations(acts().destructive(true).idempotent(true)),
        Tool::new(
            ANSWER_TASK,
            "Answers what a task asks, and waits for its result. A permission or a login is for the user to give: ask them first.",
            takes(
                json!({
                    "task_id": task,
                    "message": { "type": "string", "description": "The answer; `allow` or `deny` where it asks for permission" },
                    "question_id": { "type": "string", "description": "The question that is answered, and no other that it may ask by now" },
                    "wait_seconds": wait_schema(),
                }),
                &["task_id", "message"],
            ),
        )
        .with_raw_output_schema(structured::result_schema())
        .with_annotations(acts()),
    ]
}

fn wait_schema() -> Value {
    let description = format!(
        "How long to wait for the end before the task goes on without the call, in seconds; {WAIT} if left out"
    );
    json!({ "type": "integer", "minimum": 0, "maximum": MAX_WAIT, "description": description })
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::operation::AgentBreaker;

    fn agent(id: &str, card: Value) -> AgentInfo {
        AgentInfo {
            id: AgentId::parse(id).unwrap(),
            name: card["name"].as_str().unwrap_or_default().to_owned(),
            card,
            health: None,
            breaker: AgentBreaker::closed(),
            registered_at: String::new(),
            source: "built-in".to_owned(),
            signed_by: None,
            not_granted: Vec::new(),
            held_back: None,
            tier: None,
            permissions: None,
            models: None,
            efforts: None,
            kept: 0,
            unlisted: false,
        }
    }

    fn arguments(value: Value) -> Option<JsonObject> {
        serde_json::from_value(value).ok()
    }

    #[test]
    fn agent_tool_quotes_sanitized_description() {
        let long = format!("does\n\u{1b}[2Jthings\u{202e} {}", "x".repeat(2_000));
        let card = json!({ "name": "A", "description": long, "skills": [{ "id": "s", "name": "S", "description": "a\nb" }] });
        let tools = all(&[agent("git-historian", card)]);
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        let tasks = ["git-historian", LIST_AGENTS, CHECK_TASK, CANCEL_TASK, ANSWER_TASK];
        assert_eq!(names[..5], tasks);
        assert_eq!(
            names[5..9],
            ["publish_to_topic", "read_topics", "list_topics", "read_blackboard"]
        );
        let program =
            Principal::AgentTask { agent: AgentId::parse("a").unwrap(), task: TaskId::new("t") };
        let of = |caller: &Principal| tools.iter().filter(|tool| is_for(caller, tool)).count();
        assert_eq!((of(&Principal::Operator), of(&program)), (12, 13));
        let told = tools[0].description.as_deref().unwrap();
        assert!(told.contains("The agent says of itself: \"does [2Jthings xxx"), "{told}");
        assert!(told.contains("Its skills, in its own words: \"S: a b\""), "{told}");
        assert!(!told.chars().any(char::is_control) && told.chars().count() < 900, "{told}");
        for tool in &tools {
            assert_eq!(tool.input_schema["type"], "object", "{}", tool.name);
            assert_eq!(tool.input_schema["additionalProperties"], false, "{}", tool.name);
            let output = tool.output_schema.as_deref().unwrap();
            assert_eq!(output["type"], "object", "{}", tool.name);
        }
    }

    #[test]
    fn agent_of_flows_only_is_no_tool() {
        let unlisted = |id| AgentInfo { unlisted: true, ..agent(id, json!({})) };
        let agents = [unlisted("best-of-1"), agent("script", json!({})), unlisted("flow")];
        assert_eq!(agents.each_ref().map(is_for_clients), [false, true, true]);
    }

    #[test]
    fn only_safe_icon_is_passed_on() {
        let long = format!("https://example.com/{}", "x".repeat(MAX_ICON));
        for (url, passes) in [
            (json!("https://example.com/icon.png"), true),
            (json!("data:image/svg+xml;base64,PHN2Zy8+"), true),
            (json!("data:text/html,<script>"), false),
            (json!("http://example.com/icon.png"), false),
            (json!("javascript:alert(1)"), false),
            (json!("file:///etc/passwd"), false),
            (json!("/icon.png"), false),
            (json!(long), false),
            (json!(7), false),
            (Value::Null, false),
        ] {
            let card = json!({ "name": "A", "description": "", "iconUrl": url });
            let icons = all(&[agent("a", card)])[0].icons.clone();
            assert_eq!(icons.map(|icons| json!(icons[0].src)), passes.then_some(url));
        }
    }

    #[test]
    fn tool_call_arguments_are_parsed() {
        let said = json!({ "message": "hi", "context_id": "c", "working_directory": "/w", "model": "m", "wait_seconds": 9_999 });
        let Ok(Called::Agent(id, ask)) = read("echo", arguments(said)) else { panic!() };
        assert_eq!(
            (id.as_str(), ask.message.as_str(), ask.wait()),
            ("echo", "hi", Duration::from_secs(MAX_WAIT))
        );
        let facts = [ask.context_id, ask.working_directory, ask.model];
        assert_eq!(facts, ["c", "/w", "m"].map(|it| Some(it.to_owned())));
        let checked = read(CHECK_TASK, arguments(json!({ "task_id": "t" })));
        assert_eq!(checked, Ok(Called::Check(TaskId::new("t"), Duration::from_secs(WAIT))));
        let cancelled = read(CANCEL_TASK, arguments(json!({ "task_id": "t" })));
        assert_eq!(cancelled, Ok(Called::Cancel(TaskId::new("t"))));
        assert_eq!(read(LIST_AGENTS, None), Ok(Called::ListAgents));
        let answered = read(ANSWER_TASK, arguments(json!({ "task_id": "t", "message": "yes" })));
        assert!(matches!(answered, Ok(Called::Answer(Answer { question_id: None, .. }))));
    }

    #[test]
    fn wait_is_read_from_text_and_number() {
        let wait = |seconds: Value| {
            read(CHECK_TASK, arguments(json!({ "task_id": "t", "wait_seconds": seconds })))
        };
        for (seconds, wanted) in
            [(json!(5), 5), (json!(5.9), 5), (json!("5"), 5), (json!(null), WAIT), (json!(0), 0)]
        {
            let wanted = Called::Check(TaskId::new("t"), Duration::from_secs(wanted));
            assert_eq!(wait(seconds), Ok(wanted));
        }
        for seconds in [json!(-1), json!("soon"), json!([]), json!(true), json!(1e300)] {
            let Err(Miscalled::Arguments(told)) = wait(seconds.clone()) else {
                panic!("{seconds}")
            };
            assert!(told.contains("`wait_seconds` must be a number"), "{told}");
        }
    }

    #[test]
    fn invalid_tool_call_is_explained() {
        assert_eq!(read("No Tool", None), Err(Miscalled::NoTool));
        for (tool, said, why) in [
            ("echo", json!({}), "missing field `message`"),
            ("echo", json!({ "message": 1 }), "expected a string"),
            ("echo", json!({ "message": "a", "cwd": "/" }), "unknown field `cwd`"),
            (CHECK_TASK, json!({}), "missing field `task_id`"),
            (LIST_AGENTS, json!({ "x": 1 }), "unknown field `x`"),
        ] {
            let Err(Miscalled::Arguments(told)) = read(tool, arguments(said)) else {
                panic!("{tool}")
            };
            assert!(told.contains(why) && told.contains(tool), "{told}");
        }
    }
}
