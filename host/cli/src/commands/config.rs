//! `config`: prints and checks the settings, with the source of each.

use super::start::note_missing_workspaces;
use crate::{Exit, Global};
use a2a_hub::builtin;
use a2a_hub_config::{Config, Settings, UnknownAgent, unset};
use a2a_hub_core::{discovery::did_you_mean, text::redact::is_secret};
use a2a_hub_sandbox::EngineSettings;
use anyhow::{Context as _, bail};
use clap::Subcommand;
use serde_json::json;
use std::{
    collections::BTreeSet,
    fmt::{self, Write as _},
    fs,
};
use toml::{Table, Value};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the effective settings, each with its source
    Show,
    /// Check that the hub can start with these settings
    Check,
}

pub(crate) fn config(global: &Global, command: &ConfigCommand) -> anyhow::Result<Exit> {
    let settings = global.settings(Vec::new())?;
    let file = settings.file.as_ref().map(|file| file.display().to_string());
    let shown = settings.config.with_defaults(EngineSettings::default().max_instances);
    let mut values = Table::try_from(&shown).context("write the settings as TOML")?;
    redact(&mut values);
    let answer = match command {
        ConfigCommand::Show => json!({ "file": file, "values": values }),
        ConfigCommand::Check => {
            note_missing_workspaces(global, &settings.config);
            require_known_agents(global, &settings.config)?;
            json!({ "file": file, "ok": true })
        }
    };
    global.show(&answer, || match command {
        ConfigCommand::Show => {
            let unset = unset(&values).into_iter().map(|name| format!("# {name}\n"));
            let unset = unset.collect::<String>();
            let set = settings_text(&settings, &values)?;
            let started = match settings.config.workspaces.is_empty() {
                true => "\n# agents work in the directory in which the hub is started\n",
                false => "",
            };
            Ok(format!("{set}{started}\n# settings without a value:\n{unset}").into())
        }
        ConfigCommand::Check => {
            let file = file.as_deref().unwrap_or("no configuration file; the defaults apply");
            Ok(format!("OK: {file}\n").into())
        }
    })?;
    Ok(Exit::Done)
}

/// Refuses the section of an agent whose name is nearly that of another one; notes other unknown
/// agents, which may be added later.
fn require_known_agents(global: &Global, config: &Config) -> anyhow::Result<()> {
    let mut known: BTreeSet<_> =
        builtin::COMPONENTS.0.iter().map(|(name, _)| (*name).to_owned()).collect();
    for (id, _) in config.agents.iter().filter(|(_, agent)| !agent.acp.is_empty()) {
        if !known.insert(id.to_string()) {
            bail!(
                "set `agents.{id}.acp`: a bundled agent is called `{id}`; take another name, such as `{id}-acp`"
            );
        }
    }
    let in_folder = |folder: &str, ending: &'static str| {
        let folder = global.data_dir().ok().and_then(|dir| fs::read_dir(dir.join(folder)).ok());
        let names =
            folder.into_iter().flatten().filter_map(|it| it.ok()?.file_name().into_string().ok());
        names.filter_map(|name| Some(name.strip_suffix(ending)?.to_owned())).collect::<Vec<_>>()
    };
    known.extend(in_folder("plugins", ".wasm"));
    known.extend(in_folder("flows", ".flow.toml"));
    for UnknownAgent { id, meant } in config.unknown_agents(&known) {
        let why = format!("use the section `[agents.{id}]`: no agent is called `{id}`");
        match meant {
            Some(meant) => bail!("{why}; {}", did_you_mean::question(&format!("[agents.{meant}]"))),
            None => global
                .console()
                .note(format!("warning: {why}; it counts once a plug-in of this name is added")),
        }
    }
    Ok(())
}

fn redact(table: &mut Table) {
    for (name, value) in table {
        if let Value::Table(section) = value {
            redact(section);
        } else if is_secret(name) {
            *value = Value::String("(set, and not shown)".to_owned());
        }
    }
}

/// Formats the settings as a configuration file with the source of each setting.
fn settings_text(settings: &Settings, values: &Table) -> Result<String, fmt::Error> {
    let mut out = String::new();
    section(&mut out, settings, &[], values)?;
    Ok(out)
}

fn section(out: &mut String, settings: &Settings, path: &[String], values: &Table) -> fmt::Result {
    let (sections, values): (Vec<_>, Vec<_>) =
        values.iter().partition(|(_, value)| value.is_table());
    // An empty section is significant: a program that is granted as requested.
    let needed = !values.is_empty() || (sections.is_empty() && path.len() > 1);
    if needed && !path.is_empty() {
        let gap = if out.is_empty() { "" } else { "\n" };
        writeln!(out, "{gap}[{}]", path.join("."))?;
    }
    for (name, value) in values {
        let origin = settings.origin(&[path, std::slice::from_ref(name)].concat());
        writeln!(out, "{:<40} # {origin}", format!("{name} = {value}"))?;
    }
    for (name, value) in sections {
        if let Value::Table(values) = value {
            section(out, settings, &[path, std::slice::from_ref(name)].concat(), values)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::CommandLine;
    use a2a_hub_config::Flag;
    use clap::Parser as _;
    use std::fs;

    #[test]
    fn settings_are_rendered_with_origins() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        fs::write(&file, "[agents.x.grant.process.git]\n[http]\nenabled = false\n").unwrap();
        let flag = Flag { name: "--http-port", key: &["http", "port"], value: 1.into() };
        let settings = Settings::load(Some(file), &[flag]).unwrap();
        let mut values = Table::try_from(&settings.config).unwrap();
        // Other sections change over time.
        values.retain(|name, _| ["http", "agents"].contains(&name));
        values["agents"]["x"].as_table_mut().unwrap().retain(|name, _| name == "grant");
        let shown = settings_text(&settings, &values).unwrap();
        let shown = shown.replace(&dir.path().display().to_string(), "DIR");
        insta::assert_snapshot!(shown, @r#"
        [agents.x.grant.process.git]

        [http]
        enabled = false                          # DIR/config.toml
        host = "127.0.0.1"                       # the default
        names = []                               # the default
        port = 1                                 # --http-port
        "#);
    }

    #[test]
    fn section_of_mistyped_agent_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().display().to_string();
        let args = ["a2a-hub", "--data-dir", &data, "config", "check"];
        let global = CommandLine::try_parse_from(args).unwrap().global;
        let of = |text: &str| require_known_agents(&global, &toml::from_str(text).unwrap());
        assert!(of("[agents.echo]\n[agents.brand-new]").is_ok());
        let why = of("[agents.ecoh]").unwrap_err().to_string();
        assert!(why.ends_with("did you mean `[agents.echo]`?"), "{why}");
        fs::create_dir(dir.path().join("plugins")).unwrap();
        fs::write(dir.path().join("plugins/ecoh.wasm"), "").unwrap();
        assert!(of("[agents.ecoh]").is_ok(), "a plug-in has this name");
        fs::create_dir(dir.path().join("flows")).unwrap();
        fs::write(dir.path().join("flows/codxe.flow.toml"), "").unwrap();
        assert!(of("[agents.codxe]").is_ok(), "a flow has this name");
        assert!(of("agents.mine.acp = ['opencode', 'acp']").is_ok(), "its name is like `vibe`");
        assert!(of("agents.mine.acp = []").is_err(), "nothing makes it an agent");
        let why = of("agents.echo.acp = ['opencode', 'acp']").unwrap_err().to_string();
        assert!(why.ends_with("take another name, such as `echo-acp`"), "{why}");
    }

    #[test]
    fn secrets_are_not_shown() {
        let mut values: Table =
            "openai_key = 'hush'\ntoken_env = 'TOKEN'\n[auth]\nadmin_token = 'hush'\nuser = 'me'"
                .parse()
                .unwrap();
        redact(&mut values);
        insta::assert_snapshot!(values.to_string(), @r#"
        openai_key = "(set, and not shown)"
        token_env = "TOKEN"

        [auth]
        admin_token = "(set, and not shown)"
        user = "me"
        "#);
    }
}
