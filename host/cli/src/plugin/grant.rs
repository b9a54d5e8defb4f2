//! `plugin grant`: what a component may do from now on, and that an update may come in.

use super::{
    component,
    inspect::{self, asked},
    standing,
    wanted::Wanted,
};
use crate::{
    Exit, Format, Global, block_on,
    failure::CommandError,
    render::list,
    terminal::{self, Answer},
    text::{PLAIN, Text},
};
use a2a_hub_agents::{KeptComponents, KeptCopy};
use a2a_hub_authoring::Component;
use a2a_hub_clock as clock;
use a2a_hub_config::{self as config, GrantsFile, ProgramFileError, Settings};
use a2a_hub_core::{
    difference::difference,
    grant::Grant,
    installation::{Installation, NewGrant},
};
use a2a_hub_protocol::id::AgentId;
use anyhow::{Context as _, anyhow};
use serde_json::json;

/// Nothing was granted, for nobody said what.
const NOT_GRANTED: &str = "NOTHING_GRANTED";

pub(super) fn grant(
    global: &Global,
    id: &str,
    sha256: Option<&str>,
    wanted: &Wanted,
) -> anyhow::Result<Exit> {
    let (id, component) = inspect::plugin(global, id)?;
    if let Some(meant) = sha256.filter(|meant| !meant.eq_ignore_ascii_case(&component.sha256)) {
        let why = format!(
            "grant `{id}` to the component with the digest {meant}: the one that is there has {}; look at it with `a2a-hub plugin \
             inspect {id}`",
            component.sha256
        );
        return Err(CommandError::new(NOT_GRANTED, why).into());
    }
    let grants = GrantsFile::of(&global.data_dir()?).read()?;
    let record = grants.continued_by(&id, &component.sha256);
    let Some(wanted) = confirmed(global, &id, &component, record, wanted)? else {
        global.console().note("nothing was granted");
        return Ok(Exit::Done);
    };
    give(global, &id, &component, &wanted)?;
    let plugin = standing::follow(global, &id)?;
    let told = json!({ "agentId": id, "sha256": component.sha256, "plugin": plugin });
    global.show(&told, || Ok(format!("{id}: {}\n", standing::line(plugin.as_ref())).into()))?;
    Ok(Exit::Done)
}

/// The differences of a component to the granted one, a line each; or that they cannot be told.
fn changes(
    kept: &KeptComponents,
    granted: &str,
    component: &Component,
) -> anyhow::Result<Vec<String>> {
    if granted.eq_ignore_ascii_case(&component.sha256) {
        return Ok(Vec::new());
    }
    Ok(match kept.look(granted).context("read the granted component")? {
        KeptCopy::Whole(old) => {
            let old = Component::of(component.path.clone(), old.to_vec())?;
            difference(&old.ask, &component.ask).iter().map(ToString::to_string).collect()
        }
        lacking @ (KeptCopy::Damaged(_) | KeptCopy::Missing(_)) => {
            vec![format!("~ what is different cannot be told: {lacking}")]
        }
    })
}

/// Records the grant, for this component and no other.
pub(super) fn give(
    global: &Global,
    id: &AgentId,
    component: &Component,
    wanted: &Wanted,
) -> anyhow::Result<()> {
    let settings = global.settings(Vec::new())?;
    let dir = settings.config.data_dir()?.to_owned();
    let key = wanted.key.as_deref().map(|word| key_of(&settings, word)).transpose()?;
    let file = GrantsFile::of(&dir);
    let grants = file.read()?;
    let before = grants.continued_by(id, &component.sha256);
    let base = before.map(|record| record.grant.clone()).unwrap_or_default();
    let grant = wanted.on_top_of(base, &component.ask)?;
    let (mut grant, wrong) = config::resolve(grant, &settings.config.agent(id).programs);
    for why in wrong {
        // Of all that it asks for, nobody meant one program in particular.
        if let ProgramFileError::Missing(name) = &why
            && wanted.all
            && !wanted.names(name)
        {
            global.console().note(format!("not granted, for it is not installed: {name}"));
            grant.process.remove(name);
            continue;
        }
        return Err(anyhow!(why).context(format!("grant it to `{id}`")));
    }
    let grant = grant.settled(&component.ask);
    // The one that is granted serves from the copy while another is held back.
    let kept = KeptComponents::of(&dir).keep(&component.bytes);
    kept.context("keep a copy of the component")?;
    let new = NewGrant {
        sha256: component.sha256.clone(),
        version: component.ask.version.clone(),
        source: component.path.display().to_string(),
        at: clock::now(),
        key: key.or_else(|| before?.key.clone()),
        dev: wanted.dev,
        grant,
    };
    let chance = getrandom::u32().context("name the installation")?;
    file.change(|all| all.grant(id, new, chance))?;
    Ok(())
}

/// The public key that is meant: one of the configuration, by its name, or the key itself.
fn key_of(settings: &Settings, word: &str) -> anyhow::Result<String> {
    if let Some(key) = settings.config.plugins.keys.get(word) {
        return Ok(key.clone());
    }
    let named = [("it".to_owned(), word.to_owned())];
    let check =
        a2a_hub_core::signature::TrustedKeys::named(named.iter().map(|(name, key)| (name, key)));
    check.map_err(|_| {
        CommandError::usage(format!(
            "let updates in that `{word}` signed: it is neither a name in `plugins.keys` of the configuration nor a public key of \
             minisign, which begins with `RW`"
        ))
    })?;
    Ok(word.to_owned())
}

/// What is to be granted once whoever sits at the terminal agreed; none if they did not. Who names it has agreed.
fn confirmed(
    global: &Global,
    id: &AgentId,
    component: &Component,
    record: Option<&Installation>,
    wanted: &Wanted,
) -> anyhow::Result<Option<Wanted>> {
    if !wanted.is_empty() {
        return Ok(Some(wanted.clone()));
    }
    let is_new = record.is_none_or(|record| record.grant == Grant::default());
    if !is_new
        && *wanted == Wanted::default()
        && record.is_some_and(|record| record.sha256 == component.sha256)
    {
        let why = format!(
            "grant more to `{id}`: it holds what it was granted, and nothing more is named; say what, as `a2a-hub plugin list` shows it"
        );
        return Err(CommandError::new(NOT_GRANTED, why).into());
    }
    let console = global.console();
    let is_attended = global.format == Format::Pretty && console.is_attended();
    let wanted = Wanted { all: is_new, ..wanted.clone() };
    if !is_attended {
        if !is_new {
            return Ok(Some(wanted));
        }
        let why = format!(
            "grant something to `{id}`: say what, such as `--all` or `--memory`; `a2a-hub plugin inspect {id}` shows what it asks for"
        );
        return Err(CommandError::new(NOT_GRANTED, why).into());
    }
    let mut shown = Text::new();
    if is_new {
        let told = component::to_json(component);
        asked(&mut shown, list(&told["asks"]), console.columns());
        shown.push(PLAIN, "Grant all of it, but for other agents and what must be named?");
    } else {
        let granted = record.map(|record| record.sha256.as_str()).unwrap_or_default();
        for change in changes(&KeptComponents::of(&global.data_dir()?), granted, component)? {
            shown.push(PLAIN, &format!("{change}\n"));
        }
        shown.push(PLAIN, "Let it in with what was granted before? What it asks for on top is not granted by that.");
    }
    shown.push(PLAIN, " [y/N]\n");
    console.prompt(&shown);
    let answer = block_on(terminal::ask(console, "y grants it; an empty answer grants nothing"))?;
    let agreed = matches!(answer, Answer::Text(word) if ["y", "yes"].contains(&word.trim().to_lowercase().as_str()));
    Ok(agreed.then_some(wanted))
}
