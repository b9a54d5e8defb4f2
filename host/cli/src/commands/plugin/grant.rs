//! `plugin grant`: grants a component permissions and admits updates.

use super::{
    component, edit, grant_effect,
    grant_options::GrantOptions,
    inspect::{self, push_capabilities},
};
use crate::{
    Exit, Format, Global, block_on,
    ui::{
        console::Console,
        failure::CommandError,
        interactive,
        render::list,
        text::{PLAIN, Text},
    },
};
use a2a_hub_agents::{ComponentStore, PluginEdit, StoredCopy, missing_capabilities};
use a2a_hub_authoring::Component;
use a2a_hub_config::{self as config, GrantsFile, ProgramFileError, Settings};
use a2a_hub_core::{
    grant::Grant,
    plugin::{installation::Installation, manifest_diff::difference},
};
use a2a_hub_protocol::{
    id::AgentId,
    operation::{GrantPlugin, PluginGrant},
};
use anyhow::{Context as _, anyhow};
use serde_json::json;

/// Reason of a refusal: no permission was named.
const NOT_GRANTED: &str = "NOTHING_GRANTED";

pub(super) fn grant(
    global: &Global,
    id: &str,
    sha256: Option<&str>,
    wanted: &GrantOptions,
    dev: Option<bool>,
) -> anyhow::Result<Exit> {
    edit::require_operator(global, &format!("grant permissions to `{id}`"))?;
    let (id, component) = inspect::plugin(global, id)?;
    if let Some(meant) = sha256.filter(|meant| !meant.eq_ignore_ascii_case(&component.sha256)) {
        let why = format!(
            "grant permissions to the component of `{id}` with the digest {meant}: the present one \
             has {}; inspect it with `a2a-hub plugin inspect {id}`",
            component.sha256
        );
        return Err(CommandError::new(NOT_GRANTED, why).into());
    }
    let grants = GrantsFile::new(&global.data_dir()?).read()?;
    let record = grants.continued_by(&id, &component.sha256);
    // Ending the mark of a development loop names no permission.
    let is_complete = dev == Some(false) && record.is_some_and(|it| it.sha256 == component.sha256);
    let confirmed = match is_complete {
        true => Some(wanted.clone()),
        false => confirmed(global, &id, &component, record, wanted)?,
    };
    let Some(wanted) = confirmed else {
        global.console().note("nothing was granted");
        return Ok(Exit::Done);
    };
    let grant = PluginGrant { dev, ..planned(global, &id, &component, &wanted)? };
    let sha256 = component.sha256.clone();
    let granted = GrantPlugin { id: id.clone(), sha256, grant };
    let plugin = edit::edit(global, PluginEdit::Grant(Box::new(granted)))?;
    let output = json!({ "agentId": id, "sha256": component.sha256, "plugin": plugin });
    global
        .show(&output, || Ok(format!("{id}: {}\n", grant_effect::line(plugin.as_ref())).into()))?;
    Ok(Exit::Done)
}

/// Lists the differences to the granted component, one per line, or states that they are unknown.
fn changes(
    copies: &ComponentStore,
    granted: &str,
    component: &Component,
) -> anyhow::Result<Vec<String>> {
    if granted.eq_ignore_ascii_case(&component.sha256) {
        return Ok(Vec::new());
    }
    Ok(match copies.load(granted).context("read the granted component")? {
        StoredCopy::Intact(old) => {
            let old = Component::new(component.path.clone(), old.to_vec())?;
            difference(&old.ask, &component.ask).iter().map(ToString::to_string).collect()
        }
        lacking @ (StoredCopy::Damaged(_) | StoredCopy::Missing(_)) => {
            vec![format!("~ the differences are unknown: {lacking}")]
        }
    })
}

/// Builds the grant for the component, on top of its plug-in's present grant. Programs are resolved
/// through this command's `PATH`.
pub(super) fn planned(
    global: &Global,
    id: &AgentId,
    component: &Component,
    wanted: &GrantOptions,
) -> anyhow::Result<PluginGrant> {
    let settings = global.settings(Vec::new())?;
    let key = wanted.key.as_deref().map(|word| key_of(&settings, word)).transpose()?;
    let grants = GrantsFile::new(settings.config.data_dir()?).read()?;
    let before = grants.continued_by(id, &component.sha256).map(|record| record.grant.clone());
    let grant = wanted.on_top_of(before.clone().unwrap_or_default(), &component.ask)?;
    let (mut grant, wrong) = config::resolve(grant, &settings.config.agent(id).programs);
    for why in wrong {
        // With `--all`, a missing program was not named by the operator, so it is skipped.
        if let ProgramFileError::Missing(name) = &why
            && wanted.all
            && !wanted.names(name)
        {
            global.console().note(format!("not granted, because it is not installed: {name}"));
            grant.process.remove(name);
            continue;
        }
        return Err(anyhow!(why).context(format!("grant it to `{id}`")));
    }
    Ok(PluginGrant {
        grant: json!(grant),
        before: before.map(|before| json!(before)),
        key,
        dev: wanted.dev.then_some(true),
        source: Some(component.path.display().to_string()),
    })
}

/// Resolves a public key: a name from the configuration, or the key itself.
fn key_of(settings: &Settings, word: &str) -> anyhow::Result<String> {
    if let Some(key) = settings.config.plugins.keys.get(word) {
        return Ok(key.clone());
    }
    let named = [("it".to_owned(), word.to_owned())];
    let check = a2a_hub_core::plugin::signature::TrustedKeys::named(
        named.iter().map(|(name, key)| (name, key)),
    );
    check.map_err(|_| {
        CommandError::usage(format!(
            "accept updates that are signed by `{word}`: it is neither a name in `plugins.keys` of \
             the configuration nor a minisign public key, which begins with `RW`"
        ))
    })?;
    Ok(word.to_owned())
}

/// Returns the permissions to grant after the user has confirmed them; `None` if the user declines.
/// Named permissions need no confirmation.
fn confirmed(
    global: &Global,
    id: &AgentId,
    component: &Component,
    record: Option<&Installation>,
    wanted: &GrantOptions,
) -> anyhow::Result<Option<GrantOptions>> {
    if !wanted.is_empty() {
        return Ok(Some(wanted.clone()));
    }
    let is_new = record.is_none_or(|record| record.grant == Grant::default());
    if !is_new
        && *wanted == GrantOptions::default()
        && record.is_some_and(|record| record.sha256 == component.sha256)
    {
        let why = format!(
            "grant more to `{id}`: no permission is named; name one that `a2a-hub plugin list` \
             shows as missing"
        );
        return Err(CommandError::new(NOT_GRANTED, why).into());
    }
    let console = global.console();
    let is_attended = global.format == Format::Pretty && console.is_attended();
    let wanted = GrantOptions { all: is_new, ..wanted.clone() };
    if !is_attended {
        if !is_new {
            return Ok(Some(wanted));
        }
        let why = format!(
            "grant permissions to `{id}`: none is named; name some, such as `--all` or `--memory`; \
             `a2a-hub plugin inspect {id}` shows what it asks for"
        );
        return Err(CommandError::new(NOT_GRANTED, why).into());
    }
    let mut shown = Text::new();
    if is_new {
        let details = component::to_json(component);
        push_capabilities(&mut shown, list(&details["asks"]), console.columns());
        shown.push(PLAIN, "Grant all of it, except calls of other agents and what must be named?");
    } else {
        let granted = record.map(|record| record.sha256.as_str()).unwrap_or_default();
        for change in changes(&ComponentStore::for_grants(&global.data_dir()?), granted, component)?
        {
            shown.push(PLAIN, &format!("{change}\n"));
        }
        let present = record.map(|record| record.grant.clone()).unwrap_or_default();
        let beyond = json!(missing_capabilities(&component.ask, &present));
        if let further @ [_, ..] = list(&beyond) {
            shown.push(PLAIN, "Beyond its present grant: ");
            push_capabilities(&mut shown, further, console.stderr_columns());
            return update(console, &mut shown, wanted);
        }
        shown.push(PLAIN, "Approve it with its present grant? It asks for nothing further.");
    }
    shown.push(PLAIN, " [y/N]\n");
    console.prompt(&shown);
    let answer =
        block_on(interactive::ask(console, "y grants it; an empty answer grants nothing"))?;
    Ok(answer.is_one_of(&["y", "yes"]).then_some(wanted))
}

/// Asks what an update that wants more than its present grant gets.
fn update(
    console: Console,
    shown: &mut Text,
    wanted: GrantOptions,
) -> anyhow::Result<Option<GrantOptions>> {
    shown.push(
        PLAIN,
        "Approve the update? [a]ll that it asks for, except calls of other agents and what must \
         be named; [o]nly what it had; [n]o\n",
    );
    console.prompt(shown);
    let hint = "a, o or n; an empty answer approves nothing";
    let answer = block_on(interactive::ask(console, hint))?;
    Ok(if answer.is_one_of(&["a", "all"]) {
        Some(GrantOptions { all: true, ..wanted })
    } else {
        answer.is_one_of(&["o", "only"]).then_some(wanted)
    })
}
