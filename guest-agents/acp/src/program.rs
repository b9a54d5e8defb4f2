//! Program of one agent: the command line of the operator's configuration, and what the catalogue
//! of the hub knows of the program.

use std::collections::BTreeMap;

use a2a_hub_sdk::cli::acp::Offered;
use a2a_hub_sdk::cli::{Profile, cut};
use a2a_hub_sdk::prelude::*;
use a2a_hub_sdk::serde_json::Value;
use serde::{Deserialize, Serialize};

/// Setting that the hub makes of the configuration's key `acp`.
const SETTING: &str = "acp";

/// Memory key under which the hub finds what the program says of itself, for the agent's card.
const INTRODUCTION: &str = "introduction";

/// Program that the agent drives.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AcpProgram {
    /// Name for people.
    pub(crate) name: String,
    /// Program, as the agent's grant calls it.
    pub(crate) program: String,
    /// Arguments.
    pub(crate) args: Vec<String>,
    /// Command that installs the program, if known.
    pub(crate) install: Option<String>,
    /// Command that logs in, if known.
    pub(crate) login: Option<String>,
    /// Version that the catalogue's entry was tried with.
    pub(crate) tested: Option<String>,
    /// Environment variables that the catalogue sets.
    pub(crate) set: BTreeMap<String, String>,
    /// Mode of the program for each of the operator's permissions, where the catalogue knows it.
    pub(crate) modes: BTreeMap<String, String>,
    /// Method of `authenticate` that the program needs, if any.
    pub(crate) login_method: Option<String>,
    /// True if the usage that it reports is cumulative over the session.
    pub(crate) usage_is_of_session: bool,
}

impl AcpProgram {
    /// Reads the agent's setting.
    pub(crate) fn from_settings(ctx: &Context) -> Result<Self, Failure> {
        let wrong = |why: &str| {
            Failure::Invalid(format!(
                "the agent has no program to drive: {why}; the configuration names it, such as `[agents.opencode] acp = \
                 [\"opencode\", \"acp\"]`"
            ))
        };
        let text = ctx.setting(SETTING).ok_or_else(|| wrong("the key `acp` is missing"))?;
        let mut program: Self =
            serde_json::from_str(&text).map_err(|why| wrong(&why.to_string()))?;
        if program.program.is_empty() {
            return Err(wrong("the key `acp` names none"));
        }
        if let Some(mode) = ctx.setting("read_only_mode") {
            program.modes.insert("read-only".to_owned(), mode);
        }
        Ok(program)
    }

    /// Command that starts the program.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        for arg in &self.args {
            command = command.arg(arg);
        }
        self.set.iter().fold(command, |command, (name, value)| command.env(name, value))
    }

    /// Facts for people.
    pub(crate) fn profile(&self) -> Profile {
        Profile {
            name: self.name.clone(),
            program: self.program.clone(),
            tested: self.tested.clone(),
            install: self.install.clone(),
            login: self.login.clone(),
        }
    }
}

/// Facts that the program states about itself: in its answer to `initialize`, and with a session.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Introduction {
    name: Option<String>,
    version: Option<String>,
    modes: Vec<String>,
    models: Vec<String>,
    /// Ways to log in.
    #[serde(skip)]
    ways: Vec<LoginWay>,
}

/// Way to log in that the program names.
#[derive(Debug, Clone, PartialEq)]
struct LoginWay {
    id: String,
    name: String,
    /// Sentence of the program about it.
    description: Option<String>,
    command: Option<LoginCommand>,
}

/// Command of a login in a terminal.
#[derive(Debug, Clone, PartialEq)]
enum LoginCommand {
    /// The program's own command line with these arguments behind it.
    SameProgram(Vec<String>),
    /// Another command line.
    Other(Vec<String>),
}

impl LoginWay {
    /// Reads one of the `authMethods`; `None` without a name.
    fn parse(method: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(cut);
        let words = |value: &Value| {
            let words = value.as_array().into_iter().flatten().filter_map(Value::as_str);
            words.take(MAX_WORDS).map(cut).collect::<Vec<_>>()
        };
        // The form of programs older than the type `terminal`.
        let early = &method["_meta"]["terminal-auth"];
        let other = text(&early["command"]);
        let other = other.map(|command| [vec![command], words(&early["args"])].concat());
        let terminal_args = (method["type"] == "terminal").then(|| words(&method["args"]));
        Some(Self {
            id: text(&method["id"]).unwrap_or_default(),
            name: text(&method["name"])?,
            description: text(&method["description"]),
            command: terminal_args
                .map(LoginCommand::SameProgram)
                .or(other.map(LoginCommand::Other)),
        })
    }

    /// Words for the operator of `program`.
    fn instructions(&self, program: &AcpProgram) -> String {
        let Self { id, name, .. } = self;
        let quoted = |words: &[String]| {
            let plain = |word: &&str| {
                let is_plain =
                    |char: char| char.is_ascii_alphanumeric() || "-_./=:@".contains(char);
                !word.is_empty() && word.chars().all(is_plain)
            };
            let quote = |word: &String| match Some(word.as_str()).filter(plain) {
                Some(word) => word.to_owned(),
                None => format!("'{}'", word.replace('\'', r"'\''")),
            };
            words.iter().map(quote).collect::<Vec<_>>().join(" ")
        };
        match (&self.command, &self.description) {
            (Some(LoginCommand::SameProgram(args)), _) => {
                let words = [vec![program.program.clone()], program.args.clone(), args.clone()];
                format!("{name}: run `{}`", quoted(&words.concat()))
            }
            (Some(LoginCommand::Other(words)), _) => format!("{name}: run `{}`", quoted(words)),
            (None, Some(description)) => format!("{name}: {description}"),
            (None, None) if id.is_empty() => name.clone(),
            (None, None) => format!("{name}: `settings.login_method = \"{id}\"`"),
        }
    }
}

/// Limit of modes and of models on a card: some programs offer hundreds.
const MAX_OFFERED: usize = 40;

/// Maximum number of ways to log in, and of words of a command.
const MAX_WAYS: usize = 8;
const MAX_WORDS: usize = 16;

impl Introduction {
    /// Reads the answer to `initialize`.
    pub(crate) fn parse(result: &Value) -> Self {
        let info = &result["agentInfo"];
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(cut);
        let methods = result["authMethods"].as_array().into_iter().flatten();
        Self {
            name: text(&info["title"]).or_else(|| text(&info["name"])),
            version: text(&info["version"]),
            ways: methods.filter_map(LoginWay::parse).take(MAX_WAYS).collect(),
            ..Self::default()
        }
    }

    /// Takes note of the modes and models of a session.
    pub(crate) fn offers(&mut self, offered: &Offered) {
        let some = |all: &[String]| all.iter().take(MAX_OFFERED).cloned().collect();
        (self.modes, self.models) = (some(&offered.modes), some(&offered.models));
    }

    /// Stores it where the hub finds it. Without memory, the card stays as it is.
    pub(crate) fn store(&self, ctx: &Context) {
        let _ = ctx.remember(INTRODUCTION, self);
    }

    /// Text of a missing login, with the ways that the program names.
    pub(crate) fn with_ways(&self, text: &str, program: &AcpProgram) -> String {
        if self.ways.is_empty() {
            return text.to_owned();
        }
        let ways: Vec<_> = self.ways.iter().map(|way| way.instructions(program)).collect();
        format!("{text} (it offers: {})", ways.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use a2a_hub_sdk::serde_json::json;

    use super::*;

    #[test]
    fn ways_to_log_in_name_commands() {
        let program = AcpProgram {
            program: "mine".into(),
            args: vec!["--acp".into()],
            ..AcpProgram::default()
        };
        let said = Introduction::parse(&json!({ "authMethods": [
            { "id": "a", "name": "Browser" },
            { "id": "b", "name": "Key", "description": "Set MY_KEY" },
            { "id": "c", "name": "Terminal", "type": "terminal", "args": ["log in", "it's"] },
            { "id": "d", "name": "Old", "_meta": { "terminal-auth": { "command": "mine", "args": ["login"] } } },
            { "id": "e" },
            7,
        ] }));
        let wanted = "log in first (it offers: Browser: `settings.login_method = \"a\"`; Key: Set MY_KEY; \
            Terminal: run `mine --acp 'log in' 'it'\\''s'`; Old: run `mine login`)";
        assert_eq!(said.with_ways("log in first", &program), wanted);
        let none = Introduction::parse(&json!({ "authMethods": "none" }));
        assert_eq!(none.with_ways("log in first", &program), "log in first");
    }
}
