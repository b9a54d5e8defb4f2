//! Prompts for the menus of editors: one for each agent, one for each skill with an input schema,
//! and those that skills declare. Completion proposes values of their arguments.

use crate::mcp::model::{
    declared_prompt::{self, DeclaredArgument, DeclaredPrompt},
    skill_tools::{self, SkillTool, qualified_name},
};
use a2a_hub_core::text::plain_text;
use a2a_hub_protocol::{card::AgentCard, id::AgentId, operation::AgentInfo};
use rmcp::model::{ContentBlock, JsonObject, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::{Map, Value};

/// Argument of an agent's prompt.
const REQUEST: &str = "request";

/// Maximum number of characters of a description, of a title, and of a proposed value.
const MAX_DESCRIPTION: usize = 300;
const MAX_TITLE: usize = 80;
const MAX_VALUE: usize = 400;

/// Maximum number of proposed values, as the specification has it.
pub(crate) const MAX_VALUES: usize = 100;

/// A prompt of an agent.
#[derive(Clone, Debug)]
pub(crate) struct AgentPrompt {
    name: String,
    agent: AgentId,
    kind: PromptKind,
}

#[derive(Clone, Debug)]
enum PromptKind {
    /// Asks the client's model to hand a request over to the agent.
    Agent(Box<AgentCard>),
    /// Asks it to call the tool of a skill.
    Skill(Box<SkillTool>),
    /// Contains what the skill's author wrote.
    Declared(Box<DeclaredPrompt>),
}

/// Prompts of these agents.
pub(crate) fn all(agents: &[AgentInfo]) -> Vec<AgentPrompt> {
    agents.iter().flat_map(of_agent).collect()
}

fn of_agent(info: &AgentInfo) -> Vec<AgentPrompt> {
    let agent = &info.id;
    let Some(card) = skill_tools::card(info) else { return Vec::new() };
    let of = |name, kind| AgentPrompt { name, agent: agent.clone(), kind };
    let tools = skill_tools::of_card(agent, &card).into_iter();
    let tools = tools.map(|tool| (tool.name.clone(), PromptKind::Skill(Box::new(tool))));
    let declared = card.skills.iter().flat_map(declared_prompt::of_skill).filter_map(|declared| {
        let name = qualified_name(agent, &declared.name)?;
        Some((name, PromptKind::Declared(Box::new(declared))))
    });
    let mut prompts: Vec<AgentPrompt> = Vec::new();
    for (name, kind) in tools.chain(declared) {
        if prompts.iter().all(|prompt| prompt.name != name) {
            prompts.push(of(name, kind));
        }
    }
    prompts.insert(0, of(agent.to_string(), PromptKind::Agent(Box::new(card))));
    prompts
}

impl AgentPrompt {
    /// Name of the prompt.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Entry in the list of prompts.
    pub(crate) fn listed(&self) -> Prompt {
        let agent = &self.agent;
        let quoted = |text: &str| match plain_text::line(text, MAX_DESCRIPTION) {
            line if line.is_empty() => String::new(),
            line => format!(" In its own words: \"{line}\""),
        };
        let (title, description) = match &self.kind {
            PromptKind::Agent(card) => {
                let description = format!("Has the agent `{agent}` do something.");
                (card.name.as_str(), description + &quoted(&card.description))
            }
            PromptKind::Skill(tool) => {
                let description = format!("Has the agent `{agent}` use a skill.");
                (tool.skill.name.as_str(), description + &quoted(&tool.skill.description))
            }
            PromptKind::Declared(declared) => {
                let description = format!("A prompt of the agent `{agent}`.");
                let words = declared.description.as_deref().unwrap_or_default();
                (declared.title.as_deref().unwrap_or(&declared.name), description + &quoted(words))
            }
        };
        let arguments = self.arguments().into_iter().map(|argument| argument.listed).collect();
        let prompt = Prompt::new(&self.name, Some(description), Some(arguments));
        prompt.with_title(plain_text::line(title, MAX_TITLE))
    }

    /// Messages of the prompt with these arguments, all of the user. An error says what is wrong.
    pub(crate) fn messages(&self, arguments: &JsonObject) -> Result<Vec<PromptMessage>, String> {
        let (name, agent) = (&self.name, &self.agent);
        let known = self.arguments();
        let wrong = |why: String| format!("get `{name}`: {why}");
        for (key, value) in arguments {
            if !known.iter().any(|argument| argument.listed.name == *key) {
                let names: Vec<_> =
                    known.iter().map(|argument| format!("`{}`", argument.listed.name)).collect();
                let key = plain_text::line(key, MAX_TITLE);
                let takes = if names.is_empty() { "no".to_owned() } else { names.join(", ") };
                return Err(wrong(format!("unknown argument `{key}`; it takes {takes}")));
            }
            if !value.is_string() {
                return Err(wrong(format!("the argument `{key}` must be a string")));
            }
        }
        for argument in known.iter().map(|argument| &argument.listed) {
            let text = arguments.get(&argument.name).and_then(Value::as_str).unwrap_or_default();
            if argument.required == Some(true) && text.trim().is_empty() {
                return Err(wrong(format!("the argument `{}` is missing", argument.name)));
            }
        }
        let blocks = match &self.kind {
            PromptKind::Agent(_) => {
                let request = arguments.get(REQUEST).and_then(Value::as_str).unwrap_or_default();
                vec![ContentBlock::text(format!(
                    "Have the agent `{agent}` of the A2A hub do the request below: call the tool \
                     `{agent}` with the whole request in `message`, and with what it needs to know \
                     of this conversation. Then tell me its result.\n\n{request}"
                ))]
            }
            PromptKind::Skill(tool) => {
                let input = typed(&tool.schema(), arguments).map_err(wrong)?;
                let input = Value::Object(input);
                vec![ContentBlock::text(format!(
                    "Have the agent `{agent}` of the A2A hub use a skill: call the tool `{name}` \
                     with the arguments below. Then tell me its result.\n\n{input}"
                ))]
            }
            PromptKind::Declared(declared) => {
                let uri = format!("a2a-hub://agents/{agent}/prompts/{}", declared.name);
                let blocks = declared.blocks(&uri, arguments);
                let blocks = blocks
                    .ok_or_else(|| wrong("the arguments make it longer than 1 MiB".into()))?;
                let by = format!("[a2a-hub] The agent `{agent}` is the author of this prompt:");
                std::iter::once(ContentBlock::text(by)).chain(blocks).collect()
            }
        };
        Ok(blocks.into_iter().map(|block| PromptMessage::new(Role::User, block)).collect())
    }

    /// Values of an argument that contain what the user has typed, those that begin with it first;
    /// `None` if the prompt has no such argument.
    pub(crate) fn completions(&self, argument: &str, typed: &str) -> Option<Vec<String>> {
        let argument = self.arguments().into_iter().find(|it| it.listed.name == argument)?;
        Some(matching(argument.values, typed))
    }

    fn arguments(&self) -> Vec<CompletedArgument> {
        match &self.kind {
            PromptKind::Agent(card) => {
                let examples = card.skills.iter().filter_map(|skill| skill.other.get("examples"));
                let examples = examples.filter_map(Value::as_array).flatten();
                let values = examples.filter_map(Value::as_str).map(str::to_owned).collect();
                let listed = PromptArgument::new(REQUEST).with_required(true);
                let listed = listed.with_description("What the agent is to do");
                vec![CompletedArgument { listed, values }]
            }
            PromptKind::Skill(tool) => of_schema(&tool.schema()),
            PromptKind::Declared(declared) => declared.arguments.iter().map(of_declared).collect(),
        }
    }
}

/// An argument with the values that completion proposes.
struct CompletedArgument {
    listed: PromptArgument,
    values: Vec<String>,
}

fn of_declared(argument: &DeclaredArgument) -> CompletedArgument {
    let listed = PromptArgument::new(&argument.name).with_required(argument.required);
    let words = argument.description.as_deref().map(|text| plain_text::line(text, MAX_DESCRIPTION));
    let listed = words.into_iter().fold(listed, PromptArgument::with_description);
    CompletedArgument { listed, values: argument.values.clone() }
}

fn of_schema(schema: &JsonObject) -> Vec<CompletedArgument> {
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let of = |(name, property): (&String, &Value)| {
        let is_required = required.iter().any(|it| it == name);
        let listed = PromptArgument::new(name).with_required(is_required);
        let words = property["description"].as_str().map(str::to_owned);
        let listed = words.into_iter().fold(listed, PromptArgument::with_description);
        CompletedArgument { listed, values: values(property) }
    };
    let members = schema.get("properties").and_then(Value::as_object);
    members.into_iter().flatten().map(of).collect()
}

/// Values that the schema of a member names.
fn values(schema: &Value) -> Vec<String> {
    let to_text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let named = ["enum", "examples"].map(|keyword| schema[keyword].as_array());
    let one = [schema.get("const"), schema.get("default")].into_iter().flatten();
    let mut all: Vec<_> = named.into_iter().flatten().flatten().chain(one).map(to_text).collect();
    if schema["type"] == "boolean" {
        all.extend(["true", "false"].map(str::to_owned));
    }
    all
}

/// Those of these values that contain `typed`, those that begin with it first, each once.
pub(crate) fn matching(values: Vec<String>, typed: &str) -> Vec<String> {
    let typed = typed.to_lowercase();
    let mut found: Vec<(bool, String)> = Vec::new();
    for value in values {
        let lower = value.to_lowercase();
        let is_line = plain_text::is_plain_line(&value) && value.chars().count() <= MAX_VALUE;
        let is_new = found.iter().all(|(_, one)| *one != value);
        if is_line && is_new && lower.contains(&typed) {
            found.push((!lower.starts_with(&typed), value));
        }
        if found.len() >= 2 * MAX_VALUES {
            break;
        }
    }
    found.sort_by_key(|(is_inside, _)| *is_inside);
    found.into_iter().map(|(_, value)| value).take(MAX_VALUES).collect()
}

/// Arguments as the schema has them. Those of prompts are strings; an empty one is left out.
fn typed(schema: &JsonObject, arguments: &JsonObject) -> Result<Map<String, Value>, String> {
    let mut input = Map::new();
    for (name, value) in arguments {
        let text = value.as_str().unwrap_or_default();
        if text.is_empty() {
            continue;
        }
        let property = schema.get("properties").and_then(|all| all.get(name));
        let kind = property.and_then(|property| property["type"].as_str());
        let value = match kind {
            Some(kind @ ("integer" | "number" | "boolean" | "object" | "array")) => {
                let read: Option<Value> = serde_json::from_str(text.trim()).ok();
                let is_kind = |value: &Value| match kind {
                    "integer" => value.is_i64() || value.is_u64(),
                    "number" => value.is_number(),
                    "boolean" => value.is_boolean(),
                    "object" => value.is_object(),
                    _ => value.is_array(),
                };
                let read = read.filter(is_kind);
                read.ok_or_else(|| format!("the argument `{name}` must be JSON of type {kind}"))?
            }
            Some(_) | None => value.clone(),
        };
        input.insert(name.clone(), value);
    }
    Ok(input)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use a2a_hub_protocol::operation::AgentBreaker;
    use serde_json::json;

    pub(crate) fn agent(id: &str, card: &Value) -> AgentInfo {
        let mut whole = json!({ "name": "A", "description": "does\nthings", "version": "1" });
        for (name, value) in card.as_object().unwrap() {
            whole[name] = value.clone();
        }
        AgentInfo {
            id: AgentId::parse(id).unwrap(),
            name: "A".to_owned(),
            card: whole,
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

    fn arguments(value: &Value) -> JsonObject {
        value.as_object().cloned().unwrap()
    }

    fn guest() -> Vec<AgentPrompt> {
        let schema = json!({ "type": "object", "required": ["n"], "properties": {
            "n": { "type": "integer", "description": "How many" },
            "how": { "enum": ["slow", "fast", "as fast as possible"] },
            "dry": { "type": "boolean" },
        } });
        let prompt = json!({
            "name": "greet", "description": "Greets\n\u{1b}[2J",
            "arguments": [{ "name": "who", "required": true, "values": ["Ada", "Alan", "Bob\n"] }],
            "parts": [{ "text": "Greet {{who}}." }],
        });
        let behave = json!({ "id": "behave", "name": "Behave", "description": "Behaves",
            "examples": ["flood 10", "sh ls"], "inputSchema": schema, "prompts": [prompt] });
        all(&[agent("guest", &json!({ "skills": [behave] }))])
    }

    fn prompt(name: &str) -> AgentPrompt {
        guest().into_iter().find(|prompt| prompt.name() == name).unwrap()
    }

    #[test]
    fn agents_skills_and_declared_prompts_are_listed() {
        let told: Vec<_> = guest().iter().map(|prompt| json!(prompt.listed())).collect();
        let names: Vec<_> = told.iter().map(|prompt| prompt["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["guest", "guest_behave", "guest_greet"]);
        assert_eq!(told[0]["arguments"][0]["name"], "request");
        let words = "Has the agent `guest` do something. In its own words: \"does things\"";
        assert_eq!(told[0]["description"], words);
        let n = told[1]["arguments"].as_array().unwrap().iter().find(|it| it["name"] == "n");
        assert_eq!(n, Some(&json!({ "name": "n", "description": "How many", "required": true })));
        let words = "A prompt of the agent `guest`. In its own words: \"Greets [2J\"";
        assert_eq!(told[2]["description"], words);
    }

    #[test]
    fn messages_hold_arguments_and_author() {
        let text = |name: &str, given: Value| {
            let told = json!(prompt(name).messages(&arguments(&given)).unwrap());
            let messages = told.as_array().unwrap().iter();
            assert!(messages.clone().all(|message| message["role"] == "user"), "{told}");
            let text = messages.map(|message| message["content"]["text"].as_str().unwrap());
            text.collect::<Vec<_>>().join("|")
        };
        let told = text("guest", json!({ "request": "sh ls" }));
        assert!(told.contains("call the tool `guest`") && told.ends_with("\n\nsh ls"), "{told}");
        let told = text("guest_behave", json!({ "n": "7", "how": "slow", "dry": "" }));
        assert!(told.contains("`guest_behave`") && !told.contains("dry"), "{told}");
        assert!(told.contains(r#""n":7"#) && told.contains(r#""how":"slow""#), "{told}");
        let told = text("guest_greet", json!({ "who": "{{who}}" }));
        let by = "[a2a-hub] The agent `guest` is the author of this prompt:";
        assert_eq!(told, format!("{by}|Greet {{{{who}}}}."));
    }

    #[test]
    fn wrong_arguments_are_explained() {
        for (name, given, why) in [
            ("guest", json!({}), "get `guest`: the argument `request` is missing"),
            ("guest", json!({ "request": " " }), "get `guest`: the argument `request` is missing"),
            (
                "guest",
                json!({ "request": 7 }),
                "get `guest`: the argument `request` must be a string",
            ),
            (
                "guest",
                json!({ "wat\n": "x" }),
                "get `guest`: unknown argument `wat`; it takes `request`",
            ),
            (
                "guest_behave",
                json!({ "n": "1.5" }),
                "get `guest_behave`: the argument `n` must be JSON of type integer",
            ),
        ] {
            assert_eq!(prompt(name).messages(&arguments(&given)).unwrap_err(), why);
        }
    }

    #[test]
    fn completion_proposes_matching_values() {
        for (name, argument, typed, values) in [
            ("guest", "request", "", &["flood 10", "sh ls"][..]),
            ("guest", "request", "SH", &["sh ls"]),
            ("guest_behave", "how", "fast", &["fast", "as fast as possible"]),
            ("guest_behave", "dry", "t", &["true"]),
            ("guest_behave", "n", "", &[]),
            ("guest_greet", "who", "a", &["Ada", "Alan"]),
            ("guest_greet", "who", "b", &[]),
        ] {
            let told = prompt(name).completions(argument, typed).unwrap();
            assert_eq!(told, values, "{name} {argument} {typed}");
        }
        assert_eq!(prompt("guest").completions("other", ""), None);
        let many = (0..500).map(|n| n.to_string()).collect();
        assert_eq!(matching(many, "").len(), MAX_VALUES);
    }

    #[test]
    fn unreadable_card_has_no_prompts() {
        let mut odd = agent("guest", &json!({}));
        odd.card = json!({ "skills": 7 });
        assert!(all(&[odd]).is_empty());
    }
}
