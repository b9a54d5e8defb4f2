//! `config`: prints and checks the settings, with the source of each.

use crate::{Exit, Global};
use a2a_hub_config::Settings;
use a2a_hub_core::text::redact::is_secret;
use anyhow::{Context as _, bail};
use clap::Subcommand;
use serde_json::json;
use std::fmt::{self, Write as _};
use toml::{Table, Value};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the effective settings, each with its source
    Show,
    /// Check that the hub can start with these settings
    Check,
}

pub(crate) fn config(global: &Global, command: &Command) -> anyhow::Result<Exit> {
    let settings = global.settings(Vec::new())?;
    let file = settings.file.as_ref().map(|file| file.display().to_string());
    let mut values = Table::try_from(&settings.config).context("write the settings as TOML")?;
    redact(&mut values);
    let answer = match command {
        Command::Show => json!({ "file": file, "values": values }),
        Command::Check => {
            let config = &settings.config;
            let of_agents = config.agents.values().flat_map(|agent| &agent.workspaces).flatten();
            for workspace in config.workspaces.iter().chain(of_agents) {
                if !workspace.is_dir() {
                    bail!("use the workspace {}: there is no such directory", workspace.display());
                }
            }
            json!({ "file": file, "ok": true })
        }
    };
    global.show(&answer, || match command {
        Command::Show => Ok(settings_text(&settings, &values)?.into()),
        Command::Check => {
            let file = file.as_deref().unwrap_or("no configuration file; the defaults apply");
            Ok(format!("OK: {file}\n").into())
        }
    })?;
    Ok(Exit::Done)
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
    use a2a_hub_config::Flag;
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
        port = 1                                 # --http-port
        "#);
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
