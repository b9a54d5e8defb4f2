//! `plugin diff`: compares what an update and the granted component ask for.

use super::component::{self, NO_PLUGIN};
use crate::{
    Exit, Global,
    ui::{
        failure::CommandError,
        text::{PLAIN, Text},
    },
};
use a2a_hub_agents::{ComponentStore, StoredCopy};
use a2a_hub_authoring::Component;
use a2a_hub_config::GrantsFile;
use a2a_hub_core::plugin::manifest_diff::difference;
use anyhow::Context as _;
use serde_json::json;
use std::path::Path;

pub(super) fn diff(global: &Global, id: &str, file: Option<&Path>) -> anyhow::Result<Exit> {
    let id = component::name(id)?;
    let new = match file {
        Some(file) => Component::read(file)?,
        None => component::of_plugin(global, &id)?,
    };
    let dir = global.data_dir()?;
    let record = GrantsFile::new(&dir).read()?.plugins.remove(&id);
    let record = record.ok_or_else(|| {
        let why = format!(
            "compare `{id}` with the granted component: nothing was ever granted; `a2a-hub plugin \
             inspect {id}` shows what it asks for"
        );
        CommandError::new(NO_PLUGIN, why).mended_by(format!("a2a-hub plugin inspect {id}"))
    })?;
    let copy = ComponentStore::for_grants(&dir)
        .load(&record.sha256)
        .context("read the granted component")?;
    let (old, lacking) = match copy {
        StoredCopy::Intact(bytes) => (Component::new(new.path.clone(), bytes.to_vec())?, None),
        lacking @ (StoredCopy::Damaged(_) | StoredCopy::Missing(_))
            if record.sha256.eq_ignore_ascii_case(&new.sha256) =>
        {
            (Component::new(new.path.clone(), new.bytes.clone())?, Some(lacking))
        }
        lacking @ (StoredCopy::Damaged(_) | StoredCopy::Missing(_)) => {
            let why = format!(
                "compare `{id}` with the granted component ({}): {lacking}, so the differences are \
                 unknown; `a2a-hub plugin inspect {id}` shows all that the new one asks for, and \
                 `a2a-hub plugin grant {id}` approves it; `a2a-hub plugin add FILE` puts the \
                 granted one back",
                record.sha256
            );
            return Err(CommandError::new(NO_PLUGIN, why)
                .mended_by(format!("a2a-hub plugin inspect {id}"))
                .into());
        }
    };
    let changes: Vec<_> = difference(&old.ask, &new.ask).iter().map(ToString::to_string).collect();
    let lacking = lacking.map(|lacking| lacking.to_string());
    let comparison = json!({ "agentId": id, "granted": old.sha256, "new": new.sha256, "changes": changes,
        "copyLacking": lacking });
    global.show(&comparison, || {
        let mut out = Text::new();
        out.push(PLAIN, &format!("granted {}\nnew     {}\n", old.sha256, new.sha256));
        match (old.sha256 == new.sha256, changes.as_slice()) {
            (true, _) => out.push(PLAIN, "it is the granted component\n"),
            (false, []) => out.push(PLAIN, "it asks for the same permissions; its code differs\n"),
            (false, changes) => {
                for change in changes {
                    out.push(PLAIN, &format!("{change}\n"));
                }
            }
        }
        if let Some(lacking) = &lacking {
            let mend = "`a2a-hub restart`, or the next start, makes a new copy";
            out.push(PLAIN, &format!("{lacking}; {mend}\n"));
        }
        Ok(out)
    })?;
    Ok(if lacking.is_none() { Exit::Done } else { Exit::Fault })
}
