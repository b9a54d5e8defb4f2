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
pub(crate) struct Program {
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

impl Program {
    /// Reads the agent's setting.
    pub(crate) fn of(ctx: &Context) -> Result<Self, Failure> {
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
    /// Names of the ways to log in.
    #[serde(skip)]
    ways: Vec<String>,
}

/// Limit of modes and of models on a card: some programs offer hundreds.
const MAX_OFFERED: usize = 40;

impl Introduction {
    /// Reads the answer to `initialize`.
    pub(crate) fn of(result: &Value) -> Self {
        let info = &result["agentInfo"];
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(cut);
        let methods = result["authMethods"].as_array().into_iter().flatten();
        Self {
            name: text(&info["title"]).or_else(|| text(&info["name"])),
            version: text(&info["version"]),
            ways: methods.filter_map(|method| text(&method["name"])).collect(),
            ..Self::default()
        }
    }

    /// Takes note of the modes and models of a session.
    pub(crate) fn offers(&mut self, offered: &Offered) {
        let some = |all: &[String]| all.iter().take(MAX_OFFERED).cloned().collect();
        (self.modes, self.models) = (some(&offered.modes), some(&offered.models));
    }

    /// Stores it where the hub finds it. Without memory, the card stays as it is.
    pub(crate) fn keep(&self, ctx: &Context) {
        let _ = ctx.remember(INTRODUCTION, self);
    }

    /// Text of a missing login, with the ways that the program names.
    pub(crate) fn with_ways(&self, text: &str) -> String {
        if self.ways.is_empty() {
            return text.to_owned();
        }
        format!("{text} (it offers: {})", self.ways.join(", "))
    }
}
