//! Agents that drive a program of the Agent Client Protocol: requests, settings and card of each,
//! made of the bundled component's, the configuration and the catalogue.

use a2a_hub_config::{AcpProgram, AgentConfig};
use a2a_hub_core::{
    grant::{Ask, ProgramAsk, argument_patterns::Forms},
    text::plain_text::line,
};
use a2a_hub_protocol::{card::AgentCard, id::AgentId};
use serde::Deserialize;
use serde_json::json;

/// Program in the component's manifest that stands for that of the configuration.
const TEMPLATE: &str = "program";

/// Memory key under which the component stores what the program says of itself.
pub(crate) const INTRODUCTION: &str = "introduction";

/// Longest name and version on a card, in characters.
const MAX_NAME: usize = 60;

/// Longest list of modes or models on a card, in characters.
const MAX_LIST: usize = 600;

/// Facts that a program states about itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Introduction {
    name: Option<String>,
    version: Option<String>,
    modes: Vec<String>,
    models: Vec<String>,
}

/// Requests of the agent: those of the component, for exactly this program with these arguments.
pub(crate) fn ask(template: &Ask, program: &AcpProgram) -> Ask {
    let mut ask = template.clone();
    let mut program_ask = ask.process.remove(TEMPLATE).unwrap_or_default();
    // The configuration's check refuses a command line that is no pattern.
    program_ask.args = Forms::try_from(vec![program.args.clone()]).unwrap_or_default();
    if let Some(entry) = program.entry {
        let ProgramAsk { pass, set, keeps, .. } = &mut program_ask;
        pass.extend(entry.pass.iter().cloned());
        set.extend(entry.set.keys().cloned());
        keeps.extend(entry.keeps.iter().cloned());
    }
    ask.process.insert(program.name.clone(), program_ask);
    ask
}

/// Settings of the agent with the path of its program, if the command line names one.
pub(crate) fn furnished(id: &AgentId, mut config: AgentConfig) -> AgentConfig {
    if let Some(AcpProgram { name, path: Some(path), .. }) = config.acp_program(id) {
        config.programs.entry(name).or_insert(path);
    }
    config
}

/// Setting by which the component learns of its program.
pub(super) fn setting(id: &AgentId, config: &AgentConfig) -> Option<(String, String)> {
    let AcpProgram { name, args, entry, .. } = config.acp_program(id)?;
    let mut text = json!({ "name": id.as_str(), "program": name, "args": args });
    if let Some(entry) = entry {
        text = json!({
            "name": entry.name, "program": name, "args": args,
            "install": entry.install(), "login": entry.login, "tested": entry.tested,
            "set": entry.set, "modes": entry.modes, "login_method": entry.login_method,
            "usage_is_of_session": entry.usage_is_of_session,
        });
    }
    Some(("acp".to_owned(), text.to_string()))
}

/// Card of the agent: name and version by the program itself once it was started, and until then by
/// the catalogue or the configuration.
pub(crate) fn card(
    id: &AgentId,
    program: &AcpProgram,
    template: AgentCard,
    introduction: &Introduction,
) -> AgentCard {
    let of_entry = program.entry.map(|entry| entry.name.clone());
    let name = introduction.name.as_deref().map(|name| line(name, MAX_NAME)).or(of_entry);
    let version = introduction.version.as_deref().map(|version| line(version, MAX_NAME));
    let about = match program.entry {
        Some(entry) => entry.about.clone(),
        None => format!("Drives `{}` by the Agent Client Protocol", program.name),
    };
    let list = |label: &str, all: &[String]| match all {
        [] => String::new(),
        all => format!(". {label}: {}", line(&all.join(", "), MAX_LIST)),
    };
    let description = format!(
        "{about}{}{}",
        list("Modes", &introduction.modes),
        list("Models", &introduction.models)
    );
    AgentCard {
        name: name.unwrap_or_else(|| id.to_string()),
        version: version.unwrap_or_else(|| template.version.clone()),
        description,
        ..template
    }
}

/// Introduction in the form in which the component stores it; empty if it cannot be read.
pub(crate) fn introduction(stored: Option<Vec<u8>>) -> Introduction {
    stored.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}
