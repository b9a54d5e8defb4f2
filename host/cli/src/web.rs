//! `web`: opens the hub's page in a browser, pairs that browser with the hub, and lists or removes
//! paired ones.

use crate::{
    Exit, Global,
    client::hub_client::ask,
    ui::{
        console::Console,
        failure::CommandError,
        interactive,
        render::{ago, list, text},
        table::Table,
        text::Text,
    },
};
use a2a_hub_config::{private_file, runtime_dir, shows_windows};
use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::sleep;

/// Interval at which the state of a pairing is read.
const POLL: Duration = Duration::from_millis(300);

/// File that leads a browser to the page. It holds the token of a pairing, which a command line
/// would show to other users.
const REDIRECT_FILE: &str = "open-page.html";

/// Arguments of `web`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct WebArgs {
    #[command(subcommand)]
    command: Option<WebCommand>,
    /// Print the address, and open no browser
    #[arg(long)]
    no_open: bool,
}

/// Commands of `web`.
#[derive(Debug, Subcommand)]
pub(crate) enum WebCommand {
    /// List the paired browsers
    List,
    /// Remove paired browsers; their open pages end at once
    Remove {
        /// Ids of the browsers
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

/// Carries out `web`.
pub(crate) fn web(global: &Global, args: &WebArgs) -> anyhow::Result<Exit> {
    match &args.command {
        None => pair(global, args.no_open),
        Some(WebCommand::List) => {
            let devices = ask(global, "hub/devices/list", json!({}))?;
            let columns = global.console().columns();
            global.show(&devices, || Ok(devices_text(&devices, Timestamp::now(), columns)))?;
            Ok(Exit::Done)
        }
        Some(WebCommand::Remove { ids }) => {
            for id in ids {
                let removed = ask(global, "hub/devices/remove", json!({ "id": id }))?;
                let line =
                    format!("removed {}, {}\n", text(&removed["id"]), text(&removed["name"]));
                global.show(&removed, || Ok(line.into()))?;
            }
            Ok(Exit::Done)
        }
    }
}

/// Opens the page, and pairs the browser that shows it once the user has compared the code.
fn pair(global: &Global, no_open: bool) -> anyhow::Result<Exit> {
    let console = global.console();
    if !console.is_attended() {
        let why = "a browser is paired by your yes in a terminal, and this is none";
        return Err(CommandError::new("NoTerminal", why).mended_by("a2a-hub web").into());
    }
    let offered = ask(global, "hub/devices/pair", json!({}))?;
    let (token, page) = (text(&offered["token"]), text(&offered["page"]));
    let address = format!("{page}pair#{token}");
    let redirect = match no_open || !shows_windows() {
        true => None,
        false => open(global, &address, console),
    };
    if redirect.is_none() {
        console.note(format!(
            "open this address in a browser, within a minute; it is a secret:\n{address}"
        ));
    } else {
        console.note(format!("the browser opens {page}; if it does not: a2a-hub web --no-open"));
    }
    let paired = follow(global, token, console);
    if let Some(file) = redirect {
        let removed = private_file::ok_if_missing(fs::remove_file(&file));
        removed.with_context(|| format!("remove {}", file.display()))?;
    }
    paired
}

/// Follows a pairing to its end.
fn follow(global: &Global, token: &str, console: Console) -> anyhow::Result<Exit> {
    loop {
        let pairing = ask(global, "hub/devices/pairing", json!({ "token": token }))?;
        let name = text(&pairing["name"]);
        match text(&pairing["state"]) {
            "offered" => crate::block_on(async {
                sleep(POLL).await;
                Ok(())
            })?,
            "presented" => {
                let code = text(&pairing["code"]);
                console.note(format!(
                    "the browser `{name}` wants to be paired. It may do what you may, but not add agents or change their \
                     permissions.\nIts page shows a code. Pair it if that code is {code} [y/N]"
                ));
                let answer = crate::block_on(interactive::ask(
                    console,
                    "y pairs it; an empty answer refuses it",
                ))?;
                let accept = answer.is_one_of(&["y", "yes"]);
                let decision = json!({ "token": token, "code": code, "accept": accept });
                ask(global, "hub/devices/confirm", decision)?;
                if !accept {
                    console.note("the browser was not paired");
                    return Ok(Exit::Done);
                }
                console.note(format!("paired: {name}. `a2a-hub web list` lists paired browsers"));
                return Ok(Exit::Done);
            }
            "paired-before" => {
                console.note(format!("this browser is paired already: {name}"));
                return Ok(Exit::Done);
            }
            _ => {
                let why = pairing["reason"].as_str().unwrap_or("the pairing has ended");
                return Err(CommandError::new("NotPaired", why).mended_by("a2a-hub web").into());
            }
        }
    }
}

/// Opens a browser at an address by a file that leads there. Returns the file, or nothing if no
/// browser can be opened.
fn open(global: &Global, address: &str, console: Console) -> Option<PathBuf> {
    let opened = write_redirect(global, address).and_then(|file| {
        if let Err(why) = open::that_detached(&file) {
            private_file::ok_if_missing(fs::remove_file(&file))?;
            return Err(why.into());
        }
        Ok(file)
    });
    opened.map_err(|why| console.note(format!("no browser can be opened: {why:#}"))).ok()
}

fn write_redirect(global: &Global, address: &str) -> anyhow::Result<PathBuf> {
    let dir = match runtime_dir() {
        Some(dir) => dir,
        None => global.data_dir()?,
    };
    let file = dir.join(REDIRECT_FILE);
    if !is_plain(address) {
        bail!("the hub's address `{address}` is not one");
    }
    let page = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0;url={address}\"><title>a2a-hub</title>\n"
    );
    write_private(&file, &page)?;
    Ok(file)
}

/// True if an address needs no escapes in HTML.
fn is_plain(address: &str) -> bool {
    address.chars().all(|c| c.is_ascii_alphanumeric() || ":/#.[]-".contains(c))
}

fn write_private(file: &Path, text: &str) -> anyhow::Result<()> {
    private_file::replace(file, text.as_bytes())
        .with_context(|| format!("write {}", file.display()))
}

/// Renders paired browsers as a table.
fn devices_text(devices: &Value, now: Timestamp, columns: Option<usize>) -> Text {
    let devices = list(&devices["devices"]);
    if devices.is_empty() {
        return "no browser is paired; `a2a-hub web` opens the page and pairs one\n".into();
    }
    let mut table = Table::new(["ID", "BROWSER", "PAIRED", "USED"]);
    for device in devices {
        let time = |value: &Value| match columns {
            Some(_) => ago(value, now),
            None => text(value).to_owned(),
        };
        let (paired, used) = (time(&device["pairedAt"]), time(&device["lastUsedAt"]));
        let (id, name) = (text(&device["id"]).to_owned(), text(&device["name"]).to_owned());
        table.row([id.into(), name.into(), paired.into(), used.into()]);
    }
    table.text(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paired_browsers_are_listed() {
        let devices = json!({ "devices": [
            { "id": "ab12cd34", "name": "Chromium on Linux", "pairedAt": "2026-01-31T11:58:00Z",
              "lastUsedAt": "2026-01-31T11:59:00Z" },
        ] });
        let now = "2026-01-31T12:00:00Z".parse().unwrap();
        let shown = devices_text(&devices, now, Some(80)).words();
        assert!(shown.contains("ab12cd34") && shown.contains("2 min ago"), "{shown}");
        let none = devices_text(&json!({ "devices": [] }), now, None).words();
        assert!(none.contains("a2a-hub web"), "{none}");
    }

    #[test]
    fn address_in_redirect_needs_no_escapes() {
        assert!(is_plain("http://127.0.0.1:8080/ui/pair#0a1b") && is_plain("http://[::1]:80/ui/"));
        for hostile in ["http://x/\"><script>", "http://x/ y", "javascript:alert(1)"] {
            assert!(!is_plain(hostile), "{hostile}");
        }
    }
}
