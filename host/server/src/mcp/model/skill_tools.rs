//! A skill with an input schema as a tool: the schema is that of the tool, and a call hands its
//! arguments to the agent as data.
//!
//! Clients pass schemas on to models, and some refuse all tools of a server for one schema that the
//! model's interface does not know. Such a skill is no tool; the agent's own tool takes its text.

use crate::five_step::model::readable;
use a2a_hub_core::text::plain_text;
use a2a_hub_protocol::{
    card::{AgentCard, InputSchema, Skill},
    id::AgentId,
    operation::AgentInfo,
};
use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use serde::Deserialize as _;
use serde_json::{Map, Value};

/// Maximum number of tools for skills of an agent.
const MAX_TOOLS: usize = 8;

/// Maximum length of a tool's name, for model interfaces with function calls.
const MAX_NAME: usize = 64;

/// Maximum number of characters of a description inside a schema, and of a skill's.
const MAX_WORDS: usize = 200;
const MAX_DESCRIPTION: usize = 400;

/// Member of a tool's `_meta` with the id of the skill.
pub(crate) const SKILL: &str = "a2a-hub/skill";

/// Last part of the name, if the skill has the agent's id, as the skill of a flow does.
const INPUT: &str = "input";

/// Keywords that model interfaces refuse at the root of a schema.
const NOT_AT_ROOT: [&str; 7] = ["oneOf", "anyOf", "allOf", "not", "enum", "const", "$ref"];

/// Keywords whose values are data, and no schemas.
const DATA: [&str; 4] = ["default", "const", "enum", "examples"];

/// Keywords with text for people and models.
const WORDS: [&str; 3] = ["title", "description", "$comment"];

/// A skill as a tool.
#[derive(Clone, Debug)]
pub(crate) struct SkillTool {
    /// Name of the tool.
    pub name: String,
    /// Agent of the skill.
    pub agent: AgentId,
    /// Skill, as the agent's card has it.
    pub skill: Skill,
    /// True if the agent takes JSON.
    pub takes_json: bool,
}

/// Card of a listed agent; `None` if it cannot be read.
pub(crate) fn card(agent: &AgentInfo) -> Option<AgentCard> {
    AgentCard::deserialize(&agent.card).ok()
}

/// Name below an agent: `AGENT_NAME`, with a hyphen for what the names of tools do not allow.
pub(crate) fn qualified_name(agent: &AgentId, name: &str) -> Option<String> {
    let name = if name == agent.as_str() { INPUT } else { name };
    let allowed = |c: char| if is_name(c) { c } else { '-' };
    let name: String = format!("{agent}_{name}").chars().map(allowed).collect();
    (name.len() <= MAX_NAME).then_some(name)
}

/// True for the characters of a tool's name.
pub(crate) fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Id of the agent in the name of a skill's tool: agent ids contain no underscore.
pub(crate) fn agent_in(name: &str) -> Option<AgentId> {
    AgentId::parse(name.split_once('_')?.0).ok()
}

/// Skills of an agent that are tools.
pub(crate) fn of_card(agent: &AgentId, card: &AgentCard) -> Vec<SkillTool> {
    let mut tools: Vec<SkillTool> = Vec::new();
    for skill in &card.skills {
        let Some(name) = qualified_name(agent, &skill.id) else { continue };
        let is_new = tools.iter().all(|tool| tool.name != name);
        if !is_new || !skill.input_schema().is_some_and(is_for_models) {
            continue;
        }
        let (agent, skill, takes_json) = (agent.clone(), skill.clone(), card.takes_json());
        tools.push(SkillTool { name, agent, skill, takes_json });
        if tools.len() >= MAX_TOOLS {
            break;
        }
    }
    tools
}

/// Tools of these agents' skills.
pub(crate) fn all(agents: &[AgentInfo]) -> Vec<SkillTool> {
    let of = |agent: &AgentInfo| card(agent).map(|card| of_card(&agent.id, &card));
    agents.iter().filter_map(of).flatten().collect()
}

/// True for a schema of objects that clients can pass on to models, and that can be checked.
fn is_for_models(schema: &Value) -> bool {
    let is_object = schema.get("type").is_none_or(|of| of == "object");
    let is_plain = NOT_AT_ROOT.iter().all(|keyword| schema.get(keyword).is_none());
    let names = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let fits = |name: &str| {
        (1..=MAX_NAME).contains(&name.len()) && name.chars().all(|c| is_name(c) || c == '.')
    };
    let are_plain = names.map(|(name, _)| name).all(|name| fits(name));
    is_object && is_plain && are_plain && InputSchema::read(schema).is_ok()
}

impl SkillTool {
    /// Input schema with the agent's words cleaned and cut.
    pub(crate) fn schema(&self) -> JsonObject {
        let schema = self.skill.input_schema().cloned().unwrap_or_default();
        let Value::Object(mut schema) = cleaned(schema) else { return JsonObject::new() };
        schema.entry("type").or_insert_with(|| "object".into());
        schema
    }

    /// The tool, without the form of its result.
    pub(crate) fn tool(&self) -> Tool {
        let (agent, skill) = (&self.agent, &self.skill);
        let about = format!("{}: {}", skill.name, skill.description);
        let text = format!(
            "Has the agent `{agent}` use a skill on these arguments, which it gets as data, and \
             waits for the result. `check_task` tells what became of what is not done in time. \
             The agent says of the skill: \"{}\"",
            plain_text::line(&about, MAX_DESCRIPTION)
        );
        Tool::new(self.name.clone(), text, self.schema())
            .with_title(plain_text::line(&skill.name, 80))
            .with_meta(MetaObject(
                [(SKILL.to_owned(), skill.id.clone().into())].into_iter().collect(),
            ))
            .with_annotations(ToolAnnotations::new().read_only(false).open_world(true))
    }

    /// Text of an input, for agents that take no JSON.
    pub(crate) fn text(&self, input: &Map<String, Value>) -> Option<String> {
        (!self.takes_json).then(|| readable(input))
    }
}

/// A schema whose texts are lines of limited length. Names of members stay as they are.
fn cleaned(schema: Value) -> Value {
    match schema {
        Value::Object(members) => {
            let clean = |(name, value): (String, Value)| {
                let value = if DATA.contains(&&*name) && !is_schema(&value) {
                    value
                } else if let Some(text) = value.as_str().filter(|_| WORDS.contains(&&*name)) {
                    plain_text::line(text, MAX_WORDS).into()
                } else {
                    cleaned(value)
                };
                (name, value)
            };
            Value::Object(members.into_iter().map(clean).collect())
        }
        Value::Array(all) => all.into_iter().map(cleaned).collect(),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
    }
}

/// True for a member that has the name of a keyword, and is described by a schema.
fn is_schema(value: &Value) -> bool {
    value.get("type").is_some() || value.get("$ref").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::model::prompts::tests::agent;
    use serde_json::json;

    fn skill(id: &str, schema: &Value) -> Value {
        json!({ "id": id, "name": "S", "description": "d", "inputSchema": schema })
    }

    fn tools(id: &str, skills: &[Value]) -> Vec<SkillTool> {
        all(&[agent(id, &json!({ "skills": skills }))])
    }

    #[test]
    fn schema_of_skill_is_that_of_tool() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": { "address": { "type": "object", "properties": { "city": { "type": "string" } } } },
            "properties": { "name": { "type": "string" }, "address": { "$ref": "#/$defs/address" } },
            "additionalProperties": false,
        });
        let all = tools("guest", &[skill("to-do", &schema)]);
        assert_eq!(all[0].name, "guest_to-do");
        assert_eq!(Value::Object(all[0].schema()), schema);
        assert_eq!(agent_in(&all[0].name).unwrap().as_str(), "guest");
    }

    #[test]
    fn words_in_schema_are_cleaned() {
        let long = format!("a\u{1b}[2J\nb {}", "x".repeat(900));
        let schema = json!({
            "description": long,
            "properties": {
                "description": { "type": "string", "title": "a\nb", "enum": ["a\nb"] },
                "default": { "type": "string", "description": "a\nb" },
            },
        });
        let told = Value::Object(tools("guest", &[skill("s", &schema)])[0].schema());
        let words = told["description"].as_str().unwrap();
        assert!(words.starts_with("a[2J b xx") && words.chars().count() <= MAX_WORDS, "{words}");
        assert_eq!(told["type"], "object");
        let own = &told["properties"]["description"];
        assert_eq!((&own["title"], &own["enum"]), (&json!("a b"), &json!(["a\nb"])));
        assert_eq!(told["properties"]["default"]["description"], "a b");
    }

    #[test]
    fn schema_that_breaks_clients_is_no_tool() {
        for schema in [
            json!([]),
            json!("text"),
            json!({ "type": "string" }),
            json!({ "type": ["object", "null"] }),
            json!({ "type": "object", "oneOf": [{}] }),
            json!({ "$ref": "#/$defs/a", "$defs": { "a": {} } }),
            json!({ "properties": { "a b": {} } }),
            json!({ "properties": { "": {} } }),
            json!({ "properties": { "a": { "$ref": "https://example.com/" } } }),
            json!({ "properties": { "a": { "pattern": "(" } } }),
            json!({ "description": "x".repeat(20_000) }),
        ] {
            assert!(tools("guest", &[skill("s", &schema)]).is_empty(), "{schema}");
        }
        assert_eq!(tools("guest", &[skill("s", &json!({}))]).len(), 1);
    }

    #[test]
    fn names_are_unique_short_and_few() {
        let plain = json!({ "type": "object" });
        let mut skills: Vec<_> = ["a b", "a-b", "flow", "ä"].map(|id| skill(id, &plain)).to_vec();
        skills.push(skill(&"x".repeat(70), &plain));
        let names: Vec<_> = tools("flow", &skills).into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["flow_a-b", "flow_input", "flow_-"]);
        let many: Vec<_> = (0..50).map(|n| skill(&n.to_string(), &plain)).collect();
        assert_eq!(tools("flow", &many).len(), MAX_TOOLS);
    }

    #[test]
    fn agent_without_json_gets_text() {
        let of = |modes: Value| {
            let skills = [skill("s", &json!({}))];
            let card = json!({ "skills": skills, "defaultInputModes": modes });
            all(&[agent("guest", &card)]).remove(0)
        };
        let input = json!({ "a": "x", "n": 1 });
        let input = input.as_object().unwrap();
        assert_eq!(of(json!(["application/json"])).text(input), None);
        assert_eq!(of(json!(["text/plain"])).text(input).unwrap(), "a: x\nn: 1");
    }

    proptest::proptest! {
        /// No card, whatever its shape, makes a tool that clients refuse.
        #[test]
        fn any_skill_id_gives_valid_name(id in "\\PC{0,80}") {
            for tool in tools("guest", &[skill(&id, &json!({}))]) {
                proptest::prop_assert!(tool.name.chars().all(is_name) && tool.name.len() <= MAX_NAME);
            }
        }
    }
}
