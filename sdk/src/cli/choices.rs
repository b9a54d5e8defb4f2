//! Options of a run: the operator sets them in the agent's settings, and the client within those
//! limits in the metadata of its message. A client can only narrow what the operator allows.
//!
//! | setting | metadata | meaning |
//! | --- | --- | --- |
//! | `model`, `models` | `model` | model to use; `models` are all that a client may name |
//! | `effort`, `efforts` | `effort` | reasoning effort |
//! | `session_mode`, `session_modes` | `mode` | mode of a session of the Agent Client Protocol |
//! | `allowed_tools` | `allowedTools` | tools that are used without asking |
//! | `mcp_servers` | `mcpServers` | MCP servers |
//! | `system_prompt` | | instructions to the model beside its program's own |
//! | `other_agents` | | `no` hides other agents, even if the operator lets this agent call any |
//! | | `resume` | session of the program; the hub lets only its operator name one |

use serde_json::{Map, Value, json};

use super::{Hub, Kind, Permissions};
use crate::{Context, Failure, Message, Role, Task};

/// Metadata member of a message that gives the agent a turn at the blackboard of a flow.
const BLACKBOARD: &str = "blackboard";

/// Maximum length of the name of a model, an effort or a session; vendors' names are far shorter.
const MAX_NAME: usize = 128;

/// Effective options of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Choices {
    /// Model.
    pub model: Option<String>,
    /// Reasoning effort, in the vendor's words.
    pub effort: Option<String>,
    /// Mode of the session, by the program's id. A client names one of the operator's list: a mode
    /// may allow more than the operator's permissions.
    pub mode: Option<String>,
    /// Tools that may be used without asking, by the program's names for them.
    pub allowed_tools: Vec<String>,
    /// MCP servers by name, each as `{"command", "args", "env"}` or `{"url", "headers"}`.
    pub mcp_servers: Map<String, Value>,
    /// The hub as an MCP server, if the program may give tasks to other agents.
    pub hub: Option<Hub>,
    /// The hub as an MCP server with the tools for blackboards only, if the program only reads, and
    /// its task is a turn at a blackboard.
    pub blackboard: Option<Hub>,
    /// Instructions to the model, beside its program's own.
    pub instructions: Option<String>,
    /// Session of the program to resume.
    pub resume: Option<String>,
}

impl Choices {
    /// Combines the operator's settings and the client's options; [`Failure::Invalid`] if the
    /// client asks for more than the operator allows.
    pub(super) fn new(ctx: &Context, task: &Task) -> Result<Self, Failure> {
        let wanted = Wanted::from_task(task);
        let offered = servers(ctx)?;
        let (tools, servers) = (wanted.names("allowedTools")?, wanted.names("mcpServers")?);
        let fits = |only: &Option<Vec<String>>, name: &String| {
            only.as_ref().is_none_or(|only| only.contains(name))
        };
        let hub = Hub::from_settings(ctx).filter(|_| {
            // An operator's server with the hub's name keeps the name, and its tools are not taken
            // for the hub's.
            !offered.keys().any(|name| Hub::is_confusable(name))
                && fits(&servers, &Hub::NAME.to_owned())
        });
        // A read-only agent must not let others act in its place.
        let only_reads = Permissions::from_settings(ctx) == Permissions::ReadOnly;
        let has_turn = wanted.get(BLACKBOARD).and_then(Value::as_bool).unwrap_or_default();
        Ok(Self {
            model: wanted.one_of(ctx, "model", "models")?,
            effort: wanted.one_of(ctx, "effort", "efforts")?,
            mode: None,
            allowed_tools: listed(ctx, "allowed_tools")
                .into_iter()
                .flatten()
                .filter(|tool| fits(&tools, tool))
                .collect(),
            blackboard: hub.clone().filter(|_| only_reads && has_turn),
            hub: hub.filter(|_| !only_reads),
            mcp_servers: offered.into_iter().filter(|(name, _)| fits(&servers, name)).collect(),
            instructions: ctx.setting("system_prompt").filter(|text| !text.trim().is_empty()),
            resume: wanted.name("resume")?,
        })
    }

    /// Adds the mode of the session, for a program that takes one.
    pub(super) fn in_mode(self, ctx: &Context, task: &Task) -> Result<Self, Failure> {
        Ok(Self { mode: Wanted::from_task(task).mode(ctx)?, ..self })
    }

    /// All MCP servers of the program: the operator's, and the hub.
    pub fn servers(&self) -> Map<String, Value> {
        let hub = self.hub.iter().map(Hub::server);
        let hub = hub.chain(self.blackboard.iter().map(Hub::board_server));
        let hub = hub.map(|server| (Hub::NAME.to_owned(), server));
        self.mcp_servers.clone().into_iter().chain(hub).collect()
    }

    /// True for a tool for blackboards of a program that only reads: what it changes is on the
    /// board of the flow, at which it has a turn.
    pub(super) fn is_for_board(&self, kind: Kind, tool: &str) -> bool {
        kind != Kind::Open && self.blackboard.is_some() && Hub::is_tool(tool)
    }

    /// True if the tool may be used without asking. An open question of the model is never answered
    /// this way.
    pub(super) fn allow(&self, kind: Kind, tool: &str) -> bool {
        let is_hubs = self.hub.is_some() && Hub::is_tool(tool);
        kind != Kind::Open && (is_hubs || self.allowed_tools.iter().any(|allowed| allowed == tool))
    }
}

/// Options in the metadata of the client's messages; the latest message of this task counts.
struct Wanted(Vec<Value>);

impl Wanted {
    fn from_task(task: &Task) -> Self {
        let ours = |message: &&Message| {
            message.role == Role::User && message.task_id.as_deref() == Some(task.id.as_str())
        };
        // After a restart, a resumed task has another message than the one that it began with.
        let messages = [&task.message].into_iter().chain(task.history.iter().rev().filter(ours));
        let metadata = messages.filter_map(|message| message.metadata.as_deref());
        Self(metadata.filter_map(|json| serde_json::from_str(json).ok()).collect())
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().map(|metadata| &metadata[name]).find(|value| !value.is_null())
    }

    /// Reads a name, which becomes an argument of the program.
    fn name(&self, name: &str) -> Result<Option<String>, Failure> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let fits = |text: &&str| {
            (1..=MAX_NAME).contains(&text.len())
                && !text.starts_with('-')
                && text.chars().all(|char| !char.is_whitespace() && !char.is_control())
        };
        match value.as_str().filter(fits) {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(Failure::Invalid(format!(
                "`{name}` in the message's metadata is {value}: it takes 1 to {MAX_NAME} characters, no space among them, and \
                 no `-` at the beginning"
            ))),
        }
    }

    /// Client's choice, or else the operator's; it must be in the operator's list, if one is set.
    fn one_of(&self, ctx: &Context, name: &str, all: &str) -> Result<Option<String>, Failure> {
        let Some(chosen) = self.name(name)? else { return Ok(ctx.setting(name)) };
        match listed(ctx, all) {
            Some(all) if !all.contains(&chosen) => Err(Failure::Invalid(format!(
                "the {name} `{chosen}` is none of those that the operator allows here: {}",
                all.join(", ")
            ))),
            Some(_) | None => Ok(Some(chosen)),
        }
    }

    /// Client's mode, which the operator's list must have, or else the operator's.
    fn mode(&self, ctx: &Context) -> Result<Option<String>, Failure> {
        let Some(chosen) = self.name("mode")? else { return Ok(ctx.setting("session_mode")) };
        let modes = listed(ctx, "session_modes").unwrap_or_default();
        if modes.contains(&chosen) {
            return Ok(Some(chosen));
        }
        Err(Failure::Invalid(format!(
            "the mode `{chosen}` is none of those that the operator lets clients choose here ({}); the agent's setting \
             `session_modes` lists them, separated by commas",
            if modes.is_empty() { "none".to_owned() } else { modes.join(", ") }
        )))
    }

    fn names(&self, name: &str) -> Result<Option<Vec<String>>, Failure> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let names = value.as_array().and_then(|names| {
            names.iter().map(|name| name.as_str().map(ToOwned::to_owned)).collect::<Option<_>>()
        });
        let why =
            || format!("`{name}` in the message's metadata is {value}: it takes a list of names");
        names.map(Some).ok_or_else(|| Failure::Invalid(why()))
    }
}

/// Setting that lists names, separated by commas.
fn listed(ctx: &Context, setting: &str) -> Option<Vec<String>> {
    let names = ctx.setting(setting)?;
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    Some(names.map(ToOwned::to_owned).collect())
}

fn servers(ctx: &Context) -> Result<Map<String, Value>, Failure> {
    let Some(text) = ctx.setting("mcp_servers") else { return Ok(Map::new()) };
    let wrong = |why: &str| {
        let example = json!({ "docs": { "command": "/usr/bin/docs-mcp", "args": [] } });
        Failure::Invalid(format!("the operator's setting `mcp_servers` {why}; such as `{example}`"))
    };
    let servers: Map<String, Value> =
        serde_json::from_str(&text).map_err(|why| wrong(&format!("is no JSON object: {why}")))?;
    let is_server = |server: &Value| server["command"].is_string() || server["url"].is_string();
    match servers.iter().find(|(_, server)| !is_server(server)) {
        Some((name, _)) => Err(wrong(&format!("has no `command` and no `url` for `{name}`"))),
        None => Ok(servers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ScriptedHost, task};

    fn asking(metadata: &Value) -> Task {
        let mut task = task("hi");
        task.message = task.message.with_metadata(metadata);
        task
    }

    fn refused(host: &ScriptedHost, metadata: &Value) -> String {
        match Choices::new(&host.context(), &asking(metadata)) {
            Err(Failure::Invalid(why)) => why,
            other => panic!("{metadata}: {other:?}"),
        }
    }

    #[test]
    fn client_chooses_within_operators_list() {
        let host = ScriptedHost::new();
        let of = |metadata: &Value| Choices::new(&host.context(), &asking(metadata)).unwrap();
        assert_eq!(of(&json!({})), Choices::default());
        let mine = of(&json!({ "model": "large", "effort": "high", "resume": "s-1" }));
        assert_eq!((mine.model.as_deref(), mine.effort.as_deref()), (Some("large"), Some("high")));
        assert_eq!(mine.resume.as_deref(), Some("s-1"));

        host.setting("model", "small");
        host.setting("models", "small, large");
        assert_eq!(of(&json!({})).model.as_deref(), Some("small"));
        assert_eq!(of(&json!({ "model": "large" })).model.as_deref(), Some("large"));
        let why = refused(&host, &json!({ "model": "huge" }));
        assert_eq!(
            why,
            "the model `huge` is none of those that the operator allows here: small, large"
        );
    }

    #[test]
    fn client_only_narrows_tools_and_servers() {
        let host = ScriptedHost::new();
        host.setting("allowed_tools", "Bash,WebFetch");
        host.setting(
            "mcp_servers",
            r#"{"docs":{"command":"/d"},"web":{"url":"http://localhost"}}"#,
        );
        let of = |metadata: &Value| Choices::new(&host.context(), &asking(metadata)).unwrap();
        let all = of(&json!({}));
        assert_eq!(all.allowed_tools, ["Bash", "WebFetch"]);
        assert_eq!(all.mcp_servers.keys().collect::<Vec<_>>(), ["docs", "web"]);
        let less = of(&json!({ "allowedTools": ["Bash", "Write"], "mcpServers": ["web", "mine"] }));
        assert_eq!(less.allowed_tools, ["Bash"]);
        assert_eq!(less.mcp_servers.keys().collect::<Vec<_>>(), ["web"]);
        assert!(less.allow(Kind::Run, "Bash") && !less.allow(Kind::Edit, "Write"));
        assert!(!Choices { allowed_tools: vec!["q".into()], ..less }.allow(Kind::Open, "q"));
        assert!(of(&json!({ "allowedTools": [], "mcpServers": [] })).mcp_servers.is_empty());
    }

    #[test]
    fn hub_server_requires_delegation() {
        let host = ScriptedHost::new();
        let of = |metadata: &Value| Choices::new(&host.context(), &asking(metadata)).unwrap();
        assert!(of(&json!({})).servers().is_empty(), "nobody granted it other agents");
        host.setting("hub_program", "/usr/bin/a2a-hub");
        host.setting("hub_socket", "/run/hub.sock");
        let choices = of(&json!({}));
        let server =
            json!({ "command": "/usr/bin/a2a-hub", "args": ["--socket", "/run/hub.sock", "mcp"] });
        assert_eq!(json!(choices.servers()), json!({ "a2a-hub": server }));
        for (tool, is_hubs) in [
            ("mcp__a2a-hub__codex", true),
            ("mcp_a2a-hub_codex", true),
            ("mcp_a2a-hub_claim_item", true),
            ("mcp_a2a_hub.git_historian", true),
            ("mcp:a2a-hub", true),
            ("a2a-hub_codex", false),
            ("mcp_a2a-hub-2_codex", false),
            ("mcp_a2a_hub_2.codex", false),
            ("mcp__a2a-hub-2__codex", false),
            ("mcp:a2a-hub-2", false),
            ("Bash", false),
        ] {
            assert_eq!(choices.allow(Kind::Run, tool), is_hubs, "{tool}");
            assert!(!choices.allow(Kind::Open, tool) && !Choices::default().allow(Kind::Run, tool));
        }
        assert!(of(&json!({ "mcpServers": [] })).servers().is_empty(), "its client wants none");
        assert!(of(&json!({ "mcpServers": ["a2a-hub"] })).hub.is_some());
        for (setting, value) in [
            ("permissions", "read-only"),
            ("other_agents", "no"),
            ("mcp_servers", r#"{"a2a-hub":{"command":"/mine"}}"#),
            ("mcp_servers", r#"{"a2a-hub_docs":{"command":"/mine"}}"#),
            ("mcp_servers", r#"{"a2a_hub":{"command":"/mine"}}"#),
        ] {
            let host = ScriptedHost::new();
            host.setting("hub_program", "/usr/bin/a2a-hub");
            host.setting("hub_socket", "/run/hub.sock");
            assert!(Choices::new(&host.context(), &task("hi")).unwrap().hub.is_some());
            host.setting(setting, value);
            let choices = Choices::new(&host.context(), &task("hi")).unwrap();
            assert_eq!((choices.hub, choices.blackboard), (None, None), "{setting}");
            let turn = asking(&json!({ "blackboard": true }));
            let choices = Choices::new(&host.context(), &turn).unwrap();
            assert_eq!(choices.hub, None, "{setting}");
            let is_for_board = setting == "permissions";
            assert_eq!(choices.blackboard.is_some(), is_for_board, "{setting}");
            if is_for_board {
                let args = ["--socket", "/run/hub.sock", "mcp", "--only-blackboards"];
                assert_eq!(choices.servers()["a2a-hub"]["args"], json!(args));
            }
            for tool in
                ["mcp__a2a-hub__claim_item", "mcp_a2a-hub_claim_item", "mcp_a2a_hub.claim_item"]
            {
                assert_eq!(choices.is_for_board(Kind::Run, tool), is_for_board, "{tool}");
            }
            assert!(!choices.is_for_board(Kind::Open, "mcp__a2a-hub__claim_item"));
            assert!(!choices.is_for_board(Kind::Run, "Bash"));
        }
    }

    /// A mode can allow more than the operator's permissions do.
    #[test]
    fn client_mode_needs_operators_list() {
        let host = ScriptedHost::new();
        let read =
            |metadata: &Value| Choices::default().in_mode(&host.context(), &asking(metadata));
        let of = |metadata: &Value| read(metadata).unwrap();
        let refused = |metadata: &Value| read(metadata).unwrap_err().text().to_owned();
        assert_eq!(of(&json!({})).mode, None);
        assert!(refused(&json!({ "mode": "yolo" })).contains("`session_modes`"));
        host.setting("session_mode", "build");
        host.setting("session_modes", "build, plan");
        assert_eq!(of(&json!({})).mode.as_deref(), Some("build"));
        assert_eq!(of(&json!({ "mode": "plan" })).mode.as_deref(), Some("plan"));
        assert!(refused(&json!({ "mode": "yolo" })).contains("(build, plan)"));
    }

    /// A client's names become arguments of a program.
    #[test]
    fn invalid_names_are_refused() {
        let host = ScriptedHost::new();
        for odd in [
            json!("--yolo"),
            json!(""),
            json!("a b"),
            json!("a\nb"),
            json!(3),
            json!("x".repeat(129)),
        ] {
            for name in ["model", "effort", "resume"] {
                let why = refused(&host, &json!({ name: odd }));
                assert!(
                    why.starts_with(&format!("`{name}` in the message's metadata is ")),
                    "{why}"
                );
            }
        }
        assert!(refused(&host, &json!({ "allowedTools": "Bash" })).contains("a list of names"));
        for setting in ["no", "[]", r#"{"a":{}}"#] {
            host.setting("mcp_servers", setting);
            assert!(refused(&host, &json!({})).contains("operator's setting `mcp_servers`"));
        }
    }

    #[test]
    fn resumed_task_keeps_earlier_choices() {
        let host = ScriptedHost::new();
        let first = asking(&json!({ "model": "large", "effort": "low" })).message;
        let ours = Message { task_id: Some("task-1".into()), ..first.clone() };
        let another = Message { task_id: Some("task-0".into()), ..first };
        let mut goes_on = asking(&json!({ "effort": "high" }));
        goes_on.history = vec![ours];
        let choices = Choices::new(&host.context(), &goes_on).unwrap();
        assert_eq!(
            (choices.model.unwrap(), choices.effort.unwrap()),
            ("large".into(), "high".into())
        );
        goes_on.history = vec![another];
        assert_eq!(Choices::new(&host.context(), &goes_on).unwrap().model, None);
    }
}
